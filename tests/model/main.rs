//! Every interleaving of small worlds, by a model checker: what must always hold, and what must
//! occur somewhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]
#![allow(
    clippy::print_stdout,
    reason = "what was seen, for those who change the worlds"
)]

mod explored;

use std::time::Instant;

use explored::{CASES, Explored};
use stateright::{Checker, Model};

#[test]
fn probe() {
    let only = std::env::var("W").unwrap_or_default();
    let max = std::env::var("MAX")
        .ok()
        .map_or(150_000, |s| s.parse().unwrap());
    for case in CASES.iter().filter(|case| case.name.contains(&only)) {
        let started = Instant::now();
        let model = Explored::new(*case);
        let checker = model
            .checker()
            .threads(2)
            .target_state_count(max)
            .timeout(std::time::Duration::from_secs(25))
            .spawn_bfs()
            .join();
        println!(
            "{}: {} unique of {} states, depth {}, {:?}: {}",
            case.name,
            checker.unique_state_count(),
            checker.state_count(),
            checker.max_depth(),
            started.elapsed(),
            checker.model().seen
        );
        for rare in case.shows {
            if checker.model().seen.count(*rare) == 0 {
                println!("    NOT SEEN {rare:?}");
            }
        }
        for (name, path) in checker.discoveries() {
            println!("-- {name}");
            let last = path.last_state().clone();
            for action in path.into_actions() {
                println!("  {}", explored::state::describe(&action));
            }
            println!("{last:?}");
        }
    }
}
