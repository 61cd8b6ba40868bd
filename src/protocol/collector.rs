//! The collector: triggers snapshots, gathers parts, ends snapshots, orders restores.
//!
//! Like a process it is a machine that does no IO: [`Collector::step`] takes one input and
//! appends effects. It keeps nothing that it cannot read back from the store: killing it loses no
//! complete snapshot and rolls nobody back.
//!
//! A snapshot is *open* from its begin record to its manifest, and ends by one conditional create
//! of that manifest. A restore first ends everything that is open, so that nobody can complete
//! anything behind its back, then chooses, then stores the next generation, and only then says
//! `Prepare` to everyone and, when all are ready, `Run`.

mod collection;
mod ending;
mod gathering;
mod joining;
mod leading;
mod loading;
mod members;
mod recovery;
mod requests;
mod state;
mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub use words::{
    Announcement, Answer, CollectorEffect, CollectorInput, Policy, Request, RequestId,
};

use collection::Collection;
use leading::Reread;
use members::Members;
use recovery::Phase;

use super::Topology;
use super::events::{Directive, Holding, Order, Report};
use super::ids::{Generation, Incarnation, JobId, ProcessId, SnapshotId, Term};
use super::mode::Taking;
use super::mutant::{Mutant::CountsOldParts, is};
use super::records::{LogEntry, Outcome, Record};

/// Requests that may wait for their turn; more are refused. A person or a script asks far less.
const WANTED_MAX: usize = 64;

/// How long to wait before writing again what could not be written.
const RETRY_MS: u64 = 500;

/// How long after a first failure of the store the job is given up: a minute, in which a full disk
/// is seen to or a server is back. Not so many tries, each of which may hang.
const PATIENCE_MS: u64 = 60_000;

/// The most that may count as having passed between two words of the time, and the least that
/// does: how often a driver says it. More only passes while this program is stopped or starved,
/// and what others said meanwhile is still waiting to be heard.
const GAP_MAX_MS: u64 = 250;
const GAP_MIN_MS: u64 = 50;

/// The collector's machine.
#[derive(Clone, Debug)]
pub struct Collector {
    topology: Arc<Topology>,
    application: String,
    policy: Policy,
    nonce: u64,
    /// Which job this is; `j0` until the first record of its log is known to stand.
    job: JobId,
    phase: Phase,
    term: Term,
    /// The number of the last record of the log.
    logged: u64,
    generation: Generation,
    /// The snapshot that each generation started from.
    origins: BTreeMap<Generation, SnapshotId>,
    /// Snapshots that some process could not load.
    unusable: BTreeSet<SnapshotId>,
    members: Members,
    collection: Collection,
    /// Snapshots asked for that have not begun: the asker, the initiators, how they are taken.
    wanted: VecDeque<(RequestId, BTreeSet<ProcessId>, Taking)>,
    /// Who waits for the job to run again.
    restoring: Option<RequestId>,
    /// Who asked for the end of the job, and its last snapshot once it has begun.
    stopping: Option<(RequestId, Option<SnapshotId>)>,
    /// A log record that could not be written, since when, and when it is tried again.
    log_retry: Option<(LogEntry, u64, u64)>,
    reread: Reread,
    /// Lost nodes whose replacement is asked for once the next generation is on record: a
    /// collector that has been superseded loses that write, and must not replace anyone.
    to_replace: Vec<(ProcessId, Incarnation)>,
    /// The snapshot to go back to if the one a user asked for cannot be loaded.
    before_restore: SnapshotId,
    /// How often in a row nodes hung that were to load one and the same snapshot.
    hangs: u32,
    /// The time as it was last said, and the time this collector has been awake, which is what
    /// every deadline here is measured in.
    said_ms: u64,
    now_ms: u64,
}

/// How a job stands, for those who ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorStatus {
    /// The leadership.
    pub term: Term,
    /// The current generation.
    pub generation: Generation,
    /// The snapshot it started from.
    pub restored: SnapshotId,
    /// `starting`, `restoring`, `running`, `stopping` or `ended`.
    pub phase: &'static str,
    /// The open snapshots.
    pub open: Vec<SnapshotId>,
    /// The newest complete snapshot that a restore would take; `s0` if there is none.
    pub complete: SnapshotId,
    /// Snapshots completed under this collector.
    pub complete_count: u64,
    /// Snapshots aborted under this collector.
    pub aborted_count: u64,
    /// Failures since the last complete snapshot.
    pub failures_in_row: u32,
    /// Every process: whether a node is there for it, which, and how far it is.
    pub processes: Vec<(ProcessId, bool, Incarnation, Holding)>,
}

impl Collector {
    /// A collector that has read nothing yet; `nonce` tells its writes from another's.
    pub fn new(topology: Arc<Topology>, application: String, policy: Policy, nonce: u64) -> Self {
        Self {
            members: Members::new(&topology),
            collection: Collection::default(),
            topology,
            application,
            policy,
            nonce,
            job: JobId::default(),
            phase: Phase::Reading,
            term: Term::default(),
            logged: 0,
            generation: Generation::default(),
            origins: BTreeMap::new(),
            unusable: BTreeSet::new(),
            wanted: VecDeque::new(),
            restoring: None,
            stopping: None,
            log_retry: None,
            reread: Reread::Due(None, 0),
            to_replace: Vec::new(),
            before_restore: SnapshotId::default(),
            hangs: 0,
            said_ms: 0,
            now_ms: 0,
        }
    }

    /// The first thing to do: read everything back.
    pub fn start(&self, effects: &mut Vec<CollectorEffect>) {
        effects.push(CollectorEffect::Read);
    }

    /// Takes one input; the effects are to be carried out in the order they are appended.
    pub fn step(&mut self, input: CollectorInput, effects: &mut Vec<CollectorEffect>) {
        if self.phase == Phase::Over {
            if let CollectorInput::Asked(asker, _) = input {
                let reason = "the job has ended".to_owned();
                effects.push(CollectorEffect::Answer(asker, Err(reason)));
            }
            return;
        }
        match input {
            CollectorInput::Read(records) => self.read(records, effects),
            CollectorInput::Created(record, outcome) => self.created(record, outcome, effects),
            CollectorInput::Said(process, incarnation, report) => {
                self.said(process, incarnation, report, effects);
            }
            CollectorInput::Heartbeat(process, incarnation) => {
                self.members.heard(process, incarnation, self.now_ms);
                // Nothing follows from it, and it is what is heard most often.
                return;
            }
            CollectorInput::Gone(process, incarnation) => {
                self.gone(process, incarnation, effects);
            }
            CollectorInput::Asked(asker, request) => self.asked(asker, request, effects),
            CollectorInput::Time { now_ms } => self.time(now_ms, effects),
        }
        self.advance(effects);
    }

    /// How far the job is, in a word; see [`CollectorStatus::phase`].
    pub fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Reading | Phase::Claiming | Phase::Surveying => "starting",
            Phase::Running if self.stopping.is_some() => "stopping",
            Phase::Running => "running",
            Phase::Over => "ended",
            _ => "restoring",
        }
    }

    /// How the job stands.
    pub fn status(&self) -> CollectorStatus {
        CollectorStatus {
            term: self.term,
            generation: self.generation,
            restored: self.restored(),
            phase: self.phase(),
            open: self.collection.open().collect(),
            complete: self.restore_point(),
            complete_count: self.collection.complete_count,
            aborted_count: self.collection.aborted_count,
            failures_in_row: self.collection.failures_in_row,
            processes: self.members.list(),
        }
    }

    /// The generation's snapshot.
    fn restored(&self) -> SnapshotId {
        self.origins
            .get(&self.generation)
            .copied()
            .unwrap_or_default()
    }

    /// A node's word. Only the live incarnation of a process is listened to.
    fn said(
        &mut self,
        process: ProcessId,
        incarnation: Incarnation,
        report: Report,
        effects: &mut Vec<CollectorEffect>,
    ) {
        if let Report::Join(join) = report {
            return self.joining(join, effects);
        }
        if !self.members.heard(process, incarnation, self.now_ms) {
            return;
        }
        match report {
            Report::Join(_) => {}
            Report::Ready(generation) => self.ready(process, generation),
            Report::Unready(generation, reason) => {
                self.unready(process, generation, &reason, effects);
            }
            Report::Stored {
                snapshot,
                generation,
                part,
            } => {
                if generation == self.generation || is(CountsOldParts) {
                    self.part_stored(process, snapshot, *part, effects);
                }
            }
            Report::Declined {
                snapshot,
                generation,
                reason,
            } => {
                if generation == self.generation {
                    let reason = format!("{}: {reason}", self.topology.name(process));
                    self.abort(snapshot, reason, true, effects);
                }
            }
        }
    }

    /// The answer to a conditional create. Where it lost, what stands there tells by whom: its
    /// own nonce means an earlier try of unknown outcome had succeeded.
    fn created(&mut self, record: Record, outcome: Outcome, effects: &mut Vec<CollectorEffect>) {
        match record {
            Record::Log(entry) => self.logged(entry, outcome, effects),
            Record::Begun(begun) => self.begun(begun.snapshot, outcome, effects),
            Record::Manifest(manifest) => self.ended(*manifest, outcome, effects),
        }
    }

    fn time(&mut self, now_ms: u64, effects: &mut Vec<CollectorEffect>) {
        let passed_ms = now_ms.saturating_sub(self.said_ms);
        self.said_ms = self.said_ms.max(now_ms);
        self.now_ms += passed_ms.min(self.gap_max_ms());
        self.retry_log(effects);
        // The time is also said before whatever is heard. Within one moment nothing is due that
        // was not when the moment began.
        if passed_ms > 0 {
            self.look_for_losses(effects);
            self.look_for_hangs(effects);
            self.look_for_deadlines(effects);
        }
    }

    /// What counts of a gap. Half of every deadline by which someone is blamed: whoever was heard
    /// in time before it is not overdue by the gap alone.
    fn gap_max_ms(&self) -> u64 {
        let deadline_ms = self.policy.silence_ms.min(self.policy.timeout_ms);
        (deadline_ms / 2).clamp(GAP_MIN_MS, GAP_MAX_MS)
    }

    fn tell(&self, process: ProcessId, order: Order, effects: &mut Vec<CollectorEffect>) {
        if let Some(incarnation) = self.members.present(process) {
            let directive = self.directive(order);
            effects.push(CollectorEffect::Tell(process, incarnation, directive));
        }
    }

    fn tell_all(&self, order: &Order, effects: &mut Vec<CollectorEffect>) {
        for process in self.topology.processes() {
            self.tell(process, order.clone(), effects);
        }
    }

    fn directive(&self, order: Order) -> Directive {
        Directive {
            term: self.term,
            order,
        }
    }

    fn log_entry(&self, term: Term) -> LogEntry {
        LogEntry {
            number: self.logged + 1,
            term,
            nonce: self.nonce,
            topology: self.topology.fingerprint(),
            generation: None,
        }
    }

    /// The job cannot go on: everyone is told, nothing further is done.
    fn fail(&mut self, reason: String, effects: &mut Vec<CollectorEffect>) {
        // Before it leads its term is not its own: the nodes may have a collector that is well.
        if self.leads() {
            self.tell_all(&Order::Halt, effects);
        }
        self.end(&reason, effects);
        effects.push(CollectorEffect::Fail(reason));
    }

    /// Nothing further is done; whoever waits is told why.
    fn end(&mut self, reason: &str, effects: &mut Vec<CollectorEffect>) {
        self.phase = Phase::Over;
        let stopping = self.stopping.take().map(|(asker, _)| asker);
        let wanted = self.wanted.drain(..).map(|(asker, ..)| asker);
        let waiting = self.restoring.take().into_iter().chain(stopping);
        let waiting = waiting.chain(wanted).chain(self.collection.take_askers());
        for asker in waiting {
            effects.push(CollectorEffect::Answer(asker, Err(reason.to_owned())));
        }
    }
}
