//! Who is attached: the control streams, and what nodes say about themselves that means nothing
//! to the machine.
//!
//! A node is one start of one process. Another start of the same process has an entry of its
//! own, so that dismissing a second claimant does not touch the first. A node that has opened a
//! new stream is heard and told on that one only.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::protocol::ids::{Incarnation, ProcessId, Term};
use crate::wire::control::{self as words, Place, Progress};
use crate::wire::pb;

/// Words that wait for one node. It is told a few words a snapshot and takes them at once: one
/// that is so far behind is stopped or cut off, and finds out how things stand when it joins anew.
pub(super) const WORDS_MAX: usize = 256;

/// Nodes of one process that are remembered without a stream: one that may come back, and those
/// that the machine has given up but not yet asked to replace, whose process id is wanted then.
const AWAY_MAX: usize = 8;

/// One control stream, told apart from every other of this collector; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StreamId(pub(super) u64);

/// One start of one process.
pub(super) type Key = (ProcessId, Incarnation);

/// The collector's half of a control stream.
pub(super) struct Outgoing {
    pub(super) stream: StreamId,
    pub(super) words: mpsc::Sender<Result<pb::CollectorWord, Status>>,
    /// Ends the stream at once, with words still waiting.
    pub(super) end: CancellationToken,
}

impl Outgoing {
    /// Whether the word is on its way; a stream with no room is closed.
    fn say(&self, word: pb::CollectorWord) -> bool {
        match self.words.try_send(Ok(word)) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                tracing::warn!("a node takes no word any more: closing its control stream");
                self.end.cancel();
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }
}

/// What is known of one node.
struct Node {
    place: Place,
    progress: Progress,
    /// Its newest.
    stream: StreamId,
    outgoing: Option<Outgoing>,
}

/// All nodes that are attached, or were and may come back.
#[derive(Default)]
pub(super) struct Nodes {
    nodes: BTreeMap<Key, Node>,
    streams: BTreeMap<StreamId, Key>,
}

impl Nodes {
    /// A node has joined on a stream; an older stream of the same node ends.
    pub(super) fn attach(&mut self, key: Key, place: Place, outgoing: Outgoing) {
        self.streams.insert(outgoing.stream, key);
        let node = Node {
            place,
            progress: Progress::default(),
            stream: outgoing.stream,
            outgoing: Some(outgoing),
        };
        let older = self.nodes.insert(key, node).and_then(|node| node.outgoing);
        if let Some(older) = older {
            self.streams.remove(&older.stream);
            older.end.cancel();
        }
    }

    /// Who is heard on this stream; nobody on one that has been replaced or dismissed.
    pub(super) fn on(&self, stream: StreamId) -> Option<Key> {
        self.streams.get(&stream).copied()
    }

    /// The stream has closed. Answers whose it was, if that node has no newer one.
    pub(super) fn detach(&mut self, stream: StreamId) -> Option<Key> {
        let key = self.streams.remove(&stream)?;
        if let Some(node) = self.nodes.get_mut(&key) {
            node.outgoing = None;
        }
        self.forget_old(key.0);
        Some(key)
    }

    /// Sends a word to a node. Answers whether it is on its way.
    pub(super) fn tell(&self, key: Key, word: pb::CollectorWord) -> bool {
        self.outgoing(key)
            .is_some_and(|outgoing| outgoing.say(word))
    }

    /// Sends a last word to a node; its stream closes behind it, and is not heard any more.
    pub(super) fn dismiss(&mut self, key: Key, word: pb::CollectorWord) {
        if let Some(outgoing) = self
            .nodes
            .get_mut(&key)
            .and_then(|node| node.outgoing.take())
        {
            self.streams.remove(&outgoing.stream);
            outgoing.say(word);
            self.forget_old(key.0);
        }
    }

    /// Sends a command to a node, whose application answers it.
    pub(super) fn command(&self, key: Key, term: Term, request: u64, text: String) -> bool {
        self.tell(key, words::command(term, request, text))
    }

    /// Notes how far a node is.
    pub(super) fn progressed(&mut self, key: Key, progress: Progress) {
        if let Some(node) = self.nodes.get_mut(&key) {
            node.progress = progress;
        }
    }

    /// Where a node is, if it ever said so to this collector.
    pub(super) fn place(&self, key: Key) -> Option<&Place> {
        self.nodes.get(&key).map(|node| &node.place)
    }

    /// How far a node is.
    pub(super) fn progress(&self, key: Key) -> Progress {
        self.nodes
            .get(&key)
            .map(|node| node.progress)
            .unwrap_or_default()
    }

    /// Whether a node has a stream.
    pub(super) fn is_attached(&self, key: Key) -> bool {
        self.outgoing(key).is_some()
    }

    /// How many words wait for a node.
    pub(super) fn waiting(&self, key: Key) -> usize {
        self.outgoing(key).map_or(0, |outgoing| {
            outgoing.words.max_capacity() - outgoing.words.capacity()
        })
    }

    fn outgoing(&self, key: Key) -> Option<&Outgoing> {
        self.nodes.get(&key).and_then(|node| node.outgoing.as_ref())
    }

    /// Forgets the nodes of a process that went away longest ago, over a few.
    fn forget_old(&mut self, process: ProcessId) {
        let of_process = (process, Incarnation::new(0))..=(process, Incarnation::new(u64::MAX));
        let nodes = self.nodes.range(of_process);
        let mut away: Vec<_> = nodes
            .filter(|(_, node)| node.outgoing.is_none())
            .map(|(&key, node)| (node.stream, key))
            .collect();
        away.sort_unstable();
        let over = away.len().saturating_sub(AWAY_MAX);
        for (_, key) in away.into_iter().take(over) {
            self.nodes.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Inbox = mpsc::Receiver<Result<pb::CollectorWord, Status>>;

    fn stream(id: u64) -> (Outgoing, Inbox, CancellationToken) {
        let (words, inbox) = mpsc::channel(1);
        let end = CancellationToken::new();
        let outgoing = Outgoing {
            stream: StreamId(id),
            words,
            end: end.clone(),
        };
        (outgoing, inbox, end)
    }

    fn key(incarnation: u64) -> Key {
        (ProcessId::new(0), Incarnation::new(incarnation))
    }

    fn word() -> pb::CollectorWord {
        words::command(Term::new(1), 1, String::new())
    }

    #[test]
    fn a_node_that_takes_no_word_loses_its_stream() {
        let (outgoing, _inbox, end) = stream(1);
        let mut nodes = Nodes::default();
        nodes.attach(key(1), Place::default(), outgoing);
        assert!(nodes.tell(key(1), word()));
        assert!(!end.is_cancelled());
        assert!(!nodes.tell(key(1), word()));
        assert!(end.is_cancelled());
    }

    #[test]
    fn a_node_is_heard_on_its_newest_stream_only() {
        let (older, _older_inbox, older_end) = stream(1);
        let (newer, _newer_inbox, newer_end) = stream(2);
        let mut nodes = Nodes::default();
        nodes.attach(key(1), Place::default(), older);
        nodes.attach(key(1), Place::default(), newer);
        assert!(older_end.is_cancelled() && !newer_end.is_cancelled());
        assert_eq!(nodes.on(StreamId(1)), None);
        assert_eq!(nodes.on(StreamId(2)), Some(key(1)));
        assert_eq!(nodes.detach(StreamId(1)), None);
        assert!(nodes.is_attached(key(1)));
        assert_eq!(nodes.detach(StreamId(2)), Some(key(1)));
        assert!(!nodes.is_attached(key(1)));
    }

    #[test]
    fn a_dismissed_claimant_takes_nothing_along_but_its_own_stream() {
        let (first, _first_inbox, first_end) = stream(1);
        let (second, mut second_inbox, _) = stream(2);
        let mut nodes = Nodes::default();
        nodes.attach(key(1), Place::default(), first);
        nodes.attach(key(2), Place::default(), second);
        nodes.dismiss(key(2), word());
        assert!(second_inbox.try_recv().is_ok());
        assert!(
            second_inbox.is_closed(),
            "the stream ends behind the last word"
        );
        assert_eq!(nodes.on(StreamId(2)), None);
        assert_eq!(nodes.on(StreamId(1)), Some(key(1)));
        assert!(!first_end.is_cancelled());
    }

    #[test]
    fn a_node_that_went_away_is_remembered_until_several_have_followed_it() {
        let mut nodes = Nodes::default();
        let place = Place {
            address: "a:1".to_owned(),
            pid: 7,
        };
        // Incarnations are random: the first has the greatest here.
        for away in 0..=u64::try_from(AWAY_MAX).unwrap() {
            assert_eq!(nodes.place(key(99)).is_some(), away > 0);
            let (outgoing, _inbox, _) = stream(away);
            nodes.attach(key(99 - away), place.clone(), outgoing);
            nodes.detach(StreamId(away));
        }
        assert_eq!(nodes.place(key(99)), None);
        assert_eq!(nodes.place(key(98)), Some(&place));
        assert_eq!(nodes.nodes.len(), AWAY_MAX);
    }
}
