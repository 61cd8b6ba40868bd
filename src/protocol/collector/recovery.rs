//! Restarts from a cut: the collector's side of design section 4.

use super::loading::Loading;
use super::{Announcement, Answer, Collector, CollectorEffect, RequestId};
use crate::protocol::events::{Holding, Order};
use crate::protocol::ids::{Generation, ProcessId, SnapshotId};
use crate::protocol::mutant::{Mutant::*, is};
use crate::protocol::records::{GenerationEntry, Record};

/// Where the job is between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    Preparing(Loading),
    /// Everyone runs.
    Running,
    /// The job has ended.
    Over,
}

impl Collector {
    /// A loss takes the job back, unless nobody has been told yet to prepare anyway.
    pub(super) fn lost_one(&mut self, effects: &mut Vec<CollectorEffect>) {
        if matches!(
            self.phase,
            Phase::Surveying | Phase::Preparing(_) | Phase::Running
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
        if target.is_none()
            && let Some(reason) = self.unreadable_instead(self.restore_point())
        {
            return Err(reason);
        }
        self.restoring = Some(asker);
        self.before_restore = self.restore_point();
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

    /// The oldest snapshot that a restore under way, or the next one, takes.
    pub(super) fn wanted_back(&self) -> SnapshotId {
        if is(DeletesRestorePoint) {
            return self.collection.last();
        }
        let taken = match self.phase {
            Phase::Ending(Some(target)) => target,
            Phase::Recording(begun) => begun.restored,
            _ => self.restore_point(),
        };
        taken.min(self.restore_point())
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

    /// This process has loaded its part. Said twice, since it was told twice to prepare, it may
    /// run by now.
    pub(super) fn ready(&mut self, process: ProcessId, generation: Generation) {
        if generation == self.generation && matches!(self.phase, Phase::Preparing(_)) {
            self.members.hold(process, Holding::Prepared(generation));
            self.phase = Phase::Preparing(self.loading());
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
        if generation == self.generation && matches!(self.phase, Phase::Preparing(_)) {
            let name = self.topology.name(process);
            self.cannot_restore(&format!("{name}: {reason}"), effects);
        }
    }

    /// What is being restored is unusable: an older one, or none.
    pub(super) fn cannot_restore(&mut self, reason: &str, effects: &mut Vec<CollectorEffect>) {
        let snapshot = self.restored();
        let reason = format!("{snapshot} cannot be restored: {reason}");
        self.unusable.insert(snapshot);
        self.hangs = 0;
        if !self.unusable.contains(&self.before_restore)
            && let Some(asker) = self.restoring.take()
        {
            // What a user asked for is not worth the job: it goes on from where a loss would
            // have taken it.
            let before = self.before_restore;
            let answer = format!("{reason}; the job goes back to {before} instead");
            effects.push(CollectorEffect::Answer(asker, Err(answer)));
            return self.recover(Some(before), "the job is being restored", effects);
        }
        if !self.policy.fall_back {
            let remedy = "allow an older one to be taken: store.fall_back = true";
            return self.fail(format!("{reason}; {remedy}"), effects);
        }
        let Some(older) = self.choose() else {
            return self.fail(format!("{reason}; there is no older one"), effects);
        };
        let instead = format!("{reason}; the job goes back to {older} instead");
        effects.push(CollectorEffect::Announce(Announcement::Warned(
            instead.clone(),
        )));
        if let Some(asker) = self.restoring.take() {
            effects.push(CollectorEffect::Answer(asker, Err(instead)));
        }
        self.recover(Some(older), "the job is being restored", effects);
    }

    /// Goes on wherever nothing is waited for any more.
    pub(super) fn advance(&mut self, effects: &mut Vec<CollectorEffect>) {
        if matches!(self.phase, Phase::Surveying | Phase::Running)
            && self.members.any_astray(self.generation)
        {
            self.lost_one(effects);
        }
        let phase = self.phase;
        match phase {
            Phase::Surveying
                if self.members.all_present() && self.members.all_hold(self.generation) =>
            {
                self.run_all(effects);
            }
            Phase::Ending(target) if self.collection.is_idle() && self.has_reread(effects) => {
                self.next_generation(target, effects);
            }
            Phase::Gathering if self.members.all_present() => {
                self.phase = Phase::Preparing(self.loading());
                let prepare = Order::Prepare(self.generation, self.restored());
                self.tell_all(&prepare, effects);
            }
            Phase::Preparing(_)
                if self.members.all_present()
                    && (self.members.all_hold(self.generation) || is(RunsBeforeReady)) =>
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
            let reason = "no snapshot of this job can be restored: `cutline verify --all` says why";
            return self.fail(reason.to_owned(), effects);
        };
        if target.is_none()
            && let Some(reason) = self.unreadable_instead(restored)
        {
            return self.fail(reason, effects);
        }
        let begun = GenerationEntry {
            generation: self.generation.next(),
            restored,
        };
        self.phase = Phase::Recording(begun);
        let mut entry = self.log_entry(self.term);
        entry.generation = Some(begun);
        effects.push(CollectorEffect::Create(Record::Log(entry)));
    }

    /// Why a choice that nobody has asked for may not be taken: a newer snapshot of the current
    /// generation cannot be read, and may be the one.
    fn unreadable_instead(&self, chosen: SnapshotId) -> Option<String> {
        let mut newer = self.collection.unreadable.range(chosen.next()..);
        let (newer, (_, why)) = newer.find(|(_, (of, _))| *of == self.generation)?;
        let remedy = match chosen == SnapshotId::default() {
            true => "there is no older one".to_owned(),
            false if self.policy.fall_back => return None,
            false => format!("allow {chosen}, which is older, to be taken: store.fall_back = true"),
        };
        Some(format!(
            "{newer} may be the one to restore: {why}; {remedy}"
        ))
    }

    fn run_all(&mut self, effects: &mut Vec<CollectorEffect>) {
        self.phase = Phase::Running;
        self.hangs = 0;
        for process in self.topology.processes() {
            self.run(process, effects);
        }
        self.collection
            .restart_interval(self.now_ms, self.policy.interval_ms);
        let (generation, restored) = (self.generation, self.restored());
        effects.push(CollectorEffect::Announce(Announcement::Running(
            generation, restored,
        )));
        // Not sooner: before a job runs, nobody may be there to hear it.
        for (id, (_, why)) in &self.collection.unreadable {
            let warning = format!("{id} cannot be read, and is passed over: {why}");
            effects.push(CollectorEffect::Announce(Announcement::Warned(warning)));
        }
        if let Some(asker) = self.restoring.take() {
            let answer = Answer::Running(generation, restored);
            effects.push(CollectorEffect::Answer(asker, Ok(answer)));
        }
    }

    pub(super) fn run(&mut self, process: ProcessId, effects: &mut Vec<CollectorEffect>) {
        self.members
            .hold(process, Holding::Running(self.generation));
        self.tell(process, Order::Run(self.generation), effects);
    }
}
