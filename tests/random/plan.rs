//! A plan: a topology and a sequence of picks; what a run of it showed.

use std::collections::BTreeSet;
use std::sync::Arc;

use cutline::protocol::Topology;
use cutline::protocol::collector::{Policy, Request};
use cutline::protocol::ids::{ChannelId, ProcessId};
use cutline::protocol::link::Limits;
use cutline::protocol::mode::{MODES, Mode};
use cutline::protocol::process::Settings;
use cutline::world::{Choice, Fate, Fault, Job, World};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::chatter::Chatter;
use crate::seen::{Seen, check, notices};

/// One random run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    processes: u32,
    channels: BTreeSet<(u32, u32, u32)>,
    seed: u64,
    /// The modes snapshots are taken by; the first is the job's own.
    modes: Vec<Mode>,
    window_messages: u64,
    picks: Vec<(u8, u16)>,
    faults: bool,
}

/// Which modes a plan has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Modes {
    Classic,
    /// One or all of those whose cuts are consistent.
    Consistent,
    /// All.
    Any,
}

fn modes(which: Modes) -> impl Strategy<Value = Vec<Mode>> {
    let (classic, all) = (vec![Mode::Classic], MODES.to_vec());
    let consistent = vec![Mode::Unaligned, Mode::Aligned, Mode::Classic];
    match which {
        Modes::Classic => prop_oneof![Just(classic)].boxed(),
        Modes::Consistent => prop_oneof![
            Just(vec![Mode::Aligned]),
            Just(vec![Mode::Unaligned]),
            Just(consistent)
        ]
        .boxed(),
        Modes::Any => prop_oneof![Just(vec![Mode::AtLeastOnce]), Just(all)].boxed(),
    }
}

pub(crate) fn plans(which: Modes, faults: bool) -> impl Strategy<Value = Plan> {
    let graph = (2..5_u32).prop_flat_map(|processes| {
        let channel = (0..processes, 0..processes, 1..3_u32);
        (
            Just(processes),
            proptest::collection::btree_set(channel, 1..9),
        )
    });
    let picks = vec((any::<u8>(), any::<u16>()), 50..500);
    (
        graph,
        any::<u64>(),
        modes(which),
        prop_oneof![Just(2_u64), Just(8), Just(1_000)],
        picks,
    )
        .prop_map(
            move |((processes, channels), seed, modes, window_messages, picks)| Plan {
                processes,
                channels,
                seed,
                modes,
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
            modes: vec![Mode::Classic],
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
            settings: self.is_strict().into(),
            seed: self.seed,
            process: Settings {
                limits,
                snapshot_timeout_ms: 10_000,
                trace: false,
            },
            policy: Policy {
                mode: self.modes[0],
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

    /// Whether every cut is consistent, so that what the applications wrote down must add up.
    fn is_strict(&self) -> bool {
        self.modes.iter().all(|mode| mode.is_consistent())
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
        seen.add(&check(&world, self.is_strict()));
        notices(&mut world, &mut seen);
        seen
    }

    /// Where a newer snapshot ends an older one, few are asked for before the older has ended.
    fn may_ask(&self, world: &World<Chatter>, kind: u8) -> bool {
        let open = world.collector().map(|collector| collector.status().open);
        self.modes == [Mode::Classic] || kind == 0 || open.is_some_and(|open| open.is_empty())
    }

    fn pick(&self, world: &mut World<Chatter>, kind: u8, pick: usize, seen: &mut Seen) {
        let topology = world.job().topology.clone();
        let process = ProcessId::new((pick % topology.processes().len()) as u32);
        match kind {
            0..8 if self.may_ask(world, kind) => {
                let initiators: BTreeSet<_> = topology.processes().filter(|_| kind < 3).collect();
                seen.several_initiators += u64::from(initiators.len() > 1);
                let mode = self.modes[pick / 3 % self.modes.len()];
                let limits_ms = [None, Some(0), Some(150)];
                world.ask(Request::Snapshot {
                    initiators,
                    mode: Some(mode),
                    alignment_timeout_ms: limits_ms[pick % 3].filter(|_| mode == Mode::Aligned),
                });
                let status = world.collector().map(|collector| collector.status());
                seen.overlapping += u64::from(status.is_some_and(|status| status.open.len() > 1));
            }
            8..30 if self.faults => self.fault(world, kind, pick, process, seen),
            30..36 => world.apply(&Choice::Fault(Fault::Pass(60))),
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
                    seen.broken(world, channel);
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
