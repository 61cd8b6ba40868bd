//! The limit T of an aligned snapshot: when it strikes, where, and what it changes.

use cutline::protocol::events::Order;
use cutline::protocol::frame::{Frame, Marker};
use cutline::protocol::link::Limits;
use cutline::protocol::mode::{Mode, Taking};
use cutline::protocol::{Effect, Input};

use crate::solo::{
    Solo, T1, batch, captured, ch, channels_of, expects, marker_by, s, stored, topology, used,
};

const JOIN: [&str; 3] = ["p1→p2", "p3→p2", "p2→p4"];

fn within(limit_ms: u64) -> Taking {
    Taking::new(Mode::Aligned, Some(limit_ms))
}

/// p2, at a time that is not the beginning.
fn bench() -> Solo {
    let mut solo = Solo::running(&topology(4, &JOIN), 2, Limits::default());
    solo.time(1_000);
    solo.opened("p1→p2");
    solo.opened("p3→p2");
    solo.welcomed("p2→p4", expects(1, 1));
    solo
}

fn written(frames: &[Frame]) -> Marker {
    let marker = frames.iter().find_map(|frame| match frame {
        Frame::Marker(marker) => Some(*marker),
        Frame::Messages(_) => None,
    });
    marker.expect("a marker")
}

#[test]
fn t_strikes_just_when_it_is_used_up_and_releases_what_was_held() {
    let mut solo = bench();
    solo.arrived("p1→p2", marker_by(within(100), 1, 1, 0, 0));
    solo.arrived("p1→p2", batch(1, &[9]));
    solo.take_all();
    assert!(solo.time(1_099).is_empty());
    assert_eq!(solo.held(), ["p1→p2"]);
    assert!(captured(&solo.time(1_100)));
    assert!(solo.held().is_empty());
    solo.take_all();
    assert_eq!(solo.handled("p1→p2"), 1);
}

#[test]
fn without_a_limit_an_alignment_lasts() {
    let mut solo = bench();
    solo.arrived("p1→p2", marker_by(Mode::Aligned, 1, 1, 0, 0));
    solo.take_all();
    assert!(solo.time(9_000).is_empty());
    assert_eq!(solo.process.strikes_ms(), None);
}

#[test]
fn t_runs_from_the_first_marker_off_the_wire_wherever_that_stands() {
    let mut solo = bench();
    solo.arrived("p1→p2", batch(1, &[9]));
    solo.arrived("p1→p2", marker_by(within(100), 1, 1, 1, 1));
    solo.arrived("p3→p2", batch(1, &[9]));
    assert_eq!(solo.process.strikes_ms(), Some(1_100));
    // Nothing is taken and nothing more comes: its own clock is enough.
    assert!(captured(&solo.time(1_100)));
    solo.write_all("p2→p4");
    let effects = solo.arrived("p3→p2", marker_by(within(100), 1, 1, 1, 1));
    let channels = channels_of(stored(&effects).expect("a part"));
    assert_eq!(channels[0], ("p1→p2".to_owned(), 0, 1, vec![1]));
    assert_eq!(channels[1], ("p3→p2".to_owned(), 0, 1, vec![1]));
}

#[test]
fn the_time_used_upstream_counts() {
    let mut solo = bench();
    solo.arrived("p1→p2", used(70, marker_by(within(100), 1, 1, 0, 0)));
    assert!(!captured(&solo.time(1_029)));
    assert!(captured(&solo.time(1_030)));
}

#[test]
fn of_several_markers_the_one_that_has_used_most_is_believed() {
    let mut solo = bench();
    solo.arrived("p1→p2", batch(1, &[9]));
    solo.arrived("p1→p2", used(70, marker_by(within(100), 1, 1, 1, 1)));
    solo.time(1_010);
    solo.arrived("p3→p2", batch(1, &[9]));
    solo.arrived("p3→p2", used(30, marker_by(within(100), 1, 1, 1, 1)));
    assert_eq!(solo.process.strikes_ms(), Some(1_030));
}

#[test]
fn each_hop_adds_its_own_time_up_to_the_moment_its_marker_is_written() {
    let mut solo = bench();
    solo.arrived("p1→p2", used(10, marker_by(within(100), 1, 1, 0, 0)));
    solo.time(1_020);
    solo.arrived("p3→p2", used(5, marker_by(within(100), 1, 1, 0, 0)));
    assert!(captured(&solo.take_all()));
    solo.time(1_050);
    let (frames, _) = solo.write_all("p2→p4");
    assert_eq!(written(&frames).used_ms, 60);
}

#[test]
fn an_overtaking_marker_strikes_t_at_its_receiver() {
    let mut solo = bench();
    solo.arrived("p1→p2", batch(1, &[9]));
    let struck = used(100, marker_by(within(100), 1, 1, 1, 3));
    assert!(captured(&solo.arrived("p1→p2", struck)));
    let (frames, _) = solo.write_all("p2→p4");
    assert_eq!(written(&frames).used_ms, 100, "and at that one's");
}

#[test]
fn a_marker_that_waits_in_an_outbox_becomes_an_overtaking_one() {
    let mut solo = bench();
    solo.send("p2→p4", 9);
    solo.arrived("p1→p2", marker_by(within(100), 1, 1, 0, 0));
    solo.arrived("p3→p2", marker_by(within(100), 1, 1, 0, 0));
    assert!(captured(&solo.take_all()));
    solo.send("p2→p4", 10);
    assert!(solo.time(1_100).is_empty(), "what was recorded stays");
    let (frames, effects) = solo.write_all("p2→p4");
    let marker = used(100, marker_by(within(100), 1, 1, 0, 1));
    assert_eq!(frames, [marker, batch(1, &[9]), batch(2, &[10])]);
    let channels = channels_of(stored(&effects).expect("a part"));
    assert_eq!(channels[2], ("p2→p4".to_owned(), 1, 0, vec![1]));
}

#[test]
fn a_marker_that_was_on_the_wire_keeps_its_place_though_t_strikes() {
    let mut solo = bench();
    solo.send("p2→p4", 9);
    solo.arrived("p1→p2", marker_by(within(100), 1, 1, 0, 0));
    solo.arrived("p3→p2", marker_by(within(100), 1, 1, 0, 0));
    solo.take_all();
    let (before, effects) = solo.write_all("p2→p4");
    let channels = channels_of(stored(&effects).expect("a part"));
    assert_eq!(channels[2], ("p2→p4".to_owned(), 1, 1, vec![]));
    solo.step(Input::Broken(ch("p2→p4")));
    solo.welcomed("p2→p4", expects(1, 1));
    solo.time(1_100);
    let (again, _) = solo.write_all("p2→p4");
    assert_eq!(again[0], before[0]);
    assert_eq!((again.len(), written(&again).after.get()), (2, 1));
}

#[test]
fn a_limit_of_nothing_is_unaligned_from_the_start() {
    let line = topology(4, &JOIN);
    let mut solo = Solo::running(&line, 1, Limits::default());
    solo.welcomed("p1→p2", expects(1, 1));
    solo.send("p1→p2", 9);
    assert!(captured(&solo.trigger_by(within(0), 1)));
    let (frames, _) = solo.write_all("p1→p2");
    assert_eq!(frames[0], marker_by(within(0), 1, 1, 0, 1));
}

#[test]
fn the_longest_limit_never_strikes_and_overflows_nothing() {
    let mut solo = bench();
    solo.arrived("p1→p2", used(7, marker_by(within(u64::MAX), 1, 1, 0, 0)));
    solo.arrived("p3→p2", marker_by(within(u64::MAX), 1, 1, 0, 0));
    assert!(captured(&solo.take_all()));
    solo.time(1_100);
    let (frames, _) = solo.write_all("p2→p4");
    assert!(written(&frames).used_ms < u64::MAX);
}

#[test]
fn the_time_of_the_next_snapshot_begins_with_its_own_first_marker() {
    let mut solo = bench();
    solo.arrived("p1→p2", marker_by(within(100), 1, 1, 0, 0));
    solo.take_all();
    solo.time(1_090);
    let ended = Order::Ended {
        snapshot: s(1),
        complete: false,
        low: s(1),
    };
    solo.told(T1, ended);
    assert_eq!(solo.process.strikes_ms(), None);
    solo.arrived("p1→p2", marker_by(within(100), 2, 2, 0, 0));
    assert_eq!(solo.process.strikes_ms(), Some(1_190));
}

#[test]
fn a_message_is_recorded_once_though_t_strikes_while_it_is_handled_in_parts() {
    let mut solo = bench();
    solo.arrived("p3→p2", batch(1, &[9, 9, 9]));
    solo.arrived("p1→p2", marker_by(within(100), 1, 1, 0, 0));
    solo.step(Input::Take(ch("p3→p2"), 2));
    solo.step(Input::Take(ch("p1→p2"), 1));
    let effects: Vec<Effect> = solo.time(1_100);
    assert!(captured(&effects));
    solo.write_all("p2→p4");
    solo.take_all();
    let effects = solo.arrived("p3→p2", marker_by(within(100), 1, 1, 3, 3));
    let channels = channels_of(stored(&effects).expect("a part"));
    assert_eq!(channels[1], ("p3→p2".to_owned(), 2, 3, vec![3]));
}
