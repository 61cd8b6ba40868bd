//! Who hosts a process: one node at a time, and no node that was given up comes back.

use std::collections::BTreeSet;

use cutline::protocol::collector::{CollectorInput, Request};
use cutline::protocol::events::{Holding, Join, Order, Report};
use cutline::protocol::ids::{Incarnation, JobId};
use cutline::world::Fate;

use crate::desk::{Desk, Over, g, holds};
use crate::solo::{s, topology};
use crate::store::Store;
use crate::worlds::{p, policy, snapshot};

pub(crate) fn running() -> (Desk, Store) {
    let mut store = Store::default();
    let desk = Desk::running(2, policy(), &mut store);
    (desk, store)
}

#[test]
fn a_second_claimant_is_refused_while_the_first_lives() {
    let (mut desk, _) = running();
    desk.join(1, 7, Holding::Nothing);
    assert!(desk.told.is_empty(), "it waits: {:?}", desk.told);
    desk.pass(1_900);
    assert!(desk.dismissed.is_empty());
    desk.pass(200);
    let why = "another node is live for p1: stop that one first".to_owned();
    assert_eq!(desk.dismissed, [(p(1), Incarnation::new(7), why)]);
    assert_eq!((desk.phase(), desk.generation()), ("running", g(1)));
    assert_eq!(desk.lost(), []);
}

#[test]
fn a_second_claimant_is_admitted_when_the_first_goes() {
    let (mut desk, mut store) = running();
    desk.join(1, 7, Holding::Nothing);
    desk.pass(1_000);
    desk.gone(1, 1);
    assert_eq!(desk.lost(), [p(1)]);
    desk.obey(&mut store);
    assert_eq!((desk.phase(), desk.generation()), ("running", g(2)));
    assert_eq!(desk.collector.status().processes[0].2, Incarnation::new(7));
    assert!(desk.dismissed.is_empty() && desk.replaced.is_empty());
}

#[test]
fn a_claimant_that_goes_away_again_takes_nobodys_place() {
    let (mut desk, _) = running();
    desk.join(1, 7, Holding::Nothing);
    desk.gone(1, 7);
    desk.gone(1, 1);
    assert_eq!(desk.lost(), [], "the first may still come back");
    desk.join(1, 1, holds(1));
    assert_eq!((desk.phase(), desk.generation()), ("running", g(1)));
}

#[test]
fn claimants_are_admitted_in_the_order_they_came() {
    let (mut desk, mut store) = running();
    desk.join(1, 7, Holding::Nothing);
    desk.join(1, 8, Holding::Nothing);
    desk.gone(1, 1);
    desk.obey(&mut store);
    assert_eq!(desk.collector.status().processes[0].2, Incarnation::new(7));
    desk.gone(1, 7);
    desk.obey(&mut store);
    assert_eq!(desk.collector.status().processes[0].2, Incarnation::new(8));
}

#[test]
fn a_node_that_returns_in_time_has_lost_nothing() {
    let (mut desk, mut store) = running();
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.told.clear();
    desk.gone(1, 1);
    desk.pass(400);
    desk.join(1, 1, holds(1));
    desk.pass(5_000);
    assert_eq!((desk.phase(), desk.generation()), ("running", g(1)));
    assert_eq!(desk.lost(), []);
    assert_eq!(
        desk.triggered(),
        [p(1)],
        "what it may have missed is said again"
    );
    desk.parts(1);
    desk.settle(&mut store);
    assert_eq!(store.complete(1), Some(true));
}

#[test]
fn a_node_away_for_too_long_is_lost_and_replaced() {
    let (mut desk, mut store) = running();
    desk.gone(1, 1);
    desk.pass(450);
    assert_eq!(desk.lost(), []);
    desk.pass(100);
    assert_eq!(desk.lost(), [p(1)]);
    assert_eq!(desk.replaced, [], "before the next generation is on record");
    desk.settle(&mut store);
    assert_eq!(desk.replaced, [(p(1), Incarnation::new(1))]);
    assert_eq!(desk.phase(), "restoring");
    desk.join(1, 7, Holding::Nothing);
    desk.obey(&mut store);
    assert_eq!((desk.phase(), desk.generation()), ("running", g(2)));
}

#[test]
fn a_node_that_is_silent_for_too_long_is_lost_though_its_stream_is_open() {
    let (mut desk, mut store) = running();
    for _ in 0..100 {
        desk.pass_in_silence(50);
        desk.step(CollectorInput::Heartbeat(p(2), Incarnation::new(1)));
    }
    desk.pass_in_silence(50);
    assert_eq!(desk.lost(), [p(1)]);
    let why = "this node did not answer in time and was declared lost".to_owned();
    assert_eq!(desk.dismissed, [(p(1), Incarnation::new(1), why)]);
    desk.settle(&mut store);
    assert_eq!(desk.replaced, [(p(1), Incarnation::new(1))]);
}

#[test]
fn a_lost_incarnation_that_returns_is_refused_and_heard_no_more() {
    let (mut desk, mut store) = running();
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    desk.obey(&mut store);
    assert_eq!(desk.generation(), g(2));
    desk.told.clear();
    desk.join(1, 1, holds(1));
    let why = "this node of p1 was declared lost and is replaced".to_owned();
    assert_eq!(desk.dismissed, [(p(1), Incarnation::new(1), why)]);
    assert_eq!(desk.collector.status().processes[0].2, Incarnation::new(7));
    let second = desk.complete_one(&mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.part(2, 1, second + 1, g(2));
    desk.part(1, 1, second + 1, g(2));
    desk.say(p(1), Incarnation::new(1), Report::Ready(g(2)));
    desk.settle(&mut store);
    assert_eq!(
        store.complete(second + 1),
        None,
        "the part of a zombie is no part"
    );
    desk.part(1, 7, second + 1, g(2));
    desk.settle(&mut store);
    assert_eq!(store.complete(second + 1), Some(true));
}

#[test]
fn parts_of_another_generation_are_no_parts() {
    let (mut desk, mut store) = running();
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.part(1, 1, 1, g(1));
    for wrong in [g(0), g(2)] {
        desk.part(2, 1, 1, wrong);
    }
    desk.say(
        p(2),
        Incarnation::new(1),
        Report::Declined {
            snapshot: s(1),
            generation: g(0),
            reason: "old".to_owned(),
        },
    );
    desk.settle(&mut store);
    assert_eq!(store.complete(1), None);
    desk.part(2, 1, 1, g(1));
    desk.settle(&mut store);
    assert_eq!(store.complete(1), Some(true));
}

#[test]
fn a_loss_in_any_step_of_a_restore_starts_it_again() {
    let (mut desk, mut store) = running();
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    desk.settle(&mut store);
    assert_eq!(desk.generation(), g(2));
    desk.say(p(1), Incarnation::new(7), Report::Ready(g(2)));
    desk.gone(2, 1);
    desk.join(2, 7, Holding::Nothing);
    desk.settle(&mut store);
    assert_eq!(desk.generation(), g(3));
    desk.say(p(2), Incarnation::new(7), Report::Ready(g(2)));
    desk.say(p(2), Incarnation::new(7), Report::Ready(g(3)));
    assert_eq!(desk.phase(), "restoring", "p1 is ready for what is over");
    desk.say(p(1), Incarnation::new(7), Report::Ready(g(3)));
    assert_eq!(desk.phase(), "running");
    let runs = desk.orders(|order| matches!(order, Order::Run(_)));
    assert_eq!(runs, [(p(1), Order::Run(g(3))), (p(2), Order::Run(g(3)))]);
}

#[test]
fn nobody_prepares_before_all_have_joined_and_nobody_runs_before_all_are_ready() {
    let mut store = Store::default();
    let mut desk = Desk::new(2, policy(), 1);
    desk.settle(&mut store);
    desk.join(1, 1, Holding::Nothing);
    assert!(
        desk.orders(|order| matches!(order, Order::Prepare(..)))
            .is_empty()
    );
    desk.join(2, 1, Holding::Nothing);
    assert_eq!(
        desk.orders(|order| matches!(order, Order::Prepare(..)))
            .len(),
        2
    );
    desk.say(p(1), Incarnation::new(1), Report::Ready(g(1)));
    assert!(
        desk.orders(|order| matches!(order, Order::Run(_)))
            .is_empty()
    );
    desk.say(p(2), Incarnation::new(1), Report::Ready(g(1)));
    assert_eq!(desk.orders(|order| matches!(order, Order::Run(_))).len(), 2);
}

#[test]
fn a_node_that_breaks_off_while_it_prepares_is_told_again_unless_it_is_ready() {
    let (mut desk, mut store) = running();
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    desk.settle(&mut store);
    desk.told.clear();
    // What it said last, ready or not, was lost with the stream.
    desk.gone(1, 7);
    desk.join(1, 7, Holding::Nothing);
    assert_eq!(
        desk.orders(|order| matches!(order, Order::Prepare(..)))
            .len(),
        1
    );
    desk.gone(2, 1);
    desk.join(2, 1, Holding::Prepared(g(2)));
    assert_eq!(
        desk.orders(|order| matches!(order, Order::Prepare(..)))
            .len(),
        1
    );
    desk.say(p(1), Incarnation::new(7), Report::Ready(g(2)));
    assert_eq!(desk.phase(), "running");
}

#[test]
fn a_process_that_runs_and_says_once_more_that_it_is_ready_runs() {
    let (mut desk, mut store) = running();
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    desk.settle(&mut store);
    // It is told once more while it loads, as its stream broke; by then all are ready.
    desk.gone(1, 7);
    desk.join(1, 7, Holding::Nothing);
    desk.say(p(2), Incarnation::new(1), Report::Ready(g(2)));
    desk.say(p(1), Incarnation::new(7), Report::Ready(g(2)));
    assert_eq!(desk.phase(), "running");
    desk.say(p(1), Incarnation::new(7), Report::Ready(g(2)));
    let processes = desk.collector.status().processes;
    let mut holdings = processes.into_iter().map(|(.., holding)| holding);
    assert!(holdings.all(|holding| holding == holds(2)));
}

#[test]
fn a_run_that_did_not_arrive_is_said_again() {
    let (mut desk, mut store) = running();
    desk.gone(1, 1);
    desk.join(1, 7, Holding::Nothing);
    desk.obey(&mut store);
    desk.told.clear();
    desk.gone(2, 1);
    desk.join(2, 1, Holding::Prepared(g(2)));
    assert_eq!(
        desk.orders(|order| *order == Order::Run(g(2))),
        [(p(2), Order::Run(g(2)))]
    );
    // And what was triggered behind it, before the stream broke.
    desk.ask(Request::snapshot(BTreeSet::from([p(2)])));
    desk.settle(&mut store);
    desk.told.clear();
    desk.gone(2, 1);
    desk.join(2, 1, Holding::Prepared(g(2)));
    assert_eq!(desk.triggered(), [p(2)]);
}

#[test]
fn a_node_of_another_job_is_refused_by_name() {
    let (mut desk, _) = running();
    let join = |process, topology, application: &str| Join {
        process: p(process),
        incarnation: Incarnation::new(9),
        topology,
        application: application.to_owned(),
        job: JobId::default(),
        holding: Holding::Nothing,
    };
    let own = topology(2, &["p1→p2", "p2→p1"]).fingerprint();
    for (join, why) in [
        (join(1, own ^ 1, "diary"), "another topology"),
        (
            join(3, own, "diary"),
            "p3 is not of this job, which has 2 processes",
        ),
        (
            join(1, own, "bank"),
            "runs application 'bank', the job is 'diary'",
        ),
    ] {
        let process = join.process;
        desk.say(process, Incarnation::new(9), Report::Join(join));
        let (_, incarnation, reason) = desk.dismissed.pop().expect("refused");
        assert_eq!(incarnation, Incarnation::new(9));
        assert!(reason.contains(why), "{reason}");
    }
    assert_eq!(desk.phase(), "running");
}

/// Two jobs of one file: a port of the one may have been the other's.
#[test]
fn a_node_that_another_jobs_collector_has_welcomed_is_refused_whoever_leads_this_one() {
    let mut store = Store::default();
    let first = Desk::running(2, policy(), &mut store);
    let mut second = Desk::new(2, policy(), 2);
    second.settle(&mut store);
    drop(first);
    let mut join = second.joining(1, 1, holds(1));
    join.job = JobId::new(58);
    second.say(p(1), Incarnation::new(1), Report::Join(join.clone()));
    let (_, _, reason) = second.dismissed.pop().expect("refused");
    assert!(reason.contains("of job j58, this is j1"), "{reason}");
    // The first term's nonce names the job for good.
    join.job = JobId::new(1);
    second.say(p(1), Incarnation::new(1), Report::Join(join));
    second.join(2, 1, holds(1));
    assert_eq!(second.phase(), "running");
    assert!(second.dismissed.is_empty());
    let welcomed = second
        .orders(|order| matches!(order, Order::Welcome(standing) if standing.job == JobId::new(1)));
    assert_eq!(welcomed.len(), 2);
}

/// Before it has read the store a collector does not know which job this is.
#[test]
fn a_node_of_another_job_that_joined_before_the_store_was_read_leaves_its_place_to_one_of_this() {
    let (first, mut store) = running();
    drop(first);
    let mut second = Desk::new(2, policy(), 2);
    for (incarnation, job) in [(58, 58), (59, 59), (1, 1), (60, 60)] {
        let mut join = second.joining(1, incarnation, holds(1));
        join.job = JobId::new(job);
        second.say(p(1), Incarnation::new(incarnation), Report::Join(join));
    }
    second.join(2, 1, holds(1));
    second.settle(&mut store);
    let refused = second.dismissed.iter();
    let refused: Vec<_> = refused.map(|(_, incarnation, _)| *incarnation).collect();
    assert_eq!(refused, [58, 59].map(Incarnation::new));
    assert!(second.dismissed[0].2.contains("of job j58, this is j1"));
    assert_eq!((second.phase(), second.generation()), ("running", g(1)));
}

/// Two collectors on an empty store: the one that comes second must not take its own name for the
/// job's, or it would end the first one's nodes, which obey another job's refusal in any term.
#[test]
fn a_collector_does_not_say_which_job_this_is_before_its_first_record_stands() {
    let mut store = Store::default();
    let mut second = Desk::new(2, policy(), 2);
    second.serve(&mut store, Fate::Done);
    let first = Desk::running(2, policy(), &mut store);
    let mut join = second.joining(1, 1, holds(1));
    join.job = JobId::new(1);
    second.say(p(1), Incarnation::new(1), Report::Join(join));
    second.settle(&mut store);
    assert!(matches!(second.over, Some(Over::Fenced(_))));
    assert!(second.dismissed.is_empty(), "{:?}", second.dismissed);
    assert_eq!(first.phase(), "running");
}
