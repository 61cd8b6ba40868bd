//! `cutline list`: every snapshot that has begun.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{View, bytes};
use crate::control::table::{Cell, Colour, Table, Tone};
use crate::protocol::ids::SnapshotId;
use crate::protocol::mode::Mode;
use crate::protocol::records::{Begun, End, Manifest, Records, Unreadable, sizes};

/// Every snapshot of a job, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListView {
    /// The job.
    pub job: String,
    /// The snapshots.
    pub snapshots: Vec<SnapshotRow>,
}

/// One snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotRow {
    /// Its id, such as `s12`.
    pub id: String,
    /// `complete`, `aborted`, `open`, or `unreadable` where a record of it is damaged.
    pub state: &'static str,
    /// The generation it is of, such as `g3`; it may be unknown where it is unreadable.
    pub generation: Option<String>,
    /// How it was, or is being, taken; unknown where it is unreadable.
    pub mode: Option<Mode>,
    /// How many parts it has.
    pub parts: usize,
    /// How long they are together.
    pub bytes: u64,
    /// How many messages its channel states hold.
    pub messages: u64,
    /// How long it took.
    pub elapsed_ms: Option<u64>,
    /// Why it was aborted, or cannot be read.
    pub reason: Option<String>,
}

impl ListView {
    /// What the store says.
    pub fn new(job: impl Into<String>, records: &Records) -> Self {
        let rows = records.snapshots.iter();
        let rows = rows.map(|(begun, end)| (begun.snapshot, SnapshotRow::new(begun, end.as_ref())));
        let unreadable = records.unreadable.iter();
        let unreadable = unreadable.map(|(&id, what)| (id, SnapshotRow::unreadable(id, what)));
        let rows: BTreeMap<_, _> = rows.chain(unreadable).collect();
        Self {
            job: job.into(),
            snapshots: rows.into_values().collect(),
        }
    }
}

impl SnapshotRow {
    /// How one snapshot stands.
    pub fn new(begun: &Begun, manifest: Option<&Manifest>) -> Self {
        let mut row = Self {
            id: begun.snapshot.to_string(),
            state: "open",
            generation: Some(begun.generation.to_string()),
            mode: Some(manifest.map_or(begun.mode, |manifest| manifest.mode)),
            parts: 0,
            bytes: 0,
            messages: 0,
            elapsed_ms: None,
            reason: None,
        };
        match manifest.map(|manifest| &manifest.end) {
            None => {}
            Some(End::Complete {
                parts, elapsed_ms, ..
            }) => {
                row.state = "complete";
                row.parts = parts.len();
                (row.bytes, row.messages) = sizes(parts);
                row.elapsed_ms = Some(*elapsed_ms);
            }
            Some(End::Aborted { reason }) => {
                row.state = "aborted";
                row.reason = Some(reason.clone());
            }
        }
        row
    }

    /// One of which a record cannot be read.
    fn unreadable(id: SnapshotId, what: &Unreadable) -> Self {
        Self {
            id: id.to_string(),
            state: "unreadable",
            generation: what.generation.map(|generation| generation.to_string()),
            mode: None,
            parts: 0,
            bytes: 0,
            messages: 0,
            elapsed_ms: None,
            reason: Some(what.why.clone()),
        }
    }
}

pub(super) fn state_tone(state: &str) -> Tone {
    match state {
        "complete" => Tone::Good,
        "aborted" | "unreadable" => Tone::Bad,
        _ => Tone::Faint,
    }
}

impl View for ListView {
    fn table(&self, colour: Colour) -> String {
        if self.snapshots.is_empty() {
            return format!("{} has no snapshots\n", self.job);
        }
        let headings = [
            "snapshot",
            "state",
            "generation",
            "took",
            "parts",
            "size",
            "messages",
            "",
        ];
        let mut table = Table::new(headings);
        for row in &self.snapshots {
            let complete = row.state == "complete";
            let number = |text: String| Cell::number(if complete { text } else { String::new() });
            table.row(vec![
                Cell::text(&row.id),
                Cell::text(row.state).toned(state_tone(row.state)),
                Cell::text(row.generation.as_deref().unwrap_or_default()),
                Cell::number(
                    row.elapsed_ms
                        .map(|ms| format!("{ms} ms"))
                        .unwrap_or_default(),
                ),
                number(row.parts.to_string()),
                number(bytes(row.bytes)),
                number(row.messages.to_string()),
                Cell::text(row.reason.as_deref().unwrap_or_default()),
            ]);
        }
        table.render(colour)
    }
}

#[cfg(test)]
mod tests {
    use super::super::show::tests::snapshot;
    use super::*;
    use crate::control::view::Format;

    fn records() -> Records {
        let (begun, complete) = snapshot(1);
        let (second, mut aborted) = snapshot(2);
        aborted.end = End::Aborted {
            reason: "no word from p2 in 10s".to_owned(),
        };
        let (third, _) = snapshot(3);
        Records {
            log: Vec::new(),
            snapshots: vec![
                (begun, Some(complete)),
                (second, Some(aborted)),
                (third, None),
            ],
            unreadable: [(
                SnapshotId::new(4),
                Unreadable {
                    generation: None,
                    why: "begun.json is torn".to_owned(),
                },
            )]
            .into(),
        }
    }

    #[test]
    fn every_snapshot_that_has_begun_is_listed_with_its_end() {
        let text = "\
SNAPSHOT  STATE       GENERATION   TOOK  PARTS   SIZE  MESSAGES
s1        complete    g1          35 ms      2  100 B         2
s2        aborted     g1                                         no word from p2 in 10s
s3        open        g1
s4        unreadable                                             begun.json is torn
";
        let view = ListView::new("bank", &records());
        assert_eq!(view.render(Format::Table(Colour::Off)), text);
        let none = ListView::new("bank", &Records::default());
        assert_eq!(
            none.render(Format::Table(Colour::Off)),
            "bank has no snapshots\n"
        );
    }

    #[test]
    fn the_json_of_list_has_its_documented_shape() {
        let json = ListView::new("bank", &records()).render(Format::Json);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["job"], "bank");
        let first = serde_json::json!({
            "id": "s1", "state": "complete", "generation": "g1", "mode": "classic", "parts": 2,
            "bytes": 100, "messages": 2, "elapsed_ms": 35, "reason": null,
        });
        assert_eq!(value["snapshots"][0], first);
        assert_eq!(value["snapshots"][1]["reason"], "no word from p2 in 10s");
        // It is known from the beginning.
        assert_eq!(value["snapshots"][2]["mode"], "classic");
    }
}
