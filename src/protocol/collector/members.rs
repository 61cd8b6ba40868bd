//! Who hosts which process: joins, absences, losses and second claimants.

use std::collections::{BTreeMap, VecDeque};

use crate::protocol::Topology;
use crate::protocol::events::{Holding, Join};
use crate::protocol::ids::{Generation, Incarnation, JobId, ProcessId};
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

/// Nodes that a test build looks at whenever one has changed.
const LOOKED_AT_MAX: usize = 16;

/// The node of one process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) incarnation: Incarnation,
    pub(super) holding: Holding,
    /// The job it said it was in.
    job: JobId,
    heard_ms: u64,
    /// Since when its control stream is closed, if it is.
    away_since_ms: Option<u64>,
}

/// All nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Members {
    members: BTreeMap<ProcessId, Option<Member>>,
    counts: Counts,
    /// The processes without a node, and since when they are waited for.
    absent_since_ms: BTreeMap<ProcessId, u64>,
    /// Second claimants of a process, in the order they came, and since when they wait.
    claims: BTreeMap<ProcessId, VecDeque<(Join, u64)>>,
    lost: BTreeMap<ProcessId, VecDeque<Incarnation>>,
}

/// What is asked of all nodes whenever one is heard of: it is counted, as there may be many
/// thousands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Counts {
    /// Those that can be told something.
    present: usize,
    /// Those that hold a generation, prepared or running, and those that hold none.
    holding: BTreeMap<Option<Generation>, usize>,
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

impl Member {
    const fn is_present(&self) -> bool {
        self.away_since_ms.is_none()
    }
}

impl Counts {
    const fn held(member: &Member) -> Option<Generation> {
        match member.holding {
            Holding::Nothing => None,
            Holding::Prepared(generation) | Holding::Running(generation) => Some(generation),
        }
    }

    fn add(&mut self, member: &Member) {
        self.present += usize::from(member.is_present());
        *self.holding.entry(Self::held(member)).or_default() += 1;
    }

    fn remove(&mut self, member: &Member) {
        self.present -= usize::from(member.is_present());
        let held = Self::held(member);
        if let Some(count) = self.holding.get_mut(&held) {
            *count -= 1;
        }
        self.holding.retain(|_, count| *count > 0);
    }
}

impl Members {
    pub(super) fn new(topology: &Topology) -> Self {
        Self {
            members: topology
                .processes()
                .map(|process| (process, None))
                .collect(),
            counts: Counts::default(),
            absent_since_ms: BTreeMap::new(),
            claims: topology
                .processes()
                .map(|process| (process, VecDeque::new()))
                .collect(),
            lost: BTreeMap::new(),
        }
    }

    /// From now on the processes without a node are waited for.
    pub(super) fn wait_for_absent(&mut self, now_ms: u64) {
        let members = self.members.iter();
        let absent = members.filter(|(_, member)| member.is_none());
        self.absent_since_ms = absent.map(|(&process, _)| (process, now_ms)).collect();
    }

    /// Another node of this process is asked for: it has its time to come.
    pub(super) fn wait_for(&mut self, process: ProcessId, now_ms: u64) {
        if let Some(since_ms) = self.absent_since_ms.get_mut(&process) {
            *since_ms = now_ms;
        }
    }

    /// A node joins.
    pub(super) fn join(&mut self, join: Join, now_ms: u64) -> Admission {
        let process = join.process;
        let lost = self.lost.entry(process).or_default();
        if lost.contains(&join.incarnation) {
            return Admission::WasLost;
        }
        let admission = match self.members.get(&process).and_then(Option::as_ref) {
            None => Admission::Admitted,
            Some(member) if member.incarnation == join.incarnation => Admission::Returned,
            Some(member) if !member.is_present() || is(AdmitsSecondClaimant) => {
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
        let member = Member {
            incarnation: join.incarnation,
            holding: join.holding,
            job: join.job,
            heard_ms: now_ms,
            away_since_ms: None,
        };
        self.change(process, |place| *place = Some(member));
        self.absent_since_ms.remove(&process);
        admission
    }

    /// The only way to change what is counted. A process that is none is not changed.
    fn change<T: Default>(
        &mut self,
        process: ProcessId,
        change: impl FnOnce(&mut Option<Member>) -> T,
    ) -> T {
        let Some(place) = self.members.get_mut(&process) else {
            return T::default();
        };
        if let Some(before) = place {
            self.counts.remove(before);
        }
        let answer = change(place);
        if let Some(after) = place {
            self.counts.add(after);
        }
        debug_assert!(self.is_counted_right(), "after each change of a node");
        answer
    }

    /// Whether what is counted is what a look at each finds; of few, as it is there to save that.
    fn is_counted_right(&self) -> bool {
        let mut counts = Counts::default();
        let members = self.members.values().flatten();
        self.members.len() > LOOKED_AT_MAX || {
            members.for_each(|member| counts.add(member));
            counts == self.counts
        }
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
        if self.members.get(&process)?.as_ref()?.incarnation != incarnation {
            return None;
        }
        let claimant = claims.pop_front().map(|(join, _)| join);
        self.change(process, |place| {
            if let Some(member) = place {
                member.away_since_ms.get_or_insert(now_ms);
            }
        });
        claimant
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

    /// Nodes that have not prepared this generation.
    pub(super) fn unprepared(&self, generation: Generation) -> Vec<(ProcessId, Incarnation)> {
        let members = self.members.iter().filter_map(|(&process, member)| {
            let member = member.as_ref()?;
            let waits = Counts::held(member) != Some(generation);
            waits.then_some((process, member.incarnation))
        });
        members.collect()
    }

    /// Processes that have been without a node for as long as one may be silent: each is named
    /// once for each time that this passes.
    pub(super) fn absent(&mut self, now_ms: u64, silence_ms: u64) -> Vec<ProcessId> {
        let mut absent = Vec::new();
        for (&process, since_ms) in &mut self.absent_since_ms {
            if now_ms - *since_ms >= silence_ms {
                *since_ms = now_ms;
                absent.push(process);
            }
        }
        absent
    }

    /// Nodes of another job than this, which joined before it was known which this is.
    pub(super) fn strangers(&self, job: JobId) -> Vec<(ProcessId, Incarnation, JobId)> {
        let members = self.members.iter().filter_map(|(&process, member)| {
            let member = member.as_ref()?;
            let is_stranger = ![JobId::default(), job].contains(&member.job);
            is_stranger.then_some((process, member.incarnation, member.job))
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
    pub(super) fn lose(&mut self, process: ProcessId, now_ms: u64) -> Option<Join> {
        if let Some(member) = self.change(process, Option::take) {
            remember(self.lost.entry(process).or_default(), member.incarnation);
            self.absent_since_ms.insert(process, now_ms);
        }
        self.claims
            .get_mut(&process)?
            .pop_front()
            .map(|(join, _)| join)
    }

    /// The incarnation that can be told something.
    pub(super) fn present(&self, process: ProcessId) -> Option<Incarnation> {
        let member = self.members.get(&process)?.as_ref()?;
        member.is_present().then_some(member.incarnation)
    }

    /// Whether every process has a node that can be told something.
    pub(super) fn all_present(&self) -> bool {
        self.counts.present == self.members.len()
    }

    /// How far the node of a process is.
    pub(super) fn holding(&self, process: ProcessId) -> Option<Holding> {
        let member = self.members.get(&process)?.as_ref()?;
        Some(member.holding)
    }

    /// Whether every process holds this generation, prepared or running.
    pub(super) fn all_hold(&self, generation: Generation) -> bool {
        self.counts.holding.get(&Some(generation)) == Some(&self.members.len())
    }

    /// Whether some node is there that does not hold this generation.
    pub(super) fn any_astray(&self, generation: Generation) -> bool {
        let mut held = self.counts.holding.keys();
        held.any(|held| *held != Some(generation))
    }

    /// Notes how far a node is.
    pub(super) fn hold(&mut self, process: ProcessId, holding: Holding) {
        self.change(process, |place| {
            if let Some(member) = place {
                member.holding = holding;
            }
        });
    }

    pub(super) fn list(&self) -> Vec<(ProcessId, bool, Incarnation, Holding)> {
        let list = self.members.iter().map(|(&process, member)| match member {
            None => (process, false, Incarnation::default(), Holding::Nothing),
            Some(member) => {
                let present = member.is_present();
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
