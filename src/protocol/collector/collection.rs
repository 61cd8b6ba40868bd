//! Snapshots at the collector: ids, parts, deadlines, ends, retention.

use std::collections::{BTreeMap, BTreeSet};

use super::recovery::Phase;
use super::{Answer, Collector, CollectorEffect, RETRY_MS, RequestId};
use crate::protocol::collector::Announcement;
use crate::protocol::events::{Order, StoredPart};
use crate::protocol::ids::{Generation, ProcessId, SnapshotId};
use crate::protocol::mode::Mode;
use crate::protocol::records::{Begun, End, Manifest, Outcome, Record};

/// How far an open snapshot is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Its begin record is being written; nobody knows of it.
    Beginning,
    /// Triggered; parts come in.
    Gathering,
    /// Its manifest is being written.
    Ending(Box<Manifest>),
    /// Its manifest could not be written: again from this time on.
    Stuck(Box<Manifest>, u64),
}

/// One open snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    generation: Generation,
    mode: Mode,
    begun_ms: u64,
    initiators: BTreeSet<ProcessId>,
    asker: Option<RequestId>,
    stage: Stage,
    parts: BTreeMap<ProcessId, StoredPart>,
}

/// All snapshots the collector must know of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Collection {
    open: BTreeMap<SnapshotId, Open>,
    /// The last id whose begin record is known to stand, which is what gives an id out.
    begun: SnapshotId,
    /// Ended and still in the store: of which generation, and whether complete.
    stored: BTreeMap<SnapshotId, (Generation, bool)>,
    periodic_from_ms: u64,
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
    fn last(&self) -> SnapshotId {
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
        let found =
            newest_first.find(|&(&id, &(of, complete))| complete && of == generation && accept(id));
        found.map(|(&id, _)| id)
    }

    /// The generation of a complete snapshot.
    pub(super) fn generation_of(&self, snapshot: SnapshotId) -> Option<Generation> {
        let (generation, complete) = self.stored.get(&snapshot)?;
        complete.then_some(*generation)
    }

    /// Whether one more id keeps the window of ids above the low watermark within its bound.
    fn has_room(&self, open_max: u64) -> bool {
        self.last().get() - self.low().get() < open_max
    }

    /// The next periodic snapshot begins an interval from now.
    pub(super) fn restart_interval(&mut self, now_ms: u64, interval_ms: u64) {
        self.periodic_from_ms = now_ms + interval_ms;
    }
}

impl Collector {
    /// Takes in what the store holds. Snapshots without a manifest are this term's to end.
    pub(super) fn read_snapshots(&mut self, snapshots: Vec<(Begun, Option<Manifest>)>) {
        for (begun, manifest) in snapshots {
            let id = begun.snapshot;
            self.collection.begun = self.collection.begun.max(id);
            match manifest {
                Some(manifest) => {
                    let ended = (manifest.generation, manifest.is_complete());
                    self.collection.stored.insert(id, ended);
                }
                None => {
                    let open = Open {
                        generation: begun.generation,
                        mode: self.policy.mode,
                        begun_ms: self.now_ms,
                        initiators: BTreeSet::new(),
                        asker: None,
                        stage: Stage::Gathering,
                        parts: BTreeMap::new(),
                    };
                    self.collection.open.insert(id, open);
                }
            }
        }
    }

    /// Begins what is wanted, or due, if the job runs and there is room.
    pub(super) fn begin_wanted(&mut self, effects: &mut Vec<CollectorEffect>) {
        while self.collection.has_room(self.policy.open_max) {
            let (asker, initiators) = if let Some((_, last @ None)) = &mut self.stopping {
                *last = Some(self.collection.last().next());
                (None, self.initiators())
            } else if let Some((asker, initiators)) = self.wanted.pop_front() {
                (Some(asker), initiators)
            } else if self.is_due() {
                (None, self.initiators())
            } else {
                return;
            };
            let interval_ms = self.policy.interval_ms;
            self.collection.restart_interval(self.now_ms, interval_ms);
            self.begin(asker, initiators, effects);
        }
    }

    fn is_due(&self) -> bool {
        self.policy.interval_ms > 0
            && self.stopping.is_none()
            && self.now_ms >= self.collection.periodic_from_ms
    }

    fn begin(
        &mut self,
        asker: Option<RequestId>,
        initiators: BTreeSet<ProcessId>,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let id = self.collection.last().next();
        let open = Open {
            generation: self.generation,
            mode: self.policy.mode,
            begun_ms: self.now_ms,
            initiators,
            asker,
            stage: Stage::Beginning,
            parts: BTreeMap::new(),
        };
        self.collection.open.insert(id, open);
        effects.push(CollectorEffect::Create(Record::Begun(Begun {
            snapshot: id,
            generation: self.generation,
            term: self.term,
            nonce: self.nonce,
        })));
    }

    /// The begin record is written: this gives the id out, and only now may anyone be triggered.
    pub(super) fn begun(
        &mut self,
        snapshot: SnapshotId,
        outcome: Outcome,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let Some(open) = self.collection.open.get_mut(&snapshot) else {
            return;
        };
        let ours = match outcome {
            Outcome::Created => true,
            Outcome::Exists(Record::Begun(begun)) => begun.nonce == self.nonce,
            Outcome::Exists(_) => false,
            Outcome::Failed(reason) => {
                // Nobody was triggered, so nothing of it can exist but perhaps the record: the
                // next try finds it, and its own nonce in it.
                let asker = open.asker;
                self.collection.open.remove(&snapshot);
                let reason = format!("{snapshot} could not begin: {reason}");
                self.refuse_stop(snapshot, &reason, effects);
                if let Some(asker) = asker {
                    effects.push(CollectorEffect::Answer(asker, Err(reason.clone())));
                }
                return self.failed(reason, effects);
            }
        };
        open.stage = Stage::Gathering;
        self.collection.begun = self.collection.begun.max(snapshot);
        if !ours {
            let again = (open.asker.take(), open.initiators.clone());
            self.abort(
                snapshot,
                "its id was taken by another collector".to_owned(),
                false,
                effects,
            );
            return self.begin(again.0, again.1, effects);
        }
        effects.push(CollectorEffect::Announce(Announcement::Begun(snapshot)));
        if let Some(asker) = open.asker {
            effects.push(CollectorEffect::Answer(asker, Ok(Answer::Begun(snapshot))));
        }
        if self.phase != Phase::Running {
            return self.abort(
                snapshot,
                "the job is being restored".to_owned(),
                false,
                effects,
            );
        }
        let (mode, initiators) = (open.mode, open.initiators.clone());
        for initiator in initiators {
            self.tell(initiator, Order::Trigger(snapshot, mode), effects);
        }
    }

    /// Triggers that a returning initiator may have missed; a second trigger changes nothing.
    pub(super) fn trigger_again(&self, process: ProcessId, effects: &mut Vec<CollectorEffect>) {
        for (&snapshot, open) in &self.collection.open {
            if open.stage == Stage::Gathering && open.initiators.contains(&process) {
                self.tell(process, Order::Trigger(snapshot, open.mode), effects);
            }
        }
    }

    /// A part is on disk. With the last one the snapshot can be completed.
    pub(super) fn part_stored(
        &mut self,
        process: ProcessId,
        snapshot: SnapshotId,
        part: StoredPart,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let processes = self.topology.processes().len();
        let Some(open) = self.collection.open.get_mut(&snapshot) else {
            return;
        };
        if open.stage != Stage::Gathering {
            return;
        }
        open.parts.insert(process, part);
        if open.parts.len() == processes {
            let end = End::Complete {
                parts: std::mem::take(&mut open.parts).into_values().collect(),
                expected: self.members.expected(),
                elapsed_ms: self.now_ms - open.begun_ms,
            };
            self.write_end(snapshot, end, effects);
        }
    }

    /// Aborts an open snapshot, unless its end is being written already. `counts` if it is a
    /// failure of the snapshot itself and not of something around it.
    pub(super) fn abort(
        &mut self,
        snapshot: SnapshotId,
        reason: String,
        counts: bool,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let gathering = Some(&Stage::Gathering);
        if self.collection.open.get(&snapshot).map(|open| &open.stage) == gathering {
            let failure = format!("{snapshot} was aborted: {reason}");
            self.write_end(snapshot, End::Aborted { reason }, effects);
            if counts {
                self.failed(failure, effects);
            }
        }
    }

    /// Aborts everything that can still be aborted.
    pub(super) fn abort_all(&mut self, reason: &str, effects: &mut Vec<CollectorEffect>) {
        for snapshot in self.collection.open().collect::<Vec<_>>() {
            self.abort(snapshot, reason.to_owned(), false, effects);
        }
    }

    fn write_end(&mut self, snapshot: SnapshotId, end: End, effects: &mut Vec<CollectorEffect>) {
        let Some(open) = self.collection.open.get_mut(&snapshot) else {
            return;
        };
        let manifest = Box::new(Manifest {
            snapshot,
            generation: open.generation,
            term: self.term,
            nonce: self.nonce,
            mode: open.mode,
            topology: self.topology.fingerprint(),
            end,
        });
        open.stage = Stage::Ending(manifest.clone());
        effects.push(CollectorEffect::Create(Record::Manifest(manifest)));
    }

    /// The manifest is written, by whomever: the snapshot has ended as it says there.
    pub(super) fn ended(
        &mut self,
        manifest: Manifest,
        outcome: Outcome,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let snapshot = manifest.snapshot;
        let manifest = match outcome {
            Outcome::Created => manifest,
            Outcome::Exists(Record::Manifest(stands)) => *stands,
            Outcome::Exists(_) => return,
            Outcome::Failed(reason) => {
                let retry_ms = self.now_ms + RETRY_MS;
                if let Some(open) = self.collection.open.get_mut(&snapshot) {
                    open.stage = Stage::Stuck(Box::new(manifest), retry_ms);
                    let reason = format!("the end of {snapshot} could not be written: {reason}");
                    self.failed(reason, effects);
                }
                return;
            }
        };
        let Some(open) = self.collection.open.remove(&snapshot) else {
            return;
        };
        let complete = manifest.is_complete();
        self.collection
            .stored
            .insert(snapshot, (open.generation, complete));
        let pause_ms = self.now_ms + self.policy.pause_min_ms;
        self.collection.periodic_from_ms = self.collection.periodic_from_ms.max(pause_ms);
        if complete {
            self.collection.complete_count += 1;
            self.collection.failures_in_row = 0;
        } else {
            self.collection.aborted_count += 1;
        }
        let low = self.collection.low();
        let notice = Order::Ended {
            snapshot,
            complete,
            low,
        };
        self.tell_all(&notice, effects);
        self.retire(effects);
        if complete {
            self.finish_stop(snapshot, effects);
        } else if let End::Aborted { reason } = &manifest.end {
            self.refuse_stop(snapshot, reason, effects);
        }
        effects.push(CollectorEffect::Announce(Announcement::Ended(Box::new(
            manifest,
        ))));
    }

    /// Deletes what retention no longer wants: everything below the newest complete ones, but
    /// never what a restore would take.
    fn retire(&mut self, effects: &mut Vec<CollectorEffect>) {
        let retain = usize::try_from(self.policy.retain).unwrap_or(usize::MAX);
        let complete = self
            .collection
            .stored
            .iter()
            .rev()
            .filter(|(_, (_, complete))| *complete);
        let Some((&oldest, _)) = complete.clone().take(retain).last() else {
            return;
        };
        if complete.count() < retain {
            return;
        }
        let oldest = oldest.min(self.restore_point());
        let kept = self.collection.stored.split_off(&oldest);
        for snapshot in std::mem::replace(&mut self.collection.stored, kept).into_keys() {
            effects.push(CollectorEffect::Delete(snapshot));
        }
    }

    /// A snapshot failed. More in a row than are tolerated end the job.
    fn failed(&mut self, reason: String, effects: &mut Vec<CollectorEffect>) {
        self.collection.failures_in_row += 1;
        effects.push(CollectorEffect::Announce(Announcement::Failed(
            reason.clone(),
        )));
        let (failures, tolerated) = (
            self.collection.failures_in_row,
            self.policy.failures_tolerated,
        );
        if failures > tolerated && self.phase != Phase::Over {
            self.fail(
                format!(
                    "{failures} snapshots failed in a row, {tolerated} are tolerated: {reason}"
                ),
                effects,
            );
        }
    }

    /// The last snapshot is complete: the job ends.
    fn finish_stop(&mut self, snapshot: SnapshotId, effects: &mut Vec<CollectorEffect>) {
        if let Some((asker, Some(last))) = self.stopping
            && last == snapshot
        {
            effects.push(CollectorEffect::Answer(
                asker,
                Ok(Answer::Stopped(snapshot)),
            ));
            self.tell_all(&Order::Halt, effects);
            self.phase = Phase::Over;
            effects.push(CollectorEffect::Finish);
        }
    }

    /// The last snapshot has failed: the job goes on.
    fn refuse_stop(
        &mut self,
        snapshot: SnapshotId,
        reason: &str,
        effects: &mut Vec<CollectorEffect>,
    ) {
        if let Some((asker, Some(last))) = self.stopping
            && last == snapshot
        {
            self.stopping = None;
            let reason = format!("the last snapshot, {snapshot}, was aborted: {reason}");
            effects.push(CollectorEffect::Answer(asker, Err(reason)));
        }
    }

    /// Aborts what takes too long, naming those it waits for; writes again what got stuck.
    pub(super) fn look_for_deadlines(&mut self, effects: &mut Vec<CollectorEffect>) {
        let timeout_ms = self.policy.timeout_ms;
        let mut late = Vec::new();
        for (&snapshot, open) in &mut self.collection.open {
            match &open.stage {
                Stage::Gathering if self.now_ms - open.begun_ms >= timeout_ms => {
                    let missing = self.topology.processes();
                    let missing = missing.filter(|process| !open.parts.contains_key(process));
                    let names: Vec<_> = missing.map(|p| self.topology.name(p)).collect();
                    late.push((snapshot, names.join(", ")));
                }
                Stage::Stuck(manifest, retry_ms) if self.now_ms >= *retry_ms => {
                    let manifest = manifest.clone();
                    open.stage = Stage::Ending(manifest.clone());
                    effects.push(CollectorEffect::Create(Record::Manifest(manifest)));
                }
                _ => {}
            }
        }
        for (snapshot, names) in late {
            let reason = format!("no part within {timeout_ms} ms from {names}");
            self.abort(snapshot, reason, true, effects);
        }
    }
}
