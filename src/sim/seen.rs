//! What has been seen of a job since the scenario began.

use std::collections::BTreeSet;

use crate::protocol::application::Application;
use crate::protocol::collector::Announcement;
use crate::protocol::ids::{Generation, ProcessId, SnapshotId};
use crate::world::World;

/// What has been seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// When every process ran for the first time, in virtual microseconds.
    pub first_run_us: Option<u64>,
    /// Every generation that came to run.
    pub generations: BTreeSet<Generation>,
    /// Every snapshot that is complete, or was until retention deleted it.
    pub complete: BTreeSet<SnapshotId>,
    /// Every snapshot that was aborted.
    pub aborted: BTreeSet<SnapshotId>,
    /// What was announced of processes, in order.
    changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Lost(ProcessId),
    Joined(ProcessId),
}

/// A moment in what was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(usize);

impl Seen {
    pub(super) fn hear(&mut self, announcement: &Announcement, now_us: u64) {
        match announcement {
            Announcement::Joined(process, _) => self.changes.push(Change::Joined(*process)),
            Announcement::Lost(process, _) => self.changes.push(Change::Lost(*process)),
            Announcement::Ended(manifest) => {
                let ended = match manifest.is_complete() {
                    true => &mut self.complete,
                    false => &mut self.aborted,
                };
                ended.insert(manifest.snapshot);
            }
            Announcement::Running(generation, _) => {
                self.first_run_us.get_or_insert(now_us);
                self.generations.insert(*generation);
            }
            Announcement::Begun(_)
            | Announcement::Failed(_)
            | Announcement::Warned(_)
            | Announcement::Restoring(..) => {}
        }
    }

    /// What the store says: a collector that was killed may not have told everything.
    pub(super) fn read<A: Application>(&mut self, world: &World<A>) {
        for manifest in world.manifests() {
            let ended = match manifest.is_complete() {
                true => &mut self.complete,
                false => &mut self.aborted,
            };
            ended.insert(manifest.snapshot);
        }
    }

    /// How often the job was taken back: how many generations came to run after the first.
    pub fn restores(&self) -> u64 {
        self.generations.len().saturating_sub(1) as u64
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.changes.len())
    }

    pub(super) fn is_lost_since(&self, process: ProcessId, mark: Mark) -> bool {
        self.changes[mark.0..].contains(&Change::Lost(process))
    }

    pub(super) fn has_joined_since(&self, process: ProcessId, mark: Mark) -> bool {
        self.changes[mark.0..].contains(&Change::Joined(process))
    }
}
