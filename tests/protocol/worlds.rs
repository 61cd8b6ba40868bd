//! Small worlds whose application is a diary, and what is checked of every one of them.

use std::collections::BTreeSet;

use cutline::protocol::collector::{Policy, Request};
use cutline::protocol::ids::{ProcessId, SnapshotId};
use cutline::protocol::link::Limits;
use cutline::protocol::mode::Mode;
use cutline::protocol::process::Settings;
use cutline::protocol::records::Manifest;
use cutline::world::{Choice, Job, Notice, World};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRng, TestRunner};

use crate::diary::{Conduct, Diary};
use crate::solo::{TIMEOUT_MS, topology};

/// More choices than any of these worlds needs to come to rest.
pub(crate) const STEPS_MAX: usize = 50_000;

/// A policy under which nothing happens that was not asked for.
pub(crate) fn policy() -> Policy {
    Policy {
        mode: Mode::Classic,
        alignment_timeout_ms: None,
        interval_ms: 0,
        pause_min_ms: 0,
        timeout_ms: TIMEOUT_MS,
        open_max: 3,
        failures_tolerated: 100,
        fall_back: false,
        retain: 100,
        silence_ms: 5_000,
        initiators: BTreeSet::new(),
    }
}

pub(crate) fn job(processes: u32, channels: &[&str], limits: Limits, conduct: &Conduct) -> Job {
    Job {
        topology: topology(processes, channels),
        application: "diary".to_owned(),
        settings: serde_json::to_value(conduct).unwrap(),
        seed: 1,
        process: Settings {
            limits,
            snapshot_timeout_ms: TIMEOUT_MS,
            trace: false,
        },
        policy: policy(),
    }
}

/// The job, running its first generation with every stream open, and nothing sent yet.
pub(crate) fn started(job: Job) -> World<Diary> {
    let mut world = World::new(job).unwrap();
    assert!(world.stabilize(STEPS_MAX), "the job starts");
    assert!(world.is_running());
    world
}

/// A snapshot with the job's own initiators.
pub(crate) fn snapshot() -> Request {
    Request::snapshot(BTreeSet::new())
}

pub(crate) fn p(number: u32) -> ProcessId {
    ProcessId::new(number - 1)
}

/// Everything takes its course, ticks too, but for what is held back.
pub(crate) fn run_without(world: &mut World<Diary>, held: impl Fn(&Choice) -> bool) {
    for _ in 0..STEPS_MAX {
        match world.choices().into_iter().find(|choice| !held(choice)) {
            Some(choice) => world.apply(&choice),
            None => return,
        }
    }
    panic!("it does not come to rest");
}

pub(crate) fn breaches(notices: &[Notice]) -> usize {
    let breach = |notice: &&Notice| matches!(notice, Notice::Breach(..));
    notices.iter().filter(breach).count()
}

pub(crate) fn manifest(world: &World<Diary>, snapshot: u64) -> Option<&Manifest> {
    let id = SnapshotId::new(snapshot);
    world.manifests().find(|manifest| manifest.snapshot == id)
}

/// What was sent has been handled, all of it, on every channel.
pub(crate) fn assert_delivered(world: &World<Diary>) {
    for &channel in world.job().topology.channels() {
        let diary = |process| world.process(process).unwrap().application().unwrap();
        let (sent, handled) = (diary(channel.from), diary(channel.to));
        assert_eq!(
            handled.handled_of(channel),
            sent.sent_on(channel),
            "{channel}"
        );
    }
}

/// Every complete snapshot is exact by the diaries' own account; returns how many there are, and
/// how many messages are in their channels.
pub(crate) fn assert_exact(world: &World<Diary>) -> (usize, usize) {
    let (mut complete, mut in_flight) = (0, 0);
    for manifest in world.manifests().filter(|manifest| manifest.is_complete()) {
        complete += 1;
        for &channel in world.job().topology.channels() {
            let part = |process| world.part(manifest.snapshot, process).expect("complete");
            let diary = |process| Diary::read(&part(process).state);
            let mut inputs = part(channel.to).part.inputs.iter();
            let input = inputs.find(|input| input.channel == channel).unwrap();
            let recorded = input.share.iter().flat_map(|batch| batch.messages());
            let recorded: Vec<_> = recorded.map(|(_, message)| number_of(message)).collect();
            let (sent, handled) = (diary(channel.from), diary(channel.to));
            let exact: Vec<_> = (handled.handled_of(channel) + 1..=sent.sent_on(channel)).collect();
            assert_eq!(recorded, exact, "{} on {channel}", manifest.snapshot);
            in_flight += recorded.len();
        }
    }
    (complete, in_flight)
}

pub(crate) fn number_of(message: &[u8]) -> u64 {
    u64::from_le_bytes(message[..8].try_into().unwrap())
}

/// Runs a property on so many values, from one fixed seed; `CUTLINE_CASES` runs more.
pub(crate) fn for_all<S: Strategy>(cases: u32, values: &S, property: impl Fn(S::Value)) {
    let more: Option<u32> = std::env::var("CUTLINE_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    let config = Config {
        cases: more.map_or(cases, |more| more.max(cases)),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let outcome = TestRunner::new_with_rng(config, rng).run(values, |value| {
        property(value);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
