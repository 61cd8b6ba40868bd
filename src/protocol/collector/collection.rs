//! What the collector knows of snapshots: the open ones, and the ended ones in the store.

use std::collections::{BTreeMap, BTreeSet};

use super::RequestId;
use crate::protocol::events::StoredPart;
use crate::protocol::ids::{Generation, ProcessId, SnapshotId};
use crate::protocol::mode::{Mode, Taking};
use crate::protocol::mutant::{Mutant::ReturnsToAbandonedBranch, is};
use crate::protocol::records::Manifest;

/// How far an open snapshot is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Its begin record is being written; nobody knows of it.
    Beginning,
    /// Triggered; parts come in.
    Gathering,
    /// Its manifest is being written, and could not be since this time.
    Ending(Box<Manifest>, Option<u64>),
    /// Its manifest could not be written, since the first time: again from the second on.
    Stuck(Box<Manifest>, u64, u64),
}

/// One open snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Open {
    pub(super) generation: Generation,
    pub(super) taking: Taking,
    pub(super) begun_ms: u64,
    pub(super) initiators: BTreeSet<ProcessId>,
    pub(super) asker: Option<RequestId>,
    pub(super) stage: Stage,
    pub(super) parts: BTreeMap<ProcessId, StoredPart>,
    /// It counts as a failure already: one snapshot is one failure, whatever goes wrong with it.
    pub(super) failed: bool,
}

/// One snapshot that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ended {
    pub(super) generation: Generation,
    pub(super) complete: bool,
    pub(super) mode: Mode,
}

impl Ended {
    pub(super) fn as_said_in(manifest: &Manifest) -> Self {
        Self {
            generation: manifest.generation,
            complete: manifest.is_complete(),
            mode: manifest.mode,
        }
    }
}

/// All snapshots the collector must know of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Collection {
    pub(super) open: BTreeMap<SnapshotId, Open>,
    /// The last id whose begin record is known to stand, which is what gives an id out.
    pub(super) begun: SnapshotId,
    /// Ended and still in the store.
    pub(super) stored: BTreeMap<SnapshotId, Ended>,
    /// Those of which nobody can say whether they are complete, each with its generation and what
    /// is wrong.
    pub(super) unreadable: BTreeMap<SnapshotId, (Generation, String)>,
    pub(super) periodic_from_ms: u64,
    pub(super) complete_count: u64,
    pub(super) aborted_count: u64,
    pub(super) failures_in_row: u32,
}

impl Collection {
    pub(super) fn open(&self) -> impl Iterator<Item = SnapshotId> + '_ {
        self.open.keys().copied()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// All ids up to this one have ended. An id whose begin record could not be written is not
    /// among them unless a later one stands: it may still be given out, by a later term.
    pub(super) fn low(&self) -> SnapshotId {
        match self.open.keys().next() {
            Some(first) => SnapshotId::new(first.get() - 1).min(self.begun),
            None => self.begun,
        }
    }

    /// The last id that is, or is about to be, given out.
    pub(super) fn last(&self) -> SnapshotId {
        let open = self.open.keys().next_back().copied();
        open.unwrap_or_default().max(self.begun)
    }

    /// The newest complete snapshot of a generation, of those that satisfy a condition.
    pub(super) fn newest(
        &self,
        generation: Generation,
        accept: impl Fn(SnapshotId) -> bool,
    ) -> Option<SnapshotId> {
        let mut newest_first = self.stored.iter().rev();
        let of_it = |of: Generation| of == generation || is(ReturnsToAbandonedBranch);
        let found =
            newest_first.find(|(id, end)| end.complete && of_it(end.generation) && accept(**id));
        found.map(|(&id, _)| id)
    }

    /// Whether what the store says of a snapshot, read once more, is news that counts. A begin
    /// record may come to stand after that of a later one; but what is older than a complete one
    /// is taken by no restore, and may be one that this collector has deleted.
    pub(super) fn is_news(&self, snapshot: SnapshotId) -> bool {
        let known = self.open.contains_key(&snapshot) || self.stored.contains_key(&snapshot);
        let mut stored = self.stored.range(snapshot..);
        !known && !stored.any(|(_, ended)| ended.complete)
    }

    /// The generation of a complete snapshot.
    pub(super) fn generation_of(&self, snapshot: SnapshotId) -> Option<Generation> {
        let ended = self.stored.get(&snapshot)?;
        ended.complete.then_some(ended.generation)
    }

    /// What a user must know who goes back to this snapshot.
    pub(super) fn warning_on(&self, snapshot: SnapshotId) -> Option<String> {
        let mode = self.stored.get(&snapshot)?.mode;
        let warning = format!(
            "{snapshot} was taken {mode}, which is not a consistent cut: what was handled between \
             its markers will have been handled twice, and what was on a back edge is lost"
        );
        (!mode.is_consistent()).then_some(warning)
    }

    /// The ids above the low watermark that have ended. An id whose begin record stands is never
    /// given out again, so what is not open among them has ended.
    pub(super) fn ended_above_low(&self) -> impl Iterator<Item = (SnapshotId, bool)> + '_ {
        let above = self.low().get() + 1..=self.begun.get();
        let ended = above.map(SnapshotId::new);
        let ended = ended.filter(|snapshot| !self.open.contains_key(snapshot));
        ended.map(|snapshot| (snapshot, self.generation_of(snapshot).is_some()))
    }

    /// Whether one more id keeps the window of ids above the low watermark within its bound.
    pub(super) fn has_room(&self, open_max: u64) -> bool {
        self.last().get() - self.low().get() < open_max
    }

    /// Whether a snapshot of this mode could be open beside all that are.
    pub(super) fn overlaps(&self, mode: Mode) -> bool {
        self.open
            .values()
            .all(|open| open.taking.mode.overlaps(mode))
    }

    /// Those who wait for a snapshot to begin, which will not.
    pub(super) fn take_askers(&mut self) -> impl Iterator<Item = RequestId> + '_ {
        let beginning = self.open.values_mut();
        let beginning = beginning.filter(|open| open.stage == Stage::Beginning);
        beginning.filter_map(|open| open.asker.take())
    }

    /// The next periodic snapshot begins an interval from now.
    pub(super) fn restart_interval(&mut self, now_ms: u64, interval_ms: u64) {
        self.periodic_from_ms = now_ms + interval_ms;
    }
}
