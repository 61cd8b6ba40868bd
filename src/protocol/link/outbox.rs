//! The sender's end of a channel: what was sent and is not acknowledged.

mod overtaking;
mod traced;

pub(in crate::protocol) use overtaking::Overtaken;

use std::collections::VecDeque;

use bytes::{BufMut, BytesMut};

use super::{Breach, Limits};
use crate::protocol::application::SendError;
use crate::protocol::frame::{BATCH_BYTES, Batch, Credit, Feedback, Frame, LENGTH_BYTES, Marker};
use crate::protocol::ids::{ChannelId, Incarnation, MarkerOrdinal, MessageNumber, SnapshotId};
use crate::protocol::mode::Taking;
use crate::protocol::mutant::{Mutant::*, is};
use crate::protocol::trace::{Sent, Stamp, checksum};

/// The sender's end of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outbox {
    channel: ChannelId,
    message_bytes_max: usize,
    /// What a batch may hold: never more than the window takes.
    batch_bytes: usize,
    /// The batch that messages are being put into.
    filling: BytesMut,
    filling_count: u32,
    /// Full batches and markers, not yet on the wire.
    queue: VecDeque<Frame>,
    queued_bytes: u64,
    /// On the wire and not acknowledged, in the order they went.
    unacknowledged: VecDeque<Frame>,
    /// The last number given.
    sent: MessageNumber,
    /// The last message on the wire, and the bytes on the wire since the generation started.
    on_wire: MessageNumber,
    on_wire_bytes: u64,
    /// The last message that was ever on the wire: one that a broken stream took back is still
    /// the receiver's, and no marker overtakes it.
    reached: MessageNumber,
    /// The last ordinal given, and the last on the wire.
    marked: MarkerOrdinal,
    marked_on_wire: MarkerOrdinal,
    acknowledged: MessageNumber,
    acknowledged_marker: MarkerOrdinal,
    credit: Credit,
    open: bool,
    receiver: Option<Incarnation>,
    /// Where the job is traced: by which event messages are sent, and which were.
    stamp: Option<Stamp>,
}

impl Outbox {
    /// An outbox whose channel goes on after message `sent`, with the sender share of the
    /// restored snapshot in it.
    pub(in crate::protocol) fn new(
        channel: ChannelId,
        sent: MessageNumber,
        share: &[Batch],
        limits: &Limits,
    ) -> Self {
        let sent = MessageNumber::new(sent.get() * u64::from(!is(RenumbersAfterRestore)));
        let on_wire = match share.first() {
            Some(batch) => MessageNumber::new(batch.first().get() - 1),
            None => sent,
        };
        Self {
            channel,
            message_bytes_max: usize::try_from(limits.message_bytes_max).unwrap_or(usize::MAX),
            batch_bytes: usize::try_from(limits.window_bytes)
                .map_or(BATCH_BYTES, |bytes| bytes.min(BATCH_BYTES)),
            filling: BytesMut::new(),
            filling_count: 0,
            queue: share.iter().cloned().map(Frame::Messages).collect(),
            queued_bytes: share.iter().map(Batch::bytes).sum(),
            unacknowledged: VecDeque::new(),
            sent,
            on_wire,
            on_wire_bytes: 0,
            reached: on_wire,
            marked: MarkerOrdinal::default(),
            marked_on_wire: MarkerOrdinal::default(),
            acknowledged: on_wire,
            acknowledged_marker: MarkerOrdinal::default(),
            credit: Credit::default(),
            open: false,
            receiver: None,
            stamp: None,
        }
    }

    /// The channel.
    pub fn channel(&self) -> ChannelId {
        self.channel
    }

    /// Whether a stream carries the channel.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The last number given.
    pub fn sent(&self) -> MessageNumber {
        self.sent
    }

    /// Bytes that wait and are not on the wire.
    pub fn queued_bytes(&self) -> u64 {
        self.queued_bytes
    }

    /// Messages on the wire that are not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.on_wire.get() - self.acknowledged.get()
    }

    /// Numbers a message and puts it at the back.
    pub(in crate::protocol) fn push(&mut self, message: &[u8]) -> Result<(), SendError> {
        if message.len() > self.message_bytes_max {
            return Err(SendError::TooLong {
                bytes: message.len(),
                bytes_max: self.message_bytes_max,
            });
        }
        let needed = LENGTH_BYTES + message.len();
        let room = self.batch_bytes.min(self.filling.capacity());
        if self.filling.len() + needed > room {
            self.seal();
            if self.filling.capacity() < needed {
                self.filling = BytesMut::with_capacity(self.batch_bytes.max(needed));
            }
        }
        let length = u32::try_from(message.len()).expect("under message_bytes_max");
        self.filling.put_u32_le(length);
        self.filling.put_slice(message);
        self.filling_count += 1;
        self.queued_bytes += needed as u64;
        self.sent = self.sent.next();
        if let Some(stamp) = &mut self.stamp {
            stamp.sent.push(Sent {
                channel: self.channel,
                number: self.sent,
                checksum: checksum(message),
            });
        }
        Ok(())
    }

    /// Marker-sending rule: the marker goes behind every message sent before the state was
    /// recorded and ahead of every message sent after.
    pub(in crate::protocol) fn push_marker(
        &mut self,
        snapshot: SnapshotId,
        taking: Taking,
        used_ms: u64,
    ) {
        self.seal();
        self.marked = self.marked.next();
        self.queue.push_back(Frame::Marker(Marker {
            snapshot,
            taking,
            used_ms,
            ordinal: self.marked,
            after: self.sent,
            sent: self.sent,
        }));
        if is(MarkerAheadOfMessages) {
            self.queue.rotate_right(1);
        }
    }

    /// Whether there is a frame that may go on the wire now.
    pub(in crate::protocol) fn is_writable(&self) -> bool {
        self.open
            && match self.queue.front() {
                Some(Frame::Marker(_)) => true,
                Some(Frame::Messages(batch)) => self.first_fits(batch.packed()),
                None => self.filling_count > 0 && self.first_fits(&self.filling),
            }
    }

    /// The next frame for the wire: everything that is queued, up to a batch, the next marker
    /// and the credit. Markers need no credit.
    pub(in crate::protocol) fn next_frame(&mut self) -> Option<Frame> {
        if !self.is_writable() {
            return None;
        }
        if self.queue.is_empty() {
            self.seal();
        }
        let frame = match self.queue.pop_front()? {
            Frame::Marker(marker) => {
                assert_eq!(marker.after, self.on_wire, "a marker keeps its place");
                self.marked_on_wire = marker.ordinal;
                Frame::Marker(marker)
            }
            Frame::Messages(batch) => {
                let (now, later) = {
                    let fitting = self.fitting(&batch);
                    batch.split(fitting)
                };
                if let Some(later) = later {
                    self.queue.push_front(Frame::Messages(later));
                }
                let now = now.expect("a writable outbox has a message that fits");
                assert_eq!(now.first(), self.on_wire.next(), "numbers go up by one");
                self.on_wire = now.last();
                self.reached = self.reached.max(now.last());
                self.on_wire_bytes += now.bytes();
                self.queued_bytes -= now.bytes();
                Frame::Messages(now)
            }
        };
        self.unacknowledged.push_back(frame.clone());
        Some(frame)
    }

    /// The stream is open and the receiver says where to go on.
    pub(in crate::protocol) fn resume(
        &mut self,
        receiver: Incarnation,
        feedback: Feedback,
    ) -> Result<(), Breach> {
        if self.receiver.is_some_and(|known| known != receiver) {
            return Err(Breach::Incarnation);
        }
        let Feedback {
            next, next_marker, ..
        } = feedback;
        // What was acknowledged is gone here: it cannot be asked for again.
        if next <= self.acknowledged || next_marker <= self.acknowledged_marker {
            return Err(Breach::Resume { next, next_marker });
        }
        self.acknowledge(feedback)?;
        self.receiver = Some(receiver);
        self.open = true;
        if is(ResendsTooLittle) {
            self.acknowledged = self.acknowledged.next();
        }
        while let Some(frame) = self.unacknowledged.pop_back() {
            match frame {
                Frame::Marker(_) if is(ForgetsMarkerOnWire) => {}
                Frame::Marker(marker) => {
                    self.marked_on_wire = MarkerOrdinal::new(marker.ordinal.get() - 1);
                    self.queue.push_front(Frame::Marker(marker));
                }
                Frame::Messages(batch) => {
                    let first = batch.first();
                    if let Some(again) = batch.after(self.acknowledged) {
                        self.on_wire_bytes -= again.bytes();
                        self.queued_bytes += again.bytes();
                        self.on_wire = self.acknowledged.max(MessageNumber::new(first.get() - 1));
                        self.queue.push_front(Frame::Messages(again));
                    }
                }
            }
        }
        Ok(())
    }

    /// The receiver says what it has and how far to go. Old words change nothing, nor do those
    /// of a stream that is gone.
    pub(in crate::protocol) fn hear(&mut self, feedback: Feedback) -> Result<(), Breach> {
        match self.open {
            true => self.acknowledge(feedback),
            false => Ok(()),
        }
    }

    fn acknowledge(&mut self, feedback: Feedback) -> Result<(), Breach> {
        let Feedback {
            next,
            next_marker,
            credit,
        } = feedback;
        if !self.can_be_next(next, next_marker) {
            return Err(Breach::Resume { next, next_marker });
        }
        self.credit.number = self.credit.number.max(credit.number);
        self.credit.bytes = self.credit.bytes.max(credit.bytes);
        while let Some(frame) = self.unacknowledged.front() {
            let has = match frame {
                Frame::Messages(batch) => batch.last() < next,
                Frame::Marker(marker) => marker.ordinal < next_marker,
            };
            if !has {
                break;
            }
            self.unacknowledged.pop_front();
        }
        let has = MessageNumber::new(next.get().saturating_sub(1));
        self.acknowledged = self.acknowledged.max(has);
        let has_marker = MarkerOrdinal::new(next_marker.get().saturating_sub(1));
        self.acknowledged_marker = self.acknowledged_marker.max(has_marker);
        Ok(())
    }

    /// Whether a receiver that takes what is put on the wire, in order, can expect this: nothing
    /// beyond the last frame, no message behind a marker that it has not, no marker behind a
    /// message that it has not.
    fn can_be_next(&self, next: MessageNumber, next_marker: MarkerOrdinal) -> bool {
        if next > self.on_wire.next() || next_marker > self.marked_on_wire.next() {
            return false;
        }
        // Mostly there is no marker to look for.
        let any_marker = self.acknowledged_marker < self.marked_on_wire;
        !any_marker
            || self.unacknowledged.iter().all(|frame| match frame {
                Frame::Messages(_) => true,
                Frame::Marker(marker) if marker.ordinal < next_marker => marker.after < next,
                Frame::Marker(marker) => next <= marker.after.next(),
            })
    }

    /// The stream is gone.
    pub(in crate::protocol) fn close(&mut self) {
        self.open = false;
    }

    fn seal(&mut self) {
        if self.filling_count > 0 {
            let first = self.sent.get() + 1 - u64::from(self.filling_count);
            let packed = self.filling.split().freeze();
            let batch = Batch::filled(MessageNumber::new(first), self.filling_count, packed);
            self.filling_count = 0;
            let clock = self.stamp.as_ref().map(|stamp| stamp.clock.clone());
            self.queue
                .push_back(Frame::Messages(batch.with_clock(clock)));
        }
    }

    fn fitting(&self, batch: &Batch) -> u32 {
        let messages = self.credit.number.get().saturating_sub(self.on_wire.get());
        batch.fitting(
            messages,
            self.credit.bytes.saturating_sub(self.on_wire_bytes),
        )
    }

    /// Whether the credit is enough for the first of these messages.
    fn first_fits(&self, packed: &[u8]) -> bool {
        let (length, _) = packed
            .split_first_chunk()
            .expect("there is a first message");
        let first_bytes = LENGTH_BYTES as u64 + u64::from(u32::from_le_bytes(*length));
        self.credit.number > self.on_wire && self.credit.bytes >= self.on_wire_bytes + first_bytes
    }
}
