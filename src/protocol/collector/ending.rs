//! Snapshots at the collector, second half: how they end, and what is kept of them.

use super::collection::{Ended, Stage};
use super::recovery::Phase;
use super::{Announcement, Answer, Collector, CollectorEffect, PATIENCE_MS, RETRY_MS};
use crate::protocol::events::Order;
use crate::protocol::ids::SnapshotId;
use crate::protocol::mutant::{Mutant::TakesUnknownForAborted, is};
use crate::protocol::records::{End, Manifest, Outcome, Record};

/// Snapshots that one end of a snapshot may have deleted. More than one a time, so that it catches
/// up when retention was lowered; few, so that nothing else waits long behind them.
const RETIRED_MAX: usize = 16;

impl Collector {
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
                // Told when its end is written.
                self.count_once(snapshot, failure, effects);
            }
        }
    }

    /// Counts a snapshot as a failure, unless it is counted already.
    fn count_once(
        &mut self,
        snapshot: SnapshotId,
        reason: String,
        effects: &mut Vec<CollectorEffect>,
    ) {
        if let Some(open) = self.collection.open.get_mut(&snapshot)
            && !std::mem::replace(&mut open.failed, true)
        {
            self.count_failure(reason, effects);
        }
    }

    /// Aborts everything that can still be aborted.
    pub(super) fn abort_all(&mut self, reason: &str, effects: &mut Vec<CollectorEffect>) {
        for snapshot in self.collection.open().collect::<Vec<_>>() {
            self.abort(snapshot, reason.to_owned(), false, effects);
        }
    }

    pub(super) fn write_end(
        &mut self,
        snapshot: SnapshotId,
        end: End,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let Some(open) = self.collection.open.get_mut(&snapshot) else {
            return;
        };
        let manifest = Box::new(Manifest {
            snapshot,
            generation: open.generation,
            term: self.term,
            nonce: self.nonce,
            mode: open.taking.mode,
            topology: self.topology.fingerprint(),
            end,
        });
        open.stage = Stage::Ending(manifest.clone(), None);
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
            Outcome::Exists(Record::Manifest(stands)) if stands.term > self.term => {
                return self.fenced(stands.term, effects);
            }
            Outcome::Exists(Record::Manifest(stands)) => *stands,
            Outcome::Exists(_) => return,
            Outcome::Failed(reason) if is(TakesUnknownForAborted) => Manifest {
                end: End::Aborted { reason },
                ..manifest
            },
            Outcome::Failed(reason) => return self.stuck(manifest, &reason, effects),
        };
        if self.collection.open.remove(&snapshot).is_none() {
            return;
        }
        let complete = manifest.is_complete();
        let ended = Ended::as_said_in(&manifest);
        self.collection.stored.insert(snapshot, ended);
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

    /// The end could not be written, or nobody knows whether it was. It is tried again, for until
    /// it stands nothing may be concluded; a store that stays broken ends the job.
    fn stuck(&mut self, manifest: Manifest, reason: &str, effects: &mut Vec<CollectorEffect>) {
        let snapshot = manifest.snapshot;
        let Some(open) = self.collection.open.get_mut(&snapshot) else {
            return;
        };
        let Stage::Ending(_, before_ms) = open.stage else {
            return;
        };
        let since_ms = before_ms.unwrap_or(self.now_ms);
        open.stage = Stage::Stuck(Box::new(manifest), since_ms, self.now_ms + RETRY_MS);
        let reason = format!("the end of {snapshot} could not be written: {reason}");
        if self.now_ms - since_ms >= PATIENCE_MS {
            return self.fail(reason, effects);
        }
        if before_ms.is_none() {
            effects.push(CollectorEffect::Announce(Announcement::Failed(
                reason.clone(),
            )));
        }
        self.count_once(snapshot, reason, effects);
    }

    /// Deletes what retention no longer wants: everything below the newest complete ones, but
    /// never what a restore would take or is taking, nor what is not known to have ended
    /// everywhere. Of aborted ones as many are kept, as any number may come before the next
    /// complete one, and their parts with them.
    fn retire(&mut self, effects: &mut Vec<CollectorEffect>) {
        let retain = usize::try_from(self.policy.retain).unwrap_or(usize::MAX);
        let stored = &self.collection.stored;
        let oldest_kept = |complete: bool| {
            let newest_first = stored.iter().rev();
            let alike = newest_first.filter(|(_, ended)| ended.complete == complete);
            let kept = alike.map(|(&id, _)| id).take(retain).collect::<Vec<_>>();
            // Only once there are so many.
            kept.get(retain.saturating_sub(1)).copied()
        };
        let ended = self.collection.low().next();
        let below = |bound: Option<SnapshotId>| bound.unwrap_or_default().min(ended);
        let whatever = below(oldest_kept(true)).min(self.wanted_back());
        let aborted = below(oldest_kept(false));
        let going = stored
            .iter()
            .filter(|&(&id, end)| id < whatever || (!end.complete && id < aborted));
        let going = going.map(|(&id, _)| id).take(RETIRED_MAX);
        for snapshot in going.collect::<Vec<_>>() {
            self.collection.stored.remove(&snapshot);
            effects.push(CollectorEffect::Delete(snapshot));
        }
    }

    /// A snapshot failed of which nothing else will be told.
    pub(super) fn failed(&mut self, reason: String, effects: &mut Vec<CollectorEffect>) {
        effects.push(CollectorEffect::Announce(Announcement::Failed(
            reason.clone(),
        )));
        self.count_failure(reason, effects);
    }

    /// One failure more. More in a row than are tolerated end the job.
    fn count_failure(&mut self, reason: String, effects: &mut Vec<CollectorEffect>) {
        self.collection.failures_in_row += 1;
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
            self.stopping = None;
            effects.push(CollectorEffect::Answer(
                asker,
                Ok(Answer::Stopped(snapshot)),
            ));
            self.tell_all(&Order::Halt, effects);
            self.end("the job has been stopped", effects);
            effects.push(CollectorEffect::Finish);
        }
    }

    /// The last snapshot has failed: the job goes on.
    pub(super) fn refuse_stop(
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
    /// Only a collector that leads may: what is open may be another's.
    pub(super) fn look_for_deadlines(&mut self, effects: &mut Vec<CollectorEffect>) {
        if !self.leads() {
            return;
        }
        let timeout_ms = self.policy.timeout_ms;
        let mut late = Vec::new();
        for (&snapshot, open) in &mut self.collection.open {
            match &open.stage {
                Stage::Gathering if self.now_ms - open.begun_ms >= timeout_ms => {
                    let missing = self.topology.processes();
                    let missing = missing.filter(|process| !open.parts.contains_key(process));
                    late.push((snapshot, missing.collect::<Vec<_>>()));
                }
                Stage::Stuck(manifest, since_ms, retry_ms) if self.now_ms >= *retry_ms => {
                    let (manifest, since_ms) = (manifest.clone(), *since_ms);
                    open.stage = Stage::Ending(manifest.clone(), Some(since_ms));
                    effects.push(CollectorEffect::Create(Record::Manifest(manifest)));
                }
                _ => {}
            }
        }
        for (snapshot, missing) in late {
            let names = self.names(missing);
            let reason = format!("no part within {timeout_ms} ms from {names}");
            self.abort(snapshot, reason, true, effects);
        }
    }
}
