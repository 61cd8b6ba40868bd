//! How a marker overtakes what waits in an outbox.

use super::Outbox;
use crate::protocol::frame::{Batch, Frame};
use crate::protocol::ids::{MessageNumber, SnapshotId};

/// What a marker has overtaken in an outbox.
pub(in crate::protocol) struct Overtaken {
    /// The last message that was on the wire before it.
    pub(in crate::protocol) after: MessageNumber,
    /// What was, sent before the recording and not on the wire: the sender share.
    pub(in crate::protocol) share: Vec<Batch>,
}

impl Outbox {
    /// Brings the marker of a snapshot to the front: ahead of every message that was never on the
    /// wire. Markers ahead of it, which are of snapshots that have ended, come along, so that
    /// ordinals keep their order on the wire.
    pub(in crate::protocol) fn overtake(
        &mut self,
        snapshot: SnapshotId,
        used_ms: u64,
    ) -> Option<Overtaken> {
        let is_it =
            |frame: &Frame| matches!(frame, Frame::Marker(marker) if marker.snapshot == snapshot);
        let place = self.queue.iter().position(is_it)?;
        let reached = self.reached;
        let is_new = |frame: &Frame| matches!(frame, Frame::Messages(b) if b.first() > reached);
        let front = self.queue.iter().take(place).position(is_new);
        let front = front.unwrap_or(place);
        let mut ahead = self.queue.split_off(front);
        let behind = ahead.split_off(place - front + 1);
        let mut share = Vec::new();
        for frame in ahead {
            match frame {
                Frame::Messages(batch) => share.push(batch),
                Frame::Marker(mut marker) => {
                    marker.after = reached;
                    marker.used_ms = marker.used_ms.max(used_ms);
                    self.queue.push_back(Frame::Marker(marker));
                }
            }
        }
        self.queue
            .extend(share.iter().cloned().map(Frame::Messages));
        self.queue.extend(behind);
        let after = reached;
        Some(Overtaken { after, share })
    }
}
