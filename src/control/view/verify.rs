//! `cutline verify`: the verdicts on snapshots.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::View;
use crate::check::{Answer, PartState, Verdicts, Verified};
use crate::control::table::{Cell, Colour, Table, Tone};
use crate::protocol::ids::SnapshotId;
use crate::protocol::records::Unreadable;

/// The verdicts on one or more snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyView {
    /// The job.
    pub job: String,
    /// Whether every verdict holds on every one.
    pub holds: bool,
    /// The snapshots, each as `docs/store.md` describes it.
    pub snapshots: Vec<Verified>,
    /// The ids of those that cannot even be read, and what is wrong with each.
    pub unreadable: BTreeMap<String, String>,
}

impl VerifyView {
    /// The verdicts on these.
    pub fn new(job: impl Into<String>, snapshots: Vec<Verified>) -> Self {
        Self {
            job: job.into(),
            holds: snapshots.iter().all(|verified| verified.holds),
            snapshots,
            unreadable: BTreeMap::new(),
        }
    }

    /// Notes those that cannot be read.
    pub fn note(&mut self, unreadable: &BTreeMap<SnapshotId, Unreadable>) {
        let named = unreadable
            .iter()
            .map(|(id, unreadable)| (id.to_string(), unreadable.why.clone()));
        self.unreadable.extend(named);
        self.holds &= self.unreadable.is_empty();
    }
}

impl View for VerifyView {
    fn table(&self, colour: Colour) -> String {
        if let ([only], true) = (self.snapshots.as_slice(), self.unreadable.is_empty()) {
            return one(only, colour);
        }
        let mut text = all(&self.snapshots, colour);
        for (id, why) in &self.unreadable {
            let _ = writeln!(text, "{id} cannot be read: {why}");
        }
        let failing: Vec<_> = self
            .snapshots
            .iter()
            .filter(|verified| !verified.holds)
            .collect();
        for verified in &failing {
            let _ = write!(text, "\n{}", one(verified, colour));
        }
        let count = self.snapshots.len() + self.unreadable.len();
        let last = match failing.len() + self.unreadable.len() {
            0 => Tone::Good.paint(&format!("every verdict holds on all {count}"), colour),
            some => Tone::Bad.paint(&format!("{some} of {count} do not hold"), colour),
        };
        let _ = writeln!(text, "\n{last}");
        text
    }
}

/// A row for each snapshot, a column for each verdict.
fn all(snapshots: &[Verified], colour: Colour) -> String {
    let first = snapshots.first();
    let names = first
        .into_iter()
        .flat_map(|first| first.verdicts.0.iter())
        .map(|each| each.name);
    let names: Vec<_> = names.collect();
    let headings = ["snapshot", "generation", "mode"]
        .into_iter()
        .chain(names.iter().copied());
    let mut table = Table::new(headings.chain(["totals"]));
    for verified in snapshots {
        let mut cells = vec![
            Cell::text(verified.snapshot),
            Cell::text(verified.generation),
            Cell::text(verified.mode),
        ];
        cells.extend(names.iter().map(|name| match verified.verdicts.get(name) {
            Some(verdict) => answer(verdict.holds),
            None => Cell::text(""),
        }));
        cells.push(Cell::text(totals(verified)));
        table.row(cells);
    }
    table.render(colour)
}

/// `money 190 + 10 = 200`
fn totals(verified: &Verified) -> String {
    let each = verified.quantities.iter().map(|(name, totals)| {
        let (states, channels) = (totals.in_states, totals.in_channels);
        let sum = states.saturating_add(channels);
        let sign = if sum == totals.expected { "=" } else { "≠" };
        format!("{name} {states} + {channels} {sign} {}", totals.expected)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// One snapshot with the evidence.
fn one(verified: &Verified, colour: Colour) -> String {
    let tone = if verified.holds {
        Tone::Good
    } else {
        Tone::Bad
    };
    let judged = tone.paint(&verified.in_short(), colour);
    let mut text = format!("{}: {judged}\n", verified.title());
    text.push_str(&evidence(&verified.verdicts).render(colour));
    let broken = verified
        .parts
        .iter()
        .filter(|part| part.state != PartState::Intact);
    for part in broken {
        let process = &part.process;
        let _ = match part.fault.as_deref() {
            // What is found wrong with a file names it already.
            Some(fault) => writeln!(text, "part of {process}: {fault}"),
            None => writeln!(text, "part of {process}: {} is missing", part.file),
        };
    }
    text
}

/// A row for each verdict.
pub(super) fn evidence(verdicts: &Verdicts) -> Table {
    let mut table = Table::new(["verdict", "holds", "evidence"]);
    for verdict in &verdicts.0 {
        table.row(vec![
            Cell::text(verdict.name),
            answer(verdict.holds),
            Cell::text(&verdict.evidence),
        ]);
    }
    table
}

pub(super) fn answer(holds: Answer) -> Cell {
    Cell::text(holds).toned(match holds {
        Answer::Yes => Tone::Good,
        Answer::No => Tone::Bad,
        Answer::Unknown => Tone::Faint,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::check::VerifiedPart;
    use crate::protocol::ids::Generation;
    use crate::protocol::mode::Mode;

    #[test]
    fn a_damaged_file_is_named_once() {
        let file = "snapshots/s1/alice.part";
        let part = |state, fault: &str| VerifiedPart {
            process: "alice".to_owned(),
            file: file.to_owned(),
            bytes: 7,
            state,
            fault: Some(fault.to_owned()),
        };
        let damaged = format!("{file}: its checksum is another");
        let missing = format!("{file} is missing from the store");
        let verified = Verified {
            snapshot: SnapshotId::new(1),
            generation: Generation::new(1),
            mode: Mode::Classic,
            outcome: "complete",
            reason: None,
            holds: false,
            verdicts: Verdicts(Vec::new()),
            quantities: BTreeMap::new(),
            parts: vec![
                part(PartState::Damaged, &damaged),
                part(PartState::Missing, &missing),
            ],
        };
        let text = VerifyView::new("bank", vec![verified]).table(Colour::Off);
        let lines: Vec<_> = text.lines().filter(|line| line.contains(file)).collect();
        let expected = [damaged, missing].map(|fault| format!("part of alice: {fault}"));
        assert_eq!(lines, expected);
    }
}
