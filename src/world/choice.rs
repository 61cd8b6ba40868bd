//! What can happen next in a world, and what each of it does.

use super::{Back, Choice::*, Control, Fate, Link, Notice, Operation, Touched, Up, World};
use crate::protocol::Process;
use crate::protocol::application::{Application, Pace};
use crate::protocol::collector::{Collector, CollectorInput};
use crate::protocol::cut::{Facts, Restored};
use crate::protocol::events::{Input, StoredPart};
use crate::protocol::frame::Greeting;
use crate::protocol::ids::{ChannelId, Incarnation, ProcessId};
use crate::protocol::mutant::{Mutant::AcknowledgesBeforeStoring, is};

/// Something that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The application of a process starts new work.
    Tick(ProcessId),
    /// A process handles the message or marker at the head of an inbox.
    Take(ChannelId),
    /// The next frame goes from the outbox onto the wire.
    Send(ChannelId),
    /// The frame at the head of the wire arrives.
    Arrive(ChannelId),
    /// The receiver states what it has and how far the sender may go.
    Acknowledge(ChannelId),
    /// The sender hears the receiver's next word.
    Hear(ChannelId),
    /// The sender's hello reaches the receiver.
    Open(ChannelId),
    /// The collector hears the next word of an incarnation.
    Report(ProcessId, Incarnation),
    /// An incarnation hears the collector's next word.
    Direct(ProcessId, Incarnation),
    /// The store carries out its n-th pending operation, as fate has it.
    Store(usize, Fate),
    /// The node of a process starts.
    Start(ProcessId),
    /// The collector starts.
    StartCollector,
    /// A fault.
    Fault(Fault),
}

/// Something that goes wrong, or takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A stream breaks; what was on the wire is lost.
    Break(ChannelId),
    /// A control stream breaks; what the collector was to be told is lost.
    BreakControl(ProcessId),
    /// The node of a process is killed.
    Crash(ProcessId),
    /// The collector is killed.
    CrashCollector,
    /// So many milliseconds pass.
    Pass(u64),
}

/// Machines that are awake are told the time at least so often; to a collector a longer stride
/// would mean that it had slept.
const STRIDE_MS: u64 = 250;

impl<A: Application> World<A> {
    /// Everything that can happen next without a fault. Ticks come first, starts last.
    pub fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for process in self.job.topology.processes() {
            match self.process(process) {
                None => choices.push(Start(process)),
                Some(machine) => {
                    if !matches!(machine.pace(), None | Some(Pace::Idle)) {
                        choices.push(Tick(process));
                    }
                    choices.extend(machine.takable().map(Take));
                    choices.extend(machine.writable().map(|channel| {
                        if channel.from == process {
                            Send(channel)
                        } else {
                            Acknowledge(channel)
                        }
                    }));
                }
            }
        }
        for (&channel, link) in &self.links {
            self.link_choices(channel, link, &mut choices);
        }
        for (&(process, incarnation), control) in &self.control {
            if self.collector.is_some() && !control.up.is_empty() {
                choices.push(Report(process, incarnation));
            }
            if !control.down.is_empty() {
                choices.push(Direct(process, incarnation));
            }
        }
        let pending = 0..self.disk.pending.len();
        choices.extend(pending.map(|operation| Store(operation, Fate::Done)));
        if self.collector.is_none() {
            choices.push(StartCollector);
        }
        choices
    }

    pub(super) fn link_choices(&self, channel: ChannelId, link: &Link, choices: &mut Vec<Choice>) {
        if !link.wire.is_empty() {
            choices.push(Arrive(channel));
        }
        if !link.back.is_empty() {
            choices.push(Hear(channel));
        }
        // A hello that would only be told to wait is no choice: it would change nothing.
        if let (Some(hello), Some(receiver)) = (link.dialling, self.process(channel.to))
            && receiver.would_answer(channel, hello)
        {
            choices.push(Open(channel));
        }
    }

    /// Does it. A choice that is not open does nothing.
    pub fn apply(&mut self, choice: &Choice) {
        match *choice {
            Tick(process) => self.step(process, Input::Tick),
            Take(channel) => self.step(channel.to, Input::Take(channel, 1)),
            Send(channel) => self.step(channel.from, Input::Writable(channel)),
            Acknowledge(channel) => self.step(channel.to, Input::Writable(channel)),
            Arrive(channel) => self.arrive(channel),
            Hear(channel) => self.hear(channel),
            Open(channel) => {
                if let Some(hello) = self.links[&channel].dialling {
                    self.step(channel.to, Input::Dialled(channel, hello));
                }
            }
            Report(process, incarnation) => self.report(process, incarnation),
            Direct(process, incarnation) => self.direct(process, incarnation),
            Store(operation, fate) => self.operate(operation, fate),
            Start(process) => self.start(process),
            StartCollector => self.start_collector(),
            Fault(fault) => self.fault(fault),
        }
    }

    fn arrive(&mut self, channel: ChannelId) {
        let link = self.link(channel);
        if let (Some(generation), Some(frame)) = (link.stream, link.wire.pop_front()) {
            self.step(channel.to, Input::Arrived(channel, generation, frame));
        }
    }

    fn hear(&mut self, channel: ChannelId) {
        let link = self.link(channel);
        let (Some(back), generation) = (link.back.pop_front(), link.stream) else {
            return;
        };
        match (back, generation) {
            (Back::Greeting(Greeting::Refused(reason)), _) => {
                self.notices.push(Notice::Refused(channel, reason));
            }
            (Back::Greeting(greeting), Some(generation)) => {
                self.step(channel.from, Input::Greeted(channel, generation, greeting));
            }
            (Back::Feedback(feedback), Some(generation)) => {
                self.step(channel.from, Input::Heard(channel, generation, feedback));
            }
            (_, None) => {}
        }
    }

    fn report(&mut self, process: ProcessId, incarnation: Incarnation) {
        let Some(control) = self.control.get_mut(&(process, incarnation)) else {
            return;
        };
        let input = match control.up.pop_front() {
            None => return,
            Some(Up::Said(report)) => CollectorInput::Said(process, incarnation, report),
            Some(Up::Gone) => CollectorInput::Gone(process, incarnation),
        };
        if !control.open && control.up.is_empty() {
            self.control.remove(&(process, incarnation));
        }
        self.touch(Touched::Control(process, incarnation));
        self.collect(input);
    }

    fn direct(&mut self, process: ProcessId, incarnation: Incarnation) {
        let control = self.control.get_mut(&(process, incarnation));
        if let Some(directive) = control.and_then(|control| control.down.pop_front()) {
            self.touch(Touched::Control(process, incarnation));
            self.step(process, Input::Directive(directive));
        }
    }

    fn start(&mut self, process: ProcessId) {
        if self.process(process).is_none() {
            self.incarnations += 1;
            let incarnation = Incarnation::new(self.incarnations);
            let setup = self.setup(process);
            let machine = Process::new(setup, self.job.process.clone(), incarnation);
            self.nodes[process.index()].process = machine.ok();
            let now_ms = self.now_ms;
            self.step(process, Input::Time { now_ms });
            self.connect(process);
        }
    }

    /// A node opens a control stream, if there is a collector to take it.
    pub fn connect(&mut self, process: ProcessId) {
        if let (Some(machine), true) = (self.process(process), self.collector.is_some()) {
            let place = (process, machine.incarnation());
            let control: &mut Control = self.control.entry(place).or_default();
            control.open = true;
            self.touch(Touched::Control(place.0, place.1));
            self.step(process, Input::Connected);
        }
    }

    fn start_collector(&mut self) {
        if self.start_collector_alone() {
            for process in self.job.topology.processes() {
                self.connect(process);
            }
        }
    }

    /// Starts the collector, and no node has heard of it yet. Answers whether there was none.
    pub fn start_collector_alone(&mut self) -> bool {
        let is_absent = self.collector.is_none();
        if is_absent {
            self.collectors += 1;
            let Self { job, .. } = self;
            let (topology, application) = (job.topology.clone(), job.application.clone());
            let nonce = self.collectors;
            let collector = Collector::new(topology, application, job.policy.clone(), nonce);
            let mut effects = Vec::new();
            collector.start(&mut effects);
            self.collector = Some(collector);
            self.carry_out(effects);
            let now_ms = self.now_ms;
            self.collect(CollectorInput::Time { now_ms });
        }
        is_absent
    }

    fn operate(&mut self, operation: usize, fate: Fate) {
        if operation >= self.disk.pending.len() {
            return;
        }
        match self.disk.pending.remove(operation) {
            Operation::Read => {
                let records = match fate {
                    Fate::Done => Ok(self.disk.read()),
                    Fate::Failed | Fate::Unknown => Err("injected: cannot be read".to_owned()),
                };
                self.collect(CollectorInput::Read(records));
            }
            Operation::Create(record) => {
                let outcome = self.disk.create(&record, fate);
                self.collect(CollectorInput::Created(record, outcome));
            }
            Operation::Delete(snapshot) => self.disk.delete(snapshot),
            Operation::Put(process, incarnation, part, state) => {
                let state_version = A::state_version(&self.setup(process));
                let restored = Restored {
                    part: (*part).clone(),
                    state: state.clone().into(),
                    state_version,
                };
                let put = self.disk.put(restored, fate);
                let put = put.or_else(|why| is(AcknowledgesBeforeStoring).then_some(()).ok_or(why));
                let stored = put.map(|()| Box::new(self.stored_part(&part, &state)));
                if self.is_current(process, incarnation) {
                    self.step(process, Input::Stored(part.snapshot, stored));
                }
            }
            Operation::Load(process, incarnation, generation, snapshot) => {
                let part = match (fate, self.part(snapshot, process)) {
                    (Fate::Done, Some(part)) => Ok(part.clone()),
                    (Fate::Done, None) => Err(format!("the part in {snapshot} is missing")),
                    _ => Err("injected: cannot be read".to_owned()),
                };
                if self.is_current(process, incarnation) {
                    let setup = self.setup(process);
                    let loaded = part.and_then(|part| part.load(&setup).map_err(|why| why.0));
                    let loaded = loaded.map(Box::new);
                    self.step(process, Input::Loaded(generation, loaded));
                }
            }
        }
    }

    fn stored_part(&self, part: &crate::protocol::cut::Part, state: &[u8]) -> StoredPart {
        let setup = self.setup(part.process);
        StoredPart {
            bytes: state.len() as u64,
            checksum: 0,
            facts: Facts::of::<A>(&setup, part, state),
        }
    }

    fn is_current(&self, process: ProcessId, incarnation: Incarnation) -> bool {
        self.process(process)
            .is_some_and(|machine| machine.incarnation() == incarnation)
    }

    fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Break(channel) => {
                let link = self.link(channel);
                if link.stream.is_some() {
                    *link = Link::default();
                    self.step(channel.to, Input::Broken(channel));
                    self.step(channel.from, Input::Broken(channel));
                }
            }
            Fault::BreakControl(process) => {
                self.disconnect(process);
                self.lose_words(process);
                self.connect(process);
            }
            Fault::Crash(process) => self.crash(process),
            Fault::CrashCollector => {
                self.collector = None;
                self.disk.drop_collectors();
                self.control.clear();
            }
            Fault::Pass(passed_ms) => {
                let until_ms = self.now_ms + passed_ms;
                while self.now_ms < until_ms {
                    self.now_ms = until_ms.min(self.now_ms + STRIDE_MS);
                    self.tell_time();
                }
            }
        }
    }

    /// Heartbeats are not choices: a live node has always just sent one.
    fn tell_time(&mut self) {
        let now_ms = self.now_ms;
        for process in self.job.topology.processes() {
            self.step(process, Input::Time { now_ms });
            if let Some(machine) = self.process(process) {
                let incarnation = machine.incarnation();
                self.collect(CollectorInput::Heartbeat(process, incarnation));
            }
        }
        self.collect(CollectorInput::Time { now_ms });
    }
}
