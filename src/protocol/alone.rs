//! An application alone: given what a trace says it was given, without channels and other
//! processes. The same inputs in the same order must lead to the same states and messages; here
//! is where that is seen.

use bytes::Bytes;

use super::application::{Application, Outputs, Refusal, Setup};
use super::cut::Restored;
use super::frame::Batch;
use super::ids::{ChannelId, MessageNumber};
use super::link::{Limits, Outbox, Outboxes};
use super::trace::What;

/// One process's application, run again.
#[derive(Debug)]
pub struct Alone<A> {
    application: A,
    outboxes: Outboxes,
}

/// A message that it sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The channel.
    pub channel: ChannelId,
    /// Its number.
    pub number: MessageNumber,
    /// The message.
    pub bytes: Bytes,
}

impl<A: Application> Alone<A> {
    /// In its initial state.
    ///
    /// # Errors
    /// If the application refuses its settings.
    pub fn start(setup: &Setup, limits: &Limits) -> Result<Self, Refusal> {
        let application = A::start(setup)?;
        let outputs = setup.topology.outputs(setup.process).into_iter();
        let outboxes = outputs.map(|channel| (channel, MessageNumber::default()));
        Ok(Self::with(application, outboxes, limits))
    }

    /// In the state of a part. What its shares hold is in the channels, and none of it is sent.
    ///
    /// # Errors
    /// If the state is none of this application.
    pub fn restore(setup: &Setup, limits: &Limits, from: &Restored) -> Result<Self, Refusal> {
        let application = from.application(setup)?;
        let outputs = from.part.outputs.iter();
        let outboxes = outputs.map(|output| (output.channel, output.sent));
        Ok(Self::with(application, outboxes, limits))
    }

    fn with(
        application: A,
        outboxes: impl Iterator<Item = (ChannelId, MessageNumber)>,
        limits: &Limits,
    ) -> Self {
        let outboxes = outboxes.map(|(channel, sent)| Outbox::new(channel, sent, &[], limits));
        Self {
            application,
            outboxes: Outboxes::new(outboxes.collect(), |_| false, limits),
        }
    }

    /// Gives it an input, and answers with what it sent: by channel, and on each in order. What is
    /// no input changes nothing.
    pub fn give(&mut self, what: &What) -> Vec<Message> {
        let mut outputs = Outputs::new(&mut self.outboxes);
        match what {
            What::Tick => drop(self.application.tick(&mut outputs)),
            // A refusal changes nothing, and whoever gave the command has heard it then.
            What::Command(command) => drop(self.application.command(command, &mut outputs)),
            What::Handle {
                channel, message, ..
            } => self.application.handle(*channel, message, &mut outputs),
            What::Start { .. } | What::Record { .. } | What::End { .. } => {}
        }
        let mut sent = Vec::new();
        for place in 0..self.outboxes.len() {
            let channel = self.outboxes[place].channel();
            for batch in self.outboxes.change(place, Outbox::take_all) {
                sent.extend(messages(channel, &batch));
            }
        }
        sent
    }

    /// Its state, as a part would hold it.
    pub fn state(&self) -> Vec<u8> {
        self.application.capture()()
    }
}

/// The messages of a batch, sharing its buffer.
pub fn messages(channel: ChannelId, batch: &Batch) -> impl Iterator<Item = Message> + '_ {
    batch.messages().map(move |(number, bytes)| Message {
        channel,
        number,
        bytes: batch.packed().slice_ref(bytes),
    })
}
