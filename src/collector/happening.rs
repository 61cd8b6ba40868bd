//! What comes to the collector's loop from its streams and calls.

use tokio::sync::{broadcast, mpsc, oneshot};

use crate::protocol::collector::Request;
use crate::protocol::events::{Join, Report};
use crate::protocol::ids::ProcessId;
use crate::wire::control::{Place, Progress};
use crate::wire::pb;

use super::asks::{Reply, Told};
use super::nodes::{Outgoing, StreamId};

/// What waits for the loop. It handles each in microseconds; the bound keeps a crowd of nodes
/// that all report at once from piling up in memory, and makes their streams wait instead.
pub(super) const HAPPENINGS_MAX: usize = 1024;

/// Something for the loop to handle.
pub(super) enum Happening {
    /// A node's first word.
    Joined(Join, Place, Outgoing),
    /// A node says something.
    Said(StreamId, Report),
    /// A node is alive.
    Heartbeat(StreamId, Progress),
    /// A node's application has handled a command.
    CommandDone(StreamId, u64, Option<String>),
    /// A control stream is closed.
    Closed(StreamId),
    /// A user asks; with `wait`, for a snapshot's end.
    Asked {
        request: Request,
        wait: bool,
        reply: Reply<Told>,
    },
    /// A user has a word for a process's application.
    Command {
        process: ProcessId,
        text: String,
        reply: Reply<Option<String>>,
    },
    /// A user asks how the job stands.
    Status(oneshot::Sender<pb::StatusAnswer>),
    /// A user wants to be told what happens.
    Watch(oneshot::Sender<broadcast::Receiver<String>>),
}

pub(super) type Happenings = mpsc::Sender<Happening>;
