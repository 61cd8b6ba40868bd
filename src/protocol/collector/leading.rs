//! The log at the collector: terms, fencing, and what a new collector reads back.

use super::recovery::Phase;
use super::{Announcement, Collector, CollectorEffect, PATIENCE_MS, RETRY_MS};
use crate::protocol::ids::{Generation, JobId, Term};
use crate::protocol::mutant::{Mutant::LeavesSnapshotsOpen, is};
use crate::protocol::records::{LogEntry, Outcome, Record, Records};

/// The number of the log's first record.
const FIRST_RECORD: u64 = 1;

/// Whether the store was read again after the term was taken.
///
/// Until a node has left it, the collector before may have begun and completed snapshots that
/// were not there yet when this one first read. From then on it can complete nothing that it had
/// not begun, as it lacks that node's part. So one more look, before the first choice of a restore
/// point, sees everything that is, or could still become, complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reread {
    /// Not yet; tried in vain since the first time, and not to be tried again before the second.
    Due(Option<u64>, u64),
    /// It is being read, tried in vain since this time.
    UnderWay(Option<u64>),
    /// Yes.
    Done,
}

impl Collector {
    /// What the store holds is here.
    pub(super) fn read(
        &mut self,
        records: Result<Records, String>,
        effects: &mut Vec<CollectorEffect>,
    ) {
        match self.reread {
            Reread::UnderWay(since_ms) => self.read_again(records, since_ms, effects),
            Reread::Due(..) if self.phase == Phase::Reading => self.read_first(records, effects),
            Reread::Due(..) | Reread::Done => {}
        }
    }

    /// Whether everything begun before this term is known; if not, it soon will be.
    pub(super) fn has_reread(&mut self, effects: &mut Vec<CollectorEffect>) -> bool {
        match self.reread {
            // No snapshot is begun before the first generation, and that is for this one to begin.
            _ if self.generation == Generation::default() => true,
            Reread::Done => true,
            Reread::Due(since_ms, from_ms) if self.now_ms >= from_ms => {
                self.reread = Reread::UnderWay(since_ms);
                effects.push(CollectorEffect::Read);
                false
            }
            Reread::Due(..) | Reread::UnderWay(_) => false,
        }
    }

    fn read_again(
        &mut self,
        records: Result<Records, String>,
        since_ms: Option<u64>,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let since_ms = since_ms.unwrap_or(self.now_ms);
        match records {
            Ok(records) => {
                self.reread = Reread::Done;
                let mut snapshots = records.snapshots;
                snapshots.retain(|(begun, _)| self.collection.is_news(begun.snapshot));
                self.read_snapshots(snapshots);
                self.note_unreadable(records.unreadable);
                self.abort_all("its collector was lost", effects);
            }
            Err(reason) if self.now_ms - since_ms >= PATIENCE_MS => {
                self.fail(format!("the store cannot be read: {reason}"), effects);
            }
            Err(_) => self.reread = Reread::Due(Some(since_ms), self.now_ms + RETRY_MS),
        }
    }

    /// Takes the next term.
    fn read_first(&mut self, records: Result<Records, String>, effects: &mut Vec<CollectorEffect>) {
        let records = match records {
            Ok(records) => records,
            // Nothing is known of the job, which may well run: another may do better.
            Err(reason) => {
                self.end(&reason, effects);
                return effects.push(CollectorEffect::Unread(reason));
            }
        };
        let topology = self.topology.fingerprint();
        if records.log.iter().any(|entry| entry.topology != topology) {
            let reason = "the store holds a job of another topology: give this one its own \
                          directory, or the job file it was begun with";
            return self.fail(reason.to_owned(), effects);
        }
        if let Some(first) = records.log.first() {
            self.is_of(JobId::new(first.nonce), effects);
        }
        for entry in &records.log {
            self.logged = entry.number;
            self.term = self.term.max(entry.term);
            if let Some(begun) = entry.generation {
                self.generation = begun.generation;
                self.origins.insert(begun.generation, begun.restored);
            }
        }
        self.read_snapshots(records.snapshots);
        self.note_unreadable(records.unreadable);
        self.phase = Phase::Claiming;
        let entry = self.log_entry(self.term.next());
        effects.push(CollectorEffect::Create(Record::Log(entry)));
    }

    /// A record of the log is written. A collector that loses to another is fenced.
    pub(super) fn logged(
        &mut self,
        entry: LogEntry,
        outcome: Outcome,
        effects: &mut Vec<CollectorEffect>,
    ) {
        match outcome {
            Outcome::Exists(Record::Log(stands)) if stands.nonce != self.nonce => {
                return self.fenced(stands.term, effects);
            }
            Outcome::Failed(reason) => {
                let before = self.log_retry.take();
                let since_ms = before.map_or(self.now_ms, |(_, since_ms, _)| since_ms);
                // A job that has not begun can be begun again when the store is well; one that
                // runs has more patience.
                let is_first = entry.number == FIRST_RECORD;
                self.log_retry = Some((entry, since_ms, self.now_ms + RETRY_MS));
                if self.now_ms - since_ms >= PATIENCE_MS || is_first {
                    self.fail(format!("the log cannot be written: {reason}"), effects);
                }
                return;
            }
            Outcome::Created | Outcome::Exists(_) => {}
        }
        self.log_retry = None;
        self.logged = entry.number;
        if entry.number == FIRST_RECORD {
            self.is_of(JobId::new(self.nonce), effects);
        }
        match entry.generation {
            None => self.lead(entry, effects),
            Some(begun) => {
                self.generation = begun.generation;
                self.origins.insert(begun.generation, begun.restored);
                self.phase = Phase::Gathering;
                self.replace_lost(effects);
                effects.push(CollectorEffect::Announce(Announcement::Restoring(
                    begun.generation,
                    begun.restored,
                )));
                if let Some(warning) = self.collection.warning_on(begun.restored) {
                    effects.push(CollectorEffect::Announce(Announcement::Warned(warning)));
                }
            }
        }
    }

    /// Writes a log record again that could not be written. If it had been after all, the answer
    /// is that it exists, with this collector's nonce.
    pub(super) fn retry_log(&mut self, effects: &mut Vec<CollectorEffect>) {
        if let Some((entry, _, retry_ms)) = &mut self.log_retry
            && self.now_ms >= *retry_ms
        {
            *retry_ms = u64::MAX;
            effects.push(CollectorEffect::Create(Record::Log(entry.clone())));
        }
    }

    /// The term is this collector's: every node refuses older ones from its welcome on, and every
    /// snapshot begun before it that has no manifest is ended.
    fn lead(&mut self, entry: LogEntry, effects: &mut Vec<CollectorEffect>) {
        self.term = entry.term;
        self.phase = Phase::Surveying;
        effects.push(CollectorEffect::Lead);
        self.members.wait_for_absent(self.now_ms);
        if !is(LeavesSnapshotsOpen) {
            self.abort_all("its collector was lost", effects);
        }
        for process in self.topology.processes() {
            self.welcome(process, effects);
        }
        if self.generation == Generation::default() {
            self.phase = Phase::Ending(None);
        }
    }

    /// Another collector has written what only a later term writes: this one leads no more.
    pub(super) fn fenced(&mut self, term: Term, effects: &mut Vec<CollectorEffect>) {
        let reason = format!("another collector leads, in term {term}");
        self.end(&reason, effects);
        effects.push(CollectorEffect::Fenced(term));
    }

    pub(super) fn leads(&self) -> bool {
        !matches!(self.phase, Phase::Reading | Phase::Claiming | Phase::Over)
    }
}
