//! Markers that overtake: what goes ahead of what, who records which share, and what a broken
//! stream changes about it, which is nothing.

use cutline::protocol::Input;
use cutline::protocol::cut::Loaded;
use cutline::protocol::events::Order;
use cutline::protocol::frame::Frame;
use cutline::protocol::link::Limits;
use cutline::protocol::mode::Mode::{Aligned, Classic, Unaligned};

use crate::diary::Diary;
use crate::solo::{
    G1, G2, Solo, T1, batch, captured, ch, channels_of, declined, expects, marker, marker_by, s,
    stored, topology,
};

const LINE: [&str; 2] = ["p1→p2", "p2→p3"];

fn bench_with(limits: Limits) -> Solo {
    let mut solo = Solo::running(&topology(3, &LINE), 2, limits);
    solo.opened("p1→p2");
    solo.welcomed("p2→p3", expects(1, 1));
    solo
}

fn bench() -> Solo {
    bench_with(Limits::default())
}

/// The next frame for the wire.
fn write(solo: &mut Solo) -> Frame {
    match solo.step(Input::Writable(ch("p2→p3"))).swap_remove(0) {
        cutline::protocol::Effect::Write(_, frame) => frame,
        other => panic!("{other:?}"),
    }
}

/// What the part says of the output.
fn output(solo: &mut Solo) -> (String, u64, u64, Vec<u64>) {
    let (_, mut effects) = solo.write_all("p2→p3");
    effects.extend(solo.arrived("p1→p2", marker_by(Unaligned, 1, 1, 0, 0)));
    channels_of(stored(&effects).expect("a part"))
        .pop()
        .expect("an output")
}

#[test]
fn an_unaligned_marker_counts_when_it_comes_off_the_wire() {
    let mut solo = bench();
    solo.arrived("p1→p2", batch(1, &[9, 9, 9]));
    solo.step(Input::Take(ch("p1→p2"), 1));
    let effects = solo.arrived("p1→p2", marker_by(Unaligned, 1, 1, 3, 4));
    assert!(captured(&effects), "two messages wait ahead of it");
    let (_, effects) = solo.write_all("p2→p3");
    let channels = channels_of(stored(&effects).expect("a part"));
    assert_eq!(channels[0], ("p1→p2".to_owned(), 1, 3, vec![2, 3]));
}

#[test]
fn a_classic_one_does_not() {
    let mut solo = bench();
    solo.arrived("p1→p2", batch(1, &[9]));
    assert!(!captured(&solo.arrived("p1→p2", marker(1, 1, 1))));
}

#[test]
fn what_comes_behind_the_marker_is_the_senders_to_record() {
    let mut solo = bench();
    solo.arrived("p1→p2", marker_by(Unaligned, 1, 1, 0, 1));
    solo.arrived("p1→p2", batch(1, &[9]));
    let (_, effects) = solo.write_all("p2→p3");
    let channels = channels_of(stored(&effects).expect("a part"));
    assert_eq!(channels[0], ("p1→p2".to_owned(), 0, 0, vec![]));
}

#[test]
fn the_marker_goes_ahead_of_all_that_was_not_on_the_wire() {
    let mut solo = bench();
    solo.send("p2→p3", 9);
    assert_eq!(write(&mut solo), batch(1, &[9]));
    solo.send("p2→p3", 10);
    solo.send("p2→p3", 11);
    solo.trigger_by(Unaligned, 1);
    solo.send("p2→p3", 12);
    assert_eq!(write(&mut solo), marker_by(Unaligned, 1, 1, 1, 3));
    assert_eq!(write(&mut solo), batch(2, &[10, 11]));
    assert_eq!(
        write(&mut solo),
        batch(4, &[12]),
        "a batch ends at the recording"
    );
    let share = ("p2→p3".to_owned(), 3, 1, vec![2, 3]);
    assert_eq!(output(&mut solo), share);
}

#[test]
fn with_nothing_to_overtake_the_share_is_empty() {
    let mut solo = bench();
    solo.send("p2→p3", 9);
    write(&mut solo);
    solo.trigger_by(Unaligned, 1);
    solo.send("p2→p3", 9);
    assert_eq!(output(&mut solo), ("p2→p3".to_owned(), 1, 1, vec![]));
}

#[test]
fn the_marker_needs_no_credit_where_messages_wait_for_it() {
    let mut solo = Solo::running(&topology(3, &LINE), 2, Limits::default());
    let mut word = expects(1, 1);
    word.credit.number = crate::solo::m(1);
    solo.welcomed("p2→p3", word);
    solo.send("p2→p3", 9);
    solo.send("p2→p3", 9);
    write(&mut solo);
    assert!(
        solo.process.writable().next().is_none(),
        "no credit is left"
    );
    solo.trigger_by(Unaligned, 1);
    assert_eq!(write(&mut solo), marker_by(Unaligned, 1, 1, 1, 2));
}

#[test]
fn a_batch_that_was_sent_in_part_is_overtaken_in_part() {
    let mut solo = Solo::running(&topology(3, &LINE), 2, Limits::default());
    solo.opened("p1→p2");
    let mut word = expects(1, 1);
    word.credit.number = crate::solo::m(2);
    solo.welcomed("p2→p3", word);
    for _ in 0..3 {
        solo.send("p2→p3", 9);
    }
    assert_eq!(write(&mut solo), batch(1, &[9, 9]));
    solo.trigger_by(Unaligned, 1);
    assert_eq!(output(&mut solo), ("p2→p3".to_owned(), 3, 2, vec![3]));
}

#[test]
fn an_overtaking_marker_is_sent_again_exactly_where_it_stood() {
    let mut solo = bench();
    solo.send("p2→p3", 9);
    write(&mut solo);
    solo.send("p2→p3", 10);
    solo.trigger_by(Unaligned, 1);
    let (before, _) = solo.write_all("p2→p3");
    assert_eq!(before, [marker_by(Unaligned, 1, 1, 1, 2), batch(2, &[10])]);
    // The receiver has the first message, then the marker too.
    for (next, next_marker, from) in [(2, 1, 0), (2, 2, 1)] {
        solo.step(Input::Broken(ch("p2→p3")));
        solo.welcomed("p2→p3", expects(next, next_marker));
        let (again, _) = solo.write_all("p2→p3");
        assert_eq!(again, before[from..]);
    }
}

#[test]
fn what_a_broken_stream_took_back_is_not_overtaken() {
    let mut solo = bench();
    solo.send("p2→p3", 9);
    solo.send("p2→p3", 10);
    write(&mut solo);
    solo.send("p2→p3", 11);
    solo.step(Input::Broken(ch("p2→p3")));
    solo.welcomed("p2→p3", expects(2, 1));
    solo.trigger_by(Unaligned, 1);
    assert_eq!(write(&mut solo), batch(2, &[10]), "it was on the wire once");
    assert_eq!(write(&mut solo), marker_by(Unaligned, 1, 1, 2, 3));
    assert_eq!(write(&mut solo), batch(3, &[11]));
    assert_eq!(output(&mut solo), ("p2→p3".to_owned(), 3, 2, vec![3]));
}

#[test]
fn nor_is_it_while_the_stream_is_down() {
    let mut solo = bench();
    solo.send("p2→p3", 9);
    write(&mut solo);
    solo.step(Input::Broken(ch("p2→p3")));
    solo.send("p2→p3", 10);
    solo.trigger_by(Unaligned, 1);
    solo.welcomed("p2→p3", expects(1, 1));
    assert_eq!(write(&mut solo), batch(1, &[9]));
    assert_eq!(output(&mut solo), ("p2→p3".to_owned(), 2, 1, vec![2]));
}

#[test]
fn ordinals_keep_their_order_when_the_marker_of_one_that_has_ended_waits_in_the_outbox() {
    let mut solo = bench();
    solo.send("p2→p3", 9);
    solo.trigger_by(Classic, 1);
    solo.send("p2→p3", 10);
    solo.trigger_by(Unaligned, 2);
    let ordinals: Vec<_> = (0..2).map(|_| write(&mut solo)).collect();
    let of_first = marker_by(Classic, 1, 1, 0, 1);
    assert_eq!(ordinals, [of_first, marker_by(Unaligned, 2, 2, 0, 2)]);
    let (_, mut effects) = solo.write_all("p2→p3");
    effects.extend(solo.arrived("p1→p2", marker_by(Unaligned, 2, 1, 0, 0)));
    let channels = channels_of(stored(&effects).expect("a part"));
    assert_eq!(channels[1], ("p2→p3".to_owned(), 2, 0, vec![1, 2]));
}

#[test]
fn the_senders_share_counts_against_the_bound_and_its_channel_is_named() {
    let limits = Limits {
        recording_bytes_max: 50,
        ..Limits::default()
    };
    let mut solo = bench_with(limits);
    solo.send("p2→p3", 60);
    assert_eq!(
        declined(&solo.trigger_by(Classic, 1)),
        None,
        "it overtakes nothing"
    );
    let effects = solo.trigger_by(Unaligned, 2);
    let reason = "the recording is over recording_bytes_max = 50, most of it from p2→p3";
    assert_eq!(declined(&effects), Some((s(2), reason)));
}

/// A part of p2 of an unaligned snapshot: 3 and 4 wait in the inbox, 6 and 7 in the outbox.
fn both_shares() -> Box<Loaded<Diary>> {
    let mut restored = crate::solo::read_back(&topology(3, &LINE), 2, 1);
    let share = |first: u64| match batch(first, &[9, 10]) {
        Frame::Messages(batch) => vec![batch],
        Frame::Marker(_) => unreachable!("a batch"),
    };
    restored.part.mode = Unaligned;
    let input = &mut restored.part.inputs[0];
    (input.handled, input.after, input.share) = (crate::solo::m(2), crate::solo::m(4), share(3));
    let output = &mut restored.part.outputs[0];
    (output.sent, output.after, output.share) = (crate::solo::m(7), crate::solo::m(5), share(6));
    restored
}

fn loaded(restored: Box<Loaded<Diary>>) -> (Solo, String) {
    loaded_within(restored, Limits::default())
}

fn loaded_within(restored: Box<Loaded<Diary>>, limits: Limits) -> (Solo, String) {
    let mut solo = Solo::new(&topology(3, &LINE), 2, limits);
    solo.told(T1, Order::Prepare(G2, s(1)));
    let effects = solo.step(Input::Loaded(G2, Ok(restored)));
    (solo, format!("{effects:?}"))
}

#[test]
fn a_restore_fills_the_outbox_ahead_of_what_is_new_and_numbers_go_on() {
    let (mut solo, _) = loaded(both_shares());
    solo.told(T1, Order::Run(G2));
    solo.send("p2→p3", 11);
    let greeting = cutline::protocol::frame::Greeting::Welcome {
        incarnation: crate::solo::PEER,
        feedback: expects(6, 1),
    };
    solo.step(Input::Greeted(ch("p2→p3"), G2, greeting));
    let (frames, _) = solo.write_all("p2→p3");
    let packed = |frame: &Frame| match frame {
        Frame::Messages(batch) => (batch.first().get(), batch.count()),
        Frame::Marker(_) => (0, 0),
    };
    let numbers: Vec<_> = frames.iter().map(packed).collect();
    assert_eq!(numbers, [(6, 2), (8, 1)]);
}

#[test]
fn a_share_with_a_message_that_no_window_lets_through_any_more_is_refused() {
    let limits = |message_bytes_max| Limits {
        message_bytes_max,
        ..Limits::default()
    };
    let refused = loaded_within(both_shares(), limits(9)).1;
    let words = "a message of 10 bytes waits on p2→p3, over limits.message_bytes_max = 9";
    assert!(refused.contains(words), "{refused}");
    assert!(loaded_within(both_shares(), limits(10)).1.contains("Ready"));
}

#[test]
fn a_share_that_does_not_reach_from_the_marker_to_the_count_is_torn() {
    assert!(loaded(both_shares()).1.contains("Ready"));
    let mut gap = both_shares();
    gap.part.outputs[0].after = crate::solo::m(4);
    assert!(loaded(gap).1.contains("p2→p3 has gaps"));
    let mut short = both_shares();
    short.part.inputs[0].after = crate::solo::m(5);
    assert!(loaded(short).1.contains("p1→p2 has gaps"));
}

#[test]
fn an_aligned_marker_overtakes_nothing() {
    let mut solo = bench();
    solo.send("p2→p3", 9);
    solo.step(Input::Arrived(
        ch("p1→p2"),
        G1,
        marker_by(Aligned, 1, 1, 0, 0),
    ));
    solo.take_all();
    assert_eq!(write(&mut solo), batch(1, &[9]));
    assert_eq!(write(&mut solo), marker_by(Aligned, 1, 1, 1, 1));
}
