//! The example in section 4 of Chandy and Lamport (1985): two processes p and q, a channel each
//! way, and a recorded state that never was.
//!
//! p records and sends its marker; then p sends M, q sends M', p receives M'. Only now does the
//! marker reach q, which records; and q's marker reaches p. Recorded are p before M, q behind M',
//! nothing in p→q, and M' in q→p.

use std::collections::BTreeSet;

use cutline::apps::Token;
use cutline::check::{Recorded, witness};
use cutline::protocol::collector::Request;
use cutline::protocol::ids::{ChannelId, ProcessId};
use cutline::world::{Choice, World};
use serde_json::json;

use crate::stage::{complete, events, job, origin, parts};

#[test]
fn the_state_of_the_papers_example_never_occurred_and_is_one_swap_away() {
    let (p, q) = (ProcessId::new(0), ProcessId::new(1));
    let (there, back) = (ChannelId::new(p, q), ChannelId::new(q, p));
    let mut job = job("token", &["p1→p2", "p2→p1"], json!({ "balance": 1 }), 1);
    job.policy.initiators = BTreeSet::from([p]);
    let mut world: World<Token> = World::new(job).unwrap();
    assert!(world.stabilize(1000));

    world.ask(Request::snapshot(BTreeSet::new()));
    let on_streams = |choice: &Choice| {
        matches!(
            choice,
            Choice::Send(_) | Choice::Arrive(_) | Choice::Take(_)
        )
    };
    let quiet = |choice: &Choice| !on_streams(choice) && !matches!(choice, Choice::Tick(_));
    while let Some(choice) = world.choices().into_iter().find(quiet) {
        world.apply(&choice);
    }
    world.command(p, "send p2 1");
    world.command(q, "send p1 1");
    for choice in [Choice::Send(back), Choice::Arrive(back), Choice::Take(back)] {
        world.apply(&choice);
    }
    assert!(
        world.choices().contains(&Choice::Send(there)),
        "the marker has not left p"
    );
    assert!(world.stabilize(1000));

    let [snapshot] = complete(&world, 1)[..] else {
        panic!("one snapshot");
    };
    let recorded = Recorded::of(&world.job().topology, &parts(&world, snapshot));
    assert!(recorded.channels[&there].is_empty());
    assert_eq!(recorded.channels[&back], [1u64.to_le_bytes().to_vec()]);
    let events = events(&world, 1);
    let made = witness::<Token>(&origin(&world, 1), &events, snapshot, &recorded).unwrap();
    assert!(made.holds());
    assert_eq!((made.before, made.swaps, made.occurred), (1, 1, None));
    let of = |steps: &[cutline::check::Step]| {
        let steps = steps
            .iter()
            .map(|step| (step.event.process, step.is_before));
        steps.collect::<Vec<_>>()
    };
    // M, M', the receipt of M' by p, and at last that of M by q.
    assert_eq!(
        of(&made.logged),
        [(p, false), (q, true), (p, false), (q, false)]
    );
    assert_eq!(
        of(&made.moved),
        [(q, true), (p, false), (p, false), (q, false)]
    );
}
