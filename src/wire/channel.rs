//! The words on a channel's stream. What a peer says is checked here, once: behind this floor
//! a word is well formed, if not necessarily true.

use std::sync::Arc;

use super::pb::to_receiver::Word as ToReceiver;
use super::pb::to_sender::Word as ToSender;
use super::{mode, pb};
use crate::protocol::clock::Clock;
use crate::protocol::frame::{Batch, Credit, Feedback, Frame, Greeting, Hello, Malformed, Marker};
use crate::protocol::ids::{
    ChannelId, Generation, Incarnation, JobId, MarkerOrdinal, MessageNumber, ProcessId, SnapshotId,
};
use crate::protocol::mode::Taking;

/// A peer says what no correct peer says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Nothing, or a kind of word that this version does not know.
    #[error("an empty or unknown word: is the peer of another version?")]
    Empty,
    /// Another word than the one that is due.
    #[error("{came} came where {due} was due")]
    Unexpected {
        /// What was due.
        due: &'static str,
        /// What came.
        came: &'static str,
    },
    /// A mode that this version does not know.
    #[error("snapshot mode {0} is unknown: is the peer of another version?")]
    Mode(u32),
    /// A number that is left out or cannot be.
    #[error("{field} is {value}, which cannot be")]
    Field {
        /// The field.
        field: &'static str,
        /// What it says.
        value: u64,
    },
    /// Messages that are not packed as they should be.
    #[error("messages from {first} on: {source}")]
    Batch {
        /// The number of the first.
        first: u64,
        /// What is wrong.
        #[source]
        source: Malformed,
    },
}

/// The sender's first word.
pub fn hello_word(channel: ChannelId, hello: &Hello) -> pb::ToReceiver {
    let hello = pb::Hello {
        from: channel.from.get(),
        to: channel.to.get(),
        nth: channel.nth,
        topology: hello.topology,
        job: hello.job.get(),
        generation: hello.generation.get(),
        incarnation: hello.incarnation.get(),
    };
    pb::ToReceiver {
        word: Some(ToReceiver::Hello(hello)),
    }
}

/// Every later word of the sender.
pub fn frame_word(frame: Frame) -> pb::ToReceiver {
    let word = match frame {
        Frame::Messages(batch) => ToReceiver::Messages(pb::Messages {
            first: batch.first().get(),
            count: batch.count(),
            packed: batch.packed().clone(),
            clock: clock_counts(&batch),
        }),
        Frame::Marker(marker) => ToReceiver::Marker(pb::Marker {
            snapshot: marker.snapshot.get(),
            mode: mode::number(marker.taking.mode),
            ordinal: marker.ordinal.get(),
            after: marker.after.get(),
            sent: marker.sent.get(),
            limit_ms: marker.taking.limit_ms,
            used_ms: marker.used_ms,
        }),
    };
    pb::ToReceiver { word: Some(word) }
}

/// The receiver's first word.
pub fn greeting_word(greeting: Greeting) -> pb::ToSender {
    let word = match greeting {
        Greeting::Welcome {
            incarnation,
            feedback,
        } => ToSender::Welcome(pb::Welcome {
            incarnation: incarnation.get(),
            feedback: Some(feedback.into()),
        }),
        Greeting::NotYet => ToSender::NotYet(pb::NotYet {}),
        Greeting::Refused(reason) => ToSender::Refused(pb::Refused { reason }),
    };
    pb::ToSender { word: Some(word) }
}

/// Every later word of the receiver.
pub fn feedback_word(feedback: Feedback) -> pb::ToSender {
    pb::ToSender {
        word: Some(ToSender::Feedback(feedback.into())),
    }
}

/// Reads the sender's first word.
///
/// # Errors
/// If it is anything but a hello that names a channel.
pub fn read_hello(word: pb::ToReceiver) -> Result<(ChannelId, Hello), WireError> {
    let hello = match word.word.ok_or(WireError::Empty)? {
        ToReceiver::Hello(hello) => hello,
        ToReceiver::Messages(_) => return Err(unexpected("a hello", "a frame of messages")),
        ToReceiver::Marker(_) => return Err(unexpected("a hello", "a marker")),
    };
    let channel = ChannelId {
        from: ProcessId::new(hello.from),
        to: ProcessId::new(hello.to),
        nth: hello.nth,
    };
    positive("nth", hello.nth.into())?;
    let hello = Hello {
        topology: hello.topology,
        job: JobId::new(hello.job),
        generation: Generation::new(hello.generation),
        incarnation: Incarnation::new(hello.incarnation),
    };
    Ok((channel, hello))
}

/// Reads a later word of the sender.
///
/// # Errors
/// If it is not a frame, or one that is torn, or a marker of an unknown mode.
pub fn read_frame(word: pb::ToReceiver) -> Result<Frame, WireError> {
    match word.word.ok_or(WireError::Empty)? {
        ToReceiver::Hello(_) => Err(unexpected("a frame", "a second hello")),
        ToReceiver::Messages(messages) => Ok(Frame::Messages(batch(messages)?)),
        ToReceiver::Marker(marker) => read_marker(&marker).map(Frame::Marker),
    }
}

fn read_marker(marker: &pb::Marker) -> Result<Marker, WireError> {
    let mode = mode::of(marker.mode).ok_or(WireError::Mode(marker.mode))?;
    // What is on the wire was sent; what was sent after the recording is behind the marker.
    if marker.after > marker.sent {
        let (field, value) = ("after", marker.after);
        return Err(WireError::Field { field, value });
    }
    Ok(Marker {
        snapshot: SnapshotId::new(positive("snapshot", marker.snapshot)?),
        taking: Taking::new(mode, marker.limit_ms),
        used_ms: marker.used_ms,
        ordinal: MarkerOrdinal::new(positive("ordinal", marker.ordinal)?),
        after: MessageNumber::new(marker.after),
        sent: MessageNumber::new(marker.sent),
    })
}

/// Reads the receiver's first word.
///
/// # Errors
/// If it is not a greeting.
pub fn read_greeting(word: pb::ToSender) -> Result<Greeting, WireError> {
    match word.word.ok_or(WireError::Empty)? {
        ToSender::Welcome(welcome) => Ok(Greeting::Welcome {
            incarnation: Incarnation::new(welcome.incarnation),
            feedback: welcome.feedback.ok_or(WireError::Empty)?.try_into()?,
        }),
        ToSender::NotYet(_) => Ok(Greeting::NotYet),
        ToSender::Refused(refused) => Ok(Greeting::Refused(refused.reason)),
        ToSender::Feedback(_) => Err(unexpected("a greeting", "feedback")),
    }
}

/// Reads a later word of the receiver.
///
/// # Errors
/// If it is not feedback.
pub fn read_feedback(word: pb::ToSender) -> Result<Feedback, WireError> {
    match word.word.ok_or(WireError::Empty)? {
        ToSender::Feedback(feedback) => feedback.try_into(),
        ToSender::Welcome(_) | ToSender::NotYet(_) | ToSender::Refused(_) => {
            Err(unexpected("feedback", "a second greeting"))
        }
    }
}

impl From<Feedback> for pb::Feedback {
    fn from(feedback: Feedback) -> Self {
        Self {
            next: feedback.next.get(),
            next_marker: feedback.next_marker.get(),
            credit_number: feedback.credit.number.get(),
            credit_bytes: feedback.credit.bytes,
        }
    }
}

impl TryFrom<pb::Feedback> for Feedback {
    type Error = WireError;

    fn try_from(feedback: pb::Feedback) -> Result<Self, WireError> {
        Ok(Self {
            next: MessageNumber::new(positive("next", feedback.next)?),
            next_marker: MarkerOrdinal::new(positive("next_marker", feedback.next_marker)?),
            credit: Credit {
                number: MessageNumber::new(feedback.credit_number),
                bytes: feedback.credit_bytes,
            },
        })
    }
}

/// The clock of a batch as it is sent and stored: nothing, where the job is not traced.
pub(super) fn clock_counts(batch: &Batch) -> Vec<u64> {
    let counts = batch.clock().map(|clock| clock.counts().to_vec());
    counts.unwrap_or_default()
}

fn batch(messages: pb::Messages) -> Result<Batch, WireError> {
    let pb::Messages {
        first,
        count,
        packed,
        clock,
    } = messages;
    // The numbers of all of them, and the next, must be numbers.
    if first.checked_add(count.into()).is_none() {
        return Err(WireError::Field {
            field: "first",
            value: first,
        });
    }
    Batch::new(MessageNumber::new(first), count, packed)
        .map(|batch| batch.with_clock(Clock::of_counts(clock).map(Arc::new)))
        .map_err(|source| WireError::Batch { first, source })
}

fn unexpected(due: &'static str, came: &'static str) -> WireError {
    WireError::Unexpected { due, came }
}

fn positive(field: &'static str, value: u64) -> Result<u64, WireError> {
    if value == 0 {
        return Err(WireError::Field { field, value });
    }
    Ok(value)
}

#[cfg(test)]
mod tests;
