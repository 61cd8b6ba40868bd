//! The collector's side of one control stream: from the wire into the loop.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::protocol::events::Join;
use crate::wire::control::{NodeSaid, Place};
use crate::wire::pb;

use super::happening::{Happening, Happenings};
use super::nodes::{Outgoing, StreamId};

/// A node joins as soon as its stream is open; one that says nothing for so long is none.
const JOIN_BOUND: Duration = Duration::from_secs(10);

type Words = mpsc::Sender<Result<pb::CollectorWord, Status>>;

/// One control stream as it is accepted.
pub(super) struct Attending {
    pub(super) stream: StreamId,
    pub(super) inbound: Streaming<pb::NodeWord>,
    pub(super) words: Words,
    pub(super) end: CancellationToken,
    pub(super) happenings: Happenings,
}

impl Attending {
    /// Reads the stream until it closes, says something that is no word, or is ended.
    pub(super) async fn run(mut self) {
        let (end, happenings) = (self.end.clone(), self.happenings.clone());
        tokio::select! {
            biased;
            () = end.cancelled() => {}
            () = happenings.closed() => {}
            () = self.listen() => {}
        }
        // Whoever ended it: the loop lets go of its half, if it has one.
        let _ = self.happenings.send(Happening::Closed(self.stream)).await;
    }

    async fn listen(&mut self) {
        let (join, place) = match self.first().await {
            Ok(first) => first,
            Err(status) => {
                let _ = self.words.try_send(Err(status));
                return;
            }
        };
        // The stream is to end when the loop lets go of it: what is kept here does not count.
        let weak = self.words.downgrade();
        let (closed, _) = mpsc::channel(1);
        let words = std::mem::replace(&mut self.words, closed);
        let outgoing = Outgoing {
            stream: self.stream,
            words,
            end: self.end.clone(),
        };
        self.tell(Happening::Joined(join, place, outgoing)).await;
        loop {
            let said = match self.next().await {
                Ok(Some(said)) => said,
                Ok(None) => return,
                Err(status) => {
                    tracing::debug!("a control stream has failed: {}", status.message());
                    if let Some(words) = weak.upgrade() {
                        let _ = words.try_send(Err(status));
                    }
                    return;
                }
            };
            let happening = match said {
                NodeSaid::Report(report) => Happening::Said(self.stream, report),
                NodeSaid::Heartbeat(progress) => Happening::Heartbeat(self.stream, progress),
                NodeSaid::CommandDone { request, refusal } => {
                    Happening::CommandDone(self.stream, request, refusal)
                }
                NodeSaid::Join(..) => {
                    if let Some(words) = weak.upgrade() {
                        let second = "a node joins once on a control stream";
                        let _ = words.try_send(Err(Status::invalid_argument(second)));
                    }
                    return;
                }
            };
            self.tell(happening).await;
        }
    }

    async fn first(&mut self) -> Result<(Join, Place), Status> {
        let late = |_| Status::deadline_exceeded("no join came: a node joins at once");
        match timeout(JOIN_BOUND, self.next()).await.map_err(late)?? {
            Some(NodeSaid::Join(join, place)) => Ok((join, place)),
            Some(_) => Err(Status::invalid_argument("a node's first word is a join")),
            None => Err(Status::cancelled("the node has gone away")),
        }
    }

    async fn next(&mut self) -> Result<Option<NodeSaid>, Status> {
        let Some(word) = self.inbound.message().await? else {
            return Ok(None);
        };
        let said = NodeSaid::try_from(word);
        said.map(Some)
            .map_err(|error| Status::invalid_argument(error.to_string()))
    }

    async fn tell(&self, happening: Happening) {
        // When the loop has ended, so will this stream: `end` is on its way.
        let _ = self.happenings.send(happening).await;
    }
}
