//! A store in memory, as the collectors of a job share it: records that are created once.

use std::collections::BTreeMap;

use cutline::protocol::ids::SnapshotId;
use cutline::protocol::records::{Begun, LogEntry, Manifest, Outcome, Record, Records, Unreadable};
use cutline::world::Fate;

use crate::solo::s;

/// What the collectors of a job share.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) log: BTreeMap<u64, LogEntry>,
    pub(crate) begun: BTreeMap<SnapshotId, Begun>,
    pub(crate) manifests: BTreeMap<SnapshotId, Manifest>,
    pub(crate) unreadable: BTreeMap<SnapshotId, Unreadable>,
}

impl Store {
    pub(crate) fn read(&self) -> Records {
        let manifest = |id: &SnapshotId| self.manifests.get(id).cloned();
        let begun = self.begun.iter();
        let begun = begun.filter(|(id, _)| !self.unreadable.contains_key(id));
        Records {
            log: self.log.values().cloned().collect(),
            snapshots: begun
                .map(|(id, begun)| (begun.clone(), manifest(id)))
                .collect(),
            unreadable: self.unreadable.clone(),
        }
    }

    pub(crate) fn create(&mut self, record: &Record, fate: Fate) -> Outcome {
        if fate == Fate::Failed {
            return Outcome::Failed("disk full".to_owned());
        }
        let stands = match record.clone() {
            Record::Log(entry) => {
                let stands = self.log.get(&entry.number).cloned().map(Record::Log);
                self.log.entry(entry.number).or_insert(entry);
                stands
            }
            Record::Begun(begun) => {
                let stands = self.begun.get(&begun.snapshot).cloned().map(Record::Begun);
                self.begun.entry(begun.snapshot).or_insert(begun);
                stands
            }
            Record::Manifest(manifest) => {
                let stands = self.manifests.get(&manifest.snapshot).cloned();
                self.manifests.entry(manifest.snapshot).or_insert(*manifest);
                stands.map(|stands| Record::Manifest(Box::new(stands)))
            }
        };
        match (fate, stands) {
            (Fate::Unknown, _) => Outcome::Failed("outcome unknown".to_owned()),
            (_, Some(stands)) => Outcome::Exists(stands),
            (_, None) => Outcome::Created,
        }
    }

    pub(crate) fn delete(&mut self, snapshot: SnapshotId) {
        self.manifests.remove(&snapshot);
        self.begun.remove(&snapshot);
    }

    /// Whether the snapshot is complete, or nothing if it has not ended.
    pub(crate) fn complete(&self, snapshot: u64) -> Option<bool> {
        self.manifests.get(&s(snapshot)).map(Manifest::is_complete)
    }

    /// What the last generation was started from.
    pub(crate) fn last_origin(&self) -> Option<SnapshotId> {
        let generations = self.log.values().rev().filter_map(|entry| entry.generation);
        generations.map(|begun| begun.restored).next()
    }
}
