//! `cutline replay`: a traced run, again in memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::generation::{Written, generation, left_text};
use crate::check::inconsistent;
use crate::control::command::{CommandError, Reply, open};
use crate::control::place::Place;
use crate::control::table::{Cell, Colour, Table, Tone};
use crate::control::view::{Format, View};
use crate::protocol::application::Application;
use crate::protocol::cut::Restored;
use crate::protocol::ids::SnapshotId;
use crate::protocol::mode::Mode;
use crate::protocol::topology::Topology;
use crate::store::{Store, StoreError, read_parts};
use crate::trace::{Names, Replayed, TraceError, Traces, unlike_stored};

/// Runs every traced generation of a job again, or one: yes, if everything comes out as it was
/// written down.
///
/// # Errors
/// If there is no such job or trace, or where a generation began cannot be read.
pub async fn replay<A: Application>(
    place: &Place,
    only: Option<&str>,
    format: Format,
) -> Result<Reply, CommandError> {
    let only = only.map(generation).transpose()?;
    let (job, directory) = place.job()?;
    let store = open(&job).await?;
    let topology = job.topology().clone();
    let traces = Traces::open(directory.root(), topology.clone())?;
    let mut again = BTreeMap::new();
    let mut view = ReplayView {
        job: job.name().to_owned(),
        holds: true,
        generations: Vec::new(),
        difference: None,
    };
    let known = traces.generations().iter().copied();
    for generation in only.map_or_else(|| known.collect(), |only| vec![only]) {
        let written = match Written::read(&traces, generation) {
            Ok(written) => written,
            // A line that cannot be is a difference as well, and the file and line are known.
            Err(error @ (TraceError::Line { .. } | TraceError::Order { .. })) => {
                return Err(CommandError::No(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        let origin = written.origin(&job, store.as_ref(), &again).await?;
        let order = written.order();
        let names = Names::new(topology.clone());
        let left = order.left.iter().map(|left| left_text(&topology, left));
        let left: Vec<_> = left.collect();
        let replaying = tokio::task::spawn_blocking(move || {
            crate::trace::replay::<A>(&origin, &names, &order.events)
        });
        let replayed = replaying
            .await
            .map_err(|error| CommandError::No(format!("the run cannot be done again: {error}")))?;
        let replayed = replayed.map_err(|refusal| CommandError::No(refusal.to_string()))?;
        view.add(&topology, &written, &replayed, left);
        if view.holds {
            view.compare(store.as_ref(), &topology, &replayed).await?;
        }
        if !view.holds {
            break;
        }
        again.extend(replayed.snapshots);
    }
    Ok(Reply {
        yes: view.holds,
        text: view.render(format),
    })
}

/// What came of a replay; `docs/trace.md` describes the JSON.
#[derive(Debug, Serialize)]
struct ReplayView {
    job: String,
    holds: bool,
    generations: Vec<GenerationView>,
    difference: Option<DifferenceView>,
}

#[derive(Debug, Serialize)]
struct GenerationView {
    generation: String,
    restored: String,
    events: usize,
    /// Snapshots that came out as they are stored.
    snapshots: Vec<String>,
    /// Snapshots whose states came out, but whose cuts are not consistent.
    inconsistent: Vec<String>,
    left_out: Vec<String>,
    torn: Vec<String>,
}

#[derive(Debug, Serialize)]
struct DifferenceView {
    generation: String,
    /// Null, if it is in a snapshot.
    process: Option<String>,
    /// The line of the process's file.
    event: Option<usize>,
    snapshot: Option<String>,
    expected: String,
    got: String,
}

impl ReplayView {
    fn add(
        &mut self,
        topology: &Topology,
        written: &Written,
        replayed: &Replayed,
        left_out: Vec<String>,
    ) {
        let generation = written.generation.to_string();
        if let Some(difference) = &replayed.difference {
            self.holds = false;
            self.difference = Some(DifferenceView {
                generation: generation.clone(),
                process: Some(topology.name(difference.process).to_owned()),
                event: Some(difference.event),
                snapshot: None,
                expected: difference.expected.clone(),
                got: difference.got.clone(),
            });
        }
        self.generations.push(GenerationView {
            generation,
            restored: written.restored().unwrap_or_default().to_string(),
            events: replayed.events,
            snapshots: Vec::new(),
            inconsistent: replayed
                .inconsistent
                .iter()
                .map(ToString::to_string)
                .collect(),
            left_out,
            torn: written.torn.clone(),
        });
    }

    /// Holds the snapshots that were taken again against those that are still stored.
    async fn compare(
        &mut self,
        store: Option<&Store>,
        topology: &Topology,
        replayed: &Replayed,
    ) -> Result<(), CommandError> {
        let Some(store) = store else { return Ok(()) };
        let view = self.generations.last_mut().expect("one was just added");
        for (snapshot, again) in &replayed.snapshots {
            let Some(stored) = stored(store, topology, *snapshot).await? else {
                continue;
            };
            let unlike = unlike_stored(topology, &stored, again);
            if unlike.is_empty() {
                view.snapshots.push(snapshot.to_string());
                continue;
            }
            self.holds = false;
            self.difference = Some(DifferenceView {
                generation: view.generation.clone(),
                process: None,
                event: None,
                snapshot: Some(snapshot.to_string()),
                expected: "what is stored".to_owned(),
                got: format!("another: {}", unlike.join(", ")),
            });
            return Ok(());
        }
        Ok(())
    }
}

/// The parts of a snapshot, if it is complete and has not been deleted.
async fn stored(
    store: &Store,
    topology: &Topology,
    snapshot: SnapshotId,
) -> Result<Option<Vec<Restored>>, CommandError> {
    match read_parts(store, topology, snapshot).await {
        Ok(parts) => Ok(Some(parts)),
        Err(StoreError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl View for ReplayView {
    fn table(&self, colour: Colour) -> String {
        let mut table = Table::new(["generation", "from", "events", "snapshots as stored"]);
        for each in &self.generations {
            table.row(vec![
                Cell::text(&each.generation),
                Cell::text(&each.restored),
                Cell::number(each.events),
                Cell::text(each.snapshots.join(" ")),
            ]);
        }
        let mut text = table.render(colour);
        for each in &self.generations {
            if !each.inconsistent.is_empty() {
                let (generation, ids) = (&each.generation, each.inconsistent.join(", "));
                let why = inconsistent(Mode::AtLeastOnce);
                let _ = writeln!(text, "{generation}: only the states of {ids}: {why}");
            }
            for left in &each.left_out {
                let _ = writeln!(text, "{}: {left}", each.generation);
            }
            if !each.torn.is_empty() {
                let (generation, torn) = (&each.generation, each.torn.join(", "));
                let _ = writeln!(text, "{generation}: no end yet, or lost, at {torn}");
            }
        }
        let last = match &self.difference {
            None => Tone::Good.paint("everything came out as it was written down", colour),
            Some(difference) => {
                let DifferenceView {
                    generation,
                    process,
                    event,
                    snapshot,
                    expected,
                    got,
                } = difference;
                let place = match (process, event, snapshot) {
                    (Some(process), Some(event), _) => format!("{process}, event {event}"),
                    (_, _, Some(snapshot)) => snapshot.clone(),
                    _ => String::new(),
                };
                let place = format!("{generation}, {place}");
                Tone::Bad.paint(&format!("{place}: expected {expected}; got {got}"), colour)
            }
        };
        let _ = writeln!(text, "{last}");
        text
    }
}
