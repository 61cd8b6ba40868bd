//! What a process is told of snapshots that have ended: they end here too, and no late marker
//! opens one again.

use cutline::protocol::events::{Order, Report};
use cutline::protocol::{Effect, Input};

use crate::fencing::{IN, OUT, running};
use crate::solo::{G1, Solo, T1, T2, captured, marker, on_disk, s, standing, stored};

#[test]
fn a_welcome_ends_the_recordings_it_does_not_name() {
    let mut solo = running();
    solo.trigger(1);
    solo.trigger(2);
    solo.trigger(3);
    assert_eq!(solo.open_recordings(), [s(1), s(2), s(3)]);
    let effects = solo.told(T2, standing(G1, 1, &[3]));
    let forgotten = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Forget(_)));
    assert_eq!(forgotten.count(), 2);
    assert_eq!(solo.open_recordings(), [s(3)]);
    let (frames, effects) = solo.write_all(OUT);
    assert_eq!(frames.len(), 3, "markers keep their ordinals, ended or not");
    assert!(stored(&effects).is_none());
    assert!(
        solo.arrived(IN, marker(2, 1, 0)).is_empty(),
        "a late marker closes nothing"
    );
    assert!(stored(&solo.arrived(IN, marker(3, 2, 0))).is_some());
}

#[test]
fn a_welcome_does_not_end_what_has_begun_since_it_was_said() {
    let mut solo = running();
    // The marker of s2, which another process was told of, was faster than the welcome.
    solo.arrived(IN, marker(2, 1, 0));
    assert!(captured(&solo.take_all()));
    solo.told(T1, standing(G1, 1, &[]));
    assert_eq!(solo.open_recordings(), [s(2)]);
    solo.write_all(OUT);
    solo.told(T1, standing(G1, 2, &[]));
    assert!(solo.open_recordings().is_empty());
}

#[test]
fn a_welcome_is_told_again_what_is_on_disk() {
    let mut solo = running();
    solo.trigger(1);
    solo.write_all(OUT);
    let effects = solo.arrived(IN, marker(1, 1, 0));
    let part = on_disk(stored(&effects).unwrap());
    let before = solo.told(T1, standing(G1, 0, &[1]));
    assert!(before.is_empty(), "it is not on disk yet: {before:?}");
    solo.step(Input::Stored(s(1), Ok(part)));
    let effects = solo.told(T2, standing(G1, 0, &[1]));
    let [
        Effect::Report(Report::Stored {
            snapshot,
            generation,
            ..
        }),
    ] = effects.as_slice()
    else {
        panic!("{effects:?}");
    };
    assert_eq!((*snapshot, *generation), (s(1), G1));
}

/// Late markers of s2, of the ids below the low watermark, and of one that has not ended.
fn late_markers_are_ignored(mut solo: Solo, ended: &[u64], open: u64) {
    for (ordinal, &snapshot) in (1..).zip(ended) {
        solo.arrived(IN, marker(snapshot, ordinal, 0));
        let effects = solo.take_all();
        assert!(
            effects.is_empty(),
            "s{snapshot} is not opened again: {effects:?}"
        );
        let (frames, _) = solo.write_all(OUT);
        assert!(frames.is_empty(), "nor forwarded: {frames:?}");
        assert!(solo.trigger(snapshot).is_empty(), "nor triggered");
    }
    solo.arrived(IN, marker(open, ended.len() as u64 + 1, 0));
    assert!(captured(&solo.take_all()), "s{open} has not ended");
}

#[test]
fn a_late_marker_of_an_ended_snapshot_neither_opens_it_again_nor_is_forwarded() {
    let ended = |snapshot, low| Order::Ended {
        snapshot: s(snapshot),
        complete: false,
        low: s(low),
    };
    let mut solo = running();
    solo.told(T1, ended(2, 0));
    late_markers_are_ignored(solo, &[2], 1);
    let mut solo = running();
    solo.told(T1, ended(2, 0));
    solo.told(T1, ended(5, 4));
    late_markers_are_ignored(solo, &[2, 1, 3, 4, 5], 6);
    let mut solo = running();
    solo.told(T1, standing(G1, 4, &[6]));
    late_markers_are_ignored(solo, &[3, 4], 5);
    let mut solo = running();
    solo.told(T1, ended(5, 4));
    solo.told(T1, standing(G1, 2, &[]));
    late_markers_are_ignored(solo, &[4, 5], 6);
}

#[test]
fn the_low_watermark_ends_what_no_word_came_of() {
    let mut solo = running();
    solo.trigger(1);
    solo.trigger(2);
    let low = Order::Ended {
        snapshot: s(3),
        complete: true,
        low: s(3),
    };
    solo.told(T1, low);
    assert!(solo.open_recordings().is_empty());
}
