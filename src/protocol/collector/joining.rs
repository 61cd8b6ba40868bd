//! Nodes at the collector: who joins, who is refused, who is lost.

use super::members::Admission;
use super::recovery::Phase;
use super::{Announcement, Collector, CollectorEffect};
use crate::protocol::events::{Holding, Join, Order, Standing};
use crate::protocol::ids::{Incarnation, JobId, ProcessId};

impl Collector {
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
        let processes = self.topology.processes().len();
        if join.process.index() >= processes {
            return Err(format!(
                "{} is not of this job, which has {processes} processes: give the node the job's \
                 own file",
                join.process
            ));
        }
        if join.topology != self.topology.fingerprint() {
            return Err("the node has another topology: give it the collector's job file".into());
        }
        let known = ![join.job, self.job].contains(&JobId::default());
        if known && join.job != self.job {
            return Err(self.is_a_stranger(join.job));
        }
        if join.application != self.application {
            return Err(format!(
                "the node runs application '{}', the job is '{}'",
                join.application, self.application
            ));
        }
        Ok(())
    }

    fn is_a_stranger(&self, job: JobId) -> String {
        let own = self.job;
        format!(
            "the node is of job {job}, this is {own}: its collector's address is this one's now"
        )
    }

    /// It is known now which job this is: not sooner than its first record stands, as another
    /// collector may have written that. Who has joined before, and waits to join, is looked at
    /// once more.
    pub(super) fn is_of(&mut self, job: JobId, effects: &mut Vec<CollectorEffect>) {
        self.job = job;
        for (process, incarnation, job) in self.members.strangers(self.job) {
            self.refuse(process, incarnation, self.is_a_stranger(job), effects);
            let mut claimant = self.members.lose(process, self.now_ms);
            while let Some(join) = claimant {
                self.joining(join, effects);
                // It may be a stranger, too.
                let is_free = self.members.present(process).is_none();
                claimant = is_free
                    .then(|| self.members.lose(process, self.now_ms))
                    .flatten();
            }
        }
    }

    fn refuse(
        &self,
        process: ProcessId,
        incarnation: Incarnation,
        reason: String,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let job = self.job;
        let directive = self.directive(Order::Refused { job, reason });
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
        let holding = self.members.holding(process);
        match self.phase {
            Phase::Preparing(_) if holding != Some(Holding::Prepared(generation)) => {
                self.tell(
                    process,
                    Order::Prepare(generation, self.restored()),
                    effects,
                );
            }
            Phase::Running if holding == Some(Holding::Prepared(generation)) => {
                self.run(process, effects);
                self.trigger_again(process, effects);
            }
            Phase::Running if holding == Some(Holding::Running(generation)) => {
                self.trigger_again(process, effects);
            }
            _ => {}
        }
    }

    pub(super) fn welcome(&self, process: ProcessId, effects: &mut Vec<CollectorEffect>) {
        let standing = Standing {
            job: self.job,
            generation: self.generation,
            low: self.collection.low(),
            last: self.collection.last(),
            open: self.collection.open().collect(),
            complete: self.restore_point(),
        };
        let low = standing.low;
        self.tell(process, Order::Welcome(standing), effects);
        // The node may have missed these, and has perhaps nothing of them yet but a late marker.
        for (snapshot, complete) in self.collection.ended_above_low() {
            let notice = Order::Ended {
                snapshot,
                complete,
                low,
            };
            self.tell(process, notice, effects);
        }
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
            let reason = "this node did not answer in time and was declared lost";
            self.lose(process, incarnation, reason, effects);
        }
        if !matches!(self.phase, Phase::Ending(_) | Phase::Recording(_)) {
            self.replace_lost(effects);
            self.point_out_absent(effects);
        }
    }

    /// This node is lost, though its program may exist: its place is another's now.
    pub(super) fn lose(
        &mut self,
        process: ProcessId,
        incarnation: Incarnation,
        reason: &str,
        effects: &mut Vec<CollectorEffect>,
    ) {
        self.refuse(process, incarnation, reason.to_owned(), effects);
        let claimant = self.members.lose(process, self.now_ms);
        effects.push(CollectorEffect::Announce(Announcement::Lost(
            process,
            incarnation,
        )));
        self.to_replace.push((process, incarnation));
        self.lost_one(effects);
        if let Some(claimant) = claimant {
            self.joining(claimant, effects);
        }
    }

    /// A node that hung already when this collector began never joins it, and so is never lost.
    fn point_out_absent(&mut self, effects: &mut Vec<CollectorEffect>) {
        let absent = self.members.absent(self.now_ms, self.policy.silence_ms);
        effects.extend(absent.into_iter().map(CollectorEffect::Absent));
    }

    /// Asks for other nodes in the place of those lost.
    pub(super) fn replace_lost(&mut self, effects: &mut Vec<CollectorEffect>) {
        for (process, incarnation) in std::mem::take(&mut self.to_replace) {
            self.members.wait_for(process, self.now_ms);
            effects.push(CollectorEffect::Replace(process, incarnation));
        }
    }
}
