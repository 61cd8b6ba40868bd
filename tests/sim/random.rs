//! Scenarios drawn by seeds: whatever goes wrong, no verdict is broken, and all that can go wrong
//! does.

use cutline::sim::Figures;

use super::{parsed, run};

/// Few enough to be a test of every day; `CUTLINE_SEEDS` runs more.
const SEEDS: u64 = 150;

#[test]
fn no_verdict_is_broken_and_every_rare_case_occurs() {
    let seeds = std::env::var("CUTLINE_SEEDS").ok();
    let more: Option<u64> = seeds.and_then(|seeds| seeds.parse().ok());
    let seeds = more.map_or(SEEDS, |more| more.max(SEEDS));
    let source = parsed(include_str!("../../examples/scenarios/random.toml"));
    let mut figures = Figures::default();
    for seed in 0..seeds {
        let scenario = source.scenario(Some(seed)).unwrap();
        let ran = run(&scenario);
        let verified = &ran.outcome.verified;
        let mut consistent = verified.iter().filter(|each| each.mode.is_consistent());
        let broken = consistent.any(|each| !each.holds);
        assert!(
            !broken && ran.outcome.failures.is_empty(),
            "seed {seed}: {:?}\n{}",
            ran.outcome.failures,
            ran.story()
                .lines()
                .filter(|line| !line.contains("Ended("))
                .collect::<Vec<_>>()
                .join("\n")
        );
        figures.add(&ran.outcome.figures);
    }
    let cases = figures.cases();
    println!("{cases:#?}");
    let none: Vec<_> = cases.iter().filter(|(_, times)| *times == 0).collect();
    assert!(none.is_empty(), "these never occurred: {none:?}");
}
