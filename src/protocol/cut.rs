//! What one process contributes to a snapshot, and what can be said of it without its bytes.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::application::{Application, Quantities, Refusal, Setup};
use super::clock::Clock;
use super::frame::Batch;
use super::ids::{ChannelId, Generation, MessageNumber, ProcessId, SnapshotId};
use super::mode::Mode;

/// What one process recorded around its local state: where its channels stood and what was in
/// them. The state itself is captured apart, as it takes time to encode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// The generation it was recorded in.
    pub generation: Generation,
    /// The process.
    pub process: ProcessId,
    /// How the snapshot was taken.
    pub mode: Mode,
    /// The process's vector clock when it recorded, where the job is traced.
    pub clock: Option<Arc<Clock>>,
    /// What the process's state held of each quantity when the job began. A restored process has
    /// it from the part it restored: the settings may be others by now.
    pub initial: Quantities,
    /// Every output, in order.
    pub outputs: Vec<OutputPart>,
    /// Every input, in order.
    pub inputs: Vec<InputPart>,
}

/// The sender's side of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutputPart {
    /// The channel.
    pub channel: ChannelId,
    /// The last message sent before the state was recorded.
    pub sent: MessageNumber,
    /// The last message on the wire before the marker.
    pub after: MessageNumber,
    /// The sender share: the messages after that one that the marker overtook in the outbox.
    pub share: Vec<Batch>,
}

/// The receiver's side of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputPart {
    /// The channel.
    pub channel: ChannelId,
    /// The last message handled before the state was recorded.
    pub handled: MessageNumber,
    /// The last message that came before the marker.
    pub after: MessageNumber,
    /// The receiver share: what was in the inbox or came before the marker.
    pub share: Vec<Batch>,
}

/// A part as it is read back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Restored {
    /// Where the channels stood and what was in them.
    pub part: Part,
    /// The local state.
    pub state: Bytes,
    /// The form of that state, as the application tells them apart.
    pub state_version: u32,
}

/// The same, once the state has become an application again: what a process goes on from.
#[derive(Clone, Debug)]
pub struct Loaded<A> {
    /// Where the channels stood and what was in them.
    pub part: Part,
    /// The application, in the state that was captured.
    pub application: A,
}

impl Restored {
    /// Makes an application of the state. How long that takes is the application's business, so a
    /// node does it off its handling thread.
    ///
    /// # Errors
    /// If the application refuses the state.
    pub fn load<A: Application>(self, setup: &Setup) -> Result<Loaded<A>, Refusal> {
        let application = self.application(setup)?;
        let part = self.part;
        Ok(Loaded { part, application })
    }

    /// The application alone, in that state.
    ///
    /// # Errors
    /// If it refuses the state.
    pub fn application<A: Application>(&self, setup: &Setup) -> Result<A, Refusal> {
        if self.state_version == A::state_version(setup) {
            A::restore(setup, &self.state)
        } else {
            A::migrate(setup, self.state_version, &self.state)
        }
    }
}

/// Messages of consecutive numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The first number.
    pub first: MessageNumber,
    /// The last number.
    pub last: MessageNumber,
}

impl Run {
    /// How many messages it is; none, if a stranger's ends are the wrong way round.
    pub fn length(self) -> u64 {
        let (first, last) = (self.first.get(), self.last.get());
        last.saturating_add(1).saturating_sub(first)
    }
}

/// What a part says, without its payloads: what verdicts are made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Facts {
    /// The process.
    pub process: ProcessId,
    /// For every output: the last message sent, and the sender share.
    pub outputs: Vec<ChannelFacts>,
    /// For every input: the last message handled, and the receiver share.
    pub inputs: Vec<ChannelFacts>,
    /// What the local state holds.
    pub in_state: Quantities,
    /// What the recorded messages, of both shares, carry.
    pub in_channels: Quantities,
    /// What the process's state held when the job began.
    pub initial: Quantities,
    /// The process's vector clock when it recorded, where the job is traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
}

impl Facts {
    /// What a part and its state say; the quantities are counted by the application.
    pub fn of<A: Application>(setup: &Setup, part: &Part, state: &[u8]) -> Self {
        let (outputs, inputs) = part.channel_facts();
        let mut in_channels = Quantities::new();
        for (_, message) in part.recorded().flat_map(Batch::messages) {
            add(&mut in_channels, &A::in_message(setup, message));
        }
        Self {
            process: part.process,
            outputs,
            inputs,
            in_state: A::in_state(setup, state),
            in_channels,
            initial: part.initial.clone(),
            clock: part.clock.as_deref().cloned(),
        }
    }

    /// How many messages were recorded, in both shares.
    pub fn recorded(&self) -> u64 {
        let ends = self.outputs.iter().chain(&self.inputs);
        ends.map(ChannelFacts::recorded)
            .fold(0, u64::saturating_add)
    }
}

/// One end of a channel in [`Facts`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChannelFacts {
    /// The channel.
    pub channel: ChannelId,
    /// The last message sent (at the sender) or handled (at the receiver).
    pub number: MessageNumber,
    /// The last message before the marker; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<MessageNumber>,
    /// The messages recorded at this end, in the order they were recorded.
    pub share: Vec<Run>,
}

impl ChannelFacts {
    /// How many messages were recorded at this end.
    pub fn recorded(&self) -> u64 {
        let lengths = self.share.iter().map(|run| run.length());
        lengths.fold(0, u64::saturating_add)
    }
}

impl Part {
    /// The recorded messages, for the quantities they carry.
    pub fn recorded(&self) -> impl Iterator<Item = &Batch> {
        let senders = self.outputs.iter().flat_map(|output| &output.share);
        senders.chain(self.inputs.iter().flat_map(|input| &input.share))
    }

    /// The channels' side of [`Facts`]: outputs and inputs.
    pub fn channel_facts(&self) -> (Vec<ChannelFacts>, Vec<ChannelFacts>) {
        let outputs = self.outputs.iter().map(|output| ChannelFacts {
            channel: output.channel,
            number: output.sent,
            after: Some(output.after),
            share: runs(&output.share),
        });
        let inputs = self.inputs.iter().map(|input| ChannelFacts {
            channel: input.channel,
            number: input.handled,
            after: Some(input.after),
            share: runs(&input.share),
        });
        (outputs.collect(), inputs.collect())
    }
}

/// The numbers of consecutive batches; batches that follow one another are one run.
fn runs(batches: &[Batch]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for batch in batches {
        match runs.last_mut() {
            Some(run) if run.last.next() == batch.first() => run.last = batch.last(),
            _ => runs.push(Run {
                first: batch.first(),
                last: batch.last(),
            }),
        }
    }
    runs
}

/// Adds amounts by name. A stranger's may be anything: what would overflow stays at the bound, as a
/// wrong total is for verdicts.
pub fn add(total: &mut Quantities, more: &Quantities) {
    for (name, &amount) in more {
        let sum = total.entry(name.clone()).or_default();
        *sum = sum.saturating_add(amount);
    }
}
