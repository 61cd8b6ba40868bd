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

use cutline::protocol::ids::SnapshotId;
use cutline::world::World;
use proptest::test_runner::{Config, TestRng, TestRunner};

use chatter::Chatter;
use plan::{Plan, Seen};

/// Runs plans from one fixed seed, so that CI repeats itself; `CUTLINE_CASES` runs more.
fn for_all(cases: u32, faults: bool) -> Seen {
    let cases = std::env::var("CUTLINE_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(cases);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let seen = std::cell::RefCell::new(Seen::default());
    let outcome = runner.run(&plan::plans(faults), |plan| {
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
    let seen = for_all(400, false);
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
    let seen = for_all(600, true);
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
fn a_thousand_processes_take_a_snapshot() {
    let plan = Plan::ring(1_000);
    let mut world: World<Chatter> = plan.world();
    assert!(world.stabilize(1_000_000), "the job starts");
    plan::tick_all(&mut world);
    world.ask(plan::snapshot_request());
    assert!(world.stabilize(1_000_000), "the snapshot ends");
    let seen = plan::check(&world);
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
