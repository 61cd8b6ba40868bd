//! What happens on the channels: handshakes, arrivals, acknowledgement, writing, handling.

use super::{Phase, Process};
use crate::protocol::application::{Application, Outputs};
use crate::protocol::events::Effect;
use crate::protocol::frame::{Batch, Feedback, Frame, Greeting, Hello, Marker};
use crate::protocol::ids::{ChannelId, Generation, JobId};
use crate::protocol::link::{Breach, Inbox, Outbox};
use crate::protocol::mutant::{Mutant::*, is};
use crate::protocol::trace::What;

impl<A: Application> Process<A> {
    /// The channels on which a step [`Writable`](crate::protocol::Input::Writable) has something to
    /// say.
    pub fn writable(&self) -> impl Iterator<Item = ChannelId> + '_ {
        let inputs = self.inboxes.owing();
        self.outboxes.writable().chain(inputs.map(Inbox::channel))
    }

    /// Those of them on which it must not wait. What is left is acknowledgement of a few messages,
    /// which only frees the sender's memory: a few milliseconds make it one word instead of many.
    pub fn pressing(&self) -> impl Iterator<Item = ChannelId> + '_ {
        let owing = self.inboxes.owing();
        let inputs = owing.filter(|inbox| inbox.feedback_presses());
        self.outboxes.writable().chain(inputs.map(Inbox::channel))
    }

    /// A sender says hello: an older generation is refused for good, a newer one asked to wait.
    pub(super) fn dialled(&mut self, channel: ChannelId, hello: Hello, effects: &mut Vec<Effect>) {
        let greeting = self.greeting(channel, hello);
        effects.push(Effect::Greet(channel, greeting));
    }

    /// Whether a hello would now be welcomed or refused, and not only be told to wait.
    pub fn would_answer(&self, channel: ChannelId, hello: Hello) -> bool {
        let current = match self.phase {
            Phase::Idle => return channel.to != self.id(),
            Phase::Loading(generation, _) => return hello.generation < generation,
            Phase::Prepared(generation) | Phase::Running(generation) => generation,
        };
        channel.to != self.id() || hello.generation <= current
    }

    fn greeting(&mut self, channel: ChannelId, hello: Hello) -> Greeting {
        let topology = self.setup.topology.fingerprint();
        if hello.topology != topology {
            return Greeting::Refused(format!(
                "the sender has topology {:08x}, this node {topology:08x}: give both one job file",
                hello.topology
            ));
        }
        // One that has lost its collector's word so far does not know; then the rest decides.
        let known = ![hello.job, self.job].contains(&JobId::default());
        if known && hello.job != self.job {
            return Greeting::Refused(format!(
                "the sender is of job {}, this node of {}: another job's node has its address",
                hello.job, self.job
            ));
        }
        if !self.setup.topology.contains(channel) || channel.to != self.id() {
            return Greeting::Refused(format!("{channel} does not lead here"));
        }
        if !self.would_answer(channel, hello) {
            return Greeting::NotYet;
        }
        if self.generation() != Some(hello.generation) {
            return Greeting::Refused(format!("generation {} is over", hello.generation));
        }
        let input = self.inboxes.place(channel);
        let input = input.expect("every channel that leads here has an inbox");
        let opened = self
            .inboxes
            .change(input, |inbox| inbox.open(hello.incarnation));
        match opened {
            Ok(feedback) => Greeting::Welcome {
                incarnation: self.incarnation,
                feedback,
            },
            Err(breach) => Greeting::Refused(breach.to_string()),
        }
    }

    /// The receiver answers: go on where it says. Not yet is the driver's to try again; a refusal
    /// is for good and only a later generation changes it.
    pub(super) fn greeted(
        &mut self,
        channel: ChannelId,
        generation: Generation,
        greeting: Greeting,
        effects: &mut Vec<Effect>,
    ) {
        if let Greeting::Welcome {
            incarnation,
            feedback,
        } = greeting
        {
            let resume = |outbox: &mut Outbox| outbox.resume(incarnation, feedback);
            self.told(channel, generation, resume, effects);
        }
    }

    /// Frames of any generation but the current one are refused: they change nothing.
    pub(super) fn arrived(
        &mut self,
        channel: ChannelId,
        generation: Generation,
        frame: Frame,
        effects: &mut Vec<Effect>,
    ) {
        let counts = self.generation() == Some(generation) || is(IgnoresGeneration);
        let (Some(input), true) = (self.inboxes.place(channel), counts) else {
            return;
        };
        match self.inboxes.change(input, |inbox| inbox.accept(frame)) {
            Ok(None) => {}
            Ok(Some(Frame::Messages(batch))) => self.record_arrival(input, &batch, effects),
            Ok(Some(Frame::Marker(marker))) => self.marker_came(input, &marker, effects),
            Err(breach) => {
                self.inboxes.change(input, Inbox::close);
                effects.push(Effect::Hangup(channel, Some(breach)));
            }
        }
    }

    /// The receiver's word on an output.
    pub(super) fn heard(
        &mut self,
        channel: ChannelId,
        generation: Generation,
        feedback: Feedback,
        effects: &mut Vec<Effect>,
    ) {
        self.told(channel, generation, |outbox| outbox.hear(feedback), effects);
    }

    /// A receiver's word changes an output of the current generation; one that cannot be breaks
    /// the stream.
    fn told(
        &mut self,
        channel: ChannelId,
        generation: Generation,
        change: impl FnOnce(&mut Outbox) -> Result<(), Breach>,
        effects: &mut Vec<Effect>,
    ) {
        let place = self.outboxes.place(channel);
        let (Some(output), true) = (place, self.generation() == Some(generation)) else {
            return;
        };
        if let Err(breach) = self.outboxes.change(output, change) {
            self.outboxes.change(output, Outbox::close);
            effects.push(Effect::Hangup(channel, Some(breach)));
            effects.push(Effect::Dial(channel, self.hello(generation)));
        }
    }

    /// A stream is gone: the sender dials again, the channel itself has lost nothing.
    pub(super) fn broken(&mut self, channel: ChannelId, effects: &mut Vec<Effect>) {
        if let Some(input) = self.inboxes.place(channel) {
            self.inboxes.change(input, Inbox::close);
        }
        let output = self.outboxes.place(channel);
        if let (Some(output), Some(generation)) = (output, self.generation()) {
            self.outboxes.change(output, Outbox::close);
            effects.push(Effect::Dial(channel, self.hello(generation)));
        }
    }

    /// The driver has room: hand it the next frame, or what there is to tell the sender.
    pub(super) fn write(&mut self, channel: ChannelId, effects: &mut Vec<Effect>) {
        if let Some(output) = self.outboxes.place(channel)
            && let Some(mut frame) = self.outboxes.change(output, Outbox::next_frame)
        {
            let marker = match &mut frame {
                Frame::Marker(marker) => Some(self.stamped(marker)),
                Frame::Messages(_) => None,
            };
            effects.push(Effect::Write(channel, frame));
            if let Some(marker) = marker {
                self.marker_written(channel, &marker, effects);
            }
        }
        if let Some(input) = self.inboxes.place(channel)
            && let Some(feedback) = self.inboxes.change(input, Inbox::state_feedback)
        {
            effects.push(Effect::Feedback(channel, feedback));
        }
    }

    /// The marker as it goes on the wire, with the time that was used up to this moment: waiting
    /// in the outbox counts.
    fn stamped(&self, marker: &mut Marker) -> Marker {
        if let Some(recording) = self.recordings.get(&marker.snapshot) {
            marker.used_ms = recording.used_ms(self.now_ms);
        }
        *marker
    }

    /// Handles what is at the head of an inbox: up to so many messages, and the markers among
    /// them. Markers are taken unless the channel is held; messages only while the outputs they
    /// may lead to have room.
    pub(super) fn take(
        &mut self,
        channel: ChannelId,
        messages_max: u32,
        effects: &mut Vec<Effect>,
    ) {
        let Some(input) = self.inboxes.place(channel) else {
            return;
        };
        let mut left = messages_max;
        let runs = self.running().is_some() || is(TakesBeforeRun);
        while left > 0 && runs && !self.is_held(input) {
            match self.inboxes[input].head() {
                Some(Frame::Marker(_)) => {
                    if let Some(Frame::Marker(marker)) = self.inboxes.change(input, Inbox::pop) {
                        self.marker_counts(input, &marker, effects);
                    }
                }
                Some(Frame::Messages(_)) if self.has_room_for(input) => {
                    let popped = self.inboxes.change(input, Inbox::pop);
                    let Some(Frame::Messages(batch)) = popped else {
                        break;
                    };
                    left -= self.handle_batch(input, batch, left, effects);
                }
                Some(Frame::Messages(_)) | None => break,
            }
        }
        self.check_outboxes(effects);
    }

    /// Handles messages of a batch in place and puts back those it does not; returns how many.
    fn handle_batch(
        &mut self,
        input: usize,
        batch: Batch,
        messages_max: u32,
        effects: &mut Vec<Effect>,
    ) -> u32 {
        let channel = self.inboxes[input].channel();
        let application = self
            .application
            .as_mut()
            .expect("a running process has one");
        let is_on_cycle = self.setup.topology.is_on_cycle(channel);
        let mut count = 0;
        for (number, message) in batch.messages().take(messages_max as usize) {
            if let Some(tracer) = &mut self.tracer {
                tracer.begin(batch.clock(), &mut self.outboxes);
            }
            application.handle(channel, message, &mut Outputs::new(&mut self.outboxes));
            if let Some(tracer) = &self.tracer {
                let message = batch.packed().slice_ref(message);
                let handled = What::Handle {
                    channel,
                    number,
                    message,
                };
                effects.push(Effect::Trace(tracer.end(handled, &mut self.outboxes)));
            }
            count += 1;
            if !self.outboxes.has_room(is_on_cycle) {
                break;
            }
        }
        if let (_, Some(rest)) = batch.split(count) {
            self.inboxes.change(input, |inbox| inbox.put_back(rest));
        }
        self.wake();
        count
    }
}
