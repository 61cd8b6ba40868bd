//! What goes into a [`Collector`](super::Collector) and what comes out.

use std::collections::BTreeSet;

use crate::protocol::events::{Directive, Report};
use crate::protocol::ids::{Generation, Incarnation, ProcessId, SnapshotId, Term};
use crate::protocol::mode::{Mode, Taking};
use crate::protocol::records::{Manifest, Outcome, Record, Records};

/// How the collector behaves; from the job file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// How snapshots are taken.
    pub mode: Mode,
    /// The limit T of aligned snapshots; none: they wait as long as it takes.
    pub alignment_timeout_ms: Option<u64>,
    /// From the begin of one periodic snapshot to the next; 0: none.
    pub interval_ms: u64,
    /// From the end of one periodic snapshot to the begin of the next, at least.
    pub pause_min_ms: u64,
    /// After this an open snapshot is aborted.
    pub timeout_ms: u64,
    /// Ids that may be open at once.
    pub open_max: u64,
    /// Failures in a row that are tolerated; one more ends the job.
    pub failures_tolerated: u32,
    /// Whether an older snapshot may be restored when the newest cannot be read.
    pub fall_back: bool,
    /// Complete snapshots that are kept, at least 1.
    pub retain: u64,
    /// After this without any word from a node it counts as lost.
    pub silence_ms: u64,
    /// The processes that are triggered when nobody says otherwise; empty: one in each root
    /// component.
    pub initiators: BTreeSet<ProcessId>,
}

impl Policy {
    /// How a snapshot is taken when something else than the job's mode or limit is asked for.
    ///
    /// # Errors
    /// If a limit is asked for that the mode has no use for.
    pub fn taking(
        &self,
        mode: Option<Mode>,
        alignment_timeout_ms: Option<u64>,
    ) -> Result<Taking, String> {
        let mode = mode.unwrap_or(self.mode);
        if alignment_timeout_ms.is_some() && mode != Mode::Aligned {
            return Err(format!(
                "{mode} snapshots have no alignment timeout: leave it out, or ask for mode aligned"
            ));
        }
        let limit_ms = alignment_timeout_ms.or(self.alignment_timeout_ms);
        Ok(Taking::new(mode, limit_ms))
    }
}

/// Which asker an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What a user asks of the collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A snapshot, now. Answered with its id when it has begun.
    Snapshot {
        /// The initiators; empty: the job's.
        initiators: BTreeSet<ProcessId>,
        /// Another mode than the job's.
        mode: Option<Mode>,
        /// Another limit T than the job's, for an aligned snapshot.
        alignment_timeout_ms: Option<u64>,
    },
    /// Back to this snapshot, or to the newest one. Answered when everyone runs again.
    Restore(Option<SnapshotId>),
    /// A last snapshot, then the end of the job. Answered when the snapshot is complete.
    Stop,
}

impl Request {
    /// A snapshot by the job's own mode.
    pub fn snapshot(initiators: BTreeSet<ProcessId>) -> Self {
        Self::Snapshot {
            initiators,
            mode: None,
            alignment_timeout_ms: None,
        }
    }
}

/// Something that happens to the collector.
#[derive(Clone, Debug)]
pub enum CollectorInput {
    /// The answer to [`CollectorEffect::Read`].
    Read(Result<Records, String>),
    /// The answer to [`CollectorEffect::Create`], which names the record that was to be created.
    Created(Record, Outcome),
    /// A node says something. The first word of each stream is a join.
    Said(ProcessId, Incarnation, Report),
    /// A node is alive.
    Heartbeat(ProcessId, Incarnation),
    /// A node's control stream has closed.
    Gone(ProcessId, Incarnation),
    /// A user asks.
    Asked(RequestId, Request),
    /// Monotonic time; never goes back.
    Time {
        /// Milliseconds from a point of the driver's choice.
        now_ms: u64,
    },
}

/// Something the collector's driver is to do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum CollectorEffect {
    /// Read everything back from the store.
    Read,
    /// Create this record, conditionally, and answer with [`CollectorInput::Created`].
    Create(Record),
    /// The term is this collector's: let everyone find it, and nobody before.
    Lead,
    /// Tell this incarnation of a node.
    Tell(ProcessId, Incarnation, Directive),
    /// Tell this incarnation of a node, then close its control stream.
    Dismiss(ProcessId, Incarnation, Directive),
    /// This incarnation is lost though its program may still exist: start another in its place.
    Replace(ProcessId, Incarnation),
    /// This process has been without a node for as long as one may be silent: if there is a
    /// program for it, which may hang, start another in its place. Said again as long as it is so.
    Absent(ProcessId),
    /// Delete the snapshot: manifest first, then parts, then the begin record. Best effort.
    Delete(SnapshotId),
    /// Answer a user.
    Answer(RequestId, Result<Answer, String>),
    /// Tell everyone who watches.
    Announce(Announcement),
    /// The job has ended as it should.
    Finish,
    /// The job cannot go on.
    Fail(String),
    /// The store cannot be read, so nothing is known of the job and nothing has been done: end.
    Unread(String),
    /// Another collector leads: end, and touch nothing.
    Fenced(Term),
}

/// What a request came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The snapshot has begun.
    Begun(SnapshotId),
    /// Everyone runs this generation, from this snapshot.
    Running(Generation, SnapshotId),
    /// The last snapshot is complete.
    Stopped(SnapshotId),
}

/// What happens in a job, for those who watch it.
#[derive(Clone, Debug, PartialEq)]
pub enum Announcement {
    /// A node has joined.
    Joined(ProcessId, Incarnation),
    /// A process is lost.
    Lost(ProcessId, Incarnation),
    /// A snapshot has begun.
    Begun(SnapshotId),
    /// A snapshot has ended.
    Ended(Box<Manifest>),
    /// A snapshot could not even begin, or its end could not be written so far.
    Failed(String),
    /// Something that the user should know goes on all the same.
    Warned(String),
    /// A restore has begun.
    Restoring(Generation, SnapshotId),
    /// Everyone runs.
    Running(Generation, SnapshotId),
}
