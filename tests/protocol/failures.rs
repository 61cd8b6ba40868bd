//! Snapshots that fail: what counts, what does not, and when it ends the job.

use cutline::protocol::collector::{Announcement, Policy};
use cutline::protocol::events::{Holding, Order};
use cutline::protocol::link::Limits;
use cutline::world::{Choice, Fate, Fault, Notice};

use crate::desk::{Desk, Over, abort_reason, g};
use crate::diary::Conduct;
use crate::solo::{TIMEOUT_MS, ch, s};
use crate::store::Store;
use crate::worlds::{
    STEPS_MAX, assert_exact, job, manifest, p, policy, run_without, snapshot, started,
};

fn tolerating(failures_tolerated: u32) -> Policy {
    Policy {
        failures_tolerated,
        ..policy()
    }
}

fn begin(desk: &mut Desk, store: &mut Store) -> u64 {
    desk.ask(snapshot());
    desk.settle(store);
    desk.open().last().expect("it has begun").get()
}

fn failures(desk: &Desk) -> u32 {
    desk.collector.status().failures_in_row
}

#[test]
fn a_snapshot_whose_parts_do_not_come_in_time_is_aborted_and_names_who_is_late() {
    let mut store = Store::default();
    let mut desk = Desk::running(3, tolerating(2), &mut store);
    let id = begin(&mut desk, &mut store);
    desk.part(2, 1, id, g(1));
    desk.pass(TIMEOUT_MS - 50);
    assert_eq!(desk.open(), [s(id)]);
    desk.pass(50);
    desk.settle(&mut store);
    assert_eq!(
        abort_reason(&store, id),
        "no part within 10000 ms from p1, p3"
    );
    assert_eq!(failures(&desk), 1);
    let ends = |announcement: &&Announcement| matches!(announcement, Announcement::Ended(_));
    let told = desk.announced.iter().filter(ends).count();
    assert_eq!((told, desk.failures()), (1, vec![]), "it is told once");
    let ended = Order::Ended {
        snapshot: s(id),
        complete: false,
        low: s(id),
    };
    assert_eq!(
        desk.orders(|order| *order == ended).len(),
        3,
        "everyone is told"
    );
    desk.part(1, 1, id, g(1));
    desk.part(3, 1, id, g(1));
    desk.settle(&mut store);
    assert_eq!(store.complete(id), Some(false), "late parts change nothing");
}

#[test]
fn a_declined_snapshot_is_aborted_and_the_next_one_completes_and_clears_the_count() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, tolerating(1), &mut store);
    let id = begin(&mut desk, &mut store);
    desk.decline(2, id, "disk full");
    desk.decline(1, id, "disk full");
    desk.settle(&mut store);
    assert_eq!(abort_reason(&store, id), "p2: disk full");
    assert_eq!(failures(&desk), 1, "one snapshot is one failure");
    desk.complete_one(&mut store);
    assert_eq!(failures(&desk), 0);
    let id = begin(&mut desk, &mut store);
    desk.decline(2, id, "disk full");
    desk.settle(&mut store);
    assert_eq!(
        (failures(&desk), desk.over.clone()),
        (1, None),
        "counted in a row only"
    );
}

#[test]
fn more_failures_in_a_row_than_are_tolerated_end_the_job_with_the_last_reason() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, tolerating(2), &mut store);
    let id = begin(&mut desk, &mut store);
    desk.decline(1, id, "disk full");
    desk.settle(&mut store);
    begin(&mut desk, &mut store);
    desk.pass(TIMEOUT_MS);
    desk.settle(&mut store);
    assert_eq!(desk.over, None, "two are tolerated");
    let id = begin(&mut desk, &mut store);
    desk.decline(2, id, "disk full");
    let over = "3 snapshots failed in a row, 2 are tolerated: s3 was aborted: p2: disk full";
    assert_eq!(desk.over, Some(Over::Failed(over.to_owned())));
    assert_eq!(desk.orders(|order| *order == Order::Halt).len(), 2);
}

#[test]
fn a_snapshot_aborted_for_a_restore_is_nobodys_failure() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, tolerating(0), &mut store);
    for losses in 1..4 {
        begin(&mut desk, &mut store);
        desk.told.clear();
        desk.gone(1, losses);
        desk.join(1, losses + 1, Holding::Nothing);
        desk.obey(&mut store);
        assert_eq!((failures(&desk), desk.over.clone()), (0, None));
    }
    assert_eq!(desk.collector.status().aborted_count, 3);
}

#[test]
fn a_begin_record_that_cannot_be_written_is_a_failure_and_gives_no_id_out() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, tolerating(1), &mut store);
    let asker = desk.ask(snapshot());
    desk.serve(&mut store, Fate::Failed);
    assert_eq!(desk.refusal(asker), "s1 could not begin: disk full");
    assert_eq!((failures(&desk), desk.triggered()), (1, vec![]));
    assert_eq!(
        desk.complete_one(&mut store),
        1,
        "the id is still there to be given"
    );
    for _ in 0..2 {
        desk.ask(snapshot());
        desk.serve(&mut store, Fate::Failed);
    }
    let over = "2 snapshots failed in a row, 1 are tolerated: s2 could not begin: disk full";
    assert_eq!(desk.over, Some(Over::Failed(over.to_owned())));
}

#[test]
fn a_begin_record_whose_outcome_was_unknown_is_its_own_when_it_stands() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.ask(snapshot());
    desk.serve(&mut store, Fate::Unknown);
    assert_eq!(desk.triggered(), []);
    assert_eq!(desk.complete_one(&mut store), 1);
}

#[test]
fn an_end_that_cannot_be_written_is_one_failure_and_is_tried_for_a_minute() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, tolerating(1), &mut store);
    let id = begin(&mut desk, &mut store);
    desk.parts(id);
    for _ in 0..10 {
        desk.serve(&mut store, Fate::Failed);
        assert!(desk.pending.is_empty(), "not at once");
        desk.pass(500);
    }
    assert_eq!(failures(&desk), 1, "one snapshot is one failure");
    assert_eq!(
        desk.failures(),
        ["the end of s1 could not be written: disk full"]
    );
    desk.settle(&mut store);
    assert_eq!((store.complete(id), failures(&desk)), (Some(true), 0));
    let id = begin(&mut desk, &mut store);
    desk.decline(1, id, "no room");
    assert_eq!(failures(&desk), 1);
    desk.serve(&mut store, Fate::Failed);
    desk.pass(500);
    assert_eq!(
        (failures(&desk), desk.failures().last()),
        (1, Some(&"the end of s2 could not be written: disk full")),
        "told, though it counts already"
    );
    while desk.over.is_none() {
        desk.serve(&mut store, Fate::Failed);
        desk.pass(500);
    }
    let over = "the end of s2 could not be written: disk full".to_owned();
    assert_eq!(
        desk.over,
        Some(Over::Failed(over)),
        "a broken store ends the job all the same"
    );
}

#[test]
fn parts_and_refusals_come_too_late_for_an_end_that_is_being_written() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    let id = begin(&mut desk, &mut store);
    desk.parts(id);
    desk.decline(1, id, "changed my mind");
    desk.pass(TIMEOUT_MS + 50);
    desk.settle(&mut store);
    assert_eq!((store.complete(id), failures(&desk)), (Some(true), 0));
    let id = begin(&mut desk, &mut store);
    desk.part(1, 1, id, g(1));
    desk.decline(2, id, "no room");
    desk.part(2, 1, id, g(1));
    desk.settle(&mut store);
    assert_eq!(store.complete(id), Some(false));
}

#[test]
fn in_a_whole_job_a_snapshot_that_no_marker_moves_ends_by_name_and_the_next_completes() {
    let mut job = job(
        2,
        &["p1→p2", "p2→p1"],
        Limits::default(),
        &Conduct::default(),
    );
    job.policy.timeout_ms = 2 * TIMEOUT_MS;
    let mut world = started(job);
    let held = |choice: &Choice| matches!(choice, Choice::Send(_));
    world.ask(snapshot());
    run_without(&mut world, held);
    world.apply(&Choice::Fault(Fault::Pass(TIMEOUT_MS)));
    run_without(&mut world, held);
    let aborted = manifest(&world, 1)
        .expect("by the node's own clock")
        .clone();
    let reason = format!("{:?}", aborted.end);
    let why = "p1: timed out after 10000 ms: it waits for markers on p2→p1, p1→p2";
    assert!(reason.contains(why), "{reason}");
    world.take_notices();
    assert!(world.stabilize(STEPS_MAX));
    let notices = world.take_notices();
    let recorded = |notice: &Notice| matches!(notice, Notice::Recorded(..));
    assert!(
        !notices.iter().any(recorded),
        "late markers open nothing: {notices:?}"
    );
    world.ask(snapshot());
    assert!(world.stabilize(STEPS_MAX));
    assert!(manifest(&world, 2).unwrap().is_complete());
}

#[test]
fn in_a_whole_job_a_recording_over_its_bound_ends_by_name_and_the_next_completes() {
    let limits = Limits {
        recording_bytes_max: 100,
        ..Limits::default()
    };
    let mut world = started(job(2, &["p1→p2", "p2→p1"], limits, &Conduct::default()));
    for _ in 0..20 {
        world.command(p(2), "send p2→p1 9");
    }
    world.apply(&Choice::Send(ch("p2→p1")));
    world.ask(snapshot());
    // p1 records while twenty messages are on the wire to it.
    run_without(&mut world, |choice| *choice == Choice::Arrive(ch("p2→p1")));
    assert!(world.stabilize(STEPS_MAX));
    let reason = format!("{:?}", manifest(&world, 1).unwrap().end);
    let why = "p1: the recording is over recording_bytes_max = 100, most of it from p2→p1";
    assert!(reason.contains(why), "{reason}");
    world.ask(snapshot());
    assert!(world.stabilize(STEPS_MAX));
    assert!(manifest(&world, 2).unwrap().is_complete());
    assert_exact(&world);
}
