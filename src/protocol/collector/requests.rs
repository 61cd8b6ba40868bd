//! What users ask of the collector, until it is begun.

use std::collections::BTreeSet;

use super::{Collector, CollectorEffect, Request, RequestId, WANTED_MAX};
use crate::protocol::ids::ProcessId;
use crate::protocol::mode::Taking;

/// Processes that one sentence names.
const NAMED_MAX: usize = 16;

impl Collector {
    pub(super) fn asked(
        &mut self,
        asker: RequestId,
        request: Request,
        effects: &mut Vec<CollectorEffect>,
    ) {
        let refusal = match request {
            Request::Snapshot {
                initiators,
                mode,
                alignment_timeout_ms,
            } => {
                let taking = self.policy.taking(mode, alignment_timeout_ms);
                taking.and_then(|taking| self.want_snapshot(asker, initiators, taking))
            }
            Request::Restore(snapshot) => self.want_restore(asker, snapshot, effects),
            Request::Stop => self.want_stop(asker, effects),
        };
        if let Err(reason) = refusal {
            effects.push(CollectorEffect::Answer(asker, Err(reason)));
        }
    }

    fn want_snapshot(
        &mut self,
        asker: RequestId,
        initiators: BTreeSet<ProcessId>,
        taking: Taking,
    ) -> Result<(), String> {
        let initiators = if initiators.is_empty() {
            self.initiators()
        } else {
            initiators
        };
        let unreached = self.topology.unreached(&initiators);
        if !unreached.is_empty() {
            let names = self.names(unreached);
            return Err(format!(
                "no marker would reach {names}: name more initiators"
            ));
        }
        let untriggered = self.topology.untriggered(&initiators);
        if taking.mode.aligns() && !untriggered.is_empty() {
            let names = self.names(untriggered);
            return Err(format!(
                "{} snapshots wait for no input of {names}: let {names} initiate too",
                taking.mode
            ));
        }
        if self.stopping.is_some() {
            return Err("the job is being stopped".to_owned());
        }
        if self.wanted.len() >= WANTED_MAX {
            return Err(format!("{WANTED_MAX} snapshots are waiting already"));
        }
        self.wanted.push_back((asker, initiators, taking));
        Ok(())
    }

    /// The last snapshot is the stop's own: what has not begun by now will not.
    fn want_stop(
        &mut self,
        asker: RequestId,
        effects: &mut Vec<CollectorEffect>,
    ) -> Result<(), String> {
        if self.stopping.is_some() {
            return Err("the job is being stopped already".to_owned());
        }
        self.stopping = Some((asker, None));
        for (asker, ..) in self.wanted.drain(..) {
            let reason = "the job is being stopped".to_owned();
            effects.push(CollectorEffect::Answer(asker, Err(reason)));
        }
        Ok(())
    }

    /// Their names; of very many, some: the names of a thousand help nobody.
    pub(super) fn names(&self, processes: Vec<ProcessId>) -> String {
        let named = processes.iter().take(NAMED_MAX);
        let names: Vec<_> = named.map(|&p| self.topology.name(p)).collect();
        match processes.len() - names.len() {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }

    /// The processes that are triggered when nobody says otherwise.
    pub(super) fn initiators(&self) -> BTreeSet<ProcessId> {
        if self.policy.initiators.is_empty() {
            self.topology.default_initiators().iter().copied().collect()
        } else {
            self.policy.initiators.clone()
        }
    }
}
