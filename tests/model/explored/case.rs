//! The worlds: what each is made of, and what may happen in it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use cutline::protocol::Topology;
use cutline::protocol::collector::{Policy, Request};
use cutline::protocol::ids::{ChannelId, ProcessId};
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
    /// A stream of one of these channels breaks, and what is on the wire is lost.
    Break(&'static str),
    /// The same, twice.
    BreakTwice(&'static str),
    /// A node is killed, and the job is taken back.
    Crash,
    /// The collector is killed.
    Collector,
    /// A part cannot be written, so its process declines and the snapshot is aborted.
    Abort,
    /// Something is written and said to have failed.
    Unknown,
    /// The time passes in which an aligned snapshot may hold channels: T strikes.
    Limit,
    /// The same, and a node is killed, before or after.
    LimitCrash,
    /// The same, and a stream of one of these channels breaks, before or after.
    LimitBreak(&'static str),
}

impl Trouble {
    /// How often T strikes.
    pub(crate) const fn strikes(self) -> u8 {
        matches!(self, Self::Limit | Self::LimitCrash | Self::LimitBreak(_)) as u8
    }

    /// How many other faults there are.
    pub(crate) const fn faults(self) -> u8 {
        match self {
            Self::Nothing | Self::Limit => 0,
            Self::BreakTwice(_) => 2,
            _ => 1,
        }
    }

    /// The channels that break.
    pub(crate) const fn breaks(self) -> &'static str {
        match self {
            Self::Break(channels) | Self::BreakTwice(channels) | Self::LimitBreak(channels) => {
                channels
            }
            _ => "",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "none",
            Self::Break(channels) => return write!(f, "{} breaks", any_of(channels)),
            Self::BreakTwice(channels) => {
                return write!(f, "{} breaks, twice", any_of(channels));
            }
            Self::LimitBreak(channels) => {
                return write!(f, "T strikes, {} breaks", any_of(channels));
            }
            Self::Crash => "a node is killed",
            Self::Collector => "the collector is killed",
            Self::Abort => "a part cannot be written",
            Self::Unknown => "a write of unknown outcome",
            Self::Limit => "T strikes",
            Self::LimitCrash => "T strikes, a node is killed",
        })
    }
}

/// `p1→p2 or p2→p3`.
fn any_of(channels: &str) -> String {
    channels.split_whitespace().collect::<Vec<_>>().join(" or ")
}

/// Processes and channels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Graph {
    pub(crate) name: &'static str,
    pub(crate) processes: u32,
    pub(crate) channels: &'static str,
}

/// A world to be explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) graph: Graph,
    /// As [`Script`] reads it.
    pub(crate) sends: &'static str,
    pub(crate) mode: Mode,
    pub(crate) snapshots: u8,
    pub(crate) trouble: Trouble,
    /// Fewer states, and the model has gone blind.
    pub(crate) states_min: usize,
    /// What must have been seen.
    pub(crate) shows: &'static [Rare],
}

/// A world of the list.
pub(crate) const fn case(
    name: &'static str,
    (graph, sends): (Graph, &'static str),
    (mode, snapshots): (Mode, u8),
    trouble: Trouble,
    shows: &'static [Rare],
) -> Case {
    Case {
        name,
        graph,
        sends,
        mode,
        snapshots,
        trouble,
        states_min: 20,
        shows,
    }
}

/// More choices than any of these worlds needs to come to rest.
const STEPS_MAX: usize = 10_000;

/// Wider than everything that any of these worlds sends.
const WINDOW: u64 = 256;

/// The limit T, where there is one.
pub(crate) const LIMIT_MS: u64 = 100;

impl Case {
    /// The world when everyone runs, every stream is open and so many snapshots are asked for.
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
            world.ask(request());
        }
        while self.trouble != Trouble::Unknown && !world.pending().is_empty() {
            world.apply(&Choice::Store(0, Fate::Done));
        }
        world.take_notices();
        world
    }

    /// Whether snapshots are ended by nothing but their completion, or a newer one.
    pub(crate) fn is_harmless(&self) -> bool {
        self.trouble.faults() == 0 || !self.trouble.breaks().is_empty()
    }

    fn job(&self) -> Job {
        let names = (1..=self.graph.processes).map(|number| format!("p{number}"));
        let channels = self.graph.channels.split_whitespace();
        let channels = channels.map(|text| text.parse::<ChannelId>().expect("a channel"));
        let limits = Limits {
            window_messages: WINDOW,
            window_bytes: WINDOW,
            message_bytes_max: 16,
            ..Limits::default()
        };
        Job {
            topology: Arc::new(Topology::new(names.collect(), channels).expect("a topology")),
            application: "script".to_owned(),
            settings: self.sends.into(),
            seed: 0,
            process: Settings {
                limits,
                snapshot_timeout_ms: 60_000,
                trace: false,
            },
            policy: Policy {
                mode: self.mode,
                alignment_timeout_ms: (self.trouble.strikes() > 0).then_some(LIMIT_MS),
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

/// A snapshot with the job's own initiators.
pub(crate) fn request() -> Request {
    Request::snapshot(BTreeSet::new())
}

/// The application of a process that is up and has one.
pub(crate) fn application(world: &World<Script>, process: ProcessId) -> Option<&Script> {
    world.process(process)?.application()
}
