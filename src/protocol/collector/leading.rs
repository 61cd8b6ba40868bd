//! The log at the collector: terms, fencing, and what a new collector reads back.

use super::recovery::Phase;
use super::{Announcement, Collector, CollectorEffect, LOG_TRIES_MAX, RETRY_MS};
use crate::protocol::ids::Generation;
use crate::protocol::records::{LogEntry, Outcome, Record, Records};

impl Collector {
    /// What the store holds is here: take the next term.
    pub(super) fn read(
        &mut self,
        records: Result<Records, String>,
        effects: &mut Vec<CollectorEffect>,
    ) {
        if self.phase != Phase::Reading {
            return;
        }
        let records = match records {
            Ok(records) => records,
            Err(reason) => return self.fail(reason, effects),
        };
        let topology = self.topology.fingerprint();
        if records.log.iter().any(|entry| entry.topology != topology) {
            let reason = "the store holds a job of another topology: give this one its own \
                          directory, or the job file it was begun with";
            return self.fail(reason.to_owned(), effects);
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
                self.phase = Phase::Over;
                return effects.push(CollectorEffect::Fenced(stands.term));
            }
            Outcome::Failed(reason) => {
                let tries = self.log_retry.as_ref().map_or(0, |(_, tries, _)| *tries) + 1;
                self.log_retry = Some((entry, tries, self.now_ms + RETRY_MS));
                if tries >= LOG_TRIES_MAX || self.phase == Phase::Claiming {
                    self.fail(format!("the log cannot be written: {reason}"), effects);
                }
                return;
            }
            Outcome::Created | Outcome::Exists(_) => {}
        }
        self.log_retry = None;
        self.logged = entry.number;
        match entry.generation {
            None => self.lead(entry, effects),
            Some(begun) => {
                self.generation = begun.generation;
                self.origins.insert(begun.generation, begun.restored);
                self.phase = Phase::Gathering;
                effects.push(CollectorEffect::Announce(Announcement::Restoring(
                    begun.generation,
                    begun.restored,
                )));
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
        self.abort_all("its collector was lost", effects);
        for process in self.topology.processes() {
            self.welcome(process, effects);
        }
        if self.generation == Generation::default() {
            self.phase = Phase::Ending(None);
        }
    }

    pub(super) fn leads(&self) -> bool {
        !matches!(self.phase, Phase::Reading | Phase::Claiming | Phase::Over)
    }
}
