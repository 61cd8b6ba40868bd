//! A plan: a topology and a sequence of picks; what a run of it showed.

use std::collections::BTreeSet;
use std::sync::Arc;

use cutline::protocol::Topology;
use cutline::protocol::collector::{Announcement, Policy, Request};
use cutline::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use cutline::protocol::link::Limits;
use cutline::protocol::mode::Mode;
use cutline::protocol::process::Settings;
use cutline::protocol::records::{End, Manifest};
use cutline::world::{Choice, Fate, Fault, Job, Notice, World};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::chatter::{Chatter, Log, parse};

/// One random run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    processes: u32,
    channels: BTreeSet<(u32, u32, u32)>,
    seed: u64,
    window_messages: u64,
    picks: Vec<(u8, u16)>,
    faults: bool,
}

/// How often what was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) complete: u64,
    pub(crate) aborted: u64,
    pub(crate) non_empty_channels: u64,
    pub(crate) overlapping: u64,
    pub(crate) several_initiators: u64,
    pub(crate) restores: u64,
    pub(crate) restored_in_flight: u64,
    pub(crate) resent: u64,
    pub(crate) breaches: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.complete += other.complete;
        self.aborted += other.aborted;
        self.non_empty_channels += other.non_empty_channels;
        self.overlapping += other.overlapping;
        self.several_initiators += other.several_initiators;
        self.restores += other.restores;
        self.restored_in_flight += other.restored_in_flight;
        self.resent += other.resent;
        self.breaches += other.breaches;
    }
}

pub(crate) fn plans(faults: bool) -> impl Strategy<Value = Plan> {
    let graph = (2..5_u32).prop_flat_map(|processes| {
        let channel = (0..processes, 0..processes, 1..3_u32);
        (
            Just(processes),
            proptest::collection::btree_set(channel, 1..9),
        )
    });
    let picks = vec((any::<u8>(), any::<u16>()), 50..400);
    (
        graph,
        any::<u64>(),
        prop_oneof![Just(2_u64), Just(8), Just(1_000)],
        picks,
    )
        .prop_map(
            move |((processes, channels), seed, window_messages, picks)| Plan {
                processes,
                channels,
                seed,
                window_messages,
                picks,
                faults,
            },
        )
}

pub(crate) fn snapshot_request() -> Request {
    Request::snapshot(BTreeSet::new())
}

pub(crate) fn tick_all(world: &mut World<Chatter>) {
    for process in world.job().topology.processes() {
        world.apply(&Choice::Tick(process));
    }
}

impl Plan {
    pub(crate) fn ring(processes: u32) -> Self {
        let next = |process: u32| (process, (process + 1) % processes, 1);
        Self {
            processes,
            channels: (0..processes).map(next).collect(),
            seed: 1,
            window_messages: 100,
            picks: Vec::new(),
            faults: false,
        }
    }

    pub(crate) fn world(&self) -> World<Chatter> {
        let names = (1..=self.processes)
            .map(|number| format!("p{number}"))
            .collect();
        let channels = self.channels.iter().filter(|(from, to, _)| from != to);
        let channels = channels.map(|&(from, to, nth)| ChannelId {
            from: ProcessId::new(from),
            to: ProcessId::new(to),
            nth,
        });
        let limits = Limits {
            window_messages: self.window_messages,
            ..Limits::default()
        };
        let job = Job {
            topology: Arc::new(Topology::new(names, channels).unwrap()),
            application: "chatter".to_owned(),
            settings: serde_json::Value::Null,
            seed: self.seed,
            process: Settings {
                limits,
                snapshot_timeout_ms: 10_000,
                trace: false,
            },
            policy: Policy {
                mode: Mode::Classic,
                alignment_timeout_ms: None,
                interval_ms: 0,
                pause_min_ms: 0,
                timeout_ms: 10_000,
                open_max: 3,
                failures_tolerated: u32::MAX,
                fall_back: false,
                retain: 1_000,
                silence_ms: 60_000,
                initiators: BTreeSet::new(),
            },
        };
        World::new(job).unwrap()
    }

    /// Runs the plan, lets it come to rest, takes a last snapshot and checks every one.
    pub(crate) fn run(&self) -> Seen {
        let mut world = self.world();
        let mut seen = Seen::default();
        for &(kind, pick) in &self.picks {
            self.pick(&mut world, kind, usize::from(pick), &mut seen);
            if let Some(ended) = &world.ended {
                panic!("the job ended: {ended:?}");
            }
        }
        assert!(world.stabilize(100_000), "the job comes to rest");
        // Whatever was lost on a broken control stream is made up for by the deadline.
        world.apply(&Choice::Fault(Fault::Pass(20_000)));
        world.ask(snapshot_request());
        assert!(world.stabilize(100_000), "the job comes to rest");
        let status = world.collector().expect("the collector is up").status();
        assert_eq!(
            status.phase,
            "running",
            "{status:?} after {:?}",
            world.take_notices()
        );
        assert!(
            status.open.is_empty(),
            "no snapshot stays open: {status:?} after {:?}",
            world.take_notices()
        );
        let last = world.manifests().last().expect("a last snapshot").clone();
        assert!(
            last.is_complete(),
            "{last:?} after {:?}",
            world.take_notices()
        );
        seen.add(&check(&world));
        notices(&mut world, &mut seen);
        seen
    }

    fn pick(&self, world: &mut World<Chatter>, kind: u8, pick: usize, seen: &mut Seen) {
        let topology = world.job().topology.clone();
        let process = ProcessId::new((pick % topology.processes().len()) as u32);
        match kind {
            0..8 => {
                let initiators: BTreeSet<_> = topology.processes().collect();
                if kind < 3 {
                    seen.several_initiators += u64::from(initiators.len() > 1);
                    world.ask(Request::snapshot(initiators));
                } else {
                    world.ask(snapshot_request());
                }
                let status = world.collector().map(|collector| collector.status());
                seen.overlapping += u64::from(status.is_some_and(|status| status.open.len() > 1));
            }
            8..30 if self.faults => self.fault(world, kind, pick, process, seen),
            _ => {
                let choices = world.choices();
                if !choices.is_empty() {
                    world.apply(&choices[pick % choices.len()]);
                }
            }
        }
    }

    fn fault(
        &self,
        world: &mut World<Chatter>,
        kind: u8,
        pick: usize,
        process: ProcessId,
        seen: &mut Seen,
    ) {
        let topology = world.job().topology.clone();
        let choice = match kind {
            8..18 => match topology.channels() {
                [] => return,
                channels => {
                    let channel = channels[pick % channels.len()];
                    seen.resent += u64::from(world.on_the_wire(channel) > 0);
                    Choice::Fault(Fault::Break(channel))
                }
            },
            18..20 => Choice::Fault(Fault::Crash(process)),
            20 => Choice::Fault(Fault::CrashCollector),
            21..24 => Choice::Fault(Fault::BreakControl(process)),
            24 => Choice::Fault(Fault::Pass(11_000)),
            25 => Choice::Fault(Fault::Pass(600)),
            26 => {
                let newest = world
                    .manifests()
                    .filter(|manifest| manifest.is_complete())
                    .last();
                let target = newest.map(|manifest| manifest.snapshot);
                world.ask(Request::Restore(target.filter(|_| pick.is_multiple_of(2))));
                return;
            }
            27 | 28 => Choice::Store(0, Fate::Unknown),
            _ => Choice::Store(0, Fate::Failed),
        };
        // A record of the log that fails ends a collector that is only starting: not the point.
        if matches!(choice, Choice::Store(..)) && !world.is_running() {
            return;
        }
        world.apply(&choice);
    }
}

fn notices(world: &mut World<Chatter>, seen: &mut Seen) {
    let manifests: Vec<_> = world.manifests().cloned().collect();
    for notice in world.take_notices() {
        match notice {
            Notice::Announced(Announcement::Running(_, snapshot)) => {
                seen.restores += u64::from(snapshot != SnapshotId::default());
                let restored = manifests
                    .iter()
                    .find(|manifest| manifest.snapshot == snapshot);
                seen.restored_in_flight += u64::from(restored.is_some_and(in_flight));
            }
            Notice::Breach(..) => seen.breaches += 1,
            _ => {}
        }
    }
}

fn in_flight(manifest: &Manifest) -> bool {
    match &manifest.end {
        End::Complete { parts, .. } => {
            let mut inputs = parts.iter().flat_map(|part| &part.facts.inputs);
            inputs.any(|input| !input.share.is_empty())
        }
        End::Aborted { .. } => false,
    }
}

/// Checks every complete snapshot against what the applications wrote down themselves.
pub(crate) fn check(world: &World<Chatter>) -> Seen {
    let mut seen = Seen::default();
    let topology = &world.job().topology;
    for manifest in world.manifests() {
        if !manifest.is_complete() {
            seen.aborted += 1;
            continue;
        }
        seen.complete += 1;
        seen.non_empty_channels += u64::from(in_flight(manifest));
        let part = |process| world.part(manifest.snapshot, process).expect("complete");
        let log = |process| -> Log { serde_json::from_slice(&part(process).state).unwrap() };
        let mut money = 0;
        for process in topology.processes() {
            let facts = Chatter::in_state_of(world, process, &part(process).state);
            money += facts;
        }
        for &channel in topology.channels() {
            let name = channel.to_string();
            let sent = log(channel.from).sent.get(&name).copied().unwrap_or(0);
            let handled = log(channel.to).handled.get(&name).copied().unwrap_or(0);
            let inputs = &part(channel.to).part.inputs;
            let input = inputs
                .iter()
                .find(|input| input.channel == channel)
                .unwrap();
            let messages = input.share.iter().flat_map(|batch| batch.messages());
            let recorded: Vec<_> = messages.map(|(_, message)| parse(message)).collect();
            let numbers: Vec<_> = recorded.iter().map(|(number, ..)| *number).collect();
            let exact: Vec<_> = (handled + 1..=sent).collect();
            assert_eq!(numbers, exact, "{} on {channel}", manifest.snapshot);
            money += recorded.iter().map(|(_, _, money)| money).sum::<i64>();
        }
        let processes = topology.processes().len() as i64;
        assert_eq!(money, 100 * processes, "money in {}", manifest.snapshot);
    }
    seen
}

impl Chatter {
    fn in_state_of(world: &World<Self>, process: ProcessId, state: &[u8]) -> i64 {
        use cutline::protocol::application::Application;
        Self::in_state(&world.setup(process), state)["money"]
    }
}
