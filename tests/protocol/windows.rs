//! When snapshots begin, and under which ids: none is given twice, few are open at once, and the
//! clock asks for no more than it may.

use std::collections::BTreeSet;

use cutline::protocol::collector::{Policy, Request};
use cutline::protocol::events::{Holding, Order};
use cutline::world::Fate;

use crate::desk::{Desk, abort_reason, g, holds};
use crate::solo::s;
use crate::store::Store;
use crate::worlds::{p, policy, snapshot};

/// The low watermark as it was last told.
fn low(desk: &Desk) -> u64 {
    let ended = desk.orders(|order| matches!(order, Order::Ended { .. }));
    let (_, Order::Ended { low, .. }) = ended.last().expect("something has ended") else {
        unreachable!("filtered");
    };
    low.get()
}

#[test]
fn nobody_is_triggered_before_the_begin_record_stands() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.ask(snapshot());
    assert_eq!(desk.triggered(), []);
    desk.settle(&mut store);
    assert_eq!(
        desk.triggered(),
        [p(1)],
        "one process of the one root component"
    );
    assert!(store.begun.contains_key(&s(1)));
}

#[test]
fn the_named_initiators_are_triggered_and_no_others() {
    let mut store = Store::default();
    let mut desk = Desk::running(3, policy(), &mut store);
    desk.ask(Request::snapshot(BTreeSet::from([p(2), p(3)])));
    desk.settle(&mut store);
    assert_eq!(desk.triggered(), [p(2), p(3)]);
}

#[test]
fn there_is_no_manifest_before_every_part_is_in() {
    let mut store = Store::default();
    let mut desk = Desk::running(3, policy(), &mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    for process in [1, 3, 3, 1] {
        desk.part(process, 1, 1, g(1));
        assert!(desk.pending.is_empty(), "the same part twice is one part");
    }
    desk.part(2, 1, 1, g(1));
    assert!(
        desk.orders(|order| matches!(order, Order::Ended { .. }))
            .is_empty()
    );
    desk.settle(&mut store);
    assert_eq!(store.complete(1), Some(true));
    let parts = store.manifests[&s(1)].clone();
    assert!(
        [1, 2, 3]
            .iter()
            .all(|&process| parts.part_of(p(process)).is_some())
    );
}

#[test]
fn the_window_of_ids_above_the_low_watermark_is_never_wider_than_allowed() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    for _ in 0..5 {
        desk.ask(snapshot());
    }
    desk.settle(&mut store);
    assert_eq!(desk.open(), [s(1), s(2), s(3)], "three may be open");
    desk.parts(2);
    desk.parts(3);
    desk.settle(&mut store);
    assert_eq!(
        desk.open(),
        [s(1)],
        "s2 and s3 are still in the window of s1"
    );
    assert_eq!(low(&desk), 0);
    desk.parts(1);
    desk.settle(&mut store);
    assert_eq!(low(&desk), 3);
    assert_eq!(
        desk.open(),
        [s(4), s(5)],
        "and now the others have their turn"
    );
}

#[test]
fn no_id_is_given_twice_though_it_was_aborted_deleted_or_never_heard_of() {
    let mut store = Store::default();
    let policy = Policy {
        retain: 1,
        ..policy()
    };
    let mut desk = Desk::running(2, policy.clone(), &mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.decline(1, 1, "no room");
    desk.settle(&mut store);
    assert_eq!(desk.complete_one(&mut store), 2);
    assert_eq!(desk.complete_one(&mut store), 3);
    assert_eq!(desk.deleted, [s(1), s(2)]);
    desk.ask(snapshot());
    desk.serve(&mut store, Fate::Unknown);
    drop(desk);
    let mut next = Desk::new(2, policy, 2);
    next.settle(&mut store);
    assert_eq!(store.complete(4), Some(false), "its record stood");
    next.join(1, 1, holds(1));
    next.join(2, 1, holds(1));
    assert_eq!(next.complete_one(&mut store), 5);
}

#[test]
fn an_id_that_another_collector_took_is_ended_and_the_next_is_tried() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    let mut second = Desk::new(2, policy(), 2);
    second.settle(&mut store);
    second.join(1, 1, holds(1));
    second.join(2, 1, holds(1));
    let lost = first.ask(snapshot());
    first.settle(&mut store);
    let asker = second.ask(snapshot());
    second.settle(&mut store);
    assert_eq!(
        abort_reason(&store, 1),
        "its id was taken by another collector"
    );
    assert_eq!(second.open(), [s(2)]);
    use cutline::protocol::collector::Answer;
    assert_eq!(second.answer(asker), Some(&Ok(Answer::Begun(s(2)))));
    assert_eq!(first.answer(lost), Some(&Ok(Answer::Begun(s(1)))));
    assert!(second.failures().is_empty());
}

#[test]
fn what_has_ended_above_the_low_watermark_is_told_to_everyone_who_joins() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    for _ in 0..3 {
        desk.ask(snapshot());
    }
    desk.settle(&mut store);
    desk.decline(2, 2, "no room");
    desk.settle(&mut store);
    desk.parts(3);
    desk.settle(&mut store);
    desk.told.clear();
    desk.gone(1, 1);
    desk.join(1, 1, holds(1));
    let ended = |snapshot, complete| Order::Ended {
        snapshot: s(snapshot),
        complete,
        low: s(0),
    };
    let told = desk.orders(|order| matches!(order, Order::Welcome(_) | Order::Ended { .. }));
    let Order::Welcome(standing) = &told[0].1 else {
        panic!("the welcome comes first: {told:?}");
    };
    assert_eq!(
        (standing.low, standing.open.as_slice()),
        (s(0), [s(1)].as_slice())
    );
    assert_eq!(told[1..], [(p(1), ended(2, false)), (p(1), ended(3, true))]);
}

fn periodic() -> Policy {
    Policy {
        interval_ms: 1_000,
        pause_min_ms: 300,
        open_max: 1,
        ..policy()
    }
}

#[test]
fn a_periodic_snapshot_begins_an_interval_after_the_one_before_began() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, periodic(), &mut store);
    desk.pass(950);
    assert!(desk.open().is_empty());
    desk.pass(50);
    assert_eq!(desk.open(), [s(1)]);
    desk.settle(&mut store);
    desk.pass(200);
    desk.parts(1);
    desk.settle(&mut store);
    desk.pass(750);
    assert!(desk.open().is_empty());
    desk.pass(50);
    assert_eq!(
        desk.open(),
        [s(2)],
        "an interval after the last begin, not its end"
    );
}

#[test]
fn a_periodic_snapshot_begins_no_sooner_than_the_minimum_pause_after_the_last_end() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, periodic(), &mut store);
    desk.pass(1_000);
    desk.settle(&mut store);
    desk.pass(1_500);
    assert_eq!(desk.open(), [s(1)], "one at a time");
    desk.parts(1);
    desk.settle(&mut store);
    desk.pass(250);
    assert!(desk.open().is_empty());
    desk.pass(50);
    assert_eq!(desk.open(), [s(2)]);
}

#[test]
fn the_minimum_pause_follows_an_abort_as_well_and_binds_no_user() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, periodic(), &mut store);
    desk.pass(1_000);
    desk.settle(&mut store);
    desk.pass(1_500);
    desk.decline(1, 1, "no room");
    desk.settle(&mut store);
    desk.pass(250);
    assert!(desk.open().is_empty());
    desk.ask(snapshot());
    assert_eq!(desk.open(), [s(2)]);
}

#[test]
fn without_an_interval_nothing_begins_of_itself() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.pass(60_000);
    assert!(desk.open().is_empty() && store.begun.is_empty());
}

#[test]
fn the_interval_begins_anew_when_the_job_runs_again() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, periodic(), &mut store);
    desk.pass(900);
    desk.told.clear();
    desk.gone(1, 1);
    desk.join(1, 2, Holding::Nothing);
    desk.obey(&mut store);
    desk.pass(900);
    assert!(desk.open().is_empty());
    desk.pass(100);
    assert_eq!(desk.open(), [s(1)]);
}
