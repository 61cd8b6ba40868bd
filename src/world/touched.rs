//! For a driver of a large world: where something else may be possible since the last choice, so
//! that nobody has to look at everything; and time that passes for one machine after the other.

use super::choice::Fault;
use super::{Choice, Operation, Up, World};
use crate::protocol::application::{Application, Pace};
use crate::protocol::collector::CollectorInput;
use crate::protocol::events::{Directive, Input, Report};
use crate::protocol::ids::{ChannelId, Incarnation, ProcessId};

/// A place that a choice has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Touched {
    /// The machine of a process took a step, or started.
    Process(ProcessId),
    /// Something was put on a channel's way or taken off it, or its stream came or went.
    Link(ChannelId),
    /// A control stream was opened or closed, or something was said on it.
    Control(ProcessId, Incarnation),
    /// The node of a process is gone, with all that it was writing.
    Crashed(ProcessId),
}

impl<A: Application> World<A> {
    /// From now on what is touched is kept for [`take_touched`](Self::take_touched), which must
    /// be called after every choice.
    pub fn keep_touched(&mut self) {
        self.touched = Some(Vec::new());
    }

    /// Moves what was touched since the last call to the end of a list.
    pub fn take_touched(&mut self, into: &mut Vec<Touched>) {
        if let Some(touched) = &mut self.touched {
            into.append(touched);
        }
    }

    pub(super) fn touch(&mut self, place: Touched) {
        if let Some(touched) = &mut self.touched
            && touched.last() != Some(&place)
        {
            touched.push(place);
        }
    }

    /// What a process can do next, while its node is up.
    pub fn process_choices(&self, process: ProcessId, choices: &mut Vec<Choice>) {
        let Some(machine) = self.process(process) else {
            return;
        };
        if !matches!(machine.pace(), None | Some(Pace::Idle)) {
            choices.push(Choice::Tick(process));
        }
        choices.extend(machine.takable().map(Choice::Take));
        choices.extend(machine.writable().map(|channel| {
            if channel.from == process {
                Choice::Send(channel)
            } else {
                Choice::Acknowledge(channel)
            }
        }));
    }

    /// What can happen next on the way between the ends of a channel.
    pub fn channel_choices(&self, channel: ChannelId, choices: &mut Vec<Choice>) {
        self.link_choices(channel, &self.links[&channel], choices);
    }

    /// Whether a stream carries the channel now.
    pub fn has_stream(&self, channel: ChannelId) -> bool {
        self.links[&channel].stream.is_some()
    }

    /// How many words are on the way back to the sender of a channel.
    pub fn on_the_way_back(&self, channel: ChannelId) -> usize {
        self.links[&channel].back.len()
    }

    /// How many words are on the way to the collector and from it.
    pub fn words(&self, process: ProcessId, incarnation: Incarnation) -> (usize, usize) {
        let control = self.control.get(&(process, incarnation));
        control.map_or((0, 0), |control| (control.up.len(), control.down.len()))
    }

    /// What an incarnation hears next from the collector.
    pub fn next_directive(
        &self,
        process: ProcessId,
        incarnation: Incarnation,
    ) -> Option<&Directive> {
        self.control.get(&(process, incarnation))?.down.front()
    }

    /// What the collector hears next from an incarnation; none also if its stream has closed.
    pub fn next_report(&self, process: ProcessId, incarnation: Incarnation) -> Option<&Report> {
        match self.control.get(&(process, incarnation))?.up.front()? {
            Up::Said(report) => Some(report),
            Up::Gone => None,
        }
    }

    /// The process whose node waits for this operation; none: the collector does.
    pub const fn waits_for(operation: &Operation) -> Option<ProcessId> {
        match operation {
            Operation::Put(process, ..) | Operation::Load(process, ..) => Some(*process),
            Operation::Read | Operation::Create(_) | Operation::Delete(_) => None,
        }
    }

    /// Moves the clock on without telling anybody.
    pub fn set_time(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// Tells a process the time.
    pub fn tell_process_time(&mut self, process: ProcessId) {
        let now_ms = self.now_ms;
        self.step(process, Input::Time { now_ms });
    }

    /// Tells the collector the time.
    pub fn tell_collector_time(&mut self) {
        let now_ms = self.now_ms;
        self.collect(CollectorInput::Time { now_ms });
    }

    /// A live node gives a sign of life.
    pub fn beat(&mut self, process: ProcessId) {
        if let Some(incarnation) = self.process(process).map(|machine| machine.incarnation()) {
            self.collect(CollectorInput::Heartbeat(process, incarnation));
        }
    }

    /// Kills a node before what it has said to the collector leaves it.
    pub fn crash_silently(&mut self, process: ProcessId) {
        self.lose_words(process);
        self.apply(&Choice::Fault(Fault::Crash(process)));
    }
}
