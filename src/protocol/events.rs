//! What goes into a [`Process`](super::Process) and what comes out; what nodes and the collector
//! say to one another.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::application::{Capture, Refusal};
use super::cut::{Facts, Loaded, Part};
use super::frame::{Feedback, Frame, Greeting, Hello};
use super::ids::{ChannelId, Generation, Incarnation, JobId, ProcessId, SnapshotId, Term};
use super::link::Breach;
use super::mode::Taking;
use super::trace::Event;

/// Something that happens to a process of application `A`. Its driver says it; the core decides
/// what it means.
#[derive(Clone, Debug)]
pub enum Input<A> {
    /// The control stream to the collector is open: join.
    Connected,
    /// The collector says something.
    Directive(Directive),
    /// A sender has opened a stream for one of our inputs and said hello.
    Dialled(ChannelId, Hello),
    /// The receiver has answered the hello, of this generation, on one of our outputs.
    Greeted(ChannelId, Generation, Greeting),
    /// A frame came off the wire, on a stream of this generation.
    Arrived(ChannelId, Generation, Frame),
    /// A receiver's word on one of our outputs, on a stream of this generation.
    Heard(ChannelId, Generation, Feedback),
    /// The stream that carried the channel is gone.
    Broken(ChannelId),
    /// The driver has room for the next frame (on an output) or feedback (on an input).
    Writable(ChannelId),
    /// Handle what is at the head of an inbox, up to so many messages.
    Take(ChannelId, u32),
    /// The application may start new work.
    Tick,
    /// A word to the application from outside.
    Command(String),
    /// Monotonic time; never goes back.
    Time {
        /// Milliseconds from a point of the driver's choice.
        now_ms: u64,
    },
    /// The part asked for by [`Effect::Load`] is here, or cannot be had.
    Loaded(Generation, Result<Box<Loaded<A>>, String>),
    /// The part given by [`Effect::Store`] is on disk, or is not.
    Stored(SnapshotId, Result<Box<StoredPart>, String>),
}

/// Something the driver is to do, in this order.
pub enum Effect {
    /// Put the frame on the wire.
    Write(ChannelId, Frame),
    /// Tell the sender how far it may go.
    Feedback(ChannelId, Feedback),
    /// Open a stream for this output, again and again, with a pause growing from try to try,
    /// until it is greeted or a later effect says otherwise.
    Dial(ChannelId, Hello),
    /// Answer a hello.
    Greet(ChannelId, Greeting),
    /// Drop the stream of this channel, if there is one.
    Hangup(ChannelId, Option<Breach>),
    /// The local state of this process has been taken: encode it, off the handling thread.
    Capture(SnapshotId, Capture),
    /// The part is whole: write it, together with the state captured for this snapshot.
    Store(Box<Part>),
    /// The snapshot has ended here without a part: forget what was captured for it.
    Forget(SnapshotId),
    /// Read this process's part of a snapshot and answer with [`Input::Loaded`].
    Load(Generation, SnapshotId),
    /// The application has done, or refused, the command just given.
    Commanded(Result<(), Refusal>),
    /// Tell the collector; what is said while no control stream is open is lost.
    Report(Report),
    /// The job has ended, and the node with it.
    Halt,
    /// The node cannot go on; say why and end.
    Fail(String),
    /// Write the event down; only where the job is traced.
    Trace(Box<Event>),
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(channel, frame) => write!(f, "Write({channel}, {frame:?})"),
            Self::Feedback(channel, feedback) => write!(f, "Feedback({channel}, {feedback:?})"),
            Self::Dial(channel, hello) => write!(f, "Dial({channel}, {hello:?})"),
            Self::Greet(channel, greeting) => write!(f, "Greet({channel}, {greeting:?})"),
            Self::Hangup(channel, breach) => write!(f, "Hangup({channel}, {breach:?})"),
            Self::Capture(snapshot, _) => write!(f, "Capture({snapshot})"),
            Self::Store(part) => write!(f, "Store({part:?})"),
            Self::Forget(snapshot) => write!(f, "Forget({snapshot})"),
            Self::Load(generation, snapshot) => write!(f, "Load({generation}, {snapshot})"),
            Self::Commanded(outcome) => write!(f, "Commanded({outcome:?})"),
            Self::Report(report) => write!(f, "Report({report:?})"),
            Self::Halt => write!(f, "Halt"),
            Self::Fail(reason) => write!(f, "Fail({reason})"),
            Self::Trace(event) => write!(f, "Trace({event:?})"),
        }
    }
}

/// A part that is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoredPart {
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// The checksum (CRC-32C) of the whole file.
    pub checksum: u32,
    /// What it says.
    pub facts: Facts,
}

/// The collector's word to a node. Nodes refuse the word of an older term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Directive {
    /// The leadership it is said in.
    pub term: Term,
    /// What is said.
    pub order: Order,
}

/// What the collector says to a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The answer to a join.
    Welcome(Standing),
    /// Open this snapshot, as an initiator.
    Trigger(SnapshotId, Taking),
    /// This snapshot has ended.
    Ended {
        /// The snapshot.
        snapshot: SnapshotId,
        /// Whether it is complete, else aborted.
        complete: bool,
        /// All ids up to this one have ended.
        low: SnapshotId,
    },
    /// Drop everything of older generations and load this snapshot.
    Prepare(Generation, SnapshotId),
    /// Everyone is ready: go on.
    Run(Generation),
    /// The join is refused: end, and print why.
    Refused {
        /// Which job its collector is of; `j0` if it does not know yet. A node of another job
        /// obeys in any term: terms are counted in each job anew.
        job: JobId,
        /// Why.
        reason: String,
    },
    /// The job has ended: end too.
    Halt,
}

/// How the job stands, as every joining node is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// Which job this is.
    pub job: JobId,
    /// The current generation.
    pub generation: Generation,
    /// All ids up to this one have ended.
    pub low: SnapshotId,
    /// The last id that may have been given out; of later ones this word does not speak.
    pub last: SnapshotId,
    /// The ids that are open.
    pub open: Vec<SnapshotId>,
    /// The newest complete snapshot of the job.
    pub complete: SnapshotId,
}

/// A node's word to the collector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Report {
    /// The first word on a control stream.
    Join(Join),
    /// The part for this generation is loaded.
    Ready(Generation),
    /// The part for this generation cannot be loaded.
    Unready(Generation, String),
    /// The part of this process is on disk.
    Stored {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The generation it was recorded in.
        generation: Generation,
        /// What is on disk.
        part: Box<StoredPart>,
    },
    /// This process will not contribute to the snapshot.
    Declined {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The generation it says so in.
        generation: Generation,
        /// Why.
        reason: String,
    },
}

/// How far a node is with a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holding {
    /// It has none: it has just started.
    Nothing,
    /// It has loaded this generation's part and waits for `Run`.
    Prepared(Generation),
    /// It runs this generation.
    Running(Generation),
}

/// A node's first word on a control stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Join {
    /// The process it hosts.
    pub process: ProcessId,
    /// Which start of the node this is.
    pub incarnation: Incarnation,
    /// The node's topology.
    pub topology: u32,
    /// The name of its application.
    pub application: String,
    /// The job it is a node of; `j0` until a collector has told it.
    pub job: JobId,
    /// The generation it holds.
    pub holding: Holding,
}
