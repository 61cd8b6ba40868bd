//! Who waits for an answer: users who asked something of the machine, of a snapshot's end, or of
//! an application.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::protocol::collector::{Answer, RequestId};
use crate::protocol::ids::{Generation, SnapshotId};
use crate::protocol::records::{End, Manifest};

use super::nodes::Key;

/// Questions that may be open at once. Each has a command line waiting behind it, of which a
/// person or a script has a few.
const OPEN_MAX: usize = 1024;

/// What a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Begun(SnapshotId),
    /// A snapshot that was waited for has ended; aborted with a reason.
    Ended(SnapshotId, Option<String>),
    Running(Generation, SnapshotId),
    Stopped(SnapshotId),
}

/// Why there is no answer of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Untold {
    /// The answer is no.
    Refused(String),
    /// Nobody is there to answer.
    Unavailable(String),
    /// Too many ask.
    Overrun,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, Untold>>;

/// Everyone who waits.
#[derive(Default)]
pub(super) struct Asks {
    last: u64,
    requests: BTreeMap<RequestId, Request>,
    /// Those who wait for a snapshot to end.
    ends: Vec<(SnapshotId, Reply<Told>)>,
    commands: BTreeMap<u64, (Key, Reply<Option<String>>)>,
}

struct Request {
    reply: Reply<Told>,
    /// The answer is the snapshot's end, not its begin.
    wait: bool,
}

impl Asks {
    /// A user asks the machine.
    pub(super) fn ask(&mut self, wait: bool, reply: Reply<Told>) -> Option<RequestId> {
        let reply = self.admit(reply)?;
        let id = RequestId(self.next());
        self.requests.insert(id, Request { reply, wait });
        Some(id)
    }

    /// The machine answers.
    pub(super) fn answer(&mut self, id: RequestId, answer: Result<Answer, String>) {
        let Some(request) = self.requests.remove(&id) else {
            return;
        };
        let told = match answer {
            Ok(Answer::Begun(snapshot)) if request.wait => {
                self.ends.push((snapshot, request.reply));
                return;
            }
            Ok(Answer::Begun(snapshot)) => Ok(Told::Begun(snapshot)),
            Ok(Answer::Running(generation, snapshot)) => Ok(Told::Running(generation, snapshot)),
            Ok(Answer::Stopped(snapshot)) => Ok(Told::Stopped(snapshot)),
            Err(reason) => Err(Untold::Refused(reason)),
        };
        let _ = request.reply.send(told);
    }

    /// A snapshot has ended.
    pub(super) fn ended(&mut self, manifest: &Manifest) {
        let reason = match &manifest.end {
            End::Complete { .. } => None,
            End::Aborted { reason } => Some(reason.clone()),
        };
        let all = std::mem::take(&mut self.ends);
        for (snapshot, reply) in all {
            if snapshot == manifest.snapshot {
                let _ = reply.send(Ok(Told::Ended(snapshot, reason.clone())));
            } else {
                self.ends.push((snapshot, reply));
            }
        }
    }

    /// A user has a word for the application of this node.
    pub(super) fn command(&mut self, key: Key, reply: Reply<Option<String>>) -> Option<u64> {
        let reply = self.admit(reply)?;
        let id = self.next();
        self.commands.insert(id, (key, reply));
        Some(id)
    }

    /// A node answers a command; only the node it was sent to can.
    pub(super) fn command_done(&mut self, key: Key, id: u64, refusal: Option<String>) {
        if self
            .commands
            .get(&id)
            .is_some_and(|(asked, _)| *asked == key)
            && let Some((_, reply)) = self.commands.remove(&id)
        {
            let _ = reply.send(Ok(refusal));
        }
    }

    /// A node's stream is gone, and with it the answers to its commands.
    pub(super) fn lost(&mut self, key: Key) {
        let reason = "the node's control stream broke: the command may or may not have been done";
        let lost = self.commands.extract_if(.., |_, (asked, _)| *asked == key);
        for (_, (_, reply)) in lost {
            let _ = reply.send(Err(Untold::Unavailable(reason.to_owned())));
        }
    }

    /// Forgets those who have gone away.
    pub(super) fn forget_departed(&mut self) {
        self.requests
            .retain(|_, request| !request.reply.is_closed());
        self.ends.retain(|(_, reply)| !reply.is_closed());
        self.commands.retain(|_, (_, reply)| !reply.is_closed());
    }

    /// Tells everyone that no answer will come.
    pub(super) fn end(self, reason: &str) {
        let ends = self.ends.into_iter().map(|(_, reply)| reply);
        let requests = self.requests.into_values().map(|request| request.reply);
        for reply in requests.chain(ends) {
            let _ = reply.send(Err(Untold::Unavailable(reason.to_owned())));
        }
        for (_, reply) in self.commands.into_values() {
            let _ = reply.send(Err(Untold::Unavailable(reason.to_owned())));
        }
    }

    fn admit<T>(&self, reply: Reply<T>) -> Option<Reply<T>> {
        if self.requests.len() + self.ends.len() + self.commands.len() < OPEN_MAX {
            return Some(reply);
        }
        let _ = reply.send(Err(Untold::Overrun));
        None
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}
