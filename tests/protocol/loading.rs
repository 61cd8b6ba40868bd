//! Nodes that are alive and do not load: users are told for whom the job waits, and it does not
//! wait for ever.

use cutline::protocol::collector::{Policy, Request};
use cutline::protocol::events::{Holding, Report};
use cutline::protocol::ids::Incarnation;

use crate::desk::{Desk, Over, g};
use crate::solo::s;
use crate::store::Store;
use crate::worlds::{p, policy};

/// After this without any part loaded, those who are waited for hang.
const LOAD_MS: u64 = 600_000;

/// A job of three that is being restored to the newest of two snapshots, as p1 was lost.
fn restoring(policy: Policy) -> (Desk, Store) {
    let mut store = Store::default();
    let mut desk = Desk::running(3, policy, &mut store);
    desk.complete_one(&mut store);
    desk.complete_one(&mut store);
    desk.gone(1, 1);
    desk.join(1, 2, Holding::Nothing);
    desk.settle(&mut store);
    assert_eq!((desk.phase(), desk.generation()), ("restoring", g(2)));
    desk.announced.clear();
    (desk, store)
}

/// This process has loaded its part.
fn ready(desk: &mut Desk, process: u32) {
    let status = desk.collector.status();
    let incarnation = status.processes[process as usize - 1].2;
    desk.say(p(process), incarnation, Report::Ready(status.generation));
}

/// p1 and p2 load, p3 hangs, and another takes its place.
fn p3_hangs(desk: &mut Desk, store: &mut Store, successor: u64) {
    ready(desk, 1);
    ready(desk, 2);
    desk.pass(LOAD_MS);
    desk.settle(store);
    desk.join(3, successor, Holding::Nothing);
    desk.settle(store);
}

#[test]
fn a_node_that_is_alive_and_never_loads_is_replaced() {
    let (mut desk, mut store) = restoring(policy());
    ready(&mut desk, 1);
    ready(&mut desk, 2);
    desk.pass(LOAD_MS - 50);
    assert_eq!((desk.lost(), desk.phase()), (vec![], "restoring"));
    desk.pass(50);
    assert_eq!(desk.lost(), [p(3)]);
    let why = "this node did not load its part in time and was declared lost".to_owned();
    assert_eq!(desk.dismissed, [(p(3), Incarnation::new(1), why)]);
    desk.settle(&mut store);
    assert_eq!(desk.replaced, [(p(3), Incarnation::new(1))]);
    desk.join(3, 9, Holding::Nothing);
    desk.told.clear();
    desk.settle(&mut store);
    for process in 1..=3 {
        ready(&mut desk, process);
    }
    assert_eq!((desk.phase(), desk.generation()), ("running", g(3)));
    assert_eq!(store.last_origin(), Some(s(2)), "the same snapshot");
}

#[test]
fn whoever_is_waited_for_is_named_now_and_then() {
    let (mut desk, _) = restoring(policy());
    ready(&mut desk, 2);
    desk.pass(4_950);
    assert!(desk.warnings().is_empty(), "as long as one may be silent");
    desk.pass(50);
    let warning = "restoring s2 waits for p1, p3: no part was loaded for 5000 ms";
    assert_eq!(desk.warnings(), [warning]);
    desk.pass(5_000);
    let again = "restoring s2 waits for p1, p3: no part was loaded for 10000 ms";
    assert_eq!(desk.warnings(), [warning, again]);
    ready(&mut desk, 1);
    desk.pass(LOAD_MS - 50);
    assert_eq!(desk.warnings().len(), 2 + 7, "more and more seldom");
    assert!(desk.warnings().last().unwrap().contains("waits for p3:"));
}

#[test]
fn every_part_that_is_loaded_gives_the_others_more_time() {
    let (mut desk, _) = restoring(policy());
    for process in 1..=3 {
        desk.pass(LOAD_MS - 50);
        ready(&mut desk, process);
    }
    assert_eq!((desk.phase(), desk.lost()), ("running", vec![]));
}

#[test]
fn a_part_that_no_node_in_its_place_can_load_ends_the_job_by_name() {
    let (mut desk, mut store) = restoring(policy());
    for hangs in 1..=3 {
        assert_eq!(desk.over, None, "after {hangs}");
        p3_hangs(&mut desk, &mut store, 10 + hangs);
    }
    let Some(Over::Failed(reason)) = &desk.over else {
        panic!("{:?}", desk.over);
    };
    let why = "s2 cannot be restored: p3: no word for 600000 ms that the part is loaded, 3 times";
    assert!(reason.starts_with(why), "{reason}");
}

#[test]
fn a_part_that_no_node_in_its_place_can_load_makes_its_snapshot_unusable_where_that_is_allowed() {
    let falling_back = Policy {
        fall_back: true,
        ..policy()
    };
    let (mut desk, mut store) = restoring(falling_back);
    for hangs in 1..=3 {
        assert_eq!(store.last_origin(), Some(s(2)));
        p3_hangs(&mut desk, &mut store, 10 + hangs);
    }
    assert_eq!(store.last_origin(), Some(s(1)));
    for process in 1..=3 {
        ready(&mut desk, process);
    }
    assert_eq!(desk.phase(), "running");
}

#[test]
fn hangs_are_counted_in_a_row_only() {
    let (mut desk, mut store) = restoring(policy());
    for hangs in 1..=3 {
        p3_hangs(&mut desk, &mut store, 10 + hangs);
        for process in 1..=3 {
            ready(&mut desk, process);
        }
        assert_eq!(desk.phase(), "running", "after {hangs}");
        desk.ask(Request::Restore(None));
        desk.settle(&mut store);
    }
    assert_eq!(desk.over, None);
}
