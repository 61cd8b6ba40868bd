//! Wrong protocols: each is killed by the test that is named for it, and none of those tests fails
//! without it. Needs the feature `mutants`; see `docs/mutants.md`, which `REWRITE=1` writes anew.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

mod kills;
mod programs;

use std::collections::BTreeSet;
use std::{env, fs};

use cutline::protocol::mutant::ALL;
use kills::KILLS;
use programs::{Programs, Verdict};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/mutants.md");

/// The line above the rows.
const RULE: &str = "|---|---|---|";

#[test]
fn every_mutant_is_killed_by_the_test_named_for_it() {
    let programs = Programs::build(KILLS.iter().map(|kill| kill.program).collect());
    let mut survive = Vec::new();
    for kill in KILLS {
        let name = format!("{:?}", kill.mutant);
        match programs.run(kill.program, kill.test, Some(&name)) {
            Verdict::Failed(why) => eprintln!("{name} is killed by {kill}: {why}"),
            other => survive.push(format!("{name} survives {kill}: {other:?}")),
        }
    }
    assert!(survive.is_empty(), "\n{}", survive.join("\n"));
}

#[test]
fn no_test_that_is_to_kill_fails_by_itself() {
    let programs = Programs::build(KILLS.iter().map(|kill| kill.program).collect());
    let named: BTreeSet<_> = KILLS.iter().map(|kill| (kill.program, kill.test)).collect();
    for (program, test) in named {
        let verdict = programs.run(program, test, None);
        assert_eq!(verdict, Verdict::Passed, "{program} {test}");
    }
}

#[test]
fn every_mutant_has_its_test_and_its_row() {
    let rows: Vec<_> = ALL
        .iter()
        .map(|(mutant, wrong)| {
            let kills = KILLS.iter().filter(|kill| kill.mutant == *mutant);
            let by: Vec<_> = kills.map(|kill| format!("`{kill}`")).collect();
            assert!(!by.is_empty(), "{mutant:?} has no test named for it");
            format!("| {mutant:?} | {wrong} | {} |", by.join(", "))
        })
        .collect();
    let page = fs::read_to_string(PAGE).expect("the page");
    let (above, below) = page.split_once(RULE).expect("a table");
    let (_, below) = below.split_once("\n\n").expect("a line below the table");
    let right = format!("{above}{RULE}\n{}\n\n{below}", rows.join("\n"));
    if env::var_os("REWRITE").is_some() {
        return fs::write(PAGE, right).expect("the page is written");
    }
    assert!(page == right, "{PAGE} is another: REWRITE=1 writes it");
}
