//! Who hosts which process: joins, absences, losses and second claimants.

use std::collections::{BTreeMap, VecDeque};

use crate::protocol::Topology;
use crate::protocol::application::Quantities;
use crate::protocol::cut;
use crate::protocol::events::{Holding, Join};
use crate::protocol::ids::{Generation, Incarnation, ProcessId};
use crate::protocol::mutant::{Mutant::AdmitsSecondClaimant, is};

/// How long a node whose control stream has closed may take to come back before it counts as
/// lost. A killed node is replaced sooner: a new incarnation that joins settles it at once.
const RETURN_MS: u64 = 500;

/// How long a second claimant waits for the first to go: the end of a killed node's stream and
/// the join of its successor may cross.
const CLAIM_MS: u64 = 2_000;

/// Claimants that may wait for one process; more push out the oldest.
const CLAIMS_MAX: usize = 16;

/// Incarnations remembered as lost, for each process: what returns of them is refused.
const LOST_MAX: usize = 16;

/// The node of one process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) incarnation: Incarnation,
    pub(super) holding: Holding,
    initial: Quantities,
    heard_ms: u64,
    /// Since when its control stream is closed, if it is.
    away_since_ms: Option<u64>,
}

/// All nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Members {
    members: BTreeMap<ProcessId, Option<Member>>,
    /// Second claimants of a process, in the order they came, and since when they wait.
    claims: BTreeMap<ProcessId, VecDeque<(Join, u64)>>,
    lost: BTreeMap<ProcessId, VecDeque<Incarnation>>,
}

/// What becomes of a join.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Admission {
    /// It is the node of its process now.
    Admitted,
    /// The same incarnation is back before it counted as lost.
    Returned,
    /// It is the node of its process now, and this incarnation, which was away, is lost.
    Succeeded(Incarnation),
    /// Another node is there: it waits a while for that one to go.
    Waits,
    /// It was declared lost before.
    WasLost,
}

impl Members {
    pub(super) fn new(topology: &Topology) -> Self {
        Self {
            members: topology
                .processes()
                .map(|process| (process, None))
                .collect(),
            claims: topology
                .processes()
                .map(|process| (process, VecDeque::new()))
                .collect(),
            lost: BTreeMap::new(),
        }
    }

    /// A node joins.
    pub(super) fn join(&mut self, join: Join, now_ms: u64) -> Admission {
        let process = join.process;
        let lost = self.lost.entry(process).or_default();
        if lost.contains(&join.incarnation) {
            return Admission::WasLost;
        }
        let place = self.members.entry(process).or_default();
        let admission = match place {
            None => Admission::Admitted,
            Some(member) if member.incarnation == join.incarnation => Admission::Returned,
            Some(member) if member.away_since_ms.is_some() || is(AdmitsSecondClaimant) => {
                Admission::Succeeded(member.incarnation)
            }
            Some(_) => {
                let claims = self.claims.entry(process).or_default();
                claims.retain(|(claim, _)| claim.incarnation != join.incarnation);
                claims.push_back((join, now_ms));
                if claims.len() > CLAIMS_MAX {
                    claims.pop_front();
                }
                return Admission::Waits;
            }
        };
        if let Admission::Succeeded(incarnation) = admission {
            remember(lost, incarnation);
        }
        *place = Some(Member {
            incarnation: join.incarnation,
            holding: join.holding,
            initial: join.initial,
            heard_ms: now_ms,
            away_since_ms: None,
        });
        admission
    }

    /// Notes a sign of life; whether it is from the node of that process.
    pub(super) fn heard(
        &mut self,
        process: ProcessId,
        incarnation: Incarnation,
        now_ms: u64,
    ) -> bool {
        match self.members.get_mut(&process) {
            Some(Some(member)) if member.incarnation == incarnation => {
                member.heard_ms = now_ms;
                true
            }
            _ => false,
        }
    }

    /// A control stream has closed. Returns a claimant that now has its turn.
    pub(super) fn gone(
        &mut self,
        process: ProcessId,
        incarnation: Incarnation,
        now_ms: u64,
    ) -> Option<Join> {
        let claims = self.claims.get_mut(&process)?;
        claims.retain(|(claim, _)| claim.incarnation != incarnation);
        let member = self.members.get_mut(&process)?.as_mut()?;
        if member.incarnation != incarnation {
            return None;
        }
        member.away_since_ms.get_or_insert(now_ms);
        claims.pop_front().map(|(join, _)| join)
    }

    /// Nodes away or silent for too long.
    pub(super) fn overdue(&self, now_ms: u64, silence_ms: u64) -> Vec<(ProcessId, Incarnation)> {
        let members = self.members.iter().filter_map(|(&process, member)| {
            let member = member.as_ref()?;
            let away = member
                .away_since_ms
                .is_some_and(|since_ms| now_ms - since_ms >= RETURN_MS);
            let silent = now_ms - member.heard_ms >= silence_ms;
            (away || silent).then_some((process, member.incarnation))
        });
        members.collect()
    }

    /// Claimants that have waited in vain.
    pub(super) fn refused_claims(&mut self, now_ms: u64) -> Vec<Join> {
        let mut refused = Vec::new();
        for claims in self.claims.values_mut() {
            while claims
                .front()
                .is_some_and(|(_, since_ms)| now_ms - since_ms >= CLAIM_MS)
            {
                refused.extend(claims.pop_front().map(|(join, _)| join));
            }
        }
        refused
    }

    /// The node of this process is lost. Returns a claimant that now has its turn.
    pub(super) fn lose(&mut self, process: ProcessId) -> Option<Join> {
        if let Some(member) = self.members.get_mut(&process).and_then(Option::take) {
            remember(self.lost.entry(process).or_default(), member.incarnation);
        }
        self.claims
            .get_mut(&process)?
            .pop_front()
            .map(|(join, _)| join)
    }

    /// The incarnation that can be told something.
    pub(super) fn present(&self, process: ProcessId) -> Option<Incarnation> {
        let member = self.members.get(&process)?.as_ref()?;
        member.away_since_ms.is_none().then_some(member.incarnation)
    }

    /// Whether every process has a node that can be told something.
    pub(super) fn all_present(&self) -> bool {
        self.members
            .keys()
            .all(|&process| self.present(process).is_some())
    }

    /// How far every node is.
    pub(super) fn holdings(&self) -> impl Iterator<Item = Option<Holding>> + '_ {
        self.members
            .values()
            .map(|member| member.as_ref().map(|member| member.holding))
    }

    /// Whether every process holds this generation, prepared or running.
    pub(super) fn all_hold(&self, generation: Generation) -> bool {
        self.holdings().all(|holding| {
            holding == Some(Holding::Prepared(generation))
                || holding == Some(Holding::Running(generation))
        })
    }

    /// Whether some node is there that does not hold this generation.
    pub(super) fn any_astray(&self, generation: Generation) -> bool {
        let (prepared, running) = (Holding::Prepared(generation), Holding::Running(generation));
        self.holdings()
            .flatten()
            .any(|holding| holding != prepared && holding != running)
    }

    /// Notes how far a node is.
    pub(super) fn hold(&mut self, process: ProcessId, holding: Holding) {
        if let Some(Some(member)) = self.members.get_mut(&process) {
            member.holding = holding;
        }
    }

    /// What the quantities must add up to.
    pub(super) fn expected(&self) -> Quantities {
        let mut total = Quantities::new();
        for member in self.members.values().flatten() {
            cut::add(&mut total, &member.initial);
        }
        total
    }

    pub(super) fn list(&self) -> Vec<(ProcessId, bool, Incarnation, Holding)> {
        let list = self.members.iter().map(|(&process, member)| match member {
            None => (process, false, Incarnation::default(), Holding::Nothing),
            Some(member) => {
                let present = member.away_since_ms.is_none();
                (process, present, member.incarnation, member.holding)
            }
        });
        list.collect()
    }
}

fn remember(lost: &mut VecDeque<Incarnation>, incarnation: Incarnation) {
    lost.push_back(incarnation);
    if lost.len() > LOST_MAX {
        lost.pop_front();
    }
}
