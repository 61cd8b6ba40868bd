//! `cutline audit`: the verdicts on snapshots that other programs have taken.

use std::fmt::Write as _;

use serde::Serialize;

use super::View;
use super::verify::{answer, evidence};
use crate::audit::Audited;
use crate::check::Answer;
use crate::control::table::{Cell, Colour, Table, Tone};

/// The verdicts on the snapshots of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditView {
    /// The file.
    pub file: String,
    /// Whether no verdict fails on any.
    pub holds: bool,
    /// The snapshots, in the order of the file.
    pub snapshots: Vec<Audited>,
}

impl AuditView {
    /// The verdicts on these.
    pub fn new(file: impl Into<String>, snapshots: Vec<Audited>) -> Self {
        Self {
            file: file.into(),
            holds: snapshots.iter().all(|audited| audited.holds),
            snapshots,
        }
    }
}

impl View for AuditView {
    fn table(&self, colour: Colour) -> String {
        if let [only] = self.snapshots.as_slice() {
            return one(only, colour);
        }
        let mut text = all(&self.snapshots, colour);
        let failing = self.snapshots.iter().filter(|audited| !audited.holds);
        for audited in failing.clone() {
            let _ = write!(text, "\n{}", one(audited, colour));
        }
        let count = self.snapshots.len();
        let last = match failing.count() {
            0 => Tone::Good.paint(&format!("no verdict fails on any of {count}"), colour),
            some => Tone::Bad.paint(&format!("{some} of {count} do not hold"), colour),
        };
        let _ = writeln!(text, "\n{last}");
        text
    }
}

/// A row for each snapshot, a column for each verdict.
fn all(snapshots: &[Audited], colour: Colour) -> String {
    let first = snapshots.iter().take(1);
    let verdicts = first.flat_map(|first| &first.verdicts.0);
    let names = verdicts.map(|verdict| verdict.name);
    let mut table = Table::new(["snapshot"].into_iter().chain(names));
    for audited in snapshots {
        let answers = audited.verdicts.0.iter().map(|each| answer(each.holds));
        let name = Cell::text(&audited.snapshot);
        table.row([name].into_iter().chain(answers).collect());
    }
    table.render(colour)
}

/// One snapshot with the evidence.
fn one(audited: &Audited, colour: Colour) -> String {
    let judged = match audited.verdicts.failing().as_slice() {
        [] => Tone::Good.paint("no verdict fails", colour),
        failing => Tone::Bad.paint(&format!("not {}", failing.join(", not ")), colour),
    };
    let mut verdicts = audited.verdicts.clone();
    for verdict in &mut verdicts.0 {
        if verdict.holds == Answer::Unknown {
            verdict.evidence.insert_str(0, "not known, because ");
        }
    }
    let table = evidence(&verdicts).render(colour);
    format!("{}: {judged}\n{table}", audited.snapshot)
}
