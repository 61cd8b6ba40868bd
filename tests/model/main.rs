//! Every interleaving of small worlds, by a model checker: what must always hold, and what must
//! occur somewhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

mod explored;

use std::time::Instant;

use cutline::protocol::mode::Mode;
use explored::{Case, Explored, Trouble};
use stateright::{Checker, Model};

#[test]
fn probe() {
    let sends = std::env::var("SENDS").unwrap_or("p1→p2:2 p2→p3 p3→p1".to_owned());
    let channels = std::env::var("CH").unwrap_or("p1→p2 p2→p3 p3→p1".to_owned());
    let n = |v: &str, d: u32| std::env::var(v).ok().map_or(d, |s| s.parse().unwrap());
    let trouble = match n("T", 0) {
        0 => Trouble::Nothing,
        1 => Trouble::BrokenStream,
        2 => Trouble::Crash,
        3 => Trouble::LostCollector,
        4 => Trouble::Abort,
        _ => Trouble::UnknownPut,
    };
    let case = Case {
        name: "probe",
        processes: n("N", 3),
        channels: channels.leak(),
        sends: sends.leak(),
        mode: Mode::Classic,
        snapshots: n("S", 1) as u8,
        everyone: n("E", 0) > 0,
        trouble,
        states: (0, 0),
        shows: &[],
    };
    let started = Instant::now();
    let model = Explored::new(case);
    eprintln!("undisturbed {:?}", started.elapsed());
    let checker = model
        .checker()
        .threads(2)
        .target_state_count(n("MAX", 400000) as usize)
        .spawn_bfs()
        .join();
    eprintln!(
        "{} unique of {} states, depth {}, {:?}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        started.elapsed()
    );
    eprintln!("{}", checker.model().seen);
    for (name, path) in checker.discoveries() {
        eprintln!("-- {name}");
        let last = path.last_state().clone();
        for action in path.into_actions() {
            eprintln!("  {}", explored::state::describe(&action));
        }
        eprintln!("{last:?}");
    }
}
