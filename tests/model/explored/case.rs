//! The worlds: what each is made of, and what may happen in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use cutline::protocol::Topology;
use cutline::protocol::collector::{Policy, Request};
use cutline::protocol::ids::ChannelId;
use cutline::protocol::link::Limits;
use cutline::protocol::mode::Mode;
use cutline::protocol::process::Settings;
use cutline::world::{Choice, Fate, Job, World};

use super::rare::Rare;
use super::script::Script;

/// The kind of fault that may strike, once, at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// None.
    Nothing,
    /// A stream breaks, and what is on the wire is lost.
    BrokenStream,
    /// A node is killed, and the job is taken back.
    Crash,
    /// The collector is killed.
    LostCollector,
    /// A part cannot be written, so its process declines and the snapshot is aborted.
    Abort,
    /// Something is written and said to have failed.
    UnknownPut,
}

/// A world to be explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) processes: u32,
    pub(crate) channels: &'static str,
    /// As [`Script`] reads it.
    pub(crate) sends: &'static str,
    pub(crate) mode: Mode,
    pub(crate) snapshots: u8,
    /// All processes initiate, not only the first of each root component.
    pub(crate) everyone: bool,
    pub(crate) trouble: Trouble,
    /// Between how many states there must be: far fewer, and the model has gone blind.
    pub(crate) states: (usize, usize),
    /// What must have been seen.
    pub(crate) shows: &'static [Rare],
}

/// More choices than any of these worlds needs to come to rest.
const STEPS_MAX: usize = 10_000;

/// Wider than everything that any of these worlds sends.
const WINDOW: u64 = 256;

impl Case {
    /// The world when everyone runs, every stream is open and snapshots are asked for: all where
    /// that changes nothing, else the first.
    pub(crate) fn world(&self, snapshots: u8) -> World<Script> {
        let mut world = World::new(self.job()).expect("a job");
        assert!(world.stabilize(STEPS_MAX) && world.is_running(), "it runs");
        for process in world.job().topology.processes() {
            // Whoever has nothing to send says so at its first tick.
            if application(&world, process).is_some_and(Script::is_done) {
                world.apply(&Choice::Tick(process));
            }
        }
        for _ in 0..snapshots {
            world.ask(self.request(&world));
        }
        while self.trouble != Trouble::UnknownPut && !world.pending().is_empty() {
            world.apply(&Choice::Store(0, Fate::Done));
        }
        world.take_notices();
        world
    }

    pub(crate) fn request(&self, world: &World<Script>) -> Request {
        let everyone = world.job().topology.processes();
        let initiators = everyone.filter(|_| self.everyone).collect();
        Request::Snapshot { initiators }
    }

    fn job(&self) -> Job {
        let names = (1..=self.processes).map(|number| format!("p{number}"));
        let channels = self.channels.split_whitespace();
        let channels = channels.map(|text| text.parse::<ChannelId>().expect("a channel"));
        Job {
            topology: Arc::new(Topology::new(names.collect(), channels).expect("a topology")),
            application: "script".to_owned(),
            settings: self.sends.into(),
            seed: 0,
            process: Settings {
                limits: Limits {
                    window_messages: WINDOW,
                    window_bytes: WINDOW,
                    message_bytes_max: 16,
                    ..Limits::default()
                },
                snapshot_timeout_ms: 60_000,
            },
            policy: Policy {
                mode: self.mode,
                interval_ms: 0,
                pause_min_ms: 0,
                timeout_ms: 60_000,
                open_max: 3,
                failures_tolerated: 100,
                fall_back: false,
                retain: 100,
                silence_ms: 60_000,
                initiators: BTreeSet::new(),
            },
        }
    }
}

/// The application of a process that is up and has one.
pub(crate) fn application(
    world: &World<Script>,
    process: cutline::protocol::ids::ProcessId,
) -> Option<&Script> {
    world.process(process)?.application()
}
