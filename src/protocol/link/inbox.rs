//! The receiver's end of a channel: what has arrived and is not handled.

use std::collections::VecDeque;

use super::{Breach, Limits};
use crate::protocol::frame::{Batch, Credit, Feedback, Frame, LENGTH_BYTES, Marker};
use crate::protocol::ids::{ChannelId, Incarnation, MarkerOrdinal, MessageNumber};
use crate::protocol::mutant::{Mutant::*, is};

/// The receiver's end of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::protocol) struct Inbox {
    channel: ChannelId,
    window_messages: u64,
    window_bytes: u64,
    message_bytes_max: u64,
    items: VecDeque<Frame>,
    /// What the items count against the window.
    bytes: u64,
    handled: MessageNumber,
    received: MessageNumber,
    /// Bytes received since the generation started; restored messages are not among them.
    received_bytes: u64,
    received_marker: MarkerOrdinal,
    stated: Feedback,
    open: bool,
    sender: Option<Incarnation>,
}

impl Inbox {
    /// An inbox whose channel goes on after message `handled`, with the receiver share of the
    /// restored snapshot in it.
    pub(in crate::protocol) fn new(
        channel: ChannelId,
        handled: MessageNumber,
        share: &[Batch],
        limits: &Limits,
    ) -> Self {
        let mut inbox = Self {
            channel,
            window_messages: limits.window_messages,
            // A message as long as allowed must fit, or it would wait for ever.
            window_bytes: limits
                .window_bytes
                .max(limits.message_bytes_max + LENGTH_BYTES as u64),
            message_bytes_max: limits.message_bytes_max,
            items: share.iter().cloned().map(Frame::Messages).collect(),
            bytes: share.iter().map(Batch::bytes).sum(),
            handled,
            received: share.last().map_or(handled, Batch::last),
            received_bytes: 0,
            received_marker: MarkerOrdinal::default(),
            stated: Feedback {
                next: MessageNumber::default(),
                next_marker: MarkerOrdinal::default(),
                credit: Credit::default(),
            },
            open: false,
            sender: None,
        };
        if is(RestoresNoInbox) {
            inbox.items.clear();
        }
        inbox.stated = inbox.feedback();
        inbox
    }

    pub(in crate::protocol) fn channel(&self) -> ChannelId {
        self.channel
    }

    /// The last message handled: this, not arrival, is what counts as received.
    pub(in crate::protocol) fn handled(&self) -> MessageNumber {
        if is(CountsArrivals) {
            return self.received;
        }
        self.handled
    }

    /// What is at the head.
    pub(in crate::protocol) fn head(&self) -> Option<&Frame> {
        self.items.front()
    }

    /// Everything that has arrived and is not handled, in order.
    pub(in crate::protocol) fn items(&self) -> impl Iterator<Item = &Frame> {
        self.items.iter()
    }

    /// Takes in a frame off the wire and returns what of it is new. A duplicate is dropped; a
    /// gap, a marker out of place and more than the credit are breaches. What is left of a stream
    /// that is gone changes nothing: it is sent again on the next.
    pub(in crate::protocol) fn accept(&mut self, frame: Frame) -> Result<Option<Frame>, Breach> {
        if !self.open {
            return Ok(None);
        }
        let new = match frame {
            Frame::Marker(marker) => self.accept_marker(marker)?.map(Frame::Marker),
            Frame::Messages(batch) => self.accept_batch(batch)?.map(Frame::Messages),
        };
        if let Some(frame) = &new {
            self.items.push_back(frame.clone());
        }
        Ok(new)
    }

    /// Removes the batch or marker at the head.
    pub(in crate::protocol) fn pop(&mut self) -> Option<Frame> {
        let frame = self.items.pop_front()?;
        if let Frame::Messages(batch) = &frame {
            assert_eq!(
                batch.first(),
                self.handled.next(),
                "messages are handled in order"
            );
            self.bytes -= batch.bytes();
            self.handled = batch.last();
        }
        Some(frame)
    }

    /// Puts the part of a batch that was not handled back to the head.
    pub(in crate::protocol) fn put_back(&mut self, batch: Batch) {
        self.bytes += batch.bytes();
        self.handled = MessageNumber::new(batch.first().get() - 1);
        self.items.push_front(Frame::Messages(batch));
    }

    /// A sender opens a stream: it must be the incarnation the generation began with.
    pub(in crate::protocol) fn open(&mut self, sender: Incarnation) -> Result<Feedback, Breach> {
        let known = self.sender.filter(|_| !is(IgnoresIncarnation));
        if known.is_some_and(|known| known != sender) {
            return Err(Breach::Incarnation);
        }
        self.sender = Some(sender);
        self.open = true;
        self.stated = self.feedback();
        if is(RestatesNoCredit) {
            self.stated.credit = Credit::default();
        }
        Ok(self.stated)
    }

    pub(in crate::protocol) fn close(&mut self) {
        self.open = false;
    }

    /// Whether it is worth a word to the sender: something has changed, and nothing is left to
    /// handle or the word presses.
    pub(in crate::protocol) fn owes_feedback(&self) -> bool {
        self.open
            && self.feedback() != self.stated
            && (self.items.is_empty() || self.feedback_presses())
    }

    /// Whether the word to the sender must not wait until there is time for it: a marker has come,
    /// a quarter of the window has been used or freed, or, with nothing left to handle, the
    /// longest message might not fit into the credit that was stated.
    pub(in crate::protocol) fn feedback_presses(&self) -> bool {
        let (now, stated) = (self.feedback(), self.stated);
        let quarter = |now: u64, stated: u64, window: u64| now - stated >= (window / 4).max(1);
        let (messages, bytes) = (self.window_messages, self.window_bytes);
        let is_short = || {
            let longest = self.message_bytes_max + LENGTH_BYTES as u64;
            stated.credit.bytes < self.received_bytes + longest && now != stated
        };
        self.open
            && (now.next_marker != stated.next_marker
                || quarter(now.next.get(), stated.next.get(), messages)
                || quarter(
                    now.credit.number.get(),
                    stated.credit.number.get(),
                    messages,
                )
                || quarter(now.credit.bytes, stated.credit.bytes, bytes)
                || (self.items.is_empty() && is_short()))
    }

    /// States acknowledgement and credit, if anything has changed since the last time.
    pub(in crate::protocol) fn state_feedback(&mut self) -> Option<Feedback> {
        let now = self.feedback();
        if !self.open || now == self.stated {
            return None;
        }
        self.stated = now;
        Some(now)
    }

    /// A restored inbox may exceed its window: no credit until it is below.
    fn feedback(&self) -> Feedback {
        let waiting = self.received.get() - self.handled.get();
        let messages = self.window_messages.saturating_sub(waiting);
        let bytes = self.window_bytes.saturating_sub(self.bytes);
        Feedback {
            next: self.received.next(),
            next_marker: self.received_marker.next(),
            credit: Credit {
                number: MessageNumber::new(self.received.get() + messages),
                bytes: self.received_bytes + bytes,
            },
        }
    }

    fn accept_batch(&mut self, batch: Batch) -> Result<Option<Batch>, Breach> {
        if is(AcceptsDuplicate) && batch.last() <= self.received {
            return Ok(Some(batch));
        }
        let Some(new) = batch.after(self.received) else {
            return Ok(None);
        };
        let expected = self.received.next();
        if new.first() != expected && !is(AcceptsGap) {
            let came = new.first();
            return Err(Breach::Gap { expected, came });
        }
        let allowed = self.stated.credit;
        if new.last() > allowed.number || self.received_bytes + new.bytes() > allowed.bytes {
            return Err(Breach::Overrun { came: new.last() });
        }
        self.received = new.last();
        self.received_bytes += new.bytes();
        self.bytes += new.bytes();
        Ok(Some(new))
    }

    fn accept_marker(&mut self, marker: Marker) -> Result<Option<Marker>, Breach> {
        if marker.ordinal <= self.received_marker {
            return Ok(None);
        }
        let expected = self.received_marker.next();
        if marker.ordinal != expected {
            let came = marker.ordinal;
            return Err(Breach::MarkerGap { expected, came });
        }
        if marker.after != self.received {
            return Err(Breach::MarkerMoved {
                after: marker.after,
                came_after: self.received,
            });
        }
        self.received_marker = marker.ordinal;
        Ok(Some(marker))
    }
}
