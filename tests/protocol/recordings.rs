//! One process's recordings: what is in them, and what ends them before their time.

use cutline::protocol::events::Order;
use cutline::protocol::frame::Frame;
use cutline::protocol::link::Limits;
use cutline::protocol::{Effect, Input};

use crate::diary::Diary;
use crate::solo::{
    G1, Solo, T1, TIMEOUT_MS, batch, captured, ch, declined, expects, marker, on_disk, s, stored,
    topology,
};

const CHANNELS: [&str; 4] = ["p1→p2", "p3→p2", "p2→p1", "p2→p3"];

fn bench_with(limits: Limits) -> Solo {
    let mut solo = Solo::running(&topology(3, &CHANNELS), 2, limits);
    for input in ["p1→p2", "p3→p2"] {
        solo.opened(input);
    }
    for output in ["p2→p1", "p2→p3"] {
        solo.welcomed(output, expects(1, 1));
    }
    solo
}

fn bench() -> Solo {
    bench_with(Limits::default())
}

/// The numbers recorded on each input.
fn shares(effects: &[Effect]) -> Vec<(String, u64, Vec<u64>)> {
    let part = stored(effects).unwrap_or_else(|| panic!("a part is whole: {effects:?}"));
    let inputs = part.inputs.iter().map(|input| {
        let numbers = input.share.iter().flat_map(|batch| batch.messages());
        let numbers = numbers.map(|(number, _)| number.get()).collect();
        (input.channel.to_string(), input.handled.get(), numbers)
    });
    inputs.collect()
}

fn write_both(solo: &mut Solo) {
    solo.write_all("p2→p1");
    solo.write_all("p2→p3");
}

#[test]
fn the_state_is_taken_before_the_markers_are_put_and_at_once_with_them() {
    let mut solo = bench();
    solo.send("p2→p1", 9);
    let effects = solo.trigger(1);
    let [Effect::Capture(id, _)] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!(*id, s(1));
    solo.send("p2→p1", 9);
    let (frames, _) = solo.write_all("p2→p1");
    assert_eq!(frames, [batch(1, &[9]), marker(1, 1, 1), batch(2, &[9])]);
}

#[test]
fn the_captured_state_is_that_of_the_moment_whenever_it_is_encoded() {
    let mut solo = bench();
    solo.send("p2→p1", 9);
    let capture = solo.trigger(1).into_iter().find_map(|effect| match effect {
        Effect::Capture(_, capture) => Some(capture),
        _ => None,
    });
    solo.send("p2→p1", 9);
    let diary = Diary::read(&capture.unwrap()());
    assert_eq!(diary.sent_on(ch("p2→p1")), 1);
}

#[test]
fn a_channel_holds_what_is_in_its_inbox_and_what_comes_before_its_marker() {
    let mut solo = bench();
    solo.arrived("p1→p2", batch(1, &[9, 9, 9]));
    solo.step(Input::Take(ch("p1→p2"), 1));
    solo.trigger(1);
    write_both(&mut solo);
    solo.arrived("p1→p2", batch(4, &[9]));
    solo.take_all();
    solo.arrived("p1→p2", batch(5, &[9]));
    solo.arrived("p1→p2", marker(1, 1, 5));
    solo.arrived("p1→p2", batch(6, &[9]));
    let effects = solo.arrived("p3→p2", marker(1, 1, 0));
    let expected = [
        ("p1→p2".to_owned(), 1, vec![2, 3, 4, 5]),
        ("p3→p2".to_owned(), 0, vec![]),
    ];
    assert_eq!(shares(&effects), expected);
}

#[test]
fn a_marker_that_waits_in_an_inbox_closes_its_channel_when_the_state_is_taken() {
    let mut solo = bench();
    solo.arrived("p1→p2", batch(1, &[9]));
    solo.arrived("p1→p2", marker(1, 1, 1));
    solo.arrived("p1→p2", batch(2, &[9]));
    solo.trigger(1);
    write_both(&mut solo);
    solo.take_all();
    let effects = solo.arrived("p3→p2", marker(1, 1, 0));
    assert_eq!(shares(&effects)[0], ("p1→p2".to_owned(), 0, vec![1]));
}

#[test]
fn the_first_marker_counts_at_the_head_of_its_inbox_and_its_channel_is_empty() {
    let mut solo = bench();
    solo.arrived("p3→p2", batch(1, &[9]));
    solo.arrived("p1→p2", batch(1, &[9]));
    solo.arrived("p1→p2", marker(1, 1, 1));
    solo.arrived("p1→p2", batch(2, &[9]));
    let effects = solo.step(Input::Take(ch("p1→p2"), 1));
    assert!(!captured(&effects), "the message ahead of it comes first");
    let effects = solo.step(Input::Take(ch("p1→p2"), 1));
    assert!(captured(&effects));
    write_both(&mut solo);
    let effects = solo.arrived("p3→p2", marker(1, 1, 1));
    let expected = [
        ("p1→p2".to_owned(), 1, vec![]),
        ("p3→p2".to_owned(), 0, vec![1]),
    ];
    assert_eq!(shares(&effects), expected);
}

#[test]
fn overlapping_snapshots_are_recorded_each_on_its_own() {
    let mut solo = bench();
    solo.trigger(1);
    solo.arrived("p1→p2", batch(1, &[9]));
    solo.trigger(2);
    solo.arrived("p1→p2", batch(2, &[9]));
    solo.arrived("p1→p2", marker(2, 1, 2));
    solo.arrived("p1→p2", batch(3, &[9]));
    solo.arrived("p1→p2", marker(1, 2, 3));
    write_both(&mut solo);
    let second = solo.arrived("p3→p2", marker(2, 1, 0));
    assert_eq!(shares(&second)[0].2, [1, 2]);
    let first = solo.arrived("p3→p2", marker(1, 2, 0));
    assert_eq!(shares(&first)[0].2, [1, 2, 3]);
}

#[test]
fn a_part_is_whole_when_every_input_is_closed_and_every_marker_is_with_the_driver() {
    let mut solo = bench();
    solo.trigger(1);
    assert!(stored(&solo.arrived("p1→p2", marker(1, 1, 0))).is_none());
    assert!(stored(&solo.arrived("p3→p2", marker(1, 1, 0))).is_none());
    assert!(stored(&solo.write_all("p2→p1").1).is_none());
    assert!(stored(&solo.write_all("p2→p3").1).is_some());
    let again = solo.take_all();
    assert!(
        again.is_empty(),
        "the markers at the heads change nothing more: {again:?}"
    );
}

#[test]
fn a_process_without_channels_has_its_part_at_once() {
    let mut solo = Solo::running(&topology(1, &[]), 1, Limits::default());
    let effects = solo.trigger(1);
    assert!(matches!(
        effects.as_slice(),
        [Effect::Capture(..), Effect::Store(_)]
    ));
}

#[test]
fn a_second_trigger_or_marker_changes_nothing() {
    let mut solo = bench();
    solo.trigger(1);
    assert!(solo.trigger(1).is_empty());
    solo.arrived("p1→p2", marker(1, 1, 0));
    assert!(solo.take_all().is_empty());
    assert_eq!(
        solo.write_all("p2→p1").0,
        [marker(1, 1, 0)],
        "one marker a snapshot"
    );
}

#[test]
fn a_node_ends_what_takes_too_long_and_names_the_channels_it_waits_for() {
    let mut solo = bench();
    solo.step(Input::Time { now_ms: 5_000 });
    solo.trigger(1);
    solo.write_all("p2→p1");
    solo.arrived("p1→p2", marker(1, 1, 0));
    let early = solo.step(Input::Time {
        now_ms: 5_000 + TIMEOUT_MS - 1,
    });
    assert!(early.is_empty());
    let effects = solo.step(Input::Time {
        now_ms: 5_000 + TIMEOUT_MS,
    });
    let reason = "timed out after 10000 ms: it waits for markers on p3→p2, p2→p3";
    assert_eq!(declined(&effects), Some((s(1), reason)));
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Forget(id) if *id == s(1)))
    );
    assert!(solo.open_recordings().is_empty());
    let late = solo.arrived("p3→p2", marker(1, 1, 0));
    assert!(
        late.is_empty() && solo.take_all().is_empty(),
        "it is not opened again"
    );
}

#[test]
fn a_part_that_does_not_reach_the_disk_in_time_is_declined_too() {
    let mut solo = bench();
    solo.trigger(1);
    write_both(&mut solo);
    solo.arrived("p1→p2", marker(1, 1, 0));
    let whole = solo.arrived("p3→p2", marker(1, 1, 0));
    let part = on_disk(stored(&whole).unwrap());
    let effects = solo.step(Input::Time { now_ms: TIMEOUT_MS });
    let reason = "timed out after 10000 ms: its part is not on disk";
    assert_eq!(declined(&effects), Some((s(1), reason)));
    let late = solo.step(Input::Stored(s(1), Ok(part)));
    assert!(late.is_empty(), "and does not count any more: {late:?}");
}

#[test]
fn a_part_on_disk_waits_for_the_collector_as_long_as_it_takes() {
    let mut solo = bench();
    solo.trigger(1);
    write_both(&mut solo);
    solo.arrived("p1→p2", marker(1, 1, 0));
    let whole = solo.arrived("p3→p2", marker(1, 1, 0));
    solo.step(Input::Stored(s(1), Ok(on_disk(stored(&whole).unwrap()))));
    assert!(solo.step(Input::Time { now_ms: 99_999 }).is_empty());
    assert_eq!(solo.open_recordings(), [s(1)]);
}

#[test]
fn a_part_that_cannot_be_written_is_declined_with_the_reason() {
    let mut solo = bench();
    solo.trigger(1);
    write_both(&mut solo);
    solo.arrived("p1→p2", marker(1, 1, 0));
    solo.arrived("p3→p2", marker(1, 1, 0));
    let effects = solo.step(Input::Stored(s(1), Err("disk full".to_owned())));
    assert_eq!(declined(&effects), Some((s(1), "disk full")));
    assert!(solo.open_recordings().is_empty());
}

#[test]
fn a_recording_over_its_bound_is_declined_and_the_largest_channel_is_named() {
    let limits = Limits {
        recording_bytes_max: 100,
        ..Limits::default()
    };
    let mut solo = bench_with(limits);
    solo.trigger(1);
    assert!(solo.arrived("p3→p2", batch(1, &[30])).is_empty());
    assert!(solo.arrived("p1→p2", batch(1, &[9])).is_empty());
    solo.take_all();
    let effects = solo.arrived("p3→p2", batch(2, &[60]));
    let reason = "the recording is over recording_bytes_max = 100, most of it from p3→p2";
    assert_eq!(declined(&effects), Some((s(1), reason)));
    assert!(solo.open_recordings().is_empty());
    // What is already in the inboxes when the state is taken counts as well.
    solo.arrived("p1→p2", batch(2, &[97]));
    let effects = solo.trigger(2);
    let reason = "the recording is over recording_bytes_max = 100, most of it from p1→p2";
    assert_eq!(declined(&effects), Some((s(2), reason)));
    assert!(!captured(&effects));
    solo.take_all();
    assert!(captured(&solo.trigger(3)), "the next one fits");
}

#[test]
fn what_comes_behind_the_marker_does_not_count_against_the_bound() {
    let limits = Limits {
        recording_bytes_max: 20,
        ..Limits::default()
    };
    let mut solo = bench_with(limits);
    solo.trigger(1);
    solo.arrived("p1→p2", marker(1, 1, 0));
    assert!(solo.arrived("p1→p2", batch(1, &[90])).is_empty());
    assert_eq!(solo.open_recordings(), [s(1)]);
}

#[test]
fn an_aborted_recording_is_forgotten_and_the_next_snapshot_is_taken_as_if_it_had_not_been() {
    let mut solo = bench();
    solo.trigger(1);
    solo.arrived("p1→p2", batch(1, &[9]));
    let effects = solo.told(
        T1,
        Order::Ended {
            snapshot: s(1),
            complete: false,
            low: s(1),
        },
    );
    assert!(matches!(effects.as_slice(), [Effect::Forget(id)] if *id == s(1)));
    solo.take_all();
    solo.trigger(2);
    let (frames, _) = solo.write_all("p2→p1");
    assert_eq!(frames, [marker(1, 1, 0), marker(2, 2, 0)]);
    solo.write_all("p2→p3");
    let frames: [(&str, Frame); 4] = [
        ("p1→p2", marker(1, 1, 1)),
        ("p3→p2", marker(1, 1, 0)),
        ("p1→p2", marker(2, 2, 1)),
        ("p3→p2", marker(2, 2, 0)),
    ];
    let mut effects = Vec::new();
    for (on, frame) in frames {
        effects.extend(solo.step(Input::Arrived(ch(on), G1, frame)));
    }
    let expected = [
        ("p1→p2".to_owned(), 1, vec![]),
        ("p3→p2".to_owned(), 0, vec![]),
    ];
    assert_eq!(shares(&effects), expected);
}

#[test]
fn a_peer_that_opens_snapshots_without_end_is_bounded() {
    let mut solo = bench();
    for snapshot in 1..=64 {
        assert!(captured(&solo.trigger(snapshot)));
    }
    let effects = solo.trigger(65);
    let reason = "64 snapshots are being recorded already";
    assert_eq!(declined(&effects), Some((s(65), reason)));
    assert!(!captured(&effects));
}
