//! Traced jobs in memory, and what they wrote down.

use std::collections::BTreeSet;
use std::sync::Arc;

use cutline::apps::{Bank, SplitMix64};
use cutline::protocol::Topology;
use cutline::protocol::collector::{Policy, Request};
use cutline::protocol::ids::{ChannelId, ProcessId};
use cutline::protocol::link::Limits;
use cutline::protocol::mode::Mode;
use cutline::protocol::process::Settings;
use cutline::world::{Choice, Fault, Job, World};
use serde_json::json;

const STEPS_MAX: usize = 200_000;

/// A traced job whose processes are `p1`, `p2`, ….
pub(crate) fn job(
    application: &str,
    channels: &[&str],
    settings: serde_json::Value,
    seed: u64,
) -> Job {
    let channels: Vec<ChannelId> = channels.iter().map(|text| text.parse().unwrap()).collect();
    let ends = channels
        .iter()
        .flat_map(|channel| [channel.from, channel.to]);
    let last = ends.max().unwrap().get();
    let names = (0..=last).map(|place| ProcessId::new(place).to_string());
    Job {
        topology: Arc::new(Topology::new(names.collect(), channels).unwrap()),
        application: application.to_owned(),
        settings,
        seed,
        process: Settings {
            limits: Limits::default(),
            snapshot_timeout_ms: 60_000,
            trace: true,
        },
        policy: Policy {
            mode: Mode::Classic,
            alignment_timeout_ms: None,
            interval_ms: 0,
            pause_min_ms: 0,
            timeout_ms: 60_000,
            open_max: 4,
            failures_tolerated: 3,
            fall_back: false,
            retain: 100,
            silence_ms: 10_000,
            initiators: BTreeSet::new(),
        },
    }
}

/// Three accounts in a mesh.
pub(crate) fn bank(seed: u64) -> Job {
    let mesh = ["p1→p2", "p2→p1", "p1→p3", "p3→p1", "p2→p3", "p3→p2"];
    job("bank", &mesh, json!({}), seed)
}

/// The job after some hundred random steps, with snapshots among them, in the midst of things.
/// With a crash half way, if one is wanted.
pub(crate) fn run(job: Job, crash: bool) -> World<Bank> {
    let mut random = SplitMix64::new(job.seed, ProcessId::new(0));
    let processes = job.topology.processes().len() as u64;
    let mut world = World::new(job).unwrap();
    assert!(world.stabilize(STEPS_MAX), "the job starts");
    for step in 0..600 {
        let choices = world.choices();
        let place = random.below(choices.len() as u64);
        let chosen = choices.get(usize::try_from(place).unwrap());
        world.apply(chosen.expect("a bank never rests"));
        let process = ProcessId::new(u32::try_from(random.below(processes)).unwrap());
        match step {
            300 if crash => world.apply(&Choice::Fault(Fault::Crash(process))),
            _ if step % 60 == 30 => {
                let initiators = BTreeSet::from([process]);
                world.ask(Request::snapshot(initiators));
            }
            _ => {}
        }
    }
    assert!(world.stabilize(STEPS_MAX), "the job comes to rest");
    world
}
