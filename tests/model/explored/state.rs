//! A state of an exploration, and what can happen next in it.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use cutline::protocol::events::{Holding, Order, Report};
use cutline::protocol::ids::ProcessId;
use cutline::world::{Choice, Fate, Fault, Operation, World};

use super::case::{Case, LIMIT_MS, Trouble, application};
use super::findings::Finding;
use super::script::Script;

/// How long the collector waits before it tries again what could not be written.
const RETRY_MS: u64 = 500;

/// How often time may pass at rest: more than any retry needs, and an end to what never ends.
const RESTS_MAX: u8 = 4;

/// A world at a moment, and what may still happen to it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) world: World<Script>,
    /// Snapshots still to be asked for.
    pub(crate) asks: u8,
    /// Faults still to strike.
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
    pub(crate) fn first(case: &Case) -> Self {
        // Snapshots that end one another must not all be there from the start.
        let at_once = match case.mode.overlaps(case.mode) {
            true => case.snapshots,
            false => case.snapshots.min(1),
        };
        Self {
            world: case.world(at_once),
            asks: case.snapshots - at_once,
            faults: u8::from(case.trouble != Trouble::Nothing),
            rests: RESTS_MAX,
            findings: Vec::new(),
        }
    }

    /// Everything that can happen next; one thing alone, where nothing else depends on it.
    pub(crate) fn steps(&self, case: &Case) -> Vec<Step> {
        let mut choices = self.world.choices();
        choices.retain(|choice| self.counts(case, choice));
        if let Some(choice) = choices.iter().find(|choice| self.is_eager(case, choice)) {
            return vec![Step::Choice(*choice)];
        }
        let mut steps: Vec<_> = choices.into_iter().map(Step::Choice).collect();
        if self.asks > 0 && self.world.is_running() {
            steps.push(Step::Ask);
        }
        if steps.is_empty() && self.rests > 0 && !self.is_settled() {
            steps.push(Step::Choice(Choice::Fault(Fault::Pass(RETRY_MS))));
        }
        if self.faults > 0 {
            steps.extend(self.troubles(case).into_iter().map(Step::Choice));
        }
        steps
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

    fn processes(&self) -> impl Iterator<Item = ProcessId> + use<> {
        self.world.job().topology.processes()
    }

    /// What is left out: see the head of [`super`].
    fn counts(&self, case: &Case, choice: &Choice) -> bool {
        let breaks = case.trouble == Trouble::Break && self.faults > 0;
        match *choice {
            Choice::Acknowledge(_) => breaks,
            Choice::Hear(channel) => breaks || self.world.is_dialled(channel),
            _ => true,
        }
    }

    /// Whether nothing that anything else does depends on when this is done: see the head of
    /// [`super`].
    fn is_eager(&self, case: &Case, choice: &Choice) -> bool {
        let calm = self.faults == 0 || case.trouble == Trouble::Limit;
        let apart = case.always_completes() && self.asks == 0;
        match *choice {
            Choice::Hear(_) => true,
            Choice::Start(_) | Choice::Open(_) => calm,
            Choice::Tick(process) => {
                calm && application(&self.world, process).is_none_or(Script::is_done)
            }
            Choice::Store(at, _) => apart || calm && self.is_sure(case, at),
            Choice::Report(process, incarnation) => {
                let report = self.world.next_report(process, incarnation);
                apart || !matches!(report, Some(Report::Join(_)))
            }
            Choice::Direct(process, incarnation) => {
                let directive = self.world.next_directive(process, incarnation);
                match directive.map(|directive| &directive.order) {
                    Some(Order::Run(_)) => calm,
                    Some(Order::Ended { complete: true, .. }) => case.trouble != Trouble::Collector,
                    Some(Order::Trigger(..)) | None => false,
                    Some(_) => apart,
                }
            }
            _ => false,
        }
    }

    /// Whether what the store is asked to do will be done and count, whatever else happens first.
    fn is_sure(&self, case: &Case, at: usize) -> bool {
        match &self.world.pending()[at] {
            // Whether a part is in time for a snapshot that may be aborted, depends.
            Operation::Put(..) => case.trouble == Trouble::Break,
            _ => true,
        }
    }

    fn troubles(&self, case: &Case) -> Vec<Choice> {
        let pending = self.world.pending().iter().enumerate();
        match case.trouble {
            Trouble::Nothing => Vec::new(),
            Trouble::Break => {
                let channels = self.world.job().topology.channels().iter();
                channels
                    .map(|&channel| Choice::Fault(Fault::Break(channel)))
                    .collect()
            }
            Trouble::Crash => {
                let crash = |process| Choice::Fault(Fault::Crash(process));
                self.processes().map(crash).collect()
            }
            Trouble::Limit => vec![Choice::Fault(Fault::Pass(LIMIT_MS))],
            Trouble::Collector => vec![Choice::Fault(Fault::CrashCollector)],
            Trouble::Abort => pending
                .filter(|(_, operation)| matches!(operation, Operation::Put(..)))
                .map(|(at, _)| Choice::Store(at, Fate::Failed))
                .collect(),
            Trouble::Unknown => pending
                .filter(|(_, operation)| !matches!(operation, Operation::Load(..)))
                .map(|(at, _)| Choice::Store(at, Fate::Unknown))
                .collect(),
        }
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
