//! What has been seen of a job since a scenario began.

use std::cell::{Ref, RefCell};
use std::collections::BTreeSet;
use std::time::Instant;

use tokio::sync::Notify;

use crate::collector::JobEvent;
use crate::control::notice::Notice;
use crate::protocol::ids::{Generation, SnapshotId};
use crate::protocol::records::Records;

/// What has been seen, and who waits for more.
#[derive(Debug, Default)]
pub(super) struct Observer {
    seen: RefCell<Observed>,
    news: Notify,
}

/// What has been seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// When every process ran for the first time.
    pub(super) first_run: Option<Instant>,
    /// Every generation that came to run.
    pub(super) generations: BTreeSet<Generation>,
    /// Every snapshot that is complete, or was until retention deleted it.
    pub(super) complete: BTreeSet<SnapshotId>,
    /// Every snapshot that was aborted.
    pub(super) aborted: BTreeSet<SnapshotId>,
    /// Which process was lost, and when that was heard.
    lost: Vec<(String, Instant)>,
    /// Which process joined, and when that was heard.
    joined: Vec<(String, Instant)>,
}

impl Observer {
    /// Something has happened.
    pub(super) fn hear(&self, notice: &Notice) {
        if let Notice::Job { event, .. } = notice {
            self.seen.borrow_mut().hear(event);
        }
        self.news.notify_waiters();
    }

    /// This generation runs.
    pub(super) fn has_run(&self, generation: Generation) {
        self.seen.borrow_mut().generations.insert(generation);
    }

    /// What the store says: a collector that was killed may not have told everything.
    pub(super) fn read(&self, records: &Records) {
        let mut seen = self.seen.borrow_mut();
        let Observed {
            complete, aborted, ..
        } = &mut *seen;
        for (begun, manifest) in &records.snapshots {
            match manifest {
                Some(manifest) if manifest.is_complete() => drop(complete.insert(begun.snapshot)),
                Some(_) => drop(aborted.insert(begun.snapshot)),
                None => {}
            }
        }
    }

    /// What has been seen so far.
    pub(super) fn seen(&self) -> Ref<'_, Observed> {
        self.seen.borrow()
    }

    /// Lasts until something more happens.
    pub(super) async fn more(&self) {
        self.news.notified().await;
    }
}

impl Observed {
    fn hear(&mut self, event: &JobEvent) {
        let now = Instant::now();
        match event {
            JobEvent::Joined { process, .. } => self.joined.push((process.clone(), now)),
            JobEvent::Lost { process, .. } => self.lost.push((process.clone(), now)),
            JobEvent::Complete(complete) => drop(self.complete.insert(complete.snapshot)),
            JobEvent::Aborted { snapshot, .. } => drop(self.aborted.insert(*snapshot)),
            JobEvent::Running { generation, .. } => {
                self.first_run.get_or_insert(now);
                self.generations.insert(*generation);
            }
            JobEvent::Begun { .. }
            | JobEvent::Failed { .. }
            | JobEvent::Warning { .. }
            | JobEvent::Restoring { .. }
            | JobEvent::Replace { .. }
            | JobEvent::Absent { .. }
            | JobEvent::Finished
            | JobEvent::Ended { .. } => {}
        }
    }

    /// How often the job was taken back: how many generations came to run after the first.
    pub(super) fn restores(&self) -> u64 {
        self.generations.len().saturating_sub(1) as u64
    }

    /// Whether this process was lost after this.
    pub(super) fn lost_since(&self, process: &str, since: Instant) -> bool {
        self.lost
            .iter()
            .any(|(name, at)| name == process && *at >= since)
    }

    /// Whether a node of this process joined after this.
    pub(super) fn joined_since(&self, process: &str, since: Instant) -> bool {
        self.joined
            .iter()
            .any(|(name, at)| name == process && *at >= since)
    }
}
