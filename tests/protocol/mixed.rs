//! Snapshots of several modes at the collector: which may be open at once, which ends which, and
//! what is refused.

use std::collections::BTreeSet;

use cutline::protocol::collector::{Announcement, Policy, Request};
use cutline::protocol::events::Order;
use cutline::protocol::mode::{MODES, Mode, Taking};

use crate::desk::{Desk, abort_reason};
use crate::solo::s;
use crate::store::Store;
use crate::worlds::{p, policy};

/// A snapshot from these, or by default, in this mode.
fn by(mode: Mode, initiators: &[u32]) -> Request {
    Request::Snapshot {
        initiators: initiators.iter().map(|&number| p(number)).collect(),
        mode: Some(mode),
        alignment_timeout_ms: None,
    }
}

fn job_by(mode: Mode) -> Policy {
    Policy { mode, ..policy() }
}

/// How everyone who was triggered last was told to take the snapshot.
fn takings(desk: &Desk) -> Vec<Taking> {
    let orders = desk.orders(|order| matches!(order, Order::Trigger(..)));
    let taking = |(_, order)| match order {
        Order::Trigger(_, taking) => Some(taking),
        _ => None,
    };
    orders.into_iter().filter_map(taking).collect()
}

#[test]
fn a_snapshot_is_taken_by_the_jobs_mode_unless_it_names_another() {
    let mut store = Store::default();
    let own = Policy {
        alignment_timeout_ms: Some(500),
        ..job_by(Mode::Aligned)
    };
    let mut desk = Desk::running(2, own, &mut store);
    desk.ask(Request::snapshot(BTreeSet::new()));
    desk.settle(&mut store);
    desk.ask(by(Mode::Unaligned, &[]));
    desk.settle(&mut store);
    desk.ask(Request::Snapshot {
        initiators: BTreeSet::new(),
        mode: None,
        alignment_timeout_ms: Some(20),
    });
    desk.settle(&mut store);
    let aligned = |limit_ms| Taking::new(Mode::Aligned, Some(limit_ms));
    let expected = [aligned(500), Mode::Unaligned.into(), aligned(20)];
    assert_eq!(takings(&desk), expected);
    let modes: Vec<_> = store.begun.values().map(|begun| begun.mode).collect();
    assert_eq!(modes, [Mode::Aligned, Mode::Unaligned, Mode::Aligned]);
}

#[test]
fn a_limit_for_a_mode_that_has_none_is_refused() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    let asker = desk.ask(Request::Snapshot {
        initiators: BTreeSet::new(),
        mode: None,
        alignment_timeout_ms: Some(20),
    });
    let answer = desk.answer(asker).cloned().expect("an answer at once");
    assert!(
        answer
            .unwrap_err()
            .contains("classic snapshots have no alignment timeout")
    );
}

#[test]
fn who_must_initiate_an_aligned_snapshot_and_does_not_is_named() {
    let mut store = Store::default();
    let mut desk = Desk::running(3, policy(), &mut store);
    for mode in MODES {
        // The ring is found to lead back from p3 to p1.
        let asker = desk.ask(by(mode, &[2]));
        desk.settle(&mut store);
        match mode {
            Mode::Aligned | Mode::AtLeastOnce => {
                let why = format!("{mode} snapshots wait for no input of p1: let p1 initiate too");
                assert_eq!(desk.answer(asker), Some(&Err(why)));
            }
            Mode::Classic | Mode::Unaligned => assert!(desk.answer(asker).unwrap().is_ok()),
        }
    }
    let asker = desk.ask(by(Mode::Aligned, &[1, 2]));
    desk.settle(&mut store);
    assert!(desk.answer(asker).unwrap().is_ok(), "more do no harm");
}

#[test]
fn a_newer_snapshot_ends_an_older_one_which_is_no_failure() {
    for (older, newer) in [
        (Mode::Aligned, Mode::Classic),
        (Mode::Classic, Mode::Unaligned),
    ] {
        let mut store = Store::default();
        let strict = Policy {
            failures_tolerated: 0,
            ..policy()
        };
        let mut desk = Desk::running(2, strict, &mut store);
        desk.ask(by(older, &[]));
        desk.settle(&mut store);
        desk.ask(by(newer, &[]));
        desk.settle(&mut store);
        assert_eq!(store.complete(1), Some(false));
        let reason = abort_reason(&store, 1);
        assert!(reason.contains("s2 has begun"), "{reason}");
        assert_eq!(desk.open(), [s(2)]);
        assert!(desk.over.is_none());
        desk.parts(2);
        desk.settle(&mut store);
        assert_eq!(store.complete(2), Some(true));
    }
}

#[test]
fn classic_ones_stay_open_beside_one_another() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    for _ in 0..2 {
        desk.ask(by(Mode::Classic, &[]));
        desk.settle(&mut store);
    }
    assert_eq!(desk.open(), [s(1), s(2)]);
}

#[test]
fn an_older_one_whose_begin_is_only_now_on_record_triggers_nobody() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, job_by(Mode::Aligned), &mut store);
    desk.ask(by(Mode::Aligned, &[]));
    desk.ask(by(Mode::Aligned, &[]));
    desk.settle(&mut store);
    assert_eq!(takings(&desk).len(), 1, "the newer's");
    assert_eq!(store.complete(1), Some(false));
    assert_eq!(desk.open(), [s(2)]);
}

#[test]
fn a_periodic_snapshot_that_does_not_overlap_waits_for_the_one_before() {
    for (mode, open) in [(Mode::Classic, 2), (Mode::Aligned, 1), (Mode::Unaligned, 1)] {
        let mut store = Store::default();
        let periodic = Policy {
            interval_ms: 1_000,
            ..job_by(mode)
        };
        let mut desk = Desk::running(2, periodic, &mut store);
        desk.pass(1_000);
        desk.settle(&mut store);
        desk.pass(1_000);
        assert_eq!(desk.open().len(), open, "{mode}");
    }
}

#[test]
fn going_back_to_an_at_least_once_snapshot_is_warned_of() {
    for (mode, warnings) in [(Mode::AtLeastOnce, 1), (Mode::Unaligned, 0)] {
        let mut store = Store::default();
        let mut desk = Desk::running(2, job_by(mode), &mut store);
        desk.ask(Request::snapshot(BTreeSet::new()));
        desk.settle(&mut store);
        desk.parts(1);
        desk.settle(&mut store);
        desk.ask(Request::Restore(None));
        desk.settle(&mut store);
        let warned = desk.announced.iter().filter(|announcement| {
            matches!(announcement, Announcement::Warned(why) if why.contains("at-least-once"))
        });
        assert_eq!(warned.count(), warnings, "{mode}");
    }
}

#[test]
fn what_a_lost_collector_had_begun_is_ended_as_what_it_was() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.ask(by(Mode::Unaligned, &[]));
    desk.settle(&mut store);
    let mut next = Desk::new(2, policy(), 2);
    next.settle(&mut store);
    assert_eq!(store.manifests[&s(1)].mode, Mode::Unaligned);
}
