//! Every application that comes with the crate, and the one in `examples/`, through snapshots and
//! a crash: on random schedules what it names as conserved is conserved, in every cut.

#[allow(dead_code, reason = "its main is the example's, not this test's")]
#[path = "../examples/counter.rs"]
pub mod counter;
#[path = "traces/memory.rs"]
mod memory;

use std::collections::BTreeSet;

use cutline::apps::{BuiltIn, SplitMix64};
use cutline::protocol::application::{Application, Quantities};
use cutline::protocol::collector::Request;
use cutline::protocol::cut::add;
use cutline::protocol::ids::{ChannelId, ProcessId};
use cutline::protocol::records::End;
use cutline::protocol::{Process, Topology};
use cutline::world::{Choice, Fault, Job, World};
use serde_json::{Value, json};

const PROCESSES: u32 = 3;
const SEEDS: u64 = 20;
/// Far more than these jobs need to come to rest.
const STEPS_MAX: usize = 100_000;

fn job(application: &str, settings: Value, seed: u64) -> Job {
    let processes = || (0..PROCESSES).map(ProcessId::new);
    let pairs = processes().flat_map(|from| processes().map(move |to| (from, to)));
    let channels = pairs.filter(|(from, to)| from != to);
    let channels = channels.map(|(from, to)| ChannelId::new(from, to));
    let names = processes().map(|process| process.to_string()).collect();
    let topology = Topology::new(names, channels).expect("a mesh");
    memory::job(topology, (application, settings), seed, false)
}

/// Some hundred random steps with snapshots among them and a crash in the middle.
fn run<A: Application>(job: Job) -> World<A> {
    let mut random = SplitMix64::new(job.seed, ProcessId::new(0));
    let mut world = World::<A>::new(job).expect("a job that can start");
    assert!(world.stabilize(STEPS_MAX), "the job starts");
    for step in 0..400 {
        let choices = world.choices();
        let place = random.below(choices.len() as u64);
        if let Some(choice) = choices.get(usize::try_from(place).expect("below a length")) {
            world.apply(choice);
        }
        let process = ProcessId::new(u32::try_from(random.below(3)).expect("below three"));
        match step {
            200 => world.apply(&Choice::Fault(Fault::Crash(process))),
            _ if step % 40 == 20 => {
                let initiators = BTreeSet::from([process]);
                world.ask(Request::snapshot(initiators));
            }
            _ if world.job().application == "token" => {
                let to = ProcessId::new((process.get() + 1) % PROCESSES);
                world.command(process, &format!("send {to} {}", random.below(4)));
            }
            _ => {}
        }
    }
    assert!(world.stabilize(STEPS_MAX), "the job comes to rest");
    assert_eq!(world.ended, None);
    world
}

/// What the channels of the complete snapshots held; each of them must add up.
fn conserved<A: Application>(world: &World<A>) -> Quantities {
    let mut in_channels = Quantities::new();
    let mut complete = 0;
    for manifest in world.manifests() {
        let End::Complete {
            parts, expected, ..
        } = &manifest.end
        else {
            continue;
        };
        let mut total = Quantities::new();
        for part in parts {
            add(&mut total, &part.facts.in_state);
            add(&mut total, &part.facts.in_channels);
            add(&mut in_channels, &part.facts.in_channels);
        }
        let seed = world.job().seed;
        assert_eq!(&total, expected, "seed {seed}, {}", manifest.snapshot);
        complete += 1;
    }
    assert!(complete >= 2, "{complete} complete snapshots");
    in_channels
}

/// The sum over all seeds must be more than nothing, or no cut ever went through a channel.
fn is_conserved<A: Application>(application: &str, settings: &Value, quantity: &str) {
    let mut in_channels = Quantities::new();
    for seed in 0..SEEDS {
        let world = run::<A>(job(application, settings.clone(), seed));
        add(&mut in_channels, &conserved(&world));
    }
    assert!(in_channels[quantity] > 0, "{in_channels:?}");
}

#[test]
fn money_is_conserved() {
    is_conserved::<BuiltIn>("bank", &json!({}), "money");
}

#[test]
fn tokens_are_conserved() {
    is_conserved::<BuiltIn>("token", &json!({ "balance": 5 }), "tokens");
}

#[test]
fn the_one_token_is_conserved() {
    is_conserved::<BuiltIn>("token-ring", &json!({ "hold_ms": 0 }), "tokens");
}

#[test]
fn the_points_of_the_example_are_conserved() {
    is_conserved::<counter::Counter>("counter", &json!({}), "points");
}

#[test]
fn no_number_is_missed_or_seen_twice() {
    for settings in [
        json!({ "producers": "all" }),
        json!({ "echo": true, "messages_max": 50 }),
    ] {
        for seed in 0..SEEDS {
            let world = run::<BuiltIn>(job("count", settings.clone(), seed));
            let mut counted = 0;
            for process in world.job().topology.processes() {
                let application = world.process(process).and_then(Process::application);
                let Some(BuiltIn::Count(count)) = application else {
                    panic!("{process} does not run");
                };
                assert_eq!(count.faults(), 0, "{settings} seed {seed}, {process}");
                counted += count.counted();
            }
            assert!(counted > 0, "{settings} seed {seed}");
        }
    }
}
