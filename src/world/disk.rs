//! The store of a world: what is on disk, and what is being read and written.

use std::collections::BTreeMap;

use crate::protocol::cut::{Part, Restored};
use crate::protocol::ids::{Generation, Incarnation, ProcessId, SnapshotId};
use crate::protocol::records::{Begun, LogEntry, Manifest, Outcome, Record, Records};

/// Something the store is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Read everything back, for a collector.
    Read,
    /// Create a record, conditionally, for the collector.
    Create(Record),
    /// Delete a snapshot.
    Delete(SnapshotId),
    /// Write a part, with the encoded state.
    Put(ProcessId, Incarnation, Box<Part>, Vec<u8>),
    /// Read a part.
    Load(ProcessId, Incarnation, Generation, SnapshotId),
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It is done and said to be done.
    Done,
    /// It is not done.
    Failed,
    /// It is done, and said to have failed.
    Unknown,
}

/// What is on disk, and what is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Disk {
    log: BTreeMap<u64, LogEntry>,
    begun: BTreeMap<SnapshotId, Begun>,
    pub(super) manifests: BTreeMap<SnapshotId, Manifest>,
    pub(super) parts: BTreeMap<(SnapshotId, ProcessId), Restored>,
    pub(super) pending: Vec<Operation>,
}

impl Disk {
    pub(super) fn submit(&mut self, operation: Operation) {
        self.pending.push(operation);
    }

    /// A collector that is gone writes no more.
    pub(super) fn drop_collectors(&mut self) {
        self.pending
            .retain(|operation| matches!(operation, Operation::Put(..) | Operation::Load(..)));
    }

    /// A node that is gone writes no more.
    pub(super) fn drop_nodes(&mut self, process: ProcessId) {
        self.pending.retain(|operation| match operation {
            Operation::Put(of, ..) | Operation::Load(of, ..) => *of != process,
            _ => true,
        });
    }

    pub(super) fn read(&self) -> Records {
        let begun = self.begun.values().cloned();
        Records {
            log: self.log.values().cloned().collect(),
            snapshots: begun
                .map(|begun| {
                    let manifest = self.manifests.get(&begun.snapshot).cloned();
                    (begun, manifest)
                })
                .collect(),
        }
    }

    pub(super) fn create(&mut self, record: &Record, fate: Fate) -> Outcome {
        if fate == Fate::Failed {
            return Outcome::Failed("injected: not written".to_owned());
        }
        let stands = match record {
            Record::Log(entry) => self.log.get(&entry.number).cloned().map(Record::Log),
            Record::Begun(begun) => self.begun.get(&begun.snapshot).cloned().map(Record::Begun),
            Record::Manifest(manifest) => {
                let stands = self.manifests.get(&manifest.snapshot).cloned();
                stands.map(|manifest| Record::Manifest(Box::new(manifest)))
            }
        };
        if stands.is_none() {
            match record.clone() {
                Record::Log(entry) => {
                    self.log.insert(entry.number, entry);
                }
                Record::Begun(begun) => {
                    self.begun.insert(begun.snapshot, begun);
                }
                Record::Manifest(manifest) => {
                    self.manifests.insert(manifest.snapshot, *manifest);
                }
            }
        }
        match (fate, stands) {
            (Fate::Unknown, _) => Outcome::Failed("injected: outcome unknown".to_owned()),
            (_, Some(stands)) => Outcome::Exists(stands),
            (_, None) => Outcome::Created,
        }
    }

    /// Manifest first, so that a snapshot that is half deleted was none before.
    pub(super) fn delete(&mut self, snapshot: SnapshotId) {
        self.manifests.remove(&snapshot);
        self.parts.retain(|(of, _), _| *of != snapshot);
        self.begun.remove(&snapshot);
    }

    /// A part is created, never written over.
    pub(super) fn put(&mut self, restored: Restored, fate: Fate) -> Result<(), String> {
        let place = (restored.part.snapshot, restored.part.process);
        if fate == Fate::Failed {
            return Err("injected: not written".to_owned());
        }
        if self.parts.contains_key(&place) {
            return Err("the part exists already".to_owned());
        }
        self.parts.insert(place, restored);
        match fate {
            Fate::Unknown => Err("injected: outcome unknown".to_owned()),
            Fate::Done | Fate::Failed => Ok(()),
        }
    }
}
