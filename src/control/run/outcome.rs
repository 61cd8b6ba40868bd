//! How a scenario came out: every snapshot's verdicts, and one last line.

use std::fmt::Write as _;

use serde::Serialize;

use crate::check::Verified;
use crate::control::table::{Colour, Tone};
use crate::control::view::{VerifyView, View};
use crate::protocol::ids::Generation;

/// What an engine knows at the end of a scenario.
pub(super) struct Came {
    pub(super) scenario: String,
    pub(super) seed: u64,
    pub(super) failures: Vec<String>,
    pub(super) complete: u64,
    pub(super) aborted: u64,
    pub(super) restores: u64,
    /// The last generation that ran.
    pub(super) generation: Option<Generation>,
}

/// How a scenario came out.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RunView {
    /// The scenario.
    scenario: String,
    /// The job's seed.
    seed: u64,
    /// Whether every expectation and every verdict holds.
    pub(super) ok: bool,
    /// What did not come out as it should, in the order it was found.
    failures: Vec<String>,
    /// Snapshots that became complete.
    complete: u64,
    /// Snapshots that were aborted.
    aborted: u64,
    /// How often the job was taken back.
    restores: u64,
    /// The last generation that ran, such as `g3`.
    generation: Option<String>,
    /// Where the job is kept, if it is.
    directory: Option<String>,
    /// The verdicts on every complete snapshot that is still kept.
    snapshots: Vec<Verified>,
}

impl RunView {
    pub(super) fn new(
        came: Came,
        verified: Result<Option<VerifyView>, String>,
        directory: Option<String>,
    ) -> Self {
        let mut failures = came.failures;
        let snapshots = match verified {
            Ok(view) => view.map(|view| view.snapshots).unwrap_or_default(),
            Err(reason) => {
                failures.push(format!("the snapshots cannot be verified: {reason}"));
                Vec::new()
            }
        };
        // That an at-least-once cut is not consistent is what its mode says, and shown.
        let broken = |verified: &&Verified| !verified.holds && verified.mode.is_consistent();
        for verified in snapshots.iter().filter(broken) {
            let failing = verified.verdicts.failing().join(", not ");
            failures.push(format!("{} is not {failing}", verified.snapshot));
        }
        Self {
            scenario: came.scenario,
            seed: came.seed,
            ok: failures.is_empty(),
            failures,
            complete: came.complete,
            aborted: came.aborted,
            restores: came.restores,
            generation: came.generation.as_ref().map(ToString::to_string),
            directory,
            snapshots,
        }
    }

    /// What did not come out as it should.
    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// The last line: how it came out, in one sentence.
    fn last_line(&self) -> String {
        let Self {
            complete,
            aborted,
            restores,
            ..
        } = self;
        match self.failures.as_slice() {
            [] => {
                // Of no snapshot at all every verdict would hold.
                let holds = match self.snapshots.is_empty() {
                    true => "every expectation holds, and there was no snapshot to judge",
                    false => "every expectation and every verdict holds",
                };
                format!(
                    "ok: {complete} complete snapshots, {aborted} aborted, {restores} restores; \
                     {holds}"
                )
            }
            [only] => format!("failed: {} (seed {})", one_line(only), self.seed),
            [first, rest @ ..] => {
                let (first, more) = (one_line(first), rest.len());
                format!("failed: {first} (and {more} more; seed {})", self.seed)
            }
        }
    }
}

fn one_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

impl View for RunView {
    fn table(&self, colour: Colour) -> String {
        let mut text = match self.snapshots.is_empty() {
            true => "no complete snapshot\n".to_owned(),
            false => VerifyView::new(&self.scenario, self.snapshots.clone()).table(colour),
        };
        let missing = self.complete.saturating_sub(self.snapshots.len() as u64);
        if missing > 0 {
            let _ = writeln!(
                text,
                "{missing} more were complete and have been retired since"
            );
        }
        if let Some(directory) = &self.directory {
            let _ = writeln!(text, "kept in {directory}");
        }
        for failure in &self.failures {
            let _ = writeln!(text, "{}", Tone::Bad.paint(failure, colour));
        }
        let tone = if self.ok { Tone::Good } else { Tone::Bad };
        let _ = writeln!(text, "{}", tone.paint(&self.last_line(), colour));
        text
    }
}
