//! A channel's two ends: numbers, acknowledgement, credit, resend and removal of duplicates.
//!
//! A stream that carries a channel may break and be opened again; the channel does not notice.
//! The sender keeps what is not acknowledged and hands it out again, in the same order, when the
//! receiver says where to go on. Markers are as reliable as messages: each takes its own ordinal
//! and is sent again exactly where it stood between two messages.

mod inbox;
mod inboxes;
mod outbox;
mod outboxes;

pub(super) use inbox::Inbox;
pub(super) use inboxes::Inboxes;
pub use outbox::Outbox;
pub(super) use outbox::Overtaken;
pub use outboxes::Outboxes;

use super::frame::BATCH_BYTES;
use super::ids::{MarkerOrdinal, MessageNumber};

/// How much of a channel may be under way or waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Messages that may be on the wire or in an inbox. 8,192 cost no throughput; 1,024 do.
    pub window_messages: u64,
    /// The same in bytes; never less than the longest message takes. A marker waits behind it,
    /// and more than this only empties the processor's caches.
    pub window_bytes: u64,
    /// The longest message.
    pub message_bytes_max: u64,
    /// What may wait in an outbox before its process stops taking messages and starting work. One
    /// batch keeps a stream busy; more only makes markers wait longer behind it.
    pub outbox_bytes: u64,
    /// What may wait in an outbox on a cycle, where handling cannot stop: the node ends over it.
    pub outbox_bytes_max: u64,
    /// What one recording may hold before its snapshot is ended.
    pub recording_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            window_messages: 8192,
            window_bytes: 2 * 1024 * 1024,
            message_bytes_max: 1024 * 1024,
            outbox_bytes: BATCH_BYTES as u64,
            outbox_bytes_max: 256 * 1024 * 1024,
            recording_bytes_max: 64 * 1024 * 1024,
        }
    }
}

/// A peer did what no correct peer does; its stream is closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Breach {
    /// Messages are missing.
    #[error("a gap: message {expected} was due and {came} came")]
    Gap {
        /// The next message due.
        expected: MessageNumber,
        /// The message that came.
        came: MessageNumber,
    },
    /// Markers are missing.
    #[error("a gap: marker {expected} was due and {came} came")]
    MarkerGap {
        /// The next marker due.
        expected: MarkerOrdinal,
        /// The marker that came.
        came: MarkerOrdinal,
    },
    /// A marker stands where it was not put.
    #[error("a marker put after message {after} came after message {came_after}")]
    MarkerMoved {
        /// Where it was put.
        after: MessageNumber,
        /// Where it came.
        came_after: MessageNumber,
    },
    /// More came than the receiver has allowed.
    #[error("message {came} came over the credit")]
    Overrun {
        /// The last message that came.
        came: MessageNumber,
    },
    /// The receiver acknowledges or asks for what was never on the wire, or is long gone.
    #[error("the receiver expects message {next} and marker {next_marker}, which cannot be")]
    Resume {
        /// The message it expects.
        next: MessageNumber,
        /// The marker it expects.
        next_marker: MarkerOrdinal,
    },
    /// The other end is another incarnation than the one this generation began with.
    #[error("another incarnation of the peer cannot resume the channel")]
    Incarnation,
}
