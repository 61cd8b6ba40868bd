//! Every interleaving of small worlds, by a model checker: what must always hold in every state,
//! and what must occur in some.
//!
//! Each world is a test of its own name. The table of them, with the number of states of each, is
//! in `docs/model-checking.md`; `REWRITE=1` writes a world's row anew.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

mod explored;
mod table;

use std::time::{Duration, Instant};

use explored::state::describe;
use explored::{CASES, Explored};
use stateright::{Checker, HasDiscoveries, Model};

/// The processors of the smallest machine that this is run on.
const THREADS: usize = 2;

/// A world that takes longer has no end: the largest takes a quarter of a minute on two processors
/// that have nothing else to do. One that has grown is found by the number of its states.
const PATIENCE: Duration = Duration::from_secs(540);

fn explore(name: &str) {
    let wrong = runs_mutant();
    let case = *CASES.iter().find(|case| case.name == name).unwrap();
    let started = Instant::now();
    let checker = Explored::new(case).checker().threads(THREADS);
    let checker = checker.timeout(PATIENCE);
    let checker = checker.finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    if let Some((wrong, path)) = checker.discoveries().into_iter().next() {
        let last = path.last_state().clone();
        let steps = path.into_actions();
        let steps: Vec<_> = steps.iter().map(describe).collect();
        panic!("not so: {wrong}\n{}\n{last:?}", steps.join("\n"));
    }
    assert!(started.elapsed() < PATIENCE, "{name} is too large");
    if wrong {
        return; // Only what is not so kills it, no number of states.
    }
    let states = checker.unique_state_count();
    let seen = &checker.model().seen;
    assert!(
        states >= case.states_min,
        "{name} has gone blind: {states} states"
    );
    for &rare in case.shows {
        assert!(
            seen.count(rare) > 0,
            "{name} never shows {rare:?}, but {seen}"
        );
    }
    table::compare(&case, states, started.elapsed());
}

/// Whether it is a wrong protocol that runs: the environment names it.
fn runs_mutant() -> bool {
    let name = std::env::var("CUTLINE_MUTANT").ok();
    #[cfg(feature = "mutants")]
    cutline::protocol::mutant::choose(name.as_deref());
    cfg!(feature = "mutants") && name.is_some()
}

macro_rules! worlds {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                explore(stringify!($name));
            }
        )*

        #[test]
        fn every_world_is_a_test() {
            let tests = [$(stringify!($name)),*];
            let worlds: Vec<_> = CASES.iter().map(|case| case.name).collect();
            assert_eq!(tests.as_slice(), worlds);
        }
    };
}

worlds! {
    ring_classic
    mesh_classic
    dag_classic
    ring_classic_twice
    fork_classic_twice
    ring_aligned
    lasso_aligned
    dag_aligned
    pair_aligned
    fork_aligned_twice
    ring_unaligned
    dag_unaligned
    fork_unaligned_twice
    dag_at_least_once
    ring_aligned_limit
    dag_aligned_limit
    fork_aligned_limit
    fork_aligned_limit_idle
    line_aligned_twice_limit
    pair_aligned_limit_crash
    pair_aligned_limit_break
    ring_classic_break
    fork_classic_break
    fork_aligned_break
    fork_unaligned_break
    ring_unaligned_break
    pair_classic_break_twice
    pair_unaligned_break_twice
    line_unaligned_twice_break
    ring_classic_crash
    ring_aligned_crash
    fork_classic_crash
    fork_aligned_crash
    fork_unaligned_crash
    pair_unaligned_crash
    line_unaligned_twice_crash
    ring_classic_collector
    fork_classic_collector
    fork_aligned_collector
    fork_unaligned_collector
    ring_classic_abort
    fork_classic_abort
    fork_aligned_abort
    fork_unaligned_abort
    ring_classic_unknown
    fork_classic_unknown
    fork_unaligned_unknown
}
