//! Alignment at one process: what it waits for, what it holds meanwhile, and what lets go again.

use cutline::protocol::events::Order;
use cutline::protocol::frame::Frame;
use cutline::protocol::link::Limits;
use cutline::protocol::mode::Mode::{self, Aligned, AtLeastOnce, Classic, Unaligned};
use cutline::protocol::{Effect, Input};

use crate::solo::{
    G1, G2, Solo, T1, TIMEOUT_MS, batch, captured, ch, channels_of, declined, expects, marker,
    marker_by, read_back, s, stored, topology,
};

/// p2 joins what p1 and p3 send.
const JOIN: [&str; 3] = ["p1→p2", "p3→p2", "p2→p4"];
/// p2 has an input from p1 and one that leads back from p3.
const LOOP: [&str; 3] = ["p1→p2", "p2→p3", "p3→p2"];

fn bench(channels: &[&str]) -> Solo {
    let topology = topology(4, channels);
    let mut solo = Solo::running(&topology, 2, Limits::default());
    for &channel in topology.channels() {
        if channel.to == solo.process.id() {
            solo.opened(&channel.to_string());
        } else if channel.from == solo.process.id() {
            solo.welcomed(&channel.to_string(), expects(1, 1));
        }
    }
    solo
}

fn take(solo: &mut Solo, on: &str) -> Vec<Effect> {
    solo.step(Input::Take(ch(on), 1))
}

/// A marker comes and is taken.
fn marked(
    solo: &mut Solo,
    on: &str,
    mode: Mode,
    (snapshot, ordinal): (u64, u64),
    after: u64,
) -> Vec<Effect> {
    let mut effects = solo.arrived(on, marker_by(mode, snapshot, ordinal, after, after));
    effects.extend(solo.take_all());
    effects
}

fn ended(snapshot: u64) -> Order {
    Order::Ended {
        snapshot: s(snapshot),
        complete: false,
        low: s(snapshot),
    }
}

#[test]
fn an_aligned_process_records_when_every_marker_is_at_the_head_of_its_inbox() {
    let mut solo = bench(&JOIN);
    assert!(!captured(&marked(&mut solo, "p1→p2", Aligned, (1, 1), 0)));
    solo.arrived("p3→p2", batch(1, &[9]));
    assert!(!captured(
        &solo.arrived("p3→p2", marker_by(Aligned, 1, 1, 1, 1))
    ));
    assert!(
        !captured(&take(&mut solo, "p3→p2")),
        "the message comes first"
    );
    assert!(captured(&take(&mut solo, "p3→p2")));
}

#[test]
fn a_classic_one_records_when_the_first_is() {
    let mut solo = bench(&JOIN);
    assert!(captured(&marked(&mut solo, "p1→p2", Classic, (1, 1), 0)));
}

#[test]
fn a_channel_is_held_from_its_marker_until_the_state_is_taken() {
    let mut solo = bench(&JOIN);
    marked(&mut solo, "p1→p2", Aligned, (1, 1), 0);
    solo.arrived("p1→p2", batch(1, &[9, 9]));
    assert_eq!(solo.held(), ["p1→p2"]);
    assert_eq!(
        solo.process.takable().count(),
        0,
        "a driver is offered nothing"
    );
    take(&mut solo, "p1→p2");
    assert_eq!(solo.handled("p1→p2"), 0, "and is given nothing");
    marked(&mut solo, "p3→p2", Aligned, (1, 1), 0);
    assert!(solo.held().is_empty());
    assert_eq!(solo.handled("p1→p2"), 2);
}

#[test]
fn a_take_of_many_messages_stops_at_the_marker_of_a_channel_that_is_held_then() {
    let mut solo = bench(&JOIN);
    solo.arrived("p1→p2", batch(1, &[9]));
    solo.arrived("p1→p2", marker_by(Aligned, 1, 1, 1, 1));
    solo.arrived("p1→p2", batch(2, &[9]));
    solo.step(Input::Take(ch("p1→p2"), 100));
    assert_eq!(solo.handled("p1→p2"), 1);
}

#[test]
fn the_other_channels_are_read_on_meanwhile() {
    let mut solo = bench(&JOIN);
    marked(&mut solo, "p1→p2", Aligned, (1, 1), 0);
    solo.arrived("p3→p2", batch(1, &[9]));
    solo.take_all();
    assert_eq!(solo.handled("p3→p2"), 1);
}

#[test]
fn aligned_channels_are_empty_and_count_up_to_their_markers() {
    let mut solo = bench(&JOIN);
    solo.arrived("p1→p2", batch(1, &[9, 9]));
    marked(&mut solo, "p1→p2", Aligned, (1, 1), 2);
    solo.arrived("p1→p2", batch(3, &[9]));
    solo.send("p2→p4", 9);
    marked(&mut solo, "p3→p2", Aligned, (1, 1), 0);
    let (_, effects) = solo.write_all("p2→p4");
    let channels = channels_of(stored(&effects).expect("a part"));
    let expected = [
        ("p1→p2".to_owned(), 2, 2, vec![]),
        ("p3→p2".to_owned(), 0, 0, vec![]),
        ("p2→p4".to_owned(), 1, 1, vec![]),
    ];
    assert_eq!(channels, expected);
}

#[test]
fn at_least_once_waits_but_holds_nothing_and_records_no_channel() {
    let mut solo = bench(&JOIN);
    assert!(!captured(&marked(
        &mut solo,
        "p1→p2",
        AtLeastOnce,
        (1, 1),
        0
    )));
    solo.arrived("p1→p2", batch(1, &[9]));
    assert!(solo.held().is_empty());
    solo.take_all();
    assert_eq!(solo.handled("p1→p2"), 1);
    assert!(captured(&marked(
        &mut solo,
        "p3→p2",
        AtLeastOnce,
        (1, 1),
        0
    )));
    let (_, effects) = solo.write_all("p2→p4");
    let part = stored(&effects).expect("a part");
    let one = ("p1→p2".to_owned(), 1, 0, vec![]);
    assert_eq!(channels_of(part)[0], one, "more was handled than was sent");
}

#[test]
fn a_back_edge_is_not_waited_for_and_what_comes_on_it_is_logged() {
    let mut solo = bench(&LOOP);
    solo.arrived("p3→p2", batch(1, &[9]));
    assert!(captured(&marked(&mut solo, "p1→p2", Aligned, (1, 1), 0)));
    solo.write_all("p2→p3");
    solo.arrived("p3→p2", batch(2, &[9]));
    let effects = solo.arrived("p3→p2", marker_by(Aligned, 1, 1, 2, 2));
    let channels = channels_of(stored(&effects).expect("a part"));
    assert_eq!(channels[1], ("p3→p2".to_owned(), 0, 2, vec![1, 2]));
}

#[test]
fn at_least_once_logs_no_back_edge_either() {
    let mut solo = bench(&LOOP);
    solo.arrived("p3→p2", batch(1, &[9]));
    solo.arrived("p1→p2", marker_by(AtLeastOnce, 1, 1, 0, 0));
    assert!(captured(&take(&mut solo, "p1→p2")));
    solo.write_all("p2→p3");
    let effects = solo.arrived("p3→p2", marker_by(AtLeastOnce, 1, 1, 1, 1));
    let channels = channels_of(stored(&effects).expect("a part"));
    assert_eq!(channels[1], ("p3→p2".to_owned(), 0, 1, vec![]));
}

#[test]
fn a_back_edge_whose_marker_comes_first_is_held_as_well() {
    let mut solo = bench(&LOOP);
    assert!(!captured(&marked(&mut solo, "p3→p2", Aligned, (1, 1), 0)));
    solo.arrived("p3→p2", batch(1, &[9]));
    solo.take_all();
    assert_eq!(solo.handled("p3→p2"), 0);
    assert!(captured(&marked(&mut solo, "p1→p2", Aligned, (1, 1), 0)));
    assert_eq!(solo.handled("p3→p2"), 1);
}

#[test]
fn a_process_with_no_input_but_back_edges_records_on_the_trigger() {
    let ring = topology(2, &["p1→p2", "p2→p1"]);
    let mut solo = Solo::running(&ring, 1, Limits::default());
    assert!(captured(&solo.trigger_by(Aligned, 1)));
    let mut alone = Solo::running(&topology(4, &JOIN), 1, Limits::default());
    assert!(captured(&alone.trigger_by(AtLeastOnce, 1)));
}

#[test]
fn an_initiator_with_other_inputs_waits_for_their_markers_all_the_same() {
    let mut solo = bench(&JOIN);
    assert!(!captured(&solo.trigger_by(Aligned, 1)));
    marked(&mut solo, "p1→p2", Aligned, (1, 1), 0);
    assert!(captured(&marked(&mut solo, "p3→p2", Aligned, (1, 1), 0)));
    assert!(captured(&solo.trigger_by(Unaligned, 2)), "others do not");
}

#[test]
fn an_abort_releases_what_its_snapshot_held() {
    let mut solo = bench(&JOIN);
    marked(&mut solo, "p1→p2", Aligned, (1, 1), 0);
    solo.arrived("p1→p2", batch(1, &[9]));
    let effects = solo.told(T1, ended(1));
    assert!(effects.is_empty(), "nothing was captured: {effects:?}");
    solo.take_all();
    assert_eq!(solo.handled("p1→p2"), 1);
}

#[test]
fn the_abort_of_another_releases_nothing() {
    let mut solo = bench(&JOIN);
    marked(&mut solo, "p1→p2", Aligned, (2, 1), 0);
    solo.told(T1, ended(1));
    assert_eq!(solo.held(), ["p1→p2"]);
}

#[test]
fn a_node_releases_a_channel_by_its_own_clock_if_no_abort_ever_comes() {
    let mut solo = bench(&JOIN);
    solo.time(5);
    marked(&mut solo, "p1→p2", Aligned, (1, 1), 0);
    assert!(solo.time(4 + TIMEOUT_MS).is_empty());
    assert_eq!(solo.held(), ["p1→p2"]);
    let effects = solo.time(5 + TIMEOUT_MS);
    let reason = "timed out after 10000 ms: it waits for markers on p3→p2";
    assert_eq!(declined(&effects), Some((s(1), reason)));
    assert!(solo.held().is_empty());
}

#[test]
fn the_marker_of_a_snapshot_that_has_ended_is_not_sent_on_and_holds_nothing() {
    let mut solo = bench(&JOIN);
    solo.told(T1, ended(1));
    assert!(marked(&mut solo, "p1→p2", Aligned, (1, 1), 0).is_empty());
    solo.arrived("p1→p2", batch(1, &[9]));
    solo.take_all();
    assert_eq!(solo.handled("p1→p2"), 1);
    assert!(solo.write_all("p2→p4").0.is_empty());
}

#[test]
fn a_newer_snapshot_ends_the_older_without_a_word_and_takes_over() {
    for (older, newer) in [
        (Aligned, Aligned),
        (Aligned, Classic),
        (Classic, Unaligned),
        (Unaligned, AtLeastOnce),
    ] {
        let mut solo = bench(&JOIN);
        marked(&mut solo, "p1→p2", older, (1, 1), 0);
        let effects = marked(&mut solo, "p1→p2", newer, (2, 2), 0);
        assert_eq!(declined(&effects), None);
        assert_eq!(solo.open_recordings(), [s(2)], "{older} and {newer}");
        // What is left of the older on another channel changes nothing.
        assert!(marked(&mut solo, "p3→p2", older, (1, 1), 0).is_empty());
        marked(&mut solo, "p3→p2", newer, (2, 2), 0);
        let (_, effects) = solo.write_all("p2→p4");
        let part = stored(&effects).expect("the newer's part");
        assert_eq!(part.snapshot, s(2));
    }
}

#[test]
fn classic_ones_end_nothing() {
    let mut solo = bench(&JOIN);
    marked(&mut solo, "p1→p2", Classic, (1, 1), 0);
    marked(&mut solo, "p1→p2", Classic, (2, 2), 0);
    assert_eq!(solo.open_recordings(), [s(1), s(2)]);
}

#[test]
fn an_older_marker_that_comes_after_the_newer_one_was_complete_opens_nothing() {
    let mut late = bench(&JOIN);
    marked(&mut late, "p1→p2", Aligned, (2, 1), 0);
    let notice = Order::Ended {
        snapshot: s(2),
        complete: true,
        low: s(0),
    };
    late.told(T1, notice);
    assert!(marked(&mut late, "p3→p2", Aligned, (1, 1), 0).is_empty());
    assert!(late.open_recordings().is_empty());
}

#[test]
fn nothing_counts_before_everyone_runs() {
    for mode in [Classic, Unaligned, Aligned] {
        let mut solo = Solo::new(&topology(4, &JOIN), 2, Limits::default());
        solo.told(T1, Order::Prepare(G1, s(0)));
        for input in ["p1→p2", "p3→p2"] {
            solo.opened(input);
            let effects = solo.arrived(input, marker_by(mode, 1, 1, 0, 0));
            assert!(effects.is_empty(), "{mode}: {effects:?}");
        }
        let mut effects = solo.told(T1, Order::Run(G1));
        effects.extend(solo.take_all());
        assert!(captured(&effects), "{mode}");
    }
}

#[test]
fn from_an_at_least_once_snapshot_a_channel_goes_on_where_its_sender_does() {
    let graph = topology(4, &JOIN);
    let part = |mode: Mode| {
        let mut restored = read_back(&graph, 2, 1);
        restored.part.mode = mode;
        restored.part.inputs[0].handled = cutline::protocol::ids::MessageNumber::new(5);
        restored.part.inputs[0].after = cutline::protocol::ids::MessageNumber::new(3);
        restored
    };
    let loaded = |mode: Mode| {
        let mut solo = Solo::new(&graph, 2, Limits::default());
        solo.told(T1, Order::Prepare(G2, s(1)));
        let effects = solo.step(Input::Loaded(G2, Ok(part(mode))));
        (solo, format!("{effects:?}"))
    };
    let (solo, effects) = loaded(AtLeastOnce);
    assert!(effects.contains("Ready"), "{effects}");
    let (_, handled) = solo.process.positions().next().unwrap();
    assert_eq!(handled.get(), 3);
    let (_, effects) = loaded(Classic);
    assert!(
        effects.contains("gaps"),
        "any other that says so is torn: {effects}"
    );
}

#[test]
fn markers_pass_a_process_that_takes_no_messages() {
    let limits = Limits {
        outbox_bytes: 8,
        ..Limits::default()
    };
    for mode in [Classic, Aligned, AtLeastOnce] {
        let mut solo = Solo::running(&topology(4, &JOIN), 2, limits);
        solo.opened("p1→p2");
        solo.opened("p3→p2");
        solo.send("p2→p4", 30);
        solo.arrived("p1→p2", marker_by(mode, 1, 1, 0, 0));
        solo.arrived("p1→p2", batch(1, &[9]));
        solo.arrived("p3→p2", marker_by(mode, 1, 1, 0, 0));
        assert!(captured(&solo.take_all()), "{mode}");
        assert_eq!(solo.handled("p1→p2"), 0, "its outbox is full");
    }
    let mut solo = Solo::running(&topology(4, &JOIN), 2, limits);
    solo.opened("p1→p2");
    solo.send("p2→p4", 30);
    solo.arrived("p1→p2", batch(1, &[9]));
    assert!(!captured(&solo.arrived("p1→p2", marker(1, 1, 1))));
    let effects = solo.arrived("p1→p2", marker_by(Unaligned, 2, 2, 1, 1));
    assert!(
        captured(&effects),
        "an unaligned one passes messages that wait, too"
    );
}

#[test]
fn what_is_put_on_every_output_is_the_snapshots_own_marker() {
    let mut solo = bench(&JOIN);
    solo.send("p2→p4", 9);
    marked(&mut solo, "p1→p2", Aligned, (1, 1), 0);
    marked(&mut solo, "p3→p2", Aligned, (1, 1), 0);
    let (frames, _) = solo.write_all("p2→p4");
    assert_eq!(frames[1], marker_by(Aligned, 1, 1, 1, 1));
    assert!(
        matches!(frames[0], Frame::Messages(_)),
        "aligned, it keeps its place"
    );
}
