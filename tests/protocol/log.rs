//! A store that fails a collector, or is another job's: what can be tried again is, for a while,
//! and nobody's job ends because of a moment.

use cutline::protocol::events::{Holding, Order};
use cutline::world::Fate;

use crate::desk::{Desk, Over, g, holds};
use crate::leadership::joined_by_all;
use crate::store::Store;
use crate::worlds::{policy, snapshot};

#[test]
fn a_record_of_the_log_whose_outcome_was_unknown_is_its_own_when_it_stands() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    desk.serve(&mut store, Fate::Done);
    assert_eq!(
        desk.generation(),
        g(1),
        "the store is read once more before the choice"
    );
    desk.serve(&mut store, Fate::Unknown);
    assert_eq!(desk.generation(), g(1), "nothing may be concluded");
    assert!(desk.pending.is_empty());
    desk.pass(600);
    desk.settle(&mut store);
    assert_eq!((desk.generation(), desk.over.clone()), (g(2), None));
    assert_eq!(store.log.len(), 3, "written once");
    desk.obey(&mut store);
    assert_eq!(desk.phase(), "running");
}

#[test]
fn a_log_that_cannot_be_written_is_tried_for_a_minute_and_then_ends_the_job() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    desk.serve(&mut store, Fate::Done);
    let mut tries = 0;
    while desk.over.is_none() {
        desk.serve(&mut store, Fate::Failed);
        tries += 1;
        desk.pass(500);
    }
    assert_eq!(tries, 121);
    let over = "the log cannot be written: disk full".to_owned();
    assert_eq!(desk.over, Some(Over::Failed(over)));
    assert_eq!(desk.orders(|order| *order == Order::Halt).len(), 2);
}

#[test]
fn a_collector_that_cannot_write_its_first_record_says_so_at_once_and_halts_nobody() {
    let mut store = Store::default();
    let mut desk = Desk::new(2, policy(), 1);
    desk.serve(&mut store, Fate::Done);
    desk.join(1, 1, holds(1));
    desk.serve(&mut store, Fate::Failed);
    assert!(
        !desk.leads && desk.told.is_empty(),
        "it never led: {:?}",
        desk.told
    );
    let over = "the log cannot be written: disk full".to_owned();
    assert_eq!(desk.over, Some(Over::Failed(over)));
}

#[test]
fn a_new_collector_of_a_job_that_runs_tries_again_to_write_its_term_and_ends_nothing() {
    let mut store = Store::default();
    Desk::running(2, policy(), &mut store);
    let mut second = Desk::new(2, policy(), 2);
    second.serve(&mut store, Fate::Done);
    for _ in 0..10 {
        second.serve(&mut store, Fate::Failed);
        assert!(second.pending.is_empty());
        second.pass(500);
    }
    assert_eq!((second.over.clone(), second.leads), (None, false));
    second.settle(&mut store);
    joined_by_all(&mut second, 1);
    assert_eq!((second.phase(), second.generation()), ("running", g(1)));
}

#[test]
fn a_collector_that_cannot_read_the_store_has_nothing_to_say_of_the_job() {
    let mut store = Store::default();
    Desk::running(2, policy(), &mut store);
    let mut second = Desk::new(2, policy(), 2);
    second.serve(&mut store, Fate::Failed);
    assert!(
        matches!(second.over, Some(Over::Unread(_))),
        "{:?}",
        second.over
    );
    assert!(!second.leads && second.told.is_empty());
}

#[test]
fn a_store_of_another_topology_is_refused() {
    let mut store = Store::default();
    Desk::running(2, policy(), &mut store);
    let mut desk = Desk::new(3, policy(), 2);
    desk.settle(&mut store);
    let Some(Over::Failed(reason)) = &desk.over else {
        panic!("{:?}", desk.over);
    };
    assert!(reason.contains("another topology"), "{reason}");
}

#[test]
fn a_store_that_cannot_be_read_before_a_restore_is_read_again() {
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    desk.serve(&mut store, Fate::Failed);
    assert!(desk.pending.is_empty());
    desk.pass(600);
    desk.obey(&mut store);
    assert_eq!((desk.phase(), desk.generation()), ("running", g(2)));
    desk.gone(1, 7);
    desk.join(1, 8, Holding::Nothing);
    let mut reads = desk.pending.iter();
    use cutline::protocol::collector::CollectorEffect;
    assert!(
        !reads.any(|effect| matches!(effect, CollectorEffect::Read)),
        "once a term is enough"
    );
    let mut desk = Desk::running(2, policy(), &mut Store::default());
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    while desk.over.is_none() {
        desk.serve(&mut store, Fate::Failed);
        desk.pass(500);
    }
    let over = "the store cannot be read: cannot be read".to_owned();
    assert_eq!(desk.over, Some(Over::Failed(over)));
}

/// Each try fails only after half a minute, as where a server does not answer.
#[test]
fn a_store_that_hangs_is_given_up_after_a_minute_too() {
    let tries = |desk: &mut Desk, store: &mut Store| {
        let mut tries = 0;
        while desk.over.is_none() {
            desk.pass(30_000);
            desk.serve(store, Fate::Failed);
            desk.pass(500);
            tries += 1;
        }
        tries
    };
    let lose_one = |store: &mut Store| {
        let mut desk = Desk::running(2, policy(), store);
        desk.gone(1, 1);
        desk.join(1, 7, Holding::Nothing);
        desk
    };
    let mut store = Store::default();
    let mut desk = lose_one(&mut store);
    assert_eq!(tries(&mut desk, &mut store), 3, "what is read");
    let mut store = Store::default();
    let mut desk = lose_one(&mut store);
    desk.serve(&mut store, Fate::Done);
    assert_eq!(tries(&mut desk, &mut store), 3, "the log");
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy(), &mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.parts(1);
    assert_eq!(tries(&mut desk, &mut store), 3, "the end of a snapshot");
}
