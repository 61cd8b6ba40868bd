//! What an outbox does only where its process is traced, or run again from a trace.

use std::sync::Arc;

use super::Outbox;
use crate::protocol::clock::Clock;
use crate::protocol::frame::{Batch, Frame};
use crate::protocol::trace::{Sent, Stamp};

impl Outbox {
    /// An event with this clock begins: what it sends is told apart from what was sent before.
    pub(in crate::protocol) fn stamp(&mut self, clock: &Arc<Clock>) {
        self.seal();
        self.stamp = Some(Stamp {
            clock: clock.clone(),
            sent: Vec::new(),
        });
    }

    /// What was sent since the last stamp.
    pub(in crate::protocol) fn take_sent(&mut self) -> Vec<Sent> {
        let stamp = self.stamp.as_mut();
        stamp.map_or_else(Vec::new, |stamp| std::mem::take(&mut stamp.sent))
    }

    /// Everything that waits, for one who has no channel to put it on.
    pub(in crate::protocol) fn take_all(&mut self) -> Vec<Batch> {
        self.seal();
        self.queued_bytes = 0;
        let waiting = self.queue.drain(..);
        let batches = waiting.filter_map(|frame| match frame {
            Frame::Messages(batch) => Some(batch),
            Frame::Marker(_) => None,
        });
        batches.collect()
    }
}
