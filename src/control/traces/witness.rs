//! `cutline witness`: a run that passes through what a snapshot recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::generation::{Written, left_text};
use crate::check::{NoWitness, Recorded, Step, Witness, inconsistent};
use crate::control::command::{CommandError, Reply, id, open};
use crate::control::place::Place;
use crate::control::table::{Cell, Colour, Table, Tone};
use crate::control::view::{Format, View};
use crate::job::Job;
use crate::protocol::application::Application;
use crate::protocol::ids::SnapshotId;
use crate::protocol::mode::Mode;
use crate::store::read_parts;
use crate::trace::{Traces, described};

/// Makes the witness of a snapshot: yes, if it passes through the recorded state and ends as the
/// real run did.
///
/// # Errors
/// If there is no such job, snapshot or trace, or the trace does not reach the cut.
pub async fn witness<A: Application>(
    place: &Place,
    snapshot: &str,
    format: Format,
) -> Result<Reply, CommandError> {
    let snapshot = id(snapshot)?;
    let (job, directory) = place.job()?;
    let none = || CommandError::No(format!("{} has no snapshot {snapshot}", job.name()));
    let store = open(&job).await?.ok_or_else(none)?;
    let manifest = store.manifest(snapshot).await?;
    if !manifest.is_complete() {
        return Err(CommandError::No(format!("{snapshot} was aborted")));
    }
    let topology = job.topology().clone();
    let traces = Traces::open(directory.root(), topology.clone())?;
    let written = Written::read(&traces, manifest.generation)?;
    let origin = written.origin(&job, Some(&store), &BTreeMap::new()).await?;
    let recorded = Recorded::of(&topology, &read_parts(&store, &topology, snapshot).await?);
    let order = written.order();
    let left: Vec<_> = order
        .left
        .iter()
        .map(|left| left_text(&topology, left))
        .collect();
    let making = tokio::task::spawn_blocking(move || {
        crate::check::witness::<A>(&origin, &order.events, snapshot, &recorded)
    });
    let made = making
        .await
        .map_err(|error| CommandError::No(format!("the run cannot be done again: {error}")))?;
    let made = made.map_err(|error| no_witness(error, &left))?;
    let view = WitnessView::new(&job, manifest.mode, &made, (&written, left));
    Ok(Reply {
        yes: view.holds,
        text: view.render(format),
    })
}

fn no_witness(error: NoWitness, left: &[String]) -> CommandError {
    let mut text = error.to_string();
    for left in left {
        let _ = write!(text, "\n{left}");
    }
    CommandError::No(text)
}

/// The witness of a snapshot; `docs/trace.md` describes the JSON.
#[derive(Debug, Serialize)]
struct WitnessView {
    job: String,
    snapshot: String,
    /// How it was taken.
    mode: Mode,
    generation: String,
    /// How the logged events were put in an order.
    order: &'static str,
    holds: bool,
    events: usize,
    before_the_cut: usize,
    swaps: u64,
    /// After how many events of the logged run; null, if never.
    occurred: Option<usize>,
    passes_through: bool,
    ends_alike: bool,
    findings: Vec<String>,
    /// What was written down and is in neither run.
    left_out: Vec<String>,
    /// Processes whose trace has no end.
    torn: Vec<String>,
    logged: Vec<StepView>,
    moved: Vec<StepView>,
}

#[derive(Debug, Serialize)]
struct StepView {
    process: String,
    event: String,
    before_the_cut: bool,
    moved: bool,
}

impl WitnessView {
    fn new(
        job: &Job,
        mode: Mode,
        made: &Witness,
        (written, left_out): (&Written, Vec<String>),
    ) -> Self {
        let topology = job.topology();
        let steps = |steps: &[Step]| {
            let views = steps.iter().map(|step| StepView {
                process: topology.name(step.event.process).to_owned(),
                event: described(topology, &step.event),
                before_the_cut: step.is_before,
                moved: step.is_moved,
            });
            views.collect()
        };
        let broken = made.broken.as_ref().map(|broken| broken.text(topology));
        let mut findings: Vec<String> = broken.into_iter().collect();
        let unlike = made.unlike.iter();
        findings.extend(unlike.map(|what| format!("{what} is not as it was recorded")));
        if !made.ends_alike {
            findings.push("the moved run ends in another state".to_owned());
        }
        let snapshot: SnapshotId = made.snapshot;
        Self {
            job: job.name().to_owned(),
            snapshot: snapshot.to_string(),
            mode,
            generation: written.generation.to_string(),
            order: "wall time, causes first",
            holds: made.holds(),
            events: made.logged.len(),
            before_the_cut: made.before,
            swaps: made.swaps,
            occurred: made.occurred,
            passes_through: made.broken.is_none() && made.unlike.is_empty(),
            ends_alike: made.ends_alike,
            findings,
            left_out,
            torn: written.torn.clone(),
            logged: steps(&made.logged),
            moved: steps(&made.moved),
        }
    }

    fn summary(&self, colour: Colour) -> String {
        let mut text = format!(
            "{} of {}, {}: {} events in the trace (in the order of {}), {} before the cut\n",
            self.snapshot, self.generation, self.mode, self.events, self.order, self.before_the_cut
        );
        let _ = match self.swaps {
            1 => writeln!(
                text,
                "1 swap of neighbours brings those before the cut to the front"
            ),
            swaps => {
                writeln!(
                    text,
                    "{swaps} swaps of neighbours bring those before the cut to the front"
                )
            }
        };
        let _ = match self.occurred {
            None => writeln!(text, "the recorded state never was there in the logged run"),
            Some(0) => writeln!(text, "the recorded state was there at the start"),
            Some(after) => writeln!(text, "the recorded state was there after event {after}"),
        };
        for what in self.left_out.iter().chain(&self.findings) {
            let _ = writeln!(text, "{what}");
        }
        if !self.torn.is_empty() {
            let torn = self.torn.join(", ");
            let _ = writeln!(text, "the trace has no end yet, or lost it, at {torn}");
        }
        let judged = match self.holds {
            true => Tone::Good.paint(
                "done again, the moved run passes through the recorded state and ends as the \
                 logged one",
                colour,
            ),
            false if self.mode.is_consistent() => {
                Tone::Bad.paint("there is no such run: the cut is not consistent", colour)
            }
            false => {
                let why = inconsistent(self.mode);
                Tone::Bad.paint(&format!("there is no such run; {why}"), colour)
            }
        };
        let _ = writeln!(text, "{judged}");
        text
    }
}

impl View for WitnessView {
    fn table(&self, colour: Colour) -> String {
        let mut table = Table::new(["", "as logged", "", "", "before the cut first", ""]);
        let cell = |step: &StepView| Cell::text(format!("{}: {}", step.process, step.event));
        let side = |step: &StepView| if step.before_the_cut { "before" } else { "" };
        let moved = |step: &StepView| if step.moved { "*" } else { "" };
        let mut rows = Vec::new();
        for (place, (logged, other)) in (1..).zip(self.logged.iter().zip(&self.moved)) {
            if place == self.before_the_cut + 1 {
                rows.push(self.cut_row());
            }
            rows.push(vec![
                Cell::text(format!("{place}{}", moved(logged))),
                cell(logged),
                Cell::text(side(logged)),
                Cell::text(moved(other)),
                cell(other),
                Cell::text(side(other)),
            ]);
        }
        if self.events == self.before_the_cut {
            rows.push(self.cut_row());
        }
        for row in rows {
            table.row(row);
        }
        let rows = table.render(colour);
        format!("{rows}* moved\n\n{}", self.summary(colour))
    }
}

impl WitnessView {
    fn cut_row(&self) -> Vec<Cell> {
        let here = format!("── {} ──", self.snapshot);
        let empty = || Cell::text("");
        vec![
            empty(),
            empty(),
            empty(),
            empty(),
            Cell::text(here),
            empty(),
        ]
    }
}
