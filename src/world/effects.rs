//! Carrying out what the processes of a world decide.

use super::{Back, Link, Notice, Operation, Touched, Up, World};
use crate::protocol::Process;
use crate::protocol::application::Application;
use crate::protocol::events::{Effect, Input};
use crate::protocol::frame::{Frame, Greeting};
use crate::protocol::ids::{ChannelId, ProcessId};

impl<A: Application> World<A> {
    /// One input to a process, with all its effects.
    pub(super) fn step(&mut self, process: ProcessId, input: Input<A>) {
        let mut effects = Vec::new();
        if let Some(machine) = &mut self.nodes[process.index()].process {
            machine.step(input, &mut effects);
            self.touch(Touched::Process(process));
        }
        for effect in effects {
            self.execute(process, effect);
        }
    }

    fn execute(&mut self, process: ProcessId, effect: Effect) {
        match effect {
            Effect::Write(channel, frame) => self.write(channel, frame),
            Effect::Feedback(channel, feedback) => {
                self.link(channel).back.push_back(Back::Feedback(feedback));
            }
            Effect::Dial(channel, hello) => {
                let dialling = Some(hello);
                let fresh = Link::default();
                *self.link(channel) = Link { dialling, ..fresh };
            }
            Effect::Greet(channel, greeting) => self.greet(channel, greeting),
            Effect::Hangup(channel, breach) => {
                if let Some(breach) = breach {
                    self.notices
                        .push(Notice::Breach(channel, breach.to_string()));
                }
                self.hang_up(process, channel);
            }
            Effect::Capture(snapshot, capture) => {
                self.notices.push(Notice::Recorded(process, snapshot));
                self.nodes[process.index()]
                    .captured
                    .insert(snapshot, capture());
            }
            Effect::Store(part) => {
                self.notices.push(Notice::Whole(process, part.snapshot));
                let node = &mut self.nodes[process.index()];
                let state = node
                    .captured
                    .remove(&part.snapshot)
                    .expect("captured before stored");
                let machine = node.process.as_ref().expect("only a live process acts");
                let put = Operation::Put(process, machine.incarnation(), part, state);
                self.disk.submit(put);
            }
            Effect::Forget(snapshot) => {
                self.nodes[process.index()].captured.remove(&snapshot);
            }
            Effect::Load(generation, snapshot) => {
                let machine = self.process(process).expect("only a live process acts");
                let incarnation = machine.incarnation();
                self.disk
                    .submit(Operation::Load(process, incarnation, generation, snapshot));
            }
            Effect::Commanded(Ok(())) => {}
            Effect::Commanded(Err(refusal)) => {
                self.notices
                    .push(Notice::Failed(process, refusal.to_string()));
            }
            Effect::Report(report) => {
                let machine = self.process(process).expect("only a live process acts");
                let place = (process, machine.incarnation());
                if let Some(control) = self.control.get_mut(&place)
                    && control.open
                {
                    control.up.push_back(Up::Said(report));
                    self.touch(Touched::Control(place.0, place.1));
                }
            }
            Effect::Trace(event) => self.trace.push(*event),
            Effect::Halt => {}
            Effect::Fail(reason) => {
                self.notices.push(Notice::Failed(process, reason));
                self.crash(process);
            }
        }
    }

    /// What lies between the ends of a channel, to be changed.
    pub(super) fn link(&mut self, channel: ChannelId) -> &mut Link {
        self.touch(Touched::Link(channel));
        self.links
            .get_mut(&channel)
            .expect("a link for every channel")
    }

    fn write(&mut self, channel: ChannelId, frame: Frame) {
        let link = self.link(channel);
        if link.stream.is_some() {
            link.wire.push_back(frame);
        }
    }

    fn greet(&mut self, channel: ChannelId, greeting: Greeting) {
        let link = self.link(channel);
        let Some(hello) = link.dialling else {
            return;
        };
        match greeting {
            Greeting::NotYet => {}
            Greeting::Refused(_) => {
                link.dialling = None;
                link.back.push_back(Back::Greeting(greeting));
            }
            Greeting::Welcome { .. } => {
                *link = Link {
                    stream: Some(hello.generation),
                    ..Link::default()
                };
                link.back.push_back(Back::Greeting(greeting));
            }
        }
    }

    /// One end drops the stream; the other notices. A dial that is under way is the sender's.
    fn hang_up(&mut self, process: ProcessId, channel: ChannelId) {
        let link = self.link(channel);
        let was_open = link.stream.is_some();
        if was_open || channel.from == process {
            *link = Link::default();
        }
        if was_open {
            let other = if channel.from == process {
                channel.to
            } else {
                channel.from
            };
            self.step(other, Input::Broken(channel));
        }
    }

    /// The node is gone: its streams break, what it was writing may or may not be on disk, and
    /// what it told the collector may still arrive.
    pub(super) fn crash(&mut self, process: ProcessId) {
        self.disconnect(process);
        self.touch(Touched::Crashed(process));
        let node = &mut self.nodes[process.index()];
        node.process = None;
        node.captured.clear();
        self.disk.drop_nodes(process);
        let channels = self.links.keys().copied();
        let touched = channels.filter(|channel| channel.from == process || channel.to == process);
        for channel in touched.collect::<Vec<_>>() {
            self.hang_up(process, channel);
        }
    }

    /// What a node said, and the collector has not heard, never arrives.
    pub(super) fn lose_words(&mut self, process: ProcessId) {
        let incarnation = self.process(process).map(Process::incarnation);
        let place = incarnation.map(|incarnation| (process, incarnation));
        if let Some(control) = place.and_then(|place| self.control.get_mut(&place)) {
            control.up.retain(|word| matches!(word, Up::Gone));
        }
    }

    /// The control stream of a node closes.
    pub(super) fn disconnect(&mut self, process: ProcessId) {
        if let Some(machine) = self.process(process) {
            let place = (process, machine.incarnation());
            if let Some(control) = self.control.get_mut(&place)
                && control.open
            {
                control.open = false;
                control.down.clear();
                control.up.push_back(Up::Gone);
                self.touch(Touched::Control(place.0, place.1));
            }
        }
    }
}
