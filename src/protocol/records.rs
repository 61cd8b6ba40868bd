//! What the collector keeps, all of it in the store: it must be able to read everything back.
//!
//! Every record is written by one conditional create and never changed. The log is one sequence
//! of terms and generations; a snapshot begins with one record and ends with one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::application::Quantities;
use super::events::StoredPart;
use super::ids::{Generation, ProcessId, SnapshotId, Term};
use super::mode::Mode;

/// One record of the log: a new term, or a new generation within a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its place in the log, from 1.
    pub number: u64,
    /// The leadership that wrote it.
    pub term: Term,
    /// Tells this collector's writes from another's.
    pub nonce: u64,
    /// The topology of the job.
    pub topology: u32,
    /// The generation that begins here, if one does.
    pub generation: Option<GenerationEntry>,
}

/// A generation and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GenerationEntry {
    /// The generation.
    pub generation: Generation,
    /// The snapshot it starts from; `s0` is the initial state.
    pub restored: SnapshotId,
}

/// A snapshot has begun; this record is what gives its id out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Begun {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// The generation it is of.
    pub generation: Generation,
    /// How it is taken.
    #[serde(default)]
    pub mode: Mode,
    /// The leadership that began it.
    pub term: Term,
    /// Tells this collector's writes from another's.
    pub nonce: u64,
}

/// How a snapshot ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Manifest {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// The generation it is of.
    pub generation: Generation,
    /// The leadership that ended it.
    pub term: Term,
    /// Tells this collector's writes from another's.
    pub nonce: u64,
    /// How it was taken.
    pub mode: Mode,
    /// The topology it is of.
    pub topology: u32,
    /// The outcome.
    pub end: End,
}

/// Complete or aborted; there is nothing between.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Every part is on disk.
    Complete {
        /// The parts, in the order of the processes.
        parts: Vec<StoredPart>,
        /// What the quantities must add up to: the sum over the initial states.
        expected: Quantities,
        /// From the begin record to this one, in milliseconds of the collector's clock.
        elapsed_ms: u64,
    },
    /// It can never be restored.
    Aborted {
        /// Why.
        reason: String,
    },
}

/// The length of parts together, in bytes, and how many messages they recorded. A stranger's
/// manifest may say anything: what would overflow stays at the bound.
pub fn sizes(parts: &[StoredPart]) -> (u64, u64) {
    let add = |(bytes, messages): (u64, u64), part: &StoredPart| {
        let recorded = part.facts.recorded();
        (
            bytes.saturating_add(part.bytes),
            messages.saturating_add(recorded),
        )
    };
    parts.iter().fold((0, 0), add)
}

impl Manifest {
    /// Whether the snapshot is complete.
    pub fn is_complete(&self) -> bool {
        matches!(self.end, End::Complete { .. })
    }

    /// The part of a process, if the snapshot is complete.
    pub fn part_of(&self, process: ProcessId) -> Option<&StoredPart> {
        match &self.end {
            End::Complete { parts, .. } => parts.iter().find(|part| part.facts.process == process),
            End::Aborted { .. } => None,
        }
    }
}

/// A record of any kind, as it is created.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// `log/<n>.json`
    Log(LogEntry),
    /// `snapshots/<id>/begun.json`
    Begun(Begun),
    /// `snapshots/<id>/manifest.json`
    Manifest(Box<Manifest>),
}

/// What came of creating a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is there now, and nobody had created it before.
    Created,
    /// Somebody had created it before: this is what stands there.
    Exists(Record),
    /// It is not there, or it is not known whether it is: nothing may be concluded.
    Failed(String),
}

/// Everything a new collector reads back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Records {
    /// The whole log, in order.
    pub log: Vec<LogEntry>,
    /// Every snapshot that has begun, with how it ended, if it has; in order.
    pub snapshots: Vec<(Begun, Option<Manifest>)>,
    /// Snapshots of which a record is torn, damaged or missing. Nobody knows whether they are
    /// complete: they are never restored, and never deleted.
    pub unreadable: BTreeMap<SnapshotId, Unreadable>,
}

/// What is known of a snapshot of which a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unreadable {
    /// The generation it is of, if the other record says so.
    pub generation: Option<Generation>,
    /// What is wrong.
    pub why: String,
}

impl Records {
    /// What the job goes on from when it is started again: the newest complete snapshot of the
    /// generation that began last, else the one that generation restored. The same that a
    /// collector takes after a loss, so that a branch that was abandoned is never returned to.
    pub fn restore_point(&self) -> SnapshotId {
        let begun = self.log.iter().filter_map(|entry| entry.generation);
        let Some(current) = begun.max_by_key(|begun| begun.generation) else {
            return SnapshotId::default();
        };
        let ended = self.snapshots.iter().filter_map(|(_, end)| end.as_ref());
        let of_it = ended.filter(|end| end.is_complete() && end.generation == current.generation);
        let newest = of_it.map(|end| end.snapshot).max();
        newest.unwrap_or(current.restored)
    }
}
