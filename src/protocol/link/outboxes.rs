//! All outboxes of a process, with what is asked of them together: which have something for the
//! wire, whether one is over its bound. It is kept from change to change, as a process of many
//! thousand channels cannot look at each of them whenever something happens on one.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use super::{Limits, Outbox};
use crate::protocol::application::SendError;
use crate::protocol::clock::Clock;
use crate::protocol::frame::LENGTH_BYTES;
use crate::protocol::ids::ChannelId;
use crate::protocol::trace::Sent;

/// The outboxes of a process, in the order of their channels. They are read as a slice, and
/// changed one by one.
#[derive(Clone, Debug)]
pub struct Outboxes {
    outboxes: Vec<Outbox>,
    /// Those that lead out of the component of their process: nothing that is sent on them comes
    /// back.
    leaving: Vec<bool>,
    bytes: u64,
    bytes_max: u64,
    /// Those with a frame that may go on the wire.
    writable: BTreeSet<usize>,
    sum: Sum,
    /// Where the job is traced: the clock of the last event, and where that has sent.
    stamp: Option<Arc<Clock>>,
    stamped: BTreeSet<usize>,
}

/// What is counted over all outboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    /// Those over `outbox_bytes`, and those of them that lead out of the component.
    full: usize,
    full_leaving: usize,
    /// Those over `outbox_bytes_max`.
    overfull: usize,
    /// Messages sent.
    sent: u64,
}

impl Outboxes {
    /// These, in the order of their channels; `leaves` says of a channel whether it leads out of
    /// the component of its process.
    pub(in crate::protocol) fn new(
        outboxes: Vec<Outbox>,
        leaves: impl Fn(ChannelId) -> bool,
        limits: &Limits,
    ) -> Self {
        let leaving = outboxes.iter().map(|outbox| leaves(outbox.channel()));
        let mut all = Self {
            leaving: leaving.collect(),
            outboxes,
            bytes: limits.outbox_bytes,
            bytes_max: limits.outbox_bytes_max,
            writable: BTreeSet::new(),
            sum: Sum::default(),
            stamp: None,
            stamped: BTreeSet::new(),
        };
        for place in 0..all.outboxes.len() {
            let (is_writable, one) = all.look_at(place);
            if is_writable {
                all.writable.insert(place);
            }
            all.sum = all.sum.plus(one);
        }
        all
    }

    /// None at all.
    pub(in crate::protocol) fn none() -> Self {
        Self::new(Vec::new(), |_| false, &Limits::default())
    }

    /// The place of a channel.
    pub(in crate::protocol) fn place(&self, channel: ChannelId) -> Option<usize> {
        self.outboxes
            .binary_search_by_key(&channel, Outbox::channel)
            .ok()
    }

    /// The only way to change one.
    pub(in crate::protocol) fn change<T>(
        &mut self,
        place: usize,
        change: impl FnOnce(&mut Outbox) -> T,
    ) -> T {
        let (was_writable, before) = self.look_at(place);
        let answer = change(&mut self.outboxes[place]);
        let (is_writable, after) = self.look_at(place);
        if is_writable != was_writable {
            match is_writable {
                true => self.writable.insert(place),
                false => self.writable.remove(&place),
            };
        }
        self.sum = self.sum.less(before).plus(after);
        answer
    }

    /// Puts a message at the back of one.
    pub(in crate::protocol) fn push(
        &mut self,
        place: usize,
        message: &[u8],
    ) -> Result<(), SendError> {
        if let Some(clock) = &self.stamp
            && self.stamped.insert(place)
        {
            let clock = clock.clone();
            self.change(place, |outbox| outbox.stamp(&clock));
        }
        let outbox = &mut self.outboxes[place];
        let before = outbox.queued_bytes();
        let after = before + (LENGTH_BYTES + message.len()) as u64;
        if before == 0 || after > self.bytes.min(self.bytes_max) {
            return self.change(place, |outbox| outbox.push(message));
        }
        // Behind another message and within the bound, as most are, it is only counted.
        outbox.push(message)?;
        self.sum.sent += 1;
        Ok(())
    }

    /// An event with this clock begins, which what it sends carries.
    pub(in crate::protocol) fn stamp(&mut self, clock: Arc<Clock>) {
        self.stamp = Some(clock);
        self.stamped.clear();
    }

    /// What was sent since: by channel, and on each channel in the order it was sent.
    pub(in crate::protocol) fn take_sent(&mut self) -> Vec<Sent> {
        let places = std::mem::take(&mut self.stamped).into_iter();
        let sent = places.flat_map(|place| self.change(place, Outbox::take_sent));
        sent.collect()
    }

    /// The channels on which there is a frame that may go on the wire.
    pub(in crate::protocol) fn writable(&self) -> impl Iterator<Item = ChannelId> + '_ {
        let places = self.writable.iter();
        places.map(|&place| self.outboxes[place].channel())
    }

    /// Whether one is over `outbox_bytes`.
    pub(in crate::protocol) const fn any_full(&self) -> bool {
        self.sum.full > 0
    }

    /// Whether there is room for what a message from an input may lead to. One that is on a cycle
    /// waits only for the outputs that lead out of it, as it would be waiting for itself.
    pub(in crate::protocol) const fn has_room(&self, is_on_cycle: bool) -> bool {
        match is_on_cycle {
            true => self.sum.full_leaving == 0,
            false => self.sum.full == 0,
        }
    }

    /// Those over `outbox_bytes_max`.
    pub(in crate::protocol) fn overfull(&self) -> impl Iterator<Item = &Outbox> {
        let any = self.sum.overfull > 0;
        let outboxes = self.outboxes.iter().filter(move |_| any);
        outboxes.filter(|outbox| outbox.queued_bytes() > self.bytes_max)
    }

    /// The messages sent, on all channels.
    pub(in crate::protocol) const fn sent(&self) -> u64 {
        self.sum.sent
    }

    fn look_at(&self, place: usize) -> (bool, Sum) {
        let outbox = &self.outboxes[place];
        let is_full = outbox.queued_bytes() > self.bytes;
        let sum = Sum {
            full: usize::from(is_full),
            full_leaving: usize::from(is_full && self.leaving[place]),
            overfull: usize::from(outbox.queued_bytes() > self.bytes_max),
            sent: outbox.sent().get(),
        };
        (outbox.is_writable(), sum)
    }

    /// Whether what is kept is what a look at each finds.
    pub(in crate::protocol) fn is_kept_right(&self) -> bool {
        let mut sum = Sum::default();
        let mut right = (0..self.outboxes.len()).map(|place| {
            let (is_writable, one) = self.look_at(place);
            sum = sum.plus(one);
            is_writable == self.writable.contains(&place)
        });
        right.all(|right| right) && sum == self.sum
    }
}

impl Deref for Outboxes {
    type Target = [Outbox];

    fn deref(&self) -> &[Outbox] {
        &self.outboxes
    }
}

impl Sum {
    const fn plus(self, other: Self) -> Self {
        Self {
            full: self.full + other.full,
            full_leaving: self.full_leaving + other.full_leaving,
            overfull: self.overfull + other.overfull,
            sent: self.sent + other.sent,
        }
    }

    const fn less(self, other: Self) -> Self {
        Self {
            full: self.full - other.full,
            full_leaving: self.full_leaving - other.full_leaving,
            overfull: self.overfull - other.overfull,
            sent: self.sent - other.sent,
        }
    }
}
