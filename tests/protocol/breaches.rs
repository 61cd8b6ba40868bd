//! A peer that does what no correct peer does: each breach has its name, closes the stream, is
//! handled by nobody, and the channel goes on when it is dialled anew.

use cutline::protocol::events::Order;
use cutline::protocol::frame::{Credit, Feedback, Frame, Greeting};
use cutline::protocol::ids::Incarnation;
use cutline::protocol::link::Limits;
use cutline::protocol::{Effect, Input};

use crate::solo::{
    G1, OWN, PEER, Solo, T1, batch, breach, captured, ch, expects, k, m, marker, topology,
};

const IN: &str = "p1→p2";
const OUT: &str = "p2→p1";
const STRANGER: Incarnation = Incarnation::new(99);

/// p2, with both streams open and credit for two messages of at most 20 bytes on its input.
fn bench() -> Solo {
    let limits = Limits {
        window_messages: 2,
        window_bytes: 48,
        message_bytes_max: 20,
        ..Limits::default()
    };
    let mut solo = Solo::running(&topology(2, &[IN, OUT]), 2, limits);
    solo.opened(IN);
    solo.welcomed(OUT, expects(1, 1));
    solo
}

/// The frame is a breach of this name: the stream is closed and nothing has been taken in; what
/// else comes on that stream is not heard; on the next stream the channel goes on from `next`.
fn breaks_the_input(solo: &mut Solo, frame: Frame, name: &str, next: (u64, u64)) {
    let handled = solo.handled(IN);
    let effects = solo.arrived(IN, frame);
    let (channel, named) = breach(&effects).unwrap_or_else(|| panic!("{name}: {effects:?}"));
    assert_eq!(channel, ch(IN));
    assert_eq!(named.to_string(), name);
    assert_eq!(effects.len(), 1, "nothing else comes of it: {effects:?}");
    let late = solo.arrived(IN, batch(next.0, &[9]));
    assert!(
        late.is_empty(),
        "what is left of the stream is not heard: {late:?}"
    );
    assert!(solo.take_all().is_empty());
    assert_eq!(solo.handled(IN), handled, "nothing of it is handled");
    let word = solo.opened(IN);
    assert_eq!((word.next, word.next_marker), (m(next.0), k(next.1)));
    assert_eq!(breach(&solo.arrived(IN, batch(next.0, &[9]))), None);
    solo.take_all();
    assert_eq!(solo.handled(IN), handled + 1, "and the channel goes on");
}

#[test]
fn a_gap_between_messages_is_a_breach() {
    let mut solo = bench();
    solo.arrived(IN, batch(1, &[9]));
    solo.take_all();
    breaks_the_input(
        &mut solo,
        batch(3, &[9]),
        "a gap: message m2 was due and m3 came",
        (2, 1),
    );
}

#[test]
fn a_gap_between_markers_is_a_breach() {
    let name = "a gap: marker k1 was due and k2 came";
    breaks_the_input(&mut bench(), marker(1, 2, 0), name, (1, 1));
}

#[test]
fn a_marker_out_of_its_place_is_a_breach() {
    let name = "a marker put after message m1 came after message m0";
    breaks_the_input(&mut bench(), marker(1, 1, 1), name, (1, 1));
    let mut solo = bench();
    solo.arrived(IN, batch(1, &[9]));
    solo.take_all();
    let name = "a marker put after message m0 came after message m1";
    breaks_the_input(&mut solo, marker(1, 1, 0), name, (2, 1));
}

#[test]
fn more_messages_than_the_credit_are_a_breach() {
    let name = "message m3 came over the credit";
    breaks_the_input(&mut bench(), batch(1, &[9, 9, 9]), name, (1, 1));
}

#[test]
fn more_bytes_than_the_credit_are_a_breach() {
    let name = "message m2 came over the credit";
    breaks_the_input(&mut bench(), batch(1, &[20, 21]), name, (1, 1));
}

#[test]
fn credit_counts_from_what_was_stated_and_not_from_what_has_been_handled_since() {
    let mut solo = bench();
    solo.arrived(IN, batch(1, &[9, 9]));
    solo.take_all();
    let name = "message m3 came over the credit";
    let effects = solo.arrived(IN, batch(3, &[9]));
    assert_eq!(breach(&effects).unwrap().1.to_string(), name);
    let word = solo.opened(IN);
    assert_eq!(
        word.credit.number,
        m(4),
        "the next stream begins with a fresh word"
    );
    assert_eq!(breach(&solo.arrived(IN, batch(3, &[9, 9]))), None);
}

/// The receiver's word is a breach: the stream is closed and dialled anew, and what was sent goes
/// over on the next.
fn breaks_the_output(solo: &mut Solo, word: Feedback) {
    let effects = solo.heard(OUT, word);
    let name = format!(
        "the receiver expects message {} and marker {}, which cannot be",
        word.next, word.next_marker
    );
    let (channel, named) = breach(&effects).unwrap_or_else(|| panic!("{word:?}: {effects:?}"));
    assert_eq!((channel, named.to_string()), (ch(OUT), name));
    let [Effect::Hangup(..), Effect::Dial(channel, hello)] = effects.as_slice() else {
        panic!("hung up, then dialled: {effects:?}");
    };
    assert_eq!((*channel, *hello), (ch(OUT), solo.hello(G1, OWN)));
    let late = solo.heard(OUT, word);
    assert!(
        late.is_empty(),
        "what is left of the stream is not heard: {late:?}"
    );
    assert!(
        solo.write_all(OUT).0.is_empty(),
        "nothing is put on a closed stream"
    );
}

#[test]
fn acknowledging_what_was_never_sent_is_a_breach() {
    let mut solo = bench();
    solo.send(OUT, 9);
    solo.send(OUT, 9);
    let sent = solo.write_all(OUT).0;
    breaks_the_output(&mut solo, expects(4, 1));
    solo.welcomed(OUT, expects(1, 1));
    assert_eq!(solo.write_all(OUT).0, sent, "everything is sent again");
    breaks_the_output(&mut solo, expects(3, 2));
    solo.welcomed(OUT, expects(2, 1));
    assert_eq!(solo.write_all(OUT).0, [batch(2, &[9])]);
}

#[test]
fn a_message_cannot_be_there_without_the_marker_ahead_of_it_nor_the_other_way_round() {
    let mut solo = bench();
    solo.trigger(1);
    solo.send(OUT, 9);
    assert_eq!(solo.write_all(OUT).0.len(), 2);
    breaks_the_output(&mut solo, expects(2, 1));
    solo.welcomed(OUT, expects(1, 1));
    assert_eq!(solo.write_all(OUT).0.len(), 2, "both are sent again");
    let mut solo = bench();
    solo.send(OUT, 9);
    solo.trigger(1);
    assert_eq!(solo.write_all(OUT).0.len(), 2);
    breaks_the_output(&mut solo, expects(1, 2));
    solo.welcomed(OUT, expects(2, 1));
    assert_eq!(solo.write_all(OUT).0, [marker(1, 1, 1)]);
}

#[test]
fn asking_again_for_what_was_acknowledged_is_a_breach() {
    for (again, next) in [(expects(1, 2), "m1"), (expects(2, 1), "k1")] {
        let mut solo = bench();
        solo.send(OUT, 9);
        solo.trigger(1);
        solo.write_all(OUT);
        solo.heard(OUT, expects(2, 2));
        solo.step(Input::Broken(ch(OUT)));
        let effects = solo.welcomed(OUT, again);
        let (_, named) = breach(&effects).unwrap_or_else(|| panic!("{effects:?}"));
        assert!(named.to_string().contains(next), "{named}");
        assert!(matches!(effects.last(), Some(Effect::Dial(..))));
    }
}

#[test]
fn an_old_word_on_an_open_stream_changes_nothing() {
    let mut solo = bench();
    for _ in 0..2 {
        solo.send(OUT, 9);
        solo.write_all(OUT);
    }
    solo.heard(OUT, expects(3, 1));
    let old = Feedback {
        credit: Credit::default(),
        ..expects(2, 1)
    };
    assert!(solo.is_unmoved_by(Input::Heard(ch(OUT), G1, old)));
    solo.send(OUT, 9);
    assert_eq!(
        solo.write_all(OUT).0,
        [batch(3, &[9])],
        "no credit is taken back"
    );
}

#[test]
fn another_incarnation_of_the_sender_cannot_resume_a_channel() {
    let mut solo = bench();
    solo.arrived(IN, batch(1, &[9]));
    solo.step(Input::Broken(ch(IN)));
    let answer = solo.dialled(IN, G1, STRANGER);
    let why = "another incarnation of the peer cannot resume the channel";
    assert_eq!(answer, Greeting::Refused(why.to_owned()));
    let late = solo.arrived(IN, batch(2, &[9]));
    assert!(late.is_empty(), "{late:?}");
    assert_eq!(solo.opened(IN).next, m(2), "the one it began with can");
}

#[test]
fn another_incarnation_of_the_receiver_cannot_resume_a_channel() {
    let mut solo = bench();
    solo.send(OUT, 9);
    let sent = solo.write_all(OUT).0;
    solo.step(Input::Broken(ch(OUT)));
    let greeting = Greeting::Welcome {
        incarnation: STRANGER,
        feedback: expects(1, 1),
    };
    let effects = solo.step(Input::Greeted(ch(OUT), G1, greeting));
    let why = "another incarnation of the peer cannot resume the channel";
    assert_eq!(breach(&effects).unwrap().1.to_string(), why);
    assert!(matches!(effects.last(), Some(Effect::Dial(..))));
    assert!(solo.write_all(OUT).0.is_empty());
    let greeting = Greeting::Welcome {
        incarnation: PEER,
        feedback: expects(1, 1),
    };
    solo.step(Input::Greeted(ch(OUT), G1, greeting));
    assert_eq!(solo.write_all(OUT).0, sent);
}

#[test]
fn a_duplicate_is_dropped_whole_or_in_part_and_is_no_breach() {
    let mut solo = bench();
    solo.arrived(IN, batch(1, &[9]));
    solo.arrived(IN, marker(1, 1, 1));
    solo.take_all();
    for again in [batch(1, &[9]), marker(1, 1, 1)] {
        let effects = solo.arrived(IN, again);
        assert!(effects.is_empty(), "{effects:?}");
    }
    solo.arrived(IN, batch(1, &[9, 9]));
    let effects = solo.take_all();
    assert_eq!(solo.handled(IN), 2, "the second is new");
    assert!(!captured(&effects), "and the marker does not count twice");
}

#[test]
fn a_breach_on_one_channel_does_not_touch_a_recording() {
    let mut solo = bench();
    solo.trigger(1);
    solo.write_all(OUT);
    solo.arrived(IN, batch(1, &[9]));
    solo.arrived(IN, batch(3, &[9]));
    solo.opened(IN);
    solo.arrived(IN, batch(2, &[9]));
    let effects = solo.arrived(IN, marker(1, 1, 2));
    let part = crate::solo::stored(&effects).expect("the marker closes the last input");
    let share = part.inputs[0]
        .share
        .iter()
        .flat_map(|batch| batch.messages());
    let numbers: Vec<_> = share.map(|(number, _)| number.get()).collect();
    assert_eq!(numbers, [1, 2]);
    solo.told(
        T1,
        Order::Ended {
            snapshot: crate::solo::s(1),
            complete: true,
            low: crate::solo::s(1),
        },
    );
    assert!(solo.open_recordings().is_empty());
}
