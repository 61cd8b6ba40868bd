//! Wrong protocols: each is killed by the test that is named for it, and none of those tests fails
//! without it. Needs the feature `mutants`; see `docs/mutants.md`, which `REWRITE=1` writes anew.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

mod kills;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs};

use cutline::protocol::mutant::ALL;
use kills::{KILLS, Kill};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/mutants.md");

/// The line above the rows.
const RULE: &str = "|---|---|---|";

/// The test programs, by their names, built with the feature that this one is built with.
fn programs() -> BTreeMap<String, PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    build.args([
        "test",
        "--no-run",
        "--features",
        "mutants",
        "--message-format",
        "json",
    ]);
    for program in KILLS
        .iter()
        .map(|kill| kill.program)
        .collect::<BTreeSet<_>>()
    {
        build.args(["--test", program]);
    }
    let built = build.output().expect("cargo");
    let said = String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(built.status.success(), "{said}");
    let lines = built.stdout.split(|byte| *byte == b'\n');
    let artifacts = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    let programs = artifacts.filter_map(|artifact| {
        let name = artifact["target"]["name"].as_str()?;
        let executable = artifact["executable"].as_str()?;
        Some((name.to_owned(), PathBuf::from(executable)))
    });
    programs.collect()
}

fn run(programs: &BTreeMap<String, PathBuf>, kill: &Kill, mutant: Option<&str>) -> Output {
    let mut test = Command::new(&programs[kill.program]);
    test.args([kill.test, "--exact"]);
    test.env_remove("CUTLINE_MUTANT").env_remove("REWRITE");
    test.env("RUST_BACKTRACE", "0");
    if let Some(mutant) = mutant {
        test.env("CUTLINE_MUTANT", mutant);
    }
    test.output().expect("the test runs")
}

/// The test was there, ran and failed: not the program, before or besides it.
fn has_failed(kill: &Kill, output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stdout);
    said.contains(&format!("test {} ... FAILED", kill.test))
}

#[test]
fn every_mutant_is_killed_by_the_test_named_for_it() {
    let programs = programs();
    let mut wrong = Vec::new();
    let mut whole = BTreeSet::new();
    for kill in KILLS {
        let named = (kill.program, kill.test);
        let output = run(&programs, kill, None);
        if whole.insert(named) && !String::from_utf8_lossy(&output.stdout).contains("1 passed") {
            wrong.push(format!(
                "{} {} does not pass without",
                kill.program, kill.test
            ));
        }
        let output = run(&programs, kill, Some(&format!("{:?}", kill.mutant)));
        match has_failed(kill, &output) {
            true => eprintln!(
                "{:?} is killed by {} {}",
                kill.mutant, kill.program, kill.test
            ),
            false => wrong.push(format!("{:?} survives {}", kill.mutant, kill.test)),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_mutant_has_its_test_and_its_row() {
    let rows: Vec<_> = ALL
        .iter()
        .map(|(mutant, wrong)| {
            let kills: Vec<_> = KILLS.iter().filter(|kill| kill.mutant == *mutant).collect();
            assert!(!kills.is_empty(), "{mutant:?} has no test named for it");
            let by = kills
                .iter()
                .map(|kill| format!("`{} {}`", kill.program, kill.test));
            format!(
                "| {mutant:?} | {wrong} | {} |",
                by.collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    let page = fs::read_to_string(PAGE).expect("the page");
    let (above, _) = page.split_once(RULE).expect("a table");
    let right = format!("{above}{RULE}\n{}\n", rows.join("\n"));
    if env::var_os("REWRITE").is_some() {
        fs::write(PAGE, &right).expect("the page is written");
    }
    let page = fs::read_to_string(PAGE).expect("the page");
    assert_eq!(
        page, right,
        "docs/mutants.md is another: REWRITE=1 writes it"
    );
}
