//! Which of a world's choices are explored: what is left out, and what is taken as soon as it can
//! be, alone. Why nothing is missed is told at the head of [`super`].

use std::collections::BTreeSet;

use cutline::protocol::Input;
use cutline::protocol::events::{Order, Report};
use cutline::protocol::ids::{ChannelId, SnapshotId};
use cutline::world::{Choice, Fate, Fault, Operation};

use super::case::{Case, LIMIT_MS, Trouble, application};
use super::script::Script;
use super::state::{State, Step};

/// How long the collector waits before it tries again what could not be written.
const RETRY_MS: u64 = 500;

/// What a world is made of, and what follows from it for the exploration.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) case: Case,
    /// The channels that never carry more than one message: nothing can be packed together there.
    single: BTreeSet<ChannelId>,
    /// The channels that break where channels do.
    broken: Vec<ChannelId>,
}

impl Rules {
    pub(crate) fn new(case: Case) -> Self {
        let mut rules = Self {
            case,
            single: BTreeSet::new(),
            broken: Vec::new(),
        };
        let broken = case.trouble.breaks().split_whitespace();
        rules.broken = broken
            .map(|text| text.parse().expect("a channel"))
            .collect();
        let last = rules.undisturbed().last();
        for process in last.processes() {
            let script = application(&last.world, process).expect("it runs");
            let single = script.sent.iter().filter(|(_, sent)| sent.len() < 2);
            rules.single.extend(single.map(|(channel, _)| *channel));
        }
        rules
    }

    /// The same world without snapshots and faults.
    pub(crate) fn undisturbed(&self) -> Self {
        let case = Case {
            snapshots: 0,
            trouble: Trouble::Nothing,
            ..self.case
        };
        Self {
            case,
            ..self.clone()
        }
    }

    /// The state in which nothing can happen any more, by one of the ways that lead there.
    fn last(&self) -> State {
        let mut state = State::first(self);
        while let Some(Step::Choice(choice)) = self.steps(&state).first() {
            state.world.apply(choice);
        }
        state
    }

    /// Everything that can happen next; one thing alone, where nothing else depends on it.
    pub(crate) fn steps(&self, state: &State) -> Vec<Step> {
        let mut choices = state.world.choices();
        choices.retain(|choice| self.counts(state, choice));
        if let Some(choice) = choices.iter().find(|choice| self.is_eager(state, choice)) {
            return vec![Step::Choice(*choice)];
        }
        if self.is_over(state, &choices) {
            choices.truncate(1);
        }
        let mut steps: Vec<_> = choices.into_iter().map(Step::Choice).collect();
        if state.asks > 0 && state.world.is_running() {
            steps.push(Step::Ask);
        }
        if steps.is_empty() && state.rests > 0 && !state.is_settled() {
            steps.push(Step::Choice(Choice::Fault(Fault::Pass(RETRY_MS))));
        }
        if state.strikes > 0 {
            steps.push(Step::Choice(Choice::Fault(Fault::Pass(LIMIT_MS))));
        }
        if state.faults > 0 {
            steps.extend(self.troubles(state).into_iter().map(Step::Choice));
        }
        steps
    }

    /// Whether anything can happen next.
    pub(crate) fn go_on(&self, state: &State) -> bool {
        let mut choices = state.world.choices().into_iter();
        choices.any(|choice| self.counts(state, &choice)) || !self.steps(state).is_empty()
    }

    /// What is left out.
    fn counts(&self, state: &State, choice: &Choice) -> bool {
        let breaks = !self.broken.is_empty() && state.faults > 0;
        let may_break = |channel| breaks && self.broken.contains(&channel);
        match *choice {
            Choice::Acknowledge(channel) => may_break(channel),
            Choice::Hear(channel) => may_break(channel) || state.world.is_dialled(channel),
            _ => true,
        }
    }

    /// Whether only messages are left, of which there is nothing to be shown any more but that
    /// they come.
    fn is_over(&self, state: &State, choices: &[Choice]) -> bool {
        let of_messages = |choice: &Choice| {
            use Choice::{Arrive, Send, Take, Tick};
            matches!(choice, Tick(_) | Take(_) | Send(_) | Arrive(_))
        };
        self.case.snapshots > 0
            && state.faults + state.strikes == 0
            && state.asks == 0
            && state.is_settled()
            && state.together().is_some()
            && choices.iter().all(of_messages)
    }

    /// Whether nothing that anything else does depends on when this is done.
    fn is_eager(&self, state: &State, choice: &Choice) -> bool {
        let case = &self.case;
        let calm = state.faults == 0;
        let apart = case.is_harmless() && state.asks == 0;
        match *choice {
            Choice::Hear(_) => true,
            Choice::Start(_) => calm,
            Choice::Open(channel) => calm && !self.broken.contains(&channel),
            Choice::Tick(process) => {
                calm && application(&state.world, process).is_none_or(Script::is_done)
            }
            Choice::Send(channel) => self.goes_at_once(state, channel),
            Choice::Take(channel) => is_without_effect(state, channel),
            Choice::Store(at, _) => (apart || calm) && is_sure(state, at, apart),
            Choice::Report(process, incarnation) => {
                let report = state.world.next_report(process, incarnation);
                apart || !matches!(report, Some(Report::Join(_)))
            }
            Choice::Direct(process, incarnation) => {
                let directive = state.world.next_directive(process, incarnation);
                match directive.map(|directive| &directive.order) {
                    Some(Order::Run(_)) => calm,
                    Some(Order::Ended { complete: true, .. }) => case.trouble != Trouble::Collector,
                    Some(Order::Trigger(..) | Order::Ended { .. }) | None => false,
                    Some(_) => apart,
                }
            }
            _ => false,
        }
    }

    /// Whether what is next in an outbox is as well on the wire: nothing can overtake it or be
    /// packed with it, and the wire loses nothing but with one of its ends.
    fn goes_at_once(&self, state: &State, channel: ChannelId) -> bool {
        let case = &self.case;
        if self.broken.contains(&channel) || case.trouble.strikes() > 0 {
            return false;
        }
        if !case.mode.overtakes() {
            return self.single.contains(&channel);
        }
        // The marker of the last snapshot has overtaken all but markers.
        let last = SnapshotId::new(case.snapshots.into());
        let sender = state.world.process(channel.from);
        state.asks == 0
            && sender.is_some_and(|sender| {
                let mut recordings = sender.recordings();
                recordings
                    .any(|(snapshot, waits_for)| snapshot == last && waits_for.contains(&channel))
            })
    }

    /// The faults that may strike now.
    fn troubles(&self, state: &State) -> Vec<Choice> {
        let pending = state.world.pending().iter().enumerate();
        let crash = |process| Choice::Fault(Fault::Crash(process));
        match self.case.trouble {
            Trouble::Nothing | Trouble::Limit => Vec::new(),
            Trouble::Break(_) | Trouble::BreakTwice(_) | Trouble::LimitBreak(_) => {
                let channels = self.broken.iter();
                channels
                    .map(|&channel| Choice::Fault(Fault::Break(channel)))
                    .collect()
            }
            Trouble::Crash | Trouble::LimitCrash => state.processes().map(crash).collect(),
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

/// Whether what the store is asked to do will be done and count, whatever else happens first.
fn is_sure(state: &State, at: usize, apart: bool) -> bool {
    let pending = state.world.pending();
    match &pending[at] {
        // Whether a part is in time for a snapshot that may be aborted, depends.
        Operation::Put(_, _, part, _) => {
            let mut ended = state.world.manifests().map(|manifest| manifest.snapshot);
            apart || ended.any(|snapshot| snapshot == part.snapshot)
        }
        // Of two, either may be the first.
        Operation::Create(_) => {
            let creates = pending
                .iter()
                .filter(|of| matches!(of, Operation::Create(_)));
            creates.count() == 1
        }
        Operation::Read | Operation::Load(..) | Operation::Delete(_) => true,
    }
}

/// Whether a marker is taken off an inbox and nothing comes of it, as the state has been recorded
/// or the snapshot has ended.
fn is_without_effect(state: &State, channel: ChannelId) -> bool {
    let Some(machine) = state.world.process(channel.to) else {
        return false;
    };
    let mut effects = Vec::new();
    let mut after = machine.clone();
    after.step(Input::Take(channel, 1), &mut effects);
    effects.is_empty()
        && after.handled() == machine.handled()
        && after.recordings().eq(machine.recordings())
        && after.held().eq(machine.held())
}
