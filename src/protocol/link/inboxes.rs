//! All inboxes of a process, with what is asked of them together: which hold something, which owe
//! their sender a word. As with the [outboxes](super::Outboxes), it is kept from change to change.

use std::collections::BTreeSet;
use std::ops::Deref;

use super::Inbox;
use crate::protocol::ids::ChannelId;

/// The inboxes of a process, in the order of their channels. They are read as a slice, and changed
/// one by one.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol) struct Inboxes {
    inboxes: Vec<Inbox>,
    /// Those that hold something.
    filled: BTreeSet<usize>,
    /// Those whose sender is worth a word.
    owing: BTreeSet<usize>,
    /// Messages handled, on all channels.
    handled: u64,
}

impl Inboxes {
    /// These, in the order of their channels.
    pub(in crate::protocol) fn new(inboxes: Vec<Inbox>) -> Self {
        let mut all = Self {
            inboxes,
            ..Self::default()
        };
        for place in 0..all.inboxes.len() {
            all.handled += all.inboxes[place].handled().get();
            all.note(place);
        }
        all
    }

    /// The place of a channel.
    pub(in crate::protocol) fn place(&self, channel: ChannelId) -> Option<usize> {
        self.inboxes
            .binary_search_by_key(&channel, Inbox::channel)
            .ok()
    }

    /// The only way to change one.
    pub(in crate::protocol) fn change<T>(
        &mut self,
        place: usize,
        change: impl FnOnce(&mut Inbox) -> T,
    ) -> T {
        let inbox = &mut self.inboxes[place];
        self.handled -= inbox.handled().get();
        let answer = change(inbox);
        self.handled += inbox.handled().get();
        self.note(place);
        answer
    }

    /// What there is to do on one may have changed.
    fn note(&mut self, place: usize) {
        let inbox = &self.inboxes[place];
        let note = |places: &mut BTreeSet<usize>, holds: bool| match holds {
            true => places.insert(place),
            false => places.remove(&place),
        };
        note(&mut self.filled, inbox.head().is_some());
        note(&mut self.owing, inbox.owes_feedback());
    }

    /// The places of those that hold something.
    pub(in crate::protocol) fn filled(&self) -> impl Iterator<Item = usize> + '_ {
        self.filled.iter().copied()
    }

    /// Those whose sender is worth a word.
    pub(in crate::protocol) fn owing(&self) -> impl Iterator<Item = &Inbox> {
        self.owing.iter().map(|&place| &self.inboxes[place])
    }

    /// The messages handled, on all channels.
    pub(in crate::protocol) const fn handled(&self) -> u64 {
        self.handled
    }

    /// Whether what is kept is what a look at each finds.
    pub(in crate::protocol) fn is_kept_right(&self) -> bool {
        let mut inboxes = self.inboxes.iter().enumerate();
        let handled = self.inboxes.iter().map(|inbox| inbox.handled().get());
        handled.sum::<u64>() == self.handled
            && inboxes.all(|(place, inbox)| {
                self.filled.contains(&place) == inbox.head().is_some()
                    && self.owing.contains(&place) == inbox.owes_feedback()
            })
    }
}

impl Deref for Inboxes {
    type Target = [Inbox];

    fn deref(&self) -> &[Inbox] {
        &self.inboxes
    }
}
