//! What the driver writes at once: packed messages, or one marker. And what goes back.
//!
//! A batch is one buffer: each message is its length (four bytes, little endian) and its bytes.
//! It is filled once, by the outbox, and read in place, by the handler; recordings and resends
//! share it.

use std::sync::Arc;

use bytes::Bytes;

use super::clock::Clock;
use super::ids::{Generation, Incarnation, JobId, MarkerOrdinal, MessageNumber, SnapshotId};
use super::mode::Taking;

/// The bytes that the length of a message takes in a batch.
pub const LENGTH_BYTES: usize = 4;

/// How much a batch may hold unless a single message is longer. 64 KiB is where throughput stops
/// to grow; more only makes a marker wait longer behind it.
pub const BATCH_BYTES: usize = 64 * 1024;

/// What travels from the sender of a channel to its receiver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// Consecutive messages.
    Messages(Batch),
    /// The element that parts a channel into before and after a snapshot.
    Marker(Marker),
}

/// The control element that parts a channel into before and after a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Marker {
    /// The snapshot it belongs to.
    pub snapshot: SnapshotId,
    /// How the snapshot is taken.
    pub taking: Taking,
    /// How much of the limit T, if there is one, was used when the marker went on the wire. Once
    /// it is all used, the marker overtakes what waits in the receiver's inbox.
    pub used_ms: u64,
    /// Its own number on the channel.
    pub ordinal: MarkerOrdinal,
    /// The last message put on the wire before it.
    pub after: MessageNumber,
    /// The last message sent before the sender recorded its state.
    pub sent: MessageNumber,
}

/// Consecutive messages of one channel in one buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    first: MessageNumber,
    count: u32,
    packed: Bytes,
    /// The clock of the event that sent them, where the job is traced.
    clock: Option<Arc<Clock>>,
}

impl Batch {
    /// A batch from what came off a wire or out of a store.
    ///
    /// # Errors
    /// If the buffer does not hold exactly `count` messages, or none.
    pub fn new(first: MessageNumber, count: u32, packed: Bytes) -> Result<Self, Malformed> {
        let mut rest = &packed[..];
        for _ in 0..count {
            let (_, behind) = split_message(rest).ok_or(Malformed)?;
            rest = behind;
        }
        let last_fits = first.get().checked_add(u64::from(count)).is_some();
        if count == 0 || first.get() == 0 || !rest.is_empty() || !last_fits {
            return Err(Malformed);
        }
        Ok(Self {
            first,
            count,
            packed,
            clock: None,
        })
    }

    /// A batch that the outbox has filled itself.
    pub(super) fn filled(first: MessageNumber, count: u32, packed: Bytes) -> Self {
        debug_assert!(Self::new(first, count, packed.clone()).is_ok());
        Self {
            first,
            count,
            packed,
            clock: None,
        }
    }

    /// The same messages, sent by an event with this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Option<Arc<Clock>>) -> Self {
        self.clock = clock;
        self
    }

    /// The clock of the event that sent the messages, where the job is traced.
    pub fn clock(&self) -> Option<&Arc<Clock>> {
        self.clock.as_ref()
    }

    /// The number of the first message.
    pub fn first(&self) -> MessageNumber {
        self.first
    }

    /// The number of the last message.
    pub fn last(&self) -> MessageNumber {
        MessageNumber::new(self.first.get() + u64::from(self.count) - 1)
    }

    /// How many messages there are; never 0.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The messages as they are packed.
    pub fn packed(&self) -> &Bytes {
        &self.packed
    }

    /// What the batch counts against a window or a bound.
    pub fn bytes(&self) -> u64 {
        self.packed.len() as u64
    }

    /// The messages with their numbers.
    pub fn messages(&self) -> impl Iterator<Item = (MessageNumber, &[u8])> {
        let mut rest = &self.packed[..];
        let mut number = self.first;
        std::iter::from_fn(move || {
            let (message, behind) = split_message(rest)?;
            let this = number;
            rest = behind;
            number = number.next();
            Some((this, message))
        })
    }

    /// Splits off the first `count` messages; the rest may be nothing.
    pub(super) fn split(self, count: u32) -> (Option<Self>, Option<Self>) {
        if count == 0 {
            return (None, Some(self));
        }
        if count >= self.count {
            return (Some(self), None);
        }
        let mut rest = &self.packed[..];
        for _ in 0..count {
            let (_, behind) = split_message(rest).expect("the count was checked on arrival");
            rest = behind;
        }
        let at = self.packed.len() - rest.len();
        let front = Self {
            first: self.first,
            count,
            packed: self.packed.slice(..at),
            clock: self.clock.clone(),
        };
        let back = Self {
            first: MessageNumber::new(self.first.get() + u64::from(count)),
            count: self.count - count,
            packed: self.packed.slice(at..),
            clock: self.clock,
        };
        (Some(front), Some(back))
    }

    /// What of it comes after message `number`.
    pub(super) fn after(self, number: MessageNumber) -> Option<Self> {
        if self.last() <= number {
            return None;
        }
        let skipped = (number.get() + 1).saturating_sub(self.first.get());
        let skipped = u32::try_from(skipped).expect("less than the batch holds");
        self.split(skipped).1
    }

    /// How many messages from the front fit into so many messages and bytes.
    pub(super) fn fitting(&self, messages: u64, bytes: u64) -> u32 {
        if u64::from(self.count) <= messages && self.bytes() <= bytes {
            return self.count;
        }
        let (mut count, mut used) = (0, 0);
        for (_, message) in self.messages() {
            used += (LENGTH_BYTES + message.len()) as u64;
            if used > bytes || u64::from(count) >= messages {
                break;
            }
            count += 1;
        }
        count
    }
}

/// The first message of a packed buffer and what is behind it.
pub(super) fn split_message(packed: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = packed.split_first_chunk::<LENGTH_BYTES>()?;
    let length = u32::from_le_bytes(*length) as usize;
    rest.split_at_checked(length)
}

/// A buffer that does not hold the messages it claims to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a batch does not hold the messages it claims to")]
pub struct Malformed;

/// How far a sender may go: absolute, so that a lost or repeated word changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Credit {
    /// The highest message number that may be on the wire.
    pub number: MessageNumber,
    /// The bytes, counted from the start of the generation, that may have been on the wire.
    pub bytes: u64,
}

/// What a receiver tells a sender: what it has, and how far the sender may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Feedback {
    /// The next message it expects: everything before is acknowledged.
    pub next: MessageNumber,
    /// The next marker it expects.
    pub next_marker: MarkerOrdinal,
    /// How far the sender may go.
    pub credit: Credit,
}

/// The first word on a stream, from the sender, who dials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hello {
    /// The sender's topology.
    pub topology: u32,
    /// The sender's job: another of the same file may listen where a peer once did.
    pub job: JobId,
    /// The generation it speaks for.
    pub generation: Generation,
    /// The sender's incarnation.
    pub incarnation: Incarnation,
}

/// The receiver's answer to [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Greeting {
    /// Go on from here.
    Welcome {
        /// The receiver's incarnation.
        incarnation: Incarnation,
        /// Where to go on, and how far.
        feedback: Feedback,
    },
    /// The receiver is not there yet: try again.
    NotYet,
    /// Never: the sender speaks for an older generation or for something else altogether.
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn batch(first: u64, messages: &[&[u8]]) -> Batch {
        let mut packed = Vec::new();
        for message in messages {
            packed.extend((message.len() as u32).to_le_bytes());
            packed.extend(*message);
        }
        let count = messages.len() as u32;
        Batch::new(MessageNumber::new(first), count, packed.into()).expect("well formed")
    }

    #[test]
    fn messages_are_read_in_place_with_their_numbers() {
        let batch = batch(5, &[b"a", b"", b"ccc"]);
        let read: Vec<_> = batch.messages().map(|(n, m)| (n.get(), m.len())).collect();
        assert_eq!(read, [(5, 1), (6, 0), (7, 3)]);
        assert_eq!(batch.last().get(), 7);
    }

    #[test]
    fn a_split_loses_nothing() {
        let whole = batch(5, &[b"a", b"bb", b"ccc"]);
        let (front, back) = whole.clone().split(1);
        assert_eq!(front.unwrap().last().get(), 5);
        let back = back.unwrap();
        assert_eq!((back.first().get(), back.count()), (6, 2));
        assert_eq!(
            whole.clone().after(MessageNumber::new(6)).unwrap().count(),
            1
        );
        assert_eq!(whole.clone().after(MessageNumber::new(7)), None);
        assert_eq!(whole.fitting(2, 100), 2);
        assert_eq!(whole.fitting(100, 11), 2);
        assert_eq!(whole.fitting(100, 10), 1);
    }

    #[test]
    fn a_torn_batch_is_refused() {
        let packed = batch(1, &[b"abc"]).packed().clone();
        let first = MessageNumber::new(1);
        assert!(Batch::new(first, 1, packed.slice(..5)).is_err());
        assert!(Batch::new(first, 2, packed.clone()).is_err());
        assert!(Batch::new(first, 0, Bytes::new()).is_err());
        assert!(Batch::new(MessageNumber::new(0), 1, packed.clone()).is_err());
        assert!(Batch::new(MessageNumber::new(u64::MAX), 1, packed).is_err());
    }
}
