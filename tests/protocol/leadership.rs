//! Terms and fencing: one collector leads, and no other completes anything behind its back. What
//! was written and not said to be written counts.

use cutline::protocol::events::{Holding, Order};
use cutline::protocol::ids::Term;
use cutline::world::Fate;

use crate::desk::{Desk, Over, abort_reason, g, holds};
use crate::solo::s;
use crate::store::Store;
use crate::worlds::{policy, snapshot};

/// A second collector on the same store, leading.
fn successor(store: &mut Store) -> Desk {
    let mut desk = Desk::new(2, policy(), 2);
    desk.settle(store);
    desk
}

/// Both nodes join it, still running generation `generation`.
pub(crate) fn joined_by_all(desk: &mut Desk, generation: u64) {
    desk.join(1, 1, holds(generation));
    desk.join(2, 1, holds(generation));
}

#[test]
fn a_collector_that_loses_its_term_to_another_is_fenced_and_touches_nothing() {
    let mut store = Store::default();
    let (mut first, mut second) = (Desk::new(2, policy(), 1), Desk::new(2, policy(), 2));
    first.serve(&mut store, Fate::Done);
    second.serve(&mut store, Fate::Done);
    second.serve(&mut store, Fate::Done);
    let asker = first.ask(snapshot());
    first.serve(&mut store, Fate::Done);
    assert_eq!(first.over, Some(Over::Fenced(Term::new(1))));
    assert_eq!(first.refusal(asker), "another collector leads, in term t1");
    assert!(first.told.is_empty() && first.pending.is_empty());
    first.join(1, 1, Holding::Nothing);
    assert!(first.told.is_empty(), "it says nothing any more");
    assert_eq!(second.over, None);
}

#[test]
fn a_leader_is_fenced_when_it_wants_a_generation_after_another_took_the_term() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    let second = successor(&mut store);
    assert_eq!(second.collector.status().term, Term::new(2));
    first.gone(1, 1);
    first.join(1, 7, Holding::Nothing);
    first.settle(&mut store);
    assert_eq!(first.over, Some(Over::Fenced(Term::new(2))));
    assert!(
        first
            .orders(|order| matches!(order, Order::Prepare(..) | Order::Halt))
            .is_empty()
    );
    assert_eq!(store.log.len(), 3, "a term, a generation, a term");
}

#[test]
fn a_new_collector_rolls_nobody_back_who_still_holds_the_generation() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    first.complete_one(&mut store);
    let mut second = successor(&mut store);
    assert_eq!(second.phase(), "starting");
    second.join(1, 1, holds(1));
    assert!(
        second
            .orders(|order| matches!(order, Order::Run(_)))
            .is_empty(),
        "p2 is not there"
    );
    second.join(2, 1, Holding::Prepared(g(1)));
    assert_eq!(second.phase(), "running");
    assert_eq!(second.generation(), g(1));
    let runs = second.orders(|order| *order == Order::Run(g(1)));
    assert_eq!(
        runs.len(),
        2,
        "said to all, for the one before may have died half way"
    );
    let welcomed = second.orders(|order| matches!(order, Order::Welcome(_)));
    let Order::Welcome(standing) = &welcomed[0].1 else {
        unreachable!("filtered");
    };
    assert_eq!(
        (standing.generation, standing.low, standing.complete),
        (g(1), s(1), s(1))
    );
}

#[test]
fn a_new_collector_takes_the_job_back_when_someone_does_not_hold_the_generation() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    first.complete_one(&mut store);
    let mut second = successor(&mut store);
    second.join(1, 1, holds(1));
    second.join(2, 5, Holding::Nothing);
    second.obey(&mut store);
    assert_eq!((second.phase(), second.generation()), ("running", g(2)));
    assert_eq!(store.last_origin(), Some(s(1)));
}

#[test]
fn a_new_term_ends_every_snapshot_that_has_no_manifest() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    first.ask(snapshot());
    first.ask(snapshot());
    first.settle(&mut store);
    first.part(1, 1, 1, g(1));
    let second = successor(&mut store);
    assert_eq!(
        (store.complete(1), store.complete(2)),
        (Some(false), Some(false))
    );
    assert_eq!(abort_reason(&store, 1), "its collector was lost");
    assert!(second.open().is_empty());
}

#[test]
fn a_paused_collector_cannot_complete_a_snapshot_behind_a_new_one() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    first.ask(snapshot());
    first.settle(&mut store);
    first.part(1, 1, 1, g(1));
    // Paused here, with the last part's report in its socket.
    let mut second = successor(&mut store);
    joined_by_all(&mut second, 1);
    first.part(2, 1, 1, g(1));
    first.settle(&mut store);
    assert_eq!(store.complete(1), Some(false), "the new one was first");
    assert_eq!(first.collector.status().complete_count, 0);
    assert_eq!(first.over, Some(Over::Fenced(Term::new(2))));
    assert_eq!(
        first.orders(|order| matches!(order, Order::Ended { complete: true, .. })),
        []
    );
}

#[test]
fn what_the_collector_before_completed_in_time_is_complete_for_the_new_one_too() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    first.ask(snapshot());
    first.settle(&mut store);
    first.parts(1);
    let mut second = Desk::new(2, policy(), 2);
    second.serve(&mut store, Fate::Done);
    second.serve(&mut store, Fate::Done);
    first.settle(&mut store);
    second.settle(&mut store);
    assert_eq!(store.complete(1), Some(true));
    assert_eq!(second.collector.status().complete, s(1));
}

#[test]
fn what_the_collector_before_completed_unseen_is_found_before_a_restore_is_chosen() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    first.complete_one(&mut store);
    // The new one reads and takes the term; no node has left the old one, who goes on for a while.
    let mut second = successor(&mut store);
    assert_eq!(first.complete_one(&mut store), 2);
    first.ask(snapshot());
    first.settle(&mut store);
    first.part(1, 1, 3, g(1));
    joined_by_all(&mut second, 1);
    assert_eq!(second.phase(), "running");
    second.gone(1, 1);
    second.join(1, 9, Holding::Nothing);
    second.obey(&mut store);
    assert_eq!((second.phase(), second.generation()), ("running", g(2)));
    assert_eq!(
        store.last_origin(),
        Some(s(2)),
        "nobody is rolled back behind a complete one"
    );
    assert_eq!(
        store.complete(3),
        Some(false),
        "and nothing is left to complete"
    );
    assert_eq!(second.complete_one(&mut store), 4);
}

#[test]
fn a_snapshot_begun_unseen_beside_a_later_one_is_found_before_a_restore_is_chosen() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    first.complete_one(&mut store);
    first.ask(snapshot());
    first.ask(snapshot());
    // Both begin records are on their way: the later one is first to stand.
    first.pending.swap(0, 1);
    first.serve(&mut store, Fate::Done);
    let mut second = successor(&mut store);
    first.settle(&mut store);
    first.parts(2);
    first.settle(&mut store);
    assert_eq!(
        (store.complete(2), store.complete(3)),
        (Some(true), Some(false))
    );
    joined_by_all(&mut second, 1);
    second.gone(1, 1);
    second.join(1, 9, Holding::Nothing);
    second.obey(&mut store);
    assert_eq!(
        (second.generation(), store.last_origin()),
        (g(2), Some(s(2)))
    );
}

#[test]
fn a_complete_manifest_whose_outcome_was_unknown_counts() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.parts(1);
    desk.serve(&mut store, Fate::Unknown);
    assert_eq!(desk.open(), [s(1)], "nothing may be concluded");
    assert!(
        desk.orders(|order| matches!(order, Order::Ended { .. }))
            .is_empty()
    );
    // A restore that comes now waits for it.
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    desk.settle(&mut store);
    assert_eq!(desk.generation(), g(1));
    desk.pass(600);
    desk.obey(&mut store);
    assert_eq!(desk.generation(), g(2));
    assert_eq!(store.last_origin(), Some(s(1)));
    assert_eq!(desk.collector.status().complete_count, 1);
    // The same, but its collector never hears of it.
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.parts(1);
    desk.serve(&mut store, Fate::Unknown);
    drop(desk);
    let second = successor(&mut store);
    assert_eq!(second.collector.status().complete, s(1));
}

#[test]
fn a_complete_snapshot_is_of_the_generation_its_manifest_says() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    let lose = |first: &mut Desk, store: &mut Store, next: u64| {
        first.gone(1, next - 1);
        first.join(1, next, Holding::Nothing);
        first.obey(store);
    };
    lose(&mut first, &mut store, 2);
    // s1's begin record stands in g2, though its collector was told that it failed.
    first.ask(snapshot());
    first.serve(&mut store, Fate::Unknown);
    lose(&mut first, &mut store, 3);
    assert_eq!(first.generation(), g(3));
    first.ask(snapshot());
    first.settle(&mut store);
    first.parts(1);
    let mut second = Desk::new(2, policy(), 2);
    second.serve(&mut store, Fate::Done);
    second.serve(&mut store, Fate::Done);
    first.settle(&mut store);
    second.settle(&mut store);
    assert_eq!(store.complete(1), Some(true));
    assert_eq!(
        second.collector.status().complete,
        s(1),
        "it is of g3, and so is the job"
    );
}

#[test]
fn a_collector_is_to_be_found_only_when_it_leads() {
    let mut store = Store::default();
    let mut desk = Desk::new(2, policy(), 1);
    assert!(!desk.leads);
    desk.serve(&mut store, Fate::Done);
    assert!(!desk.leads);
    desk.serve(&mut store, Fate::Done);
    assert!(desk.leads);
}

#[test]
fn what_was_left_open_is_not_ended_before_the_term_is_taken() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    first.ask(snapshot());
    first.settle(&mut store);
    let mut second = Desk::new(2, policy(), 2);
    second.serve(&mut store, Fate::Done);
    second.pass(60_000);
    assert_eq!(
        second.pending.len(),
        1,
        "nothing but the record of its term"
    );
    first.parts(1);
    first.settle(&mut store);
    assert_eq!(store.complete(1), Some(true), "the first leads still");
}

#[test]
fn a_collector_that_was_superseded_replaces_nobody() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    let second = successor(&mut store);
    // Its nodes have left it for the new one, and seem lost to it.
    first.gone(1, 1);
    first.gone(2, 1);
    first.pass(1_000);
    first.settle(&mut store);
    assert_eq!(first.over, Some(Over::Fenced(Term::new(2))));
    assert_eq!(first.replaced, []);
    assert_eq!(second.over, None);
}

#[test]
fn a_collector_that_finds_an_id_or_an_end_of_a_later_term_is_fenced() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    let mut second = successor(&mut store);
    joined_by_all(&mut second, 1);
    second.ask(snapshot());
    second.settle(&mut store);
    let asker = first.ask(snapshot());
    first.settle(&mut store);
    assert_eq!(first.over, Some(Over::Fenced(Term::new(2))));
    assert_eq!(first.refusal(asker), "another collector leads, in term t2");
    assert_eq!(
        store.complete(1),
        None,
        "the second's snapshot is still open"
    );
    second.parts(1);
    second.settle(&mut store);
    assert_eq!(store.complete(1), Some(true));
}
