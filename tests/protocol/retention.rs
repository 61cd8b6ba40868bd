//! What is kept: the newest complete snapshots, whatever a restore would take, and all that may
//! still be asked about.

use cutline::protocol::collector::{Policy, Request};
use cutline::protocol::events::Holding;
use cutline::world::Fate;

use crate::desk::Desk;
use crate::solo::s;
use crate::store::Store;
use crate::worlds::{policy, snapshot};

fn retaining(retain: u64) -> Policy {
    Policy { retain, ..policy() }
}

fn stored(store: &Store) -> Vec<u64> {
    store.manifests.keys().map(|id| id.get()).collect()
}

#[test]
fn the_newest_complete_ones_are_kept_and_what_is_below_them_goes() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, retaining(2), &mut store);
    desk.complete_one(&mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.decline(1, 2, "no room");
    desk.settle(&mut store);
    assert_eq!(stored(&store), [1, 2]);
    desk.complete_one(&mut store);
    assert_eq!(
        stored(&store),
        [1, 2, 3],
        "an aborted one is none of those that are kept"
    );
    desk.complete_one(&mut store);
    assert_eq!(stored(&store), [3, 4]);
    assert_eq!(desk.deleted, [s(1), s(2)]);
}

#[test]
fn nothing_is_deleted_before_the_newer_one_stands() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, retaining(1), &mut store);
    desk.complete_one(&mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.parts(2);
    assert!(desk.deleted.is_empty());
    desk.serve(&mut store, Fate::Unknown);
    assert!(
        desk.deleted.is_empty(),
        "a write whose outcome is unknown deletes nothing"
    );
    desk.pass(600);
    desk.settle(&mut store);
    assert_eq!(desk.deleted, [s(1)]);
}

#[test]
fn what_a_restore_would_take_is_kept_whatever_is_newer() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, retaining(1), &mut store);
    let kept = desk.complete_one(&mut store);
    desk.gone(1, 1);
    desk.join(1, 2, Holding::Nothing);
    desk.obey(&mut store);
    for _ in 0..3 {
        desk.ask(snapshot());
        desk.settle(&mut store);
        let open = desk.open()[0].get();
        desk.decline(2, open, "no room");
        desk.settle(&mut store);
    }
    assert_eq!(
        store.complete(kept),
        Some(true),
        "it is this generation's only one"
    );
    assert_eq!(desk.deleted, [s(2), s(3)], "aborted, and not the last");
    desk.complete_one(&mut store);
    assert_eq!(store.complete(kept), None);
}

#[test]
fn as_many_aborted_ones_are_kept_as_complete_ones() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, retaining(2), &mut store);
    let kept = desk.complete_one(&mut store);
    for open in 2..=6 {
        desk.ask(snapshot());
        desk.settle(&mut store);
        desk.decline(2, open, "no room");
        desk.settle(&mut store);
    }
    assert_eq!(stored(&store), [kept, 5, 6]);
    assert_eq!(desk.deleted, [2, 3, 4].map(s));
}

#[test]
fn a_branch_that_was_left_does_not_push_out_the_one_that_was_restored() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, retaining(2), &mut store);
    let older = desk.complete_one(&mut store);
    desk.complete_one(&mut store);
    desk.ask(Request::Restore(Some(s(older))));
    desk.told.clear();
    desk.obey(&mut store);
    assert_eq!(store.last_origin(), Some(s(older)));
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.decline(2, 3, "no room");
    desk.settle(&mut store);
    assert_eq!(store.complete(older), Some(true));
    desk.complete_one(&mut store);
    assert_eq!(
        store.complete(older),
        None,
        "until there is a newer one of its line"
    );
}

#[test]
fn what_is_being_restored_is_kept_though_another_completes_meanwhile() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, retaining(2), &mut store);
    let older = desk.complete_one(&mut store);
    desk.complete_one(&mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.parts(3);
    desk.told.clear();
    desk.ask(Request::Restore(Some(s(older))));
    desk.obey(&mut store);
    assert_eq!(store.complete(3), Some(true));
    assert_eq!(store.complete(older), Some(true));
    assert_eq!(
        (desk.phase(), store.last_origin()),
        ("running", Some(s(older)))
    );
}

#[test]
fn nothing_above_the_low_watermark_is_deleted() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, retaining(1), &mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.complete_one(&mut store);
    desk.complete_one(&mut store);
    assert!(
        desk.deleted.is_empty(),
        "s1 is open: nodes are still told of s2 and s3"
    );
    desk.parts(1);
    desk.settle(&mut store);
    assert_eq!(desk.deleted, [s(1), s(2)]);
    assert_eq!(stored(&store), [3]);
}
