//! Property tests on `World`: random topologies, schedules, initiators, several snapshots at once,
//! broken streams, crashes, stores that fail. The cut is always exact, and the rare cases occur.
//!
//! `exact` is checked against the application's own log of sends and handlings, never against the
//! core's counters. A failure prints the plan, shrunk; pin it below as a test of its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]
#![allow(
    clippy::print_stdout,
    reason = "what was seen, for those who change the plans"
)]

mod chatter;
mod plan;
mod seen;

use cutline::protocol::ids::SnapshotId;
use cutline::world::World;
use proptest::test_runner::{Config, TestRng, TestRunner};

use chatter::Chatter;
use plan::{Modes, Plan};
use seen::Seen;

/// Runs plans from one fixed seed, so that CI repeats itself; `CUTLINE_CASES` runs more.
fn for_all(cases: u32, modes: Modes, faults: bool) -> Seen {
    let more: Option<u32> = std::env::var("CUTLINE_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    let cases = more.map_or(cases, |more| more.max(cases));
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let seen = std::cell::RefCell::new(Seen::default());
    let outcome = runner.run(&plan::plans(modes, faults), |plan| {
        let one = plan.run();
        seen.borrow_mut().add(&one);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    seen.into_inner()
}

#[test]
fn without_faults_every_cut_is_exact_and_the_interesting_cases_occur() {
    let seen = for_all(400, Modes::Classic, false);
    println!("{seen:?}");
    assert!(seen.complete > 500, "{seen:?}");
    assert!(
        seen.non_empty_channels > 100,
        "messages are in flight in some cuts: {seen:?}"
    );
    assert!(seen.overlapping > 50, "snapshots overlap: {seen:?}");
    assert!(
        seen.several_initiators > 50,
        "several initiators open one snapshot: {seen:?}"
    );
    assert_eq!(seen.breaches, 0, "{seen:?}");
}

#[test]
fn with_faults_every_cut_is_exact_and_nothing_is_lost_or_doubled() {
    let seen = for_all(600, Modes::Classic, true);
    println!("{seen:?}");
    assert!(seen.complete > 500, "{seen:?}");
    assert!(seen.non_empty_channels > 100, "{seen:?}");
    assert!(seen.aborted > 50, "snapshots are aborted: {seen:?}");
    assert!(seen.restores > 100, "the job is taken back: {seen:?}");
    assert!(
        seen.restored_in_flight > 20,
        "with messages in flight: {seen:?}"
    );
    assert!(
        seen.resent > 50,
        "streams break with frames on them: {seen:?}"
    );
    assert_eq!(seen.breaches, 0, "{seen:?}");
}

#[test]
fn by_every_consistent_mode_every_cut_is_exact_and_markers_overtake() {
    let seen = for_all(500, Modes::Consistent, false);
    println!("{seen:?}");
    assert_eq!(seen.breaches, 0, "{seen:?}");
    for (count, what) in [
        (seen.aligned, "aligned snapshots"),
        (seen.unaligned, "unaligned snapshots"),
        (seen.superseded, "older snapshots ended by newer ones"),
        (seen.sender_shares, "sender shares"),
        (seen.receiver_shares, "receiver shares"),
        (seen.both_shares, "channels with both shares"),
        (seen.struck_at_sender, "T at a sender"),
        (seen.struck_at_receiver, "T at a receiver"),
        (seen.back_edges_logged, "back edges logged"),
    ] {
        assert!(count > 20, "too few {what}: {seen:?}");
    }
}

#[test]
fn with_faults_every_consistent_mode_stays_exact_and_nothing_is_lost_or_doubled() {
    let seen = for_all(800, Modes::Consistent, true);
    println!("{seen:?}");
    assert_eq!(seen.breaches, 0, "{seen:?}");
    for (count, what) in [
        (seen.aligned, "aligned snapshots"),
        (seen.unaligned, "unaligned snapshots"),
        (seen.aborted - seen.superseded, "snapshots aborted"),
        (seen.superseded, "older snapshots ended by newer ones"),
        (seen.restored_in_flight, "restores with messages in flight"),
        (seen.restored_both_shares, "restores with both shares"),
        (seen.overtaking_markers_resent, "overtaking markers resent"),
    ] {
        assert!(count > 10, "too few {what}: {seen:?}");
    }
}

#[test]
fn at_least_once_cuts_are_not_consistent_which_the_verdicts_say_and_the_job_goes_on() {
    for faults in [false, true] {
        let seen = for_all(200, Modes::Any, faults);
        println!("{seen:?}");
        assert_eq!(seen.breaches, 0, "{seen:?}");
        assert!(seen.at_least_once > 100, "{seen:?}");
        assert!(seen.inconsistent > 10, "{seen:?}");
        assert_eq!(seen.warned > 0, faults, "{seen:?}");
    }
}

#[test]
fn a_thousand_processes_take_a_snapshot() {
    let plan = Plan::ring(1_000);
    let mut world: World<Chatter> = plan.world();
    assert!(world.stabilize(1_000_000), "the job starts");
    plan::tick_all(&mut world);
    world.ask(plan::snapshot_request());
    assert!(world.stabilize(1_000_000), "the snapshot ends");
    let seen = seen::check(&world, true);
    assert_eq!(seen.complete, 1);
    assert!(
        world
            .part(
                SnapshotId::new(1),
                world.job().topology.process("p999").unwrap()
            )
            .is_some()
    );
}
