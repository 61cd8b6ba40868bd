//! `cutline run --engine sim --seeds A..B`: the same scenario once for each seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::Instant;

use serde::Serialize;

use super::simulated::{prepared, simulate, view};
use super::{Options, RunError};
use crate::control::command::Reply;
use crate::control::log::{Log, seconds};
use crate::control::table::{Cell, Colour, Table, Tone};
use crate::control::view::View;
use crate::scenario::Source;
use crate::sim::{Figures, Settings};

/// Failing seeds that are told; whoever sees more than this has enough to begin with.
const FAILING_MAX: usize = 20;

/// How the runs came out.
#[derive(Clone, Debug, Serialize)]
struct SeedsView {
    /// The scenario.
    scenario: String,
    /// The first seed, and the one after the last.
    from: u64,
    to: u64,
    /// Runs.
    runs: u64,
    /// Runs in a second.
    runs_per_second: f64,
    /// Whether every run came out as it should.
    ok: bool,
    /// How many did not.
    failed: u64,
    /// The first of those that did not.
    failing: Vec<Failing>,
    /// How often each case occurred, in all runs together.
    cases: BTreeMap<String, u64>,
    #[serde(skip)]
    order: Vec<(String, u64)>,
}

/// A run that did not come out as it should.
#[derive(Clone, Debug, Serialize)]
struct Failing {
    seed: u64,
    /// The first thing that was wrong.
    failure: String,
    /// What runs it again.
    command: String,
}

/// Runs a scenario once for each seed; `command` is what would run it once, without the seed.
///
/// # Errors
/// If it could not be run.
pub fn run(
    source: &Source,
    seeds: Range<u64>,
    options: &Options,
    settings: &Settings,
    command: &str,
    log: &Log,
) -> Result<Reply, RunError> {
    let begin = Instant::now();
    let mut figures = Figures::default();
    let mut view_of = SeedsView {
        scenario: String::new(),
        from: seeds.start,
        to: seeds.end,
        runs: 0,
        runs_per_second: 0.0,
        ok: true,
        failed: 0,
        failing: Vec::new(),
        cases: BTreeMap::new(),
        order: Vec::new(),
    };
    for seed in seeds {
        let with_seed = Options {
            seed: Some(seed),
            ..options.clone()
        };
        let scenario = prepared(&source.scenario(Some(seed))?, &with_seed)?;
        view_of.scenario.clone_from(&scenario.name);
        let outcome = simulate(&scenario, settings, &mut |_, _| {})?;
        figures.add(&outcome.figures);
        let came = view(&scenario, outcome);
        view_of.runs += 1;
        if !came.ok {
            view_of.failed += 1;
            let failure = came.failures().first().cloned().unwrap_or_default();
            log.say("failure", &format!("seed {seed}: {failure}"));
            if view_of.failing.len() < FAILING_MAX {
                let command = format!("{command} --seed {seed}");
                view_of.failing.push(Failing {
                    seed,
                    failure,
                    command,
                });
            }
        }
    }
    let elapsed = begin.elapsed();
    view_of.ok = view_of.failed == 0;
    view_of.order = figures.cases();
    view_of.cases = view_of.order.iter().cloned().collect();
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    let runs = view_of.runs as f64;
    view_of.runs_per_second = runs / elapsed.as_secs_f64().max(f64::EPSILON);
    let took = format!("{} runs in {}", view_of.runs, seconds(elapsed));
    log.say("progress", &took);
    Ok(Reply {
        text: view_of.render(options.format),
        yes: view_of.ok,
    })
}

impl View for SeedsView {
    fn table(&self, colour: Colour) -> String {
        let mut table = Table::new(["case", "times"]);
        for (case, times) in &self.order {
            table.row(vec![Cell::text(case), Cell::text(times)]);
        }
        let mut text = table.render(colour);
        for failing in &self.failing {
            let Failing {
                seed,
                failure,
                command,
            } = failing;
            let line = format!("seed {seed}: {failure}");
            let _ = writeln!(text, "{}\n  {command}", Tone::Bad.paint(&line, colour));
        }
        let Self {
            runs,
            runs_per_second,
            failed,
            ..
        } = self;
        let (tone, last) = match failed {
            0 => (
                Tone::Good,
                format!(
                    "ok: {runs} runs, {runs_per_second:.0} a second; every one as it should be"
                ),
            ),
            _ => (
                Tone::Bad,
                format!("failed: {failed} of {runs} runs, {runs_per_second:.0} a second"),
            ),
        };
        let _ = writeln!(text, "{}", tone.paint(&last, colour));
        text
    }
}
