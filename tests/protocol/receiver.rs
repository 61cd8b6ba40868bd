//! The receiver's end of a channel against a sender that is written here, knows nothing of the
//! core, and sends what it has not heard of again and again, packed anew each time.

use std::cell::Cell;

use cutline::protocol::frame::{Feedback, Frame};
use cutline::protocol::link::Limits;
use cutline::protocol::{Effect, Input};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::diary::MESSAGE_BYTES_MIN;
use crate::solo::{Solo, batch, breach, ch, marker, topology};
use crate::worlds::for_all;

const ON: &str = "p1→p2";
const LENGTH_BYTES: u64 = 4;

/// The sender: the messages' lengths, and behind which of them its markers stand.
struct Sender {
    lengths: Vec<usize>,
    markers: Vec<u64>,
    /// How far the receiver was when it last said so, and how far it let the sender go.
    word: Feedback,
    /// What went over this stream, or is known to have gone over another.
    messages: u64,
    ordinal: u64,
    /// What went over some stream.
    messages_max: u64,
    again: usize,
}

impl Sender {
    fn resume(&mut self, word: Feedback) {
        self.word = word;
        (self.messages, self.ordinal) = (word.next.get() - 1, word.next_marker.get() - 1);
    }

    /// The marker that stands where the sender is, if one does.
    fn marker_due(&self) -> Option<Frame> {
        let after = *self.markers.get(self.ordinal as usize)?;
        (after == self.messages).then(|| marker(self.ordinal + 1, self.ordinal + 1, after))
    }

    fn bytes_to(&self, number: u64) -> u64 {
        let lengths = self.lengths[..number as usize].iter();
        lengths.map(|&length| LENGTH_BYTES + length as u64).sum()
    }

    /// The next frame: the marker that is due, or so many messages as there are before the next
    /// marker and the credit allows; perhaps with some before them that have gone over already.
    fn next(&mut self, count: u64, overlap: u64) -> Option<Frame> {
        if let Some(marker) = self.marker_due() {
            self.ordinal += 1;
            return Some(marker);
        }
        let stop = self.markers.get(self.ordinal as usize).copied();
        let stop = stop.unwrap_or(u64::MAX).min(self.lengths.len() as u64);
        let credit = self.word.credit;
        let mut last = self.messages;
        while last < stop.min(self.messages + count)
            && last < credit.number.get()
            && self.bytes_to(last + 1) <= credit.bytes
        {
            last += 1;
        }
        if last == self.messages {
            return None;
        }
        let first = (self.messages + 1).saturating_sub(overlap).max(1);
        self.again += usize::from(first <= self.messages_max.min(self.messages));
        let lengths = &self.lengths[first as usize - 1..last as usize];
        self.messages = last;
        self.messages_max = self.messages_max.max(last);
        Some(batch(first, lengths))
    }
}

/// One random run.
#[derive(Clone, Debug)]
struct Plan {
    window_messages: u64,
    slack: u64,
    lengths: Vec<usize>,
    markers: Vec<u16>,
    picks: Vec<(u8, u8)>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let windows = prop_oneof![Just(1_u64), Just(3), Just(1_000)];
    let slack = prop_oneof![Just(0_u64), Just(50), Just(1 << 20)];
    let lengths = vec(MESSAGE_BYTES_MIN..60, 0..40);
    let picks = vec((any::<u8>(), any::<u8>()), 20..200);
    (windows, slack, lengths, vec(any::<u16>(), 0..6), picks).prop_map(
        |(window_messages, slack, lengths, markers, picks)| Plan {
            window_messages,
            slack,
            lengths,
            markers,
            picks,
        },
    )
}

struct Bench {
    solo: Solo,
    sender: Sender,
    /// Where each snapshot was recorded: the message handled last before it.
    recorded: Vec<u64>,
}

impl Bench {
    fn new(plan: &Plan) -> Self {
        let limits = Limits {
            window_messages: plan.window_messages,
            window_bytes: 64 + plan.slack,
            message_bytes_max: 60,
            ..Limits::default()
        };
        let mut solo = Solo::running(&topology(2, &[ON]), 2, limits);
        let count = plan.lengths.len() as u64;
        let places = plan
            .markers
            .iter()
            .map(|&place| u64::from(place) % (count + 1));
        let mut markers: Vec<_> = places.collect();
        markers.sort_unstable();
        let mut sender = Sender {
            lengths: plan.lengths.clone(),
            markers,
            word: solo.opened(ON),
            messages: 0,
            ordinal: 0,
            messages_max: 0,
            again: 0,
        };
        sender.resume(sender.word);
        Self {
            solo,
            sender,
            recorded: Vec::new(),
        }
    }

    fn send(&mut self, count: u64, overlap: u64) -> bool {
        let Some(frame) = self.sender.next(count, overlap) else {
            return false;
        };
        let effects = self.solo.arrived(ON, frame);
        assert_eq!(breach(&effects), None, "a correct sender breaches nothing");
        true
    }

    fn take(&mut self, messages_max: u32) {
        let effects = self.solo.step(Input::Take(ch(ON), messages_max));
        for effect in effects {
            if let Effect::Store(part) = effect {
                let input = &part.inputs[0];
                assert!(input.share.is_empty(), "nothing was ahead of the marker");
                self.recorded.push(input.handled.get());
            }
        }
    }

    fn hear(&mut self) {
        for effect in self.solo.step(Input::Writable(ch(ON))) {
            if let Effect::Feedback(_, word) = effect {
                self.sender.word = word;
            }
        }
    }

    /// The stream breaks; what was said on it last may never have been heard.
    fn reopen(&mut self) {
        self.solo.step(Input::Broken(ch(ON)));
        let word = self.solo.opened(ON);
        self.sender.resume(word);
    }

    fn pick(&mut self, kind: u8, pick: u8) {
        let pick = u64::from(pick);
        match kind {
            0..120 => drop(self.send(pick % 5 + 1, pick / 5 % 4)),
            120..200 => self.take(pick as u32 % 3 + 1),
            200..240 => self.hear(),
            _ => self.reopen(),
        }
    }

    fn is_done(&self) -> bool {
        let sent = self.sender.messages as usize == self.sender.lengths.len();
        sent && self.sender.ordinal as usize == self.sender.markers.len()
    }
}

#[test]
fn a_receiver_handles_each_message_once_whatever_is_sent_again() {
    let again = Cell::new(0);
    for_all(600, &plans(), |plan| {
        let mut bench = Bench::new(&plan);
        for &(kind, pick) in &plan.picks {
            bench.pick(kind, pick);
        }
        for _ in 0..1_000 {
            bench.send(3, 2);
            bench.take(2);
            bench.hear();
        }
        assert!(bench.is_done(), "nothing is stuck");
        assert_eq!(bench.solo.handled(ON), plan.lengths.len() as u64);
        assert_eq!(
            bench.recorded, bench.sender.markers,
            "markers keep their place"
        );
        again.set(again.get() + bench.sender.again);
    });
    assert!(again.get() > 500, "messages come again: {}", again.get());
}
