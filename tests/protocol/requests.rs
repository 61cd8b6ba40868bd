//! What users ask for: each is answered, once, with what it came to.

use std::collections::BTreeSet;

use cutline::protocol::collector::{Answer, CollectorInput, Policy, Request, RequestId};
use cutline::protocol::events::{Holding, Order};
use cutline::protocol::link::Limits;
use cutline::world::Fate;

use crate::desk::{Desk, Over, g, holds};
use crate::diary::Conduct;
use crate::solo::s;
use crate::store::Store;
use crate::worlds::{STEPS_MAX, job, manifest, p, policy, snapshot, started};

fn running(policy: Policy) -> (Desk, Store) {
    let mut store = Store::default();
    let desk = Desk::running(2, policy, &mut store);
    (desk, store)
}

/// One snapshot at a time.
fn single() -> Policy {
    Policy {
        open_max: 1,
        ..policy()
    }
}

fn stopped(snapshot: u64) -> Result<Answer, String> {
    Ok(Answer::Stopped(s(snapshot)))
}

#[test]
fn a_snapshot_is_answered_with_its_id_once_that_is_given_out() {
    let (mut desk, mut store) = running(policy());
    let asker = desk.ask(snapshot());
    assert_eq!(desk.answer(asker), None);
    desk.settle(&mut store);
    assert_eq!(desk.answer(asker), Some(&Ok(Answer::Begun(s(1)))));
    desk.parts(1);
    desk.settle(&mut store);
    assert!(desk.answer(asker).is_some(), "and not again at its end");
}

#[test]
fn a_snapshot_asked_for_while_the_job_is_restored_begins_when_it_runs() {
    let (mut desk, mut store) = running(policy());
    desk.gone(1, 1);
    desk.join(1, 2, Holding::Nothing);
    let asker = desk.ask(snapshot());
    desk.settle(&mut store);
    assert_eq!(desk.answer(asker), None);
    desk.told.clear();
    desk.gone(2, 1);
    desk.join(2, 2, Holding::Nothing);
    desk.settle(&mut store);
    assert_eq!(desk.answer(asker), None, "nor while it is restored again");
    desk.obey(&mut store);
    assert_eq!(desk.phase(), "running");
    assert_eq!(desk.answer(asker), Some(&Ok(Answer::Begun(s(1)))));
}

#[test]
fn initiators_that_do_not_reach_everyone_are_refused_naming_the_unreached() {
    let mut world = started(job(
        3,
        &["p1→p2", "p2→p3"],
        Limits::default(),
        &Conduct::default(),
    ));
    let initiators = BTreeSet::from([p(2)]);
    let asker = world.ask(Request::snapshot(initiators));
    let why = "no marker would reach p1: name more initiators".to_owned();
    assert_eq!(world.answer(asker), Some(&Err(why)));
    let initiators = BTreeSet::from([p(3), p(1)]);
    world.ask(Request::snapshot(initiators));
    assert!(world.stabilize(STEPS_MAX));
    assert!(manifest(&world, 1).unwrap().is_complete());
}

#[test]
fn more_requests_than_can_wait_are_refused() {
    let (mut desk, _) = running(single());
    desk.ask(snapshot());
    for _ in 0..64 {
        let asker = desk.ask(snapshot());
        assert_eq!(desk.answer(asker), None);
    }
    let asker = desk.ask(snapshot());
    assert_eq!(desk.refusal(asker), "64 snapshots are waiting already");
}

#[test]
fn a_restore_is_answered_when_everyone_runs_again() {
    let (mut desk, mut store) = running(policy());
    let id = desk.complete_one(&mut store);
    desk.told.clear();
    let asker = desk.ask(Request::Restore(None));
    let second = desk.ask(Request::Restore(None));
    assert_eq!(
        desk.refusal(second),
        "the job does not run yet: try again when it does"
    );
    desk.settle(&mut store);
    assert_eq!(desk.answer(asker), None);
    // A loss on the way does not lose the question.
    desk.gone(1, 1);
    desk.join(1, 2, Holding::Nothing);
    desk.obey(&mut store);
    assert_eq!(desk.answer(asker), Some(&Ok(Answer::Running(g(3), s(id)))));
}

#[test]
fn a_stop_takes_one_last_snapshot_and_ends_the_job() {
    let (mut desk, mut store) = running(policy());
    let asker = desk.ask(Request::Stop);
    assert_eq!(desk.phase(), "stopping");
    desk.settle(&mut store);
    assert_eq!(desk.open(), [s(1)]);
    let late = desk.ask(Request::Stop);
    assert_eq!(desk.refusal(late), "the job is being stopped already");
    for request in [snapshot(), Request::Restore(None)] {
        let late = desk.ask(request);
        assert_eq!(desk.refusal(late), "the job is being stopped");
    }
    desk.parts(1);
    assert_eq!(desk.answer(asker), None);
    desk.settle(&mut store);
    assert_eq!(desk.answer(asker), Some(&stopped(1)));
    assert_eq!(desk.over, Some(Over::Finished));
    assert_eq!(desk.orders(|order| *order == Order::Halt).len(), 2);
    assert_eq!(store.complete(1), Some(true));
}

#[test]
fn a_stop_during_a_running_snapshot_takes_one_more_and_no_third() {
    for open_max in [1, 3] {
        let policy = Policy {
            open_max,
            interval_ms: 100,
            ..policy()
        };
        let (mut desk, mut store) = running(policy);
        desk.ask(snapshot());
        desk.settle(&mut store);
        let asker = desk.ask(Request::Stop);
        desk.settle(&mut store);
        desk.pass(1_000);
        desk.parts(1);
        desk.settle(&mut store);
        assert_eq!(
            desk.answer(asker),
            None,
            "the one that was running is not the last"
        );
        desk.pass(1_000);
        assert_eq!(desk.open(), [s(2)]);
        desk.parts(2);
        desk.settle(&mut store);
        assert_eq!(desk.answer(asker), Some(&stopped(2)));
        assert_eq!(desk.over, Some(Over::Finished));
        assert_eq!(store.begun.len(), 2);
    }
}

#[test]
fn snapshots_that_wait_when_the_job_is_stopped_are_refused() {
    let (mut desk, mut store) = running(single());
    desk.ask(snapshot());
    let waiting = desk.ask(snapshot());
    desk.ask(Request::Stop);
    assert_eq!(desk.refusal(waiting), "the job is being stopped");
    desk.settle(&mut store);
    desk.parts(1);
    desk.settle(&mut store);
    assert_eq!(desk.open(), [s(2)]);
    desk.parts(2);
    desk.settle(&mut store);
    assert_eq!(desk.over, Some(Over::Finished));
}

#[test]
fn a_stop_is_refused_when_the_last_snapshot_fails_and_the_job_goes_on() {
    let (mut desk, mut store) = running(policy());
    let asker = desk.ask(Request::Stop);
    desk.settle(&mut store);
    desk.decline(1, 1, "disk full");
    desk.settle(&mut store);
    let why = "the last snapshot, s1, was aborted: p1: disk full";
    assert_eq!(desk.refusal(asker), why);
    assert_eq!((desk.phase(), desk.over.clone()), ("running", None));
    let asker = desk.ask(Request::Stop);
    desk.serve(&mut store, Fate::Failed);
    assert!(
        desk.refusal(asker)
            .contains("s2 could not begin: disk full")
    );
    desk.complete_one(&mut store);
    let asker = desk.ask(Request::Stop);
    desk.settle(&mut store);
    let last = desk.open()[0].get();
    desk.parts(last);
    desk.settle(&mut store);
    assert_eq!(desk.answer(asker), Some(&stopped(last)));
}

#[test]
fn a_loss_during_the_last_snapshot_refuses_the_stop() {
    let (mut desk, mut store) = running(policy());
    let asker = desk.ask(Request::Stop);
    desk.settle(&mut store);
    desk.told.clear();
    desk.gone(1, 1);
    desk.join(1, 2, Holding::Nothing);
    desk.obey(&mut store);
    assert!(desk.refusal(asker).contains("a process was lost"));
    assert_eq!((desk.phase(), desk.generation()), ("running", g(2)));
}

#[test]
fn a_stop_asked_for_while_the_job_is_restored_takes_its_snapshot_when_it_runs() {
    let (mut desk, mut store) = running(policy());
    desk.told.clear();
    desk.gone(1, 1);
    desk.join(1, 2, Holding::Nothing);
    let asker = desk.ask(Request::Stop);
    desk.obey(&mut store);
    assert_eq!((desk.phase(), desk.open()), ("stopping", vec![s(1)]));
    desk.parts(1);
    desk.settle(&mut store);
    assert_eq!(desk.answer(asker), Some(&stopped(1)));
}

#[test]
fn a_last_snapshot_whose_id_another_collector_took_is_the_next_one() {
    let mut store = Store::default();
    let mut first = Desk::running(2, policy(), &mut store);
    let mut second = Desk::new(2, policy(), 2);
    second.settle(&mut store);
    second.join(1, 1, holds(1));
    second.join(2, 1, holds(1));
    first.ask(snapshot());
    first.settle(&mut store);
    let asker = second.ask(Request::Stop);
    second.settle(&mut store);
    assert_eq!(second.answer(asker), None);
    assert_eq!(second.open(), [s(2)]);
    second.parts(2);
    second.settle(&mut store);
    assert_eq!(second.answer(asker), Some(&stopped(2)));
}

#[test]
fn whoever_waits_when_the_job_ends_is_told_why() {
    let failing = Policy {
        failures_tolerated: 0,
        ..single()
    };
    let (mut desk, mut store) = running(failing.clone());
    let begun = desk.ask(snapshot());
    desk.settle(&mut store);
    let waiting = desk.ask(snapshot());
    desk.decline(1, 1, "disk full");
    assert!(matches!(desk.over, Some(Over::Failed(_))));
    assert_eq!(desk.answer(begun), Some(&Ok(Answer::Begun(s(1)))));
    assert!(desk.refusal(waiting).contains("p1: disk full"));
    let late = desk.ask(snapshot());
    assert_eq!(desk.refusal(late), "the job has ended");
    // A restore that cannot be done, and a snapshot whose begin record was under way.
    let (mut desk, mut store) = running(policy());
    desk.complete_one(&mut store);
    let beginning = desk.ask(snapshot());
    let restoring = desk.ask(Request::Restore(Some(s(1))));
    desk.settle(&mut store);
    assert_eq!(desk.answer(beginning), Some(&Ok(Answer::Begun(s(2)))));
    let unready = cutline::protocol::events::Report::Unready(g(2), "checksum".to_owned());
    let incarnation = desk.collector.status().processes[0].2;
    desk.say(p(1), incarnation, unready);
    assert!(
        desk.refusal(restoring)
            .starts_with("s1 cannot be restored: p1: checksum")
    );
    // A stop that waits for its turn, and a begin record that is never answered for.
    let (mut desk, mut store) = running(Policy {
        failures_tolerated: 0,
        ..policy()
    });
    desk.ask(snapshot());
    desk.settle(&mut store);
    let beginning = desk.ask(snapshot());
    let stopping = desk.ask(Request::Stop);
    desk.decline(1, 1, "disk full");
    for asker in [beginning, stopping] {
        assert!(
            desk.refusal(asker).contains("p1: disk full"),
            "{:?}",
            desk.answer(asker)
        );
    }
    desk.settle(&mut store);
    assert!(
        desk.answer(beginning).is_some(),
        "and is not answered again"
    );
}

#[test]
fn nothing_that_comes_after_the_end_is_acted_upon() {
    let (mut desk, mut store) = running(policy());
    desk.ask(Request::Stop);
    desk.settle(&mut store);
    desk.parts(1);
    desk.settle(&mut store);
    desk.told.clear();
    desk.gone(1, 1);
    desk.join(1, 2, Holding::Nothing);
    desk.pass(100_000);
    assert!(desk.told.is_empty() && desk.pending.is_empty() && desk.replaced.is_empty());
    desk.step(CollectorInput::Asked(RequestId(99), snapshot()));
    assert_eq!(desk.refusal(RequestId(99)), "the job has ended");
}
