//! The sender's end of a channel against a receiver that is written here, knows nothing of the
//! core, and is allowed whatever the protocol allows: to take a batch in pieces, to acknowledge
//! late or not at all, to say old words again, to lose the stream at any point.

use std::cell::Cell;
use std::collections::VecDeque;

use cutline::protocol::frame::{Credit, Feedback, Frame};
use cutline::protocol::link::Limits;
use cutline::protocol::{Effect, Input};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::diary::MESSAGE_BYTES_MIN;
use crate::solo::{Solo, breach, ch, k, m, topology};
use crate::worlds::{for_all, number_of};

const ON: &str = "p1→p2";
const LENGTH_BYTES: u64 = 4;

/// What goes over the channel, in order: a message by its number, a marker by its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Message(u64),
    Marker(u64),
}

/// The receiver, by its own account.
struct Receiver {
    window_messages: u64,
    window_bytes: u64,
    /// What it has taken, and the lengths of the messages that wait to be handled.
    taken: Vec<Item>,
    waiting: VecDeque<u64>,
    messages: u64,
    markers: u64,
    bytes: u64,
    /// The most it has ever allowed.
    allowed: Credit,
}

impl Receiver {
    fn new(window_messages: u64, window_bytes: u64) -> Self {
        Self {
            window_messages,
            window_bytes,
            taken: Vec::new(),
            waiting: VecDeque::new(),
            messages: 0,
            markers: 0,
            bytes: 0,
            allowed: Credit::default(),
        }
    }

    fn word(&mut self) -> Feedback {
        let waiting: u64 = self.waiting.iter().sum();
        let credit = Credit {
            number: m(self.messages + self.window_messages - self.waiting.len() as u64),
            bytes: self.bytes + self.window_bytes - waiting,
        };
        self.allowed = credit;
        Feedback {
            next: m(self.messages + 1),
            next_marker: k(self.markers + 1),
            credit,
        }
    }

    /// Takes so many messages of a frame, or the marker; whether there is no rest.
    fn take(&mut self, frame: &Frame, messages_max: usize) -> bool {
        match frame {
            Frame::Marker(marker) => {
                self.markers += 1;
                assert_eq!(marker.ordinal, k(self.markers), "markers come in order");
                assert_eq!(marker.after, m(self.messages), "a marker keeps its place");
                self.taken.push(Item::Marker(marker.snapshot.get()));
                true
            }
            Frame::Messages(batch) => {
                for (number, message) in batch.messages().take(messages_max) {
                    self.messages += 1;
                    assert_eq!(number, m(self.messages), "numbers go up by one");
                    let length = LENGTH_BYTES + message.len() as u64;
                    self.bytes += length;
                    self.waiting.push_back(length);
                    self.taken.push(Item::Message(number_of(message)));
                    let within = number <= self.allowed.number && self.bytes <= self.allowed.bytes;
                    assert!(within, "message {number} is over the credit");
                }
                batch.count() as usize <= messages_max
            }
        }
    }
}

/// The sender, the receiver and what is between them.
struct Bench {
    solo: Solo,
    receiver: Receiver,
    wire: VecDeque<Frame>,
    said: Vec<Feedback>,
    is_open: bool,
    script: Vec<Item>,
    snapshots: u64,
    torn: usize,
}

impl Bench {
    fn new(window_messages: u64, bytes_max: usize, slack: u64) -> Self {
        let limits = Limits {
            message_bytes_max: bytes_max as u64,
            ..Limits::default()
        };
        let solo = Solo::running(&topology(2, &[ON]), 1, limits);
        let window_bytes = bytes_max as u64 + LENGTH_BYTES + slack;
        Self {
            solo,
            receiver: Receiver::new(window_messages, window_bytes),
            wire: VecDeque::new(),
            said: Vec::new(),
            is_open: false,
            script: Vec::new(),
            snapshots: 0,
            torn: 0,
        }
    }

    fn open(&mut self) {
        if !self.is_open {
            let word = self.receiver.word();
            let effects = self.solo.welcomed(ON, word);
            assert_eq!(breach(&effects), None, "{word:?}");
            (self.is_open, self.said) = (true, vec![word]);
        }
    }

    fn lose(&mut self) {
        if self.is_open {
            self.wire.clear();
            self.is_open = false;
            let effects = self.solo.step(Input::Broken(ch(ON)));
            assert!(
                matches!(effects.as_slice(), [Effect::Dial(..)]),
                "{effects:?}"
            );
        }
    }

    fn say(&mut self, word: Feedback) {
        let effects = self.solo.heard(ON, word);
        assert_eq!(breach(&effects), None, "{word:?}");
    }

    fn write(&mut self) {
        for effect in self.solo.step(Input::Writable(ch(ON))) {
            if let Effect::Write(_, frame) = effect {
                self.wire.push_back(frame);
            }
        }
    }

    fn pick(&mut self, kind: u8, pick: usize, bytes_max: usize) {
        match kind {
            0..60 => {
                let bytes = MESSAGE_BYTES_MIN + pick % (bytes_max - MESSAGE_BYTES_MIN + 1);
                self.solo.send(ON, bytes);
                let messages = self
                    .script
                    .iter()
                    .filter(|item| matches!(item, Item::Message(_)));
                self.script.push(Item::Message(messages.count() as u64 + 1));
            }
            60..80 => {
                self.snapshots += 1;
                self.solo.trigger(self.snapshots);
                self.script.push(Item::Marker(self.snapshots));
            }
            80..130 => self.write(),
            130..180 => {
                if let Some(frame) = self.wire.pop_front()
                    && !self.receiver.take(&frame, pick % 4 + 1)
                {
                    // The rest of the batch is lost, and the stream with it.
                    self.torn += 1;
                    self.lose();
                }
            }
            180..200 if self.is_open => {
                let word = self.receiver.word();
                self.said.push(word);
                self.say(word);
            }
            200..210 if self.is_open => self.say(self.said[pick % self.said.len()]),
            210..235 => drop(self.receiver.waiting.pop_front()),
            235..245 => self.lose(),
            _ => self.open(),
        }
    }

    /// Nothing breaks any more: everything goes over.
    fn finish(&mut self) {
        for _ in 0..10_000 {
            self.open();
            self.write();
            while let Some(frame) = self.wire.pop_front() {
                assert!(self.receiver.take(&frame, usize::MAX));
            }
            self.receiver.waiting.clear();
            let word = self.receiver.word();
            self.say(word);
            if self.receiver.taken.len() == self.script.len() {
                return;
            }
        }
        panic!("it is stuck: {:?}", self.receiver.taken);
    }
}

#[test]
fn a_sender_resumes_wherever_the_receiver_is_and_keeps_within_its_credit() {
    let windows = prop_oneof![Just(1_u64), Just(3), Just(1_000)];
    let lengths = prop_oneof![Just(MESSAGE_BYTES_MIN), Just(30), Just(2_000)];
    let slack = prop_oneof![Just(0_u64), Just(20), Just(1 << 20)];
    let picks = vec((any::<u8>(), any::<u16>()), 20..400);
    let torn = Cell::new(0);
    for_all(
        600,
        &(windows, lengths, slack, picks),
        |(messages, bytes_max, slack, picks)| {
            let mut bench = Bench::new(messages, bytes_max, slack);
            for (kind, pick) in picks {
                bench.pick(kind, usize::from(pick), bytes_max);
            }
            bench.finish();
            assert_eq!(bench.receiver.taken, bench.script);
            torn.set(torn.get() + bench.torn);
        },
    );
    assert!(
        torn.get() > 100,
        "batches are resumed in their middle: {}",
        torn.get()
    );
}
