//! A state of an exploration, and what can happen next in it.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use cutline::protocol::events::Holding;
use cutline::protocol::ids::ProcessId;
use cutline::world::{Choice, World};

use super::case::application;
use super::findings::Finding;
use super::rules::Rules;
use super::script::Script;

/// How often time may pass at rest: more than any retry needs, and an end to what never ends.
const RESTS_MAX: u8 = 4;

/// A world at a moment, and what may still happen to it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) world: World<Script>,
    /// Snapshots still to be asked for.
    pub(crate) asks: u8,
    /// How often T may still strike.
    pub(crate) strikes: u8,
    /// Faults still to happen.
    pub(crate) faults: u8,
    /// How often time may still pass at rest.
    pub(crate) rests: u8,
    pub(crate) findings: Vec<Finding>,
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// A choice of the world.
    Choice(Choice),
    /// A snapshot is asked for.
    Ask,
}

impl State {
    /// The first state of a world.
    pub(crate) fn first(rules: &Rules) -> Self {
        let case = &rules.case;
        // Snapshots that end one another must not all be there from the start.
        let at_once = match case.mode.overlaps(case.mode) {
            true => case.snapshots,
            false => case.snapshots.min(1),
        };
        Self {
            world: case.world(at_once),
            asks: case.snapshots - at_once,
            strikes: case.trouble.strikes(),
            faults: case.trouble.faults(),
            rests: RESTS_MAX,
            findings: Vec::new(),
        }
    }

    /// Everyone runs, nobody waits and no snapshot is open.
    pub(crate) fn is_settled(&self) -> bool {
        let status = self.world.collector().map(|collector| collector.status());
        status.is_some_and(|status| status.phase == "running" && status.open.is_empty())
            && self.processes().all(|process| {
                let machine = self.world.process(process);
                machine.is_some_and(|machine| machine.recordings().count() == 0)
            })
    }

    /// Everything that was sent has been handled, and nothing is left to send.
    pub(crate) fn is_delivered(&self) -> bool {
        let topology = &self.world.job().topology;
        let script = |process| application(&self.world, process);
        let all_sent = self
            .processes()
            .all(|process| script(process).is_some_and(Script::is_done));
        let mut channels = topology.channels().iter();
        all_sent
            && channels.all(|&channel| {
                let ends = script(channel.from).zip(script(channel.to));
                ends.is_some_and(|(from, to)| {
                    let sent = super::script::of(&from.sent, channel);
                    sent == super::script::of(&to.handled, channel)
                })
            })
    }

    /// The local states of all processes, as one number, when all run one generation.
    pub(crate) fn together(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        let mut holding = None;
        for process in self.processes() {
            let machine = self.world.process(process)?;
            let running = matches!(machine.holding(), Holding::Running(_));
            if !running || holding.is_some_and(|holding| holding != machine.holding()) {
                return None;
            }
            holding = Some(machine.holding());
            machine.application()?.hash(&mut hasher);
        }
        Some(hasher.finish())
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = ProcessId> + use<> {
        self.world.job().topology.processes()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = &self.world.job().topology;
        for process in self.processes() {
            let Some(machine) = self.world.process(process) else {
                writeln!(f, "{process}  down")?;
                continue;
            };
            write!(f, "{process}  {:?}", machine.holding())?;
            for (snapshot, waits_for) in machine.recordings() {
                write!(f, ", records {snapshot}, waits for {waits_for:?}")?;
            }
            writeln!(f, "\n    {:?}", machine.application())?;
        }
        for &channel in topology.channels() {
            let frames: Vec<_> = self.world.wire(channel).collect();
            writeln!(f, "{channel}  {frames:?}")?;
        }
        writeln!(f, "store  {:?}", self.world.pending())?;
        for manifest in self.world.manifests() {
            let outcome = if manifest.is_complete() {
                "complete"
            } else {
                "aborted"
            };
            writeln!(f, "{}  {outcome}", manifest.snapshot)?;
        }
        if let Some(collector) = self.world.collector() {
            writeln!(f, "{:?}", collector.status())?;
        }
        write!(f, "findings  {:?}", self.findings)
    }
}

/// A step as it is shown.
pub(crate) fn describe(step: &Step) -> String {
    match step {
        Step::Choice(choice) => format!("{choice:?}"),
        Step::Ask => "a snapshot is asked for".to_owned(),
    }
}
