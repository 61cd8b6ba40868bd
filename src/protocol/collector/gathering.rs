//! Snapshots at the collector, first half: ids are given out, parts gathered.

use std::collections::{BTreeMap, BTreeSet};

use super::collection::{Ended, Open, Stage};
use super::recovery::Phase;
use super::{Announcement, Answer, Collector, CollectorEffect, RequestId};
use crate::protocol::application::Quantities;
use crate::protocol::cut;
use crate::protocol::events::{Order, StoredPart};
use crate::protocol::ids::{ProcessId, SnapshotId};
use crate::protocol::mode::{Mode, Taking};
use crate::protocol::mutant::{Mutant::*, is};
use crate::protocol::records::{Begun, End, Manifest, Outcome, Record, Unreadable};

fn superseded(newer: SnapshotId) -> String {
    format!("{newer} has begun, and only classic snapshots overlap")
}

impl Collector {
    /// Takes in what the store holds. Snapshots without a manifest are this term's to end.
    pub(super) fn read_snapshots(&mut self, snapshots: Vec<(Begun, Option<Manifest>)>) {
        for (begun, manifest) in snapshots {
            let id = begun.snapshot;
            self.collection.begun = self.collection.begun.max(id);
            match manifest {
                Some(manifest) => {
                    let ended = Ended::as_said_in(&manifest);
                    self.collection.stored.insert(id, ended);
                }
                None => {
                    let open = Open {
                        generation: begun.generation,
                        taking: begun.mode.into(),
                        begun_ms: self.now_ms,
                        initiators: BTreeSet::new(),
                        asker: None,
                        stage: Stage::Gathering,
                        parts: BTreeMap::new(),
                        failed: false,
                    };
                    self.collection.open.insert(id, open);
                }
            }
        }
    }

    /// What cannot be read is passed over, and its id is never given out again. If it is not known
    /// of which generation it is, it may be of the last.
    pub(super) fn note_unreadable(&mut self, unreadable: BTreeMap<SnapshotId, Unreadable>) {
        for (id, Unreadable { generation, why }) in unreadable {
            self.collection.begun = self.collection.begun.max(id);
            let ended = self.collection.stored.contains_key(&id);
            // If it could be read before, what it said counts.
            if !ended && !self.collection.open.contains_key(&id) {
                let generation = generation.unwrap_or(self.generation);
                self.collection.unreadable.insert(id, (generation, why));
            }
        }
    }

    /// Begins what is wanted, or due, if the job runs and there is room.
    pub(super) fn begin_wanted(&mut self, effects: &mut Vec<CollectorEffect>) {
        while self.collection.has_room(self.policy.open_max) {
            let own = Taking::new(self.policy.mode, self.policy.alignment_timeout_ms);
            let (asker, initiators, taking) = if let Some((_, last @ None)) = &mut self.stopping {
                *last = Some(self.collection.last().next());
                (None, self.initiators(), own)
            } else if let Some((asker, initiators, taking)) = self.wanted.pop_front() {
                (Some(asker), initiators, taking)
            } else if self.is_due() && self.collection.overlaps(own.mode) {
                (None, self.initiators(), own)
            } else {
                return;
            };
            let interval_ms = self.policy.interval_ms;
            self.collection.restart_interval(self.now_ms, interval_ms);
            self.begin(asker, initiators, taking, effects);
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
        taking: Taking,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let id = self.collection.last().next();
        self.end_older(id, taking.mode, effects);
        let open = Open {
            generation: self.generation,
            taking,
            begun_ms: self.now_ms,
            initiators,
            asker,
            stage: Stage::Beginning,
            parts: BTreeMap::new(),
            failed: false,
        };
        self.collection.open.insert(id, open);
        effects.push(CollectorEffect::Create(Record::Begun(Begun {
            snapshot: id,
            generation: self.generation,
            mode: taking.mode,
            term: self.term,
            nonce: self.nonce,
        })));
    }

    /// Only classic snapshots are open at once: where the newer or the older is another, the
    /// newer ends the older, which is no failure of anything.
    fn end_older(&mut self, newer: SnapshotId, mode: Mode, effects: &mut Vec<CollectorEffect>) {
        let older = self.collection.open.range(..newer);
        let over = older.filter(|(_, open)| !open.taking.mode.overlaps(mode));
        for snapshot in over.map(|(&snapshot, _)| snapshot).collect::<Vec<_>>() {
            self.abort(snapshot, superseded(newer), false, effects);
        }
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
            Outcome::Exists(Record::Begun(begun)) if begun.term > self.term => {
                return self.fenced(begun.term, effects);
            }
            Outcome::Exists(Record::Begun(begun)) => begun.nonce == self.nonce || is(ReusesId),
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
            let (asker, initiators) = (open.asker.take(), open.initiators.clone());
            let taking = open.taking;
            if let Some((_, Some(last))) = &mut self.stopping
                && *last == snapshot
            {
                *last = self.collection.last().next();
            }
            let reason = "its id was taken by another collector".to_owned();
            self.abort(snapshot, reason, false, effects);
            return self.begin(asker, initiators, taking, effects);
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
        let (taking, initiators) = (open.taking, open.initiators.clone());
        let mut newer = self.collection.open.range(snapshot.next()..);
        if let Some((&newer, _)) = newer.find(|(_, open)| !open.taking.mode.overlaps(taking.mode)) {
            return self.abort(snapshot, superseded(newer), false, effects);
        }
        for initiator in initiators {
            self.tell(initiator, Order::Trigger(snapshot, taking), effects);
        }
    }

    /// Triggers that a returning initiator may have missed; a second trigger changes nothing.
    pub(super) fn trigger_again(&self, process: ProcessId, effects: &mut Vec<CollectorEffect>) {
        for (&snapshot, open) in &self.collection.open {
            if open.stage == Stage::Gathering && open.initiators.contains(&process) {
                self.tell(process, Order::Trigger(snapshot, open.taking), effects);
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
        if open.parts.len() + usize::from(is(CompletesTooSoon)) == processes {
            let parts: Vec<_> = std::mem::take(&mut open.parts).into_values().collect();
            // What the quantities were when the job began, they must add up to ever after.
            let mut expected = Quantities::new();
            for part in &parts {
                cut::add(&mut expected, &part.facts.initial);
            }
            let elapsed_ms = self.now_ms - open.begun_ms;
            let end = End::Complete {
                parts,
                expected,
                elapsed_ms,
            };
            self.write_end(snapshot, end, effects);
        }
    }
}
