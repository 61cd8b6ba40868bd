//! A run that passes through the recorded state, for every snapshot of jobs in memory.

use std::collections::BTreeSet;

use cutline::apps::{Bank, Token};
use cutline::check::{NoWitness, Recorded, Witness, linearise, witness};
use cutline::protocol::collector::Request;
use cutline::protocol::ids::{ProcessId, SnapshotId};
use cutline::protocol::trace::Event;
use cutline::world::World;
use serde_json::json;

use crate::stage::{bank, complete, events, job, logged, origin, parts, run};

fn made(world: &World<Bank>, generation: u64, snapshot: SnapshotId) -> Witness {
    let events = events(world, generation);
    let recorded = Recorded::of(&world.job().topology, &parts(world, snapshot));
    witness::<Bank>(&origin(world, generation), &events, snapshot, &recorded).unwrap()
}

#[test]
fn every_snapshot_has_one_and_most_recorded_states_never_were() {
    let (mut all, mut never, mut from_a_snapshot) = (0, 0, 0);
    for seed in 20..26 {
        let world = run(bank(seed), true);
        for generation in [1, 2] {
            for snapshot in complete(&world, generation) {
                let made = made(&world, generation, snapshot);
                assert!(made.holds(), "seed {seed}, {snapshot}: {:?}", made.unlike);
                assert!(
                    made.occurred.is_some() || made.swaps > 0,
                    "seed {seed}, {snapshot}"
                );
                all += 1;
                never += usize::from(made.occurred.is_none());
                from_a_snapshot += usize::from(generation > 1);
            }
        }
    }
    assert!(never > 0 && never < all, "{never} of {all} never occurred");
    assert!(from_a_snapshot > 0);
}

#[test]
fn the_moved_run_has_the_same_events_and_the_swaps_are_those_of_neighbours() {
    let world = run(bank(21), false);
    let snapshot = complete(&world, 1)[1];
    let made = made(&world, 1, snapshot);
    assert!(made.swaps > 0);
    // Sorted by exchanging neighbours, one at a time.
    let mut sides: Vec<_> = made.logged.iter().map(|step| !step.is_before).collect();
    let mut swaps = 0;
    while let Some(at) = sides.windows(2).position(|pair| pair[0] && !pair[1]) {
        sides.swap(at, at + 1);
        swaps += 1;
    }
    assert_eq!(swaps, made.swaps);
    for process in world.job().topology.processes() {
        let of = |steps: &[cutline::check::Step]| {
            let own = steps.iter().filter(|step| step.event.process == process);
            own.map(|step| step.event.clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&made.logged),
            of(&made.moved),
            "each keeps its own order"
        );
    }
    let places = made.logged.iter().zip(&made.moved);
    for (logged, moved) in places {
        assert_eq!(!logged.is_moved, logged.event == moved.event);
    }
}

#[test]
fn another_order_of_the_same_run_needs_other_swaps_and_holds_as_well() {
    let world = run(bank(22), false);
    let events = events(&world, 1);
    let late = |place: usize, event: &Event| place as u64 + 1000 * u64::from(event.process.get());
    let order = linearise(&logged(&events, late));
    for snapshot in complete(&world, 1) {
        let recorded = Recorded::of(&world.job().topology, &parts(&world, snapshot));
        let made = witness::<Bank>(&origin(&world, 1), &order.events, snapshot, &recorded).unwrap();
        assert!(made.holds());
    }
}

#[test]
fn a_state_or_channel_that_was_not_recorded_so_is_named() {
    let world = run(bank(23), false);
    let snapshot = complete(&world, 1)[0];
    let topology = &world.job().topology;
    let right = Recorded::of(topology, &parts(&world, snapshot));
    let (origin, events) = (origin(&world, 1), events(&world, 1));
    let mut wrong = right.clone();
    wrong.states.swap(0, 1);
    let made = witness::<Bank>(&origin, &events, snapshot, &wrong).unwrap();
    assert_eq!(made.unlike, ["the state of p1", "the state of p2"]);
    assert!(made.ends_alike && !made.holds());
    let mut wrong = right;
    let filled = wrong
        .channels
        .iter_mut()
        .find(|(_, content)| !content.is_empty());
    let (&channel, content) = filled.expect("a message is in a channel");
    content.pop();
    let made = witness::<Bank>(&origin, &events, snapshot, &wrong).unwrap();
    assert_eq!(made.unlike, [format!("what is in {channel}")]);
}

#[test]
fn a_trace_that_does_not_reach_the_cut_or_says_otherwise_has_none() {
    let world = run(bank(24), false);
    let snapshot = complete(&world, 1)[0];
    let recorded = Recorded::of(&world.job().topology, &parts(&world, snapshot));
    let (origin, mut events) = (origin(&world, 1), events(&world, 1));
    let records = |event: &Event| event.what.records(snapshot) && event.process.index() == 0;
    let at = events.iter().position(records).unwrap();
    let record = events.remove(at);
    let missing = witness::<Bank>(&origin, &events, snapshot, &recorded);
    let no_record = NoWitness::NoRecord {
        snapshot,
        process: "p1".to_owned(),
    };
    assert_eq!(missing.unwrap_err(), no_record);
    // It says to have recorded this state when it had another.
    events.insert(3, record);
    let refused = witness::<Bank>(&origin, &events, snapshot, &recorded);
    assert!(matches!(refused, Err(NoWitness::Differs(_))), "{refused:?}");
}

#[test]
fn the_moved_run_of_an_inconsistent_cut_breaks_where_nothing_was_sent() {
    let balances = json!({ "balance": 1 });
    let mut world: World<Token> = World::new(job("token", &["p1→p2"], balances, 1)).unwrap();
    assert!(world.stabilize(1000));
    // A message that changes no state, so that no state tells.
    world.command(ProcessId::new(0), "send p2 0");
    assert!(world.stabilize(1000));
    let initiators = BTreeSet::new();
    world.ask(Request::snapshot(initiators));
    assert!(world.stabilize(1000));
    let snapshot = complete(&world, 1)[0];
    let recorded = Recorded::of(&world.job().topology, &parts(&world, snapshot));
    let (origin, mut events) = (origin(&world, 1), events(&world, 1));
    let made = witness::<Token>(&origin, &events, snapshot, &recorded).unwrap();
    assert!(made.holds());
    let records = |event: &Event| event.what.records(snapshot) && event.process.index() == 0;
    let at = events.iter().position(records).unwrap();
    let record = events.remove(at);
    let start = events.iter().position(|event| event.process.index() == 0);
    events.insert(start.unwrap() + 1, record);
    let made = witness::<Token>(&origin, &events, snapshot, &recorded).unwrap();
    let broken = made.broken.as_ref().unwrap();
    assert_eq!(broken.got, "nothing on p1→p2");
    assert!(!made.holds());
}
