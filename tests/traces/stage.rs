//! Traced jobs in memory, and what they wrote down.

use cutline::apps::{Bank, SplitMix64};
use cutline::check::{Logged, Origin};
use cutline::protocol::Topology;
use cutline::protocol::application::Application;
use cutline::protocol::collector::Request;
use cutline::protocol::cut::Restored;
use cutline::protocol::ids::{ChannelId, Generation, ProcessId, SnapshotId};
use cutline::protocol::trace::{Event, What};
use cutline::world::{Choice, Fault, Job, World};
use serde_json::json;

use crate::memory;

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
    let topology = Topology::new(names.collect(), channels).unwrap();
    memory::job(topology, (application, settings), seed, true)
}

/// Three accounts in a mesh.
pub(crate) fn bank(seed: u64) -> Job {
    let mesh = ["p1→p2", "p2→p1", "p1→p3", "p3→p1", "p2→p3", "p3→p2"];
    job("bank", &mesh, json!({}), seed)
}

/// The job after some hundred random steps, with snapshots among them, in the midst of things.
/// With a crash half way, if one is wanted.
pub(crate) fn run(job: Job, crash: bool) -> World<Bank> {
    run_by(job, (600, crash), |_, process| {
        Some(Request::snapshot([process].into()))
    })
}

/// The same in so many steps, with these snapshots, each asked for with a process that the dice
/// have picked.
pub(crate) fn run_by(
    job: Job,
    (steps, crash): (u32, bool),
    snapshot: impl Fn(&World<Bank>, ProcessId) -> Option<Request>,
) -> World<Bank> {
    let mut random = SplitMix64::new(job.seed, ProcessId::new(0));
    let processes = job.topology.processes().len() as u64;
    let mut world = World::new(job).unwrap();
    assert!(world.stabilize(STEPS_MAX), "the job starts");
    for step in 0..steps {
        let choices = world.choices();
        let place = random.below(choices.len() as u64);
        let chosen = choices.get(usize::try_from(place).unwrap());
        world.apply(chosen.expect("a bank never rests"));
        let process = ProcessId::new(u32::try_from(random.below(processes)).unwrap());
        match step {
            _ if crash && step == steps / 2 => world.apply(&Choice::Fault(Fault::Crash(process))),
            _ if step % 60 == 30 => {
                if let Some(request) = snapshot(&world, process) {
                    world.ask(request);
                }
            }
            _ if step % 10 == 0 => world.apply(&Choice::Fault(Fault::Pass(1))),
            _ => {}
        }
    }
    assert!(world.stabilize(STEPS_MAX), "the job comes to rest");
    world
}

/// The traced events of one generation, in the order in which they happened.
pub(crate) fn events<A: Application>(world: &World<A>, generation: u64) -> Vec<Event> {
    let of_it = |event: &&Event| event.generation == Generation::new(generation);
    world.trace().iter().filter(of_it).cloned().collect()
}

/// The same as each process would have written them down, at these times.
pub(crate) fn logged(events: &[Event], at_us: impl Fn(usize, &Event) -> u64) -> Vec<Vec<Logged>> {
    let last = events.iter().map(|event| event.process.index()).max();
    let mut processes = vec![Vec::new(); last.unwrap() + 1];
    for (place, event) in events.iter().enumerate() {
        processes[event.process.index()].push(Logged {
            at_us: at_us(place, event),
            event: event.clone(),
        });
    }
    processes
}

/// All parts of a snapshot, in the order of the processes.
pub(crate) fn parts<A: Application>(world: &World<A>, snapshot: SnapshotId) -> Vec<Restored> {
    let processes = world.job().topology.processes();
    let part = |process| world.part(snapshot, process).unwrap().clone();
    processes.map(part).collect()
}

/// Where a generation of the job began.
pub(crate) fn origin<A: Application>(world: &World<A>, generation: u64) -> Origin {
    let restored = events(world, generation)
        .iter()
        .find_map(|event| match event.what {
            What::Start { restored } => Some(restored),
            _ => None,
        });
    let restored = restored.expect("the generation has started");
    let processes = world.job().topology.processes();
    Origin {
        setups: processes.map(|process| world.setup(process)).collect(),
        limits: world.job().process.limits,
        parts: match restored.get() {
            0 => Vec::new(),
            _ => parts(world, restored),
        },
    }
}

/// The complete snapshots of one generation.
pub(crate) fn complete<A: Application>(world: &World<A>, generation: u64) -> Vec<SnapshotId> {
    let manifests = world.manifests().filter(|manifest| manifest.is_complete());
    let of_it = manifests.filter(|manifest| manifest.generation == Generation::new(generation));
    of_it.map(|manifest| manifest.snapshot).collect()
}
