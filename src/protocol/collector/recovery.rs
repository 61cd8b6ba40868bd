//! Terms, generations and restarts: the collector's side of design section 4.

use super::members::Admission;
use super::{Answer, Collector, CollectorEffect, LOG_TRIES_MAX, RETRY_MS, RequestId};
use crate::protocol::collector::Announcement;
use crate::protocol::events::{Holding, Join, Order, Standing};
use crate::protocol::ids::{Generation, Incarnation, ProcessId, SnapshotId};
use crate::protocol::records::{GenerationEntry, LogEntry, Outcome, Record, Records};

/// Where the job is between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The store is being read.
    Reading,
    /// The record of the new term is being written.
    Claiming,
    /// A new collector waits for everyone, to see whether they still hold the generation.
    Surveying,
    /// Open snapshots are being ended, so that the choice of a restore point is final. The
    /// snapshot, if one was asked for.
    Ending(Option<SnapshotId>),
    /// The record of the next generation is being written, or will be tried again.
    Recording(GenerationEntry),
    /// Everyone must have joined before anyone prepares.
    Gathering,
    /// Parts are being loaded.
    Preparing,
    /// Everyone runs.
    Running,
    /// The job has ended.
    Over,
}

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

    fn leads(&self) -> bool {
        !matches!(self.phase, Phase::Reading | Phase::Claiming | Phase::Over)
    }

    /// A node wants to be the node of its process.
    pub(super) fn joining(&mut self, join: Join, effects: &mut Vec<CollectorEffect>) {
        let (process, incarnation) = (join.process, join.incarnation);
        if let Err(reason) = self.check_join(&join) {
            return self.refuse(process, incarnation, reason, effects);
        }
        match self.members.join(join, self.now_ms) {
            Admission::Waits => {}
            Admission::WasLost => {
                let name = self.topology.name(process);
                let reason = format!("this node of {name} was declared lost and is replaced");
                self.refuse(process, incarnation, reason, effects);
            }
            Admission::Succeeded(before) => {
                effects.push(CollectorEffect::Announce(Announcement::Lost(
                    process, before,
                )));
                // Others may have channels to the one before: a new incarnation never resumes them.
                self.lost_one(effects);
                self.admitted(process, incarnation, effects);
            }
            Admission::Admitted | Admission::Returned => {
                self.admitted(process, incarnation, effects);
            }
        }
    }

    fn check_join(&self, join: &Join) -> Result<(), String> {
        if join.process.index() >= self.topology.processes().len()
            || join.topology != self.topology.fingerprint()
        {
            return Err("the node has another topology: give it the collector's job file".into());
        }
        if join.application != self.application {
            return Err(format!(
                "the node runs application '{}', the job is '{}'",
                join.application, self.application
            ));
        }
        Ok(())
    }

    fn refuse(
        &self,
        process: ProcessId,
        incarnation: Incarnation,
        reason: String,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let directive = self.directive(Order::Refused(reason));
        effects.push(CollectorEffect::Dismiss(process, incarnation, directive));
    }

    fn admitted(
        &mut self,
        process: ProcessId,
        incarnation: Incarnation,
        effects: &mut Vec<CollectorEffect>,
    ) {
        effects.push(CollectorEffect::Announce(Announcement::Joined(
            process,
            incarnation,
        )));
        if !self.leads() {
            return;
        }
        self.welcome(process, effects);
        let generation = self.generation;
        let holding = self.members.holdings().nth(process.index()).flatten();
        match self.phase {
            Phase::Preparing if holding != Some(Holding::Prepared(generation)) => {
                self.tell(
                    process,
                    Order::Prepare(generation, self.restored()),
                    effects,
                );
            }
            Phase::Running if holding == Some(Holding::Prepared(generation)) => {
                self.run(process, effects);
            }
            Phase::Running if holding == Some(Holding::Running(generation)) => {
                self.trigger_again(process, effects);
            }
            _ => {}
        }
    }

    fn welcome(&self, process: ProcessId, effects: &mut Vec<CollectorEffect>) {
        let standing = Standing {
            generation: self.generation,
            low: self.collection.low(),
            open: self.collection.open().collect(),
            complete: self.restore_point(),
        };
        self.tell(process, Order::Welcome(standing), effects);
    }

    /// A control stream has closed. The node may return; a claimant that waited settles it.
    pub(super) fn gone(
        &mut self,
        process: ProcessId,
        incarnation: Incarnation,
        effects: &mut Vec<CollectorEffect>,
    ) {
        if let Some(claimant) = self.members.gone(process, incarnation, self.now_ms) {
            self.joining(claimant, effects);
        }
    }

    /// Nodes that are away or silent for too long are lost, and replaced.
    /// A collector that does not lead yet declares nobody lost: its word would not be heard.
    pub(super) fn look_for_losses(&mut self, effects: &mut Vec<CollectorEffect>) {
        if !self.leads() {
            return;
        }
        for claimant in self.members.refused_claims(self.now_ms) {
            let name = self.topology.name(claimant.process);
            let reason = format!("another node is live for {name}: stop that one first");
            self.refuse(claimant.process, claimant.incarnation, reason, effects);
        }
        for (process, incarnation) in self.members.overdue(self.now_ms, self.policy.silence_ms) {
            let reason = "this node did not answer in time and was declared lost".to_owned();
            self.refuse(process, incarnation, reason, effects);
            let claimant = self.members.lose(process);
            effects.push(CollectorEffect::Announce(Announcement::Lost(
                process,
                incarnation,
            )));
            effects.push(CollectorEffect::Replace(process, incarnation));
            self.lost_one(effects);
            if let Some(claimant) = claimant {
                self.joining(claimant, effects);
            }
        }
    }

    /// A loss takes the job back, unless nobody has been told yet to prepare anyway.
    fn lost_one(&mut self, effects: &mut Vec<CollectorEffect>) {
        if matches!(
            self.phase,
            Phase::Surveying | Phase::Preparing | Phase::Running
        ) {
            self.recover(None, "a process was lost", effects);
        }
    }

    /// Takes the job back: first everything open is ended.
    fn recover(
        &mut self,
        target: Option<SnapshotId>,
        reason: &str,
        effects: &mut Vec<CollectorEffect>,
    ) {
        self.phase = Phase::Ending(target);
        self.abort_all(reason, effects);
    }

    /// A user asks for a restore.
    pub(super) fn want_restore(
        &mut self,
        asker: RequestId,
        target: Option<SnapshotId>,
        effects: &mut Vec<CollectorEffect>,
    ) -> Result<(), String> {
        if self.phase != Phase::Running {
            return Err("the job does not run yet: try again when it does".to_owned());
        }
        if self.stopping.is_some() {
            return Err("the job is being stopped".to_owned());
        }
        if let Some(target) = target
            && target != SnapshotId::default()
            && self.collection.generation_of(target).is_none()
        {
            return Err(format!(
                "there is no complete snapshot {target}: `cutline list` shows those there are"
            ));
        }
        self.restoring = Some(asker);
        self.unusable.clear();
        self.recover(target, "the job is being restored", effects);
        Ok(())
    }

    /// What a loss takes the job back to: the newest complete snapshot of the current generation,
    /// else the one this generation restored. Never one of an abandoned branch.
    pub(super) fn restore_point(&self) -> SnapshotId {
        let newest = self.collection.newest(self.generation, |_| true);
        newest.unwrap_or_else(|| self.restored())
    }

    /// The newest snapshot before those that could not be loaded, along the line of generations
    /// that led here. `None` if there is none: the initial state is not taken silently.
    fn choose(&self) -> Option<SnapshotId> {
        let mut generation = self.generation;
        let mut below = None;
        loop {
            let usable = |id: SnapshotId| {
                !self.unusable.contains(&id) && below.is_none_or(|below| id < below)
            };
            if let Some(found) = self.collection.newest(generation, usable) {
                return Some(found);
            }
            let origin = self.origins.get(&generation).copied().unwrap_or_default();
            if origin == SnapshotId::default() {
                return self.unusable.is_empty().then_some(origin);
            }
            if !self.unusable.contains(&origin) {
                return Some(origin);
            }
            below = Some(origin);
            generation = self.collection.generation_of(origin)?;
        }
    }

    /// This process has loaded its part.
    pub(super) fn ready(&mut self, process: ProcessId, generation: Generation) {
        if generation == self.generation {
            self.members.hold(process, Holding::Prepared(generation));
        }
    }

    /// This process cannot load its part: the snapshot is unusable. Never restore half of it.
    pub(super) fn unready(
        &mut self,
        process: ProcessId,
        generation: Generation,
        reason: &str,
        effects: &mut Vec<CollectorEffect>,
    ) {
        if generation != self.generation || self.phase != Phase::Preparing {
            return;
        }
        let (snapshot, name) = (self.restored(), self.topology.name(process));
        let reason = format!("{snapshot} cannot be restored: {name}: {reason}");
        self.unusable.insert(snapshot);
        if !self.policy.fall_back {
            let remedy = "name another one: cutline restore ID, or allow it: store.fall_back";
            return self.fail(format!("{reason}; {remedy}"), effects);
        }
        effects.push(CollectorEffect::Announce(Announcement::Failed(
            reason.clone(),
        )));
        match self.choose() {
            Some(older) => self.recover(Some(older), "the job is being restored", effects),
            None => self.fail(format!("{reason}; there is no older one"), effects),
        }
    }

    /// Goes on wherever nothing is waited for any more.
    pub(super) fn advance(&mut self, effects: &mut Vec<CollectorEffect>) {
        if matches!(self.phase, Phase::Surveying | Phase::Running)
            && self.members.any_astray(self.generation)
        {
            self.lost_one(effects);
        }
        match self.phase {
            Phase::Surveying
                if self.members.all_present() && self.members.all_hold(self.generation) =>
            {
                self.run_all(effects);
            }
            Phase::Ending(target) if self.collection.is_idle() => {
                self.next_generation(target, effects);
            }
            Phase::Gathering if self.members.all_present() => {
                self.phase = Phase::Preparing;
                let prepare = Order::Prepare(self.generation, self.restored());
                self.tell_all(&prepare, effects);
            }
            Phase::Preparing
                if self.members.all_present() && self.members.all_hold(self.generation) =>
            {
                self.run_all(effects);
            }
            _ => {}
        }
        if self.phase == Phase::Running {
            self.begin_wanted(effects);
        }
    }

    /// Nothing is open any more, so the choice is final: store the next generation.
    fn next_generation(&mut self, target: Option<SnapshotId>, effects: &mut Vec<CollectorEffect>) {
        let Some(restored) = target.or_else(|| self.choose()) else {
            let reason = "no snapshot of this job can be restored; name one: cutline restore ID";
            return self.fail(reason.to_owned(), effects);
        };
        let begun = GenerationEntry {
            generation: self.generation.next(),
            restored,
        };
        self.phase = Phase::Recording(begun);
        let mut entry = self.log_entry(self.term);
        entry.generation = Some(begun);
        effects.push(CollectorEffect::Create(Record::Log(entry)));
    }

    fn run_all(&mut self, effects: &mut Vec<CollectorEffect>) {
        self.phase = Phase::Running;
        for process in self.topology.processes() {
            self.run(process, effects);
        }
        self.collection
            .restart_interval(self.now_ms, self.policy.interval_ms);
        let (generation, restored) = (self.generation, self.restored());
        effects.push(CollectorEffect::Announce(Announcement::Running(
            generation, restored,
        )));
        if let Some(asker) = self.restoring.take() {
            let answer = Answer::Running(generation, restored);
            effects.push(CollectorEffect::Answer(asker, Ok(answer)));
        }
    }

    fn run(&mut self, process: ProcessId, effects: &mut Vec<CollectorEffect>) {
        self.members
            .hold(process, Holding::Running(self.generation));
        self.tell(process, Order::Run(self.generation), effects);
    }
}
