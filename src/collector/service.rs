//! The collector's gRPC face: every call becomes something for the loop to handle.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::protocol::collector::Request as Asked;
use crate::protocol::ids::{ProcessId, SnapshotId};
use crate::protocol::mode::Mode;
use crate::protocol::topology::Topology;
use crate::wire::pb;

use super::asks::{Told, Untold};
use super::attending::Attending;
use super::happening::{Happening, Happenings};
use super::nodes::{StreamId, WORDS_MAX};

/// A command is handled between two messages; a node that takes longer is stopped or stuck.
const COMMAND_BOUND: Duration = Duration::from_secs(30);

/// Control streams at once, for each process. A process has one; a few more are claimants to be
/// refused and streams whose nodes died without a word.
const STREAMS_PER_PROCESS: usize = 8;

type Outbound<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service of one collector.
pub(super) struct Service {
    topology: Arc<Topology>,
    happenings: Happenings,
    streams: AtomicU64,
    /// The tasks that read the control streams.
    readers: TaskTracker,
    end: CancellationToken,
}

impl Service {
    /// Everything ends with `end`.
    pub(super) fn new(
        topology: Arc<Topology>,
        happenings: Happenings,
        readers: TaskTracker,
        end: CancellationToken,
    ) -> Self {
        let streams = AtomicU64::new(0);
        Self {
            topology,
            happenings,
            streams,
            readers,
            end,
        }
    }

    /// Hands something to the loop and waits for what the loop answers.
    async fn ask<T>(
        &self,
        happening: impl FnOnce(oneshot::Sender<T>) -> Happening,
    ) -> Result<T, Status> {
        let ended = || Status::unavailable("the collector is ending");
        let (reply, answer) = oneshot::channel();
        self.happenings
            .send(happening(reply))
            .await
            .map_err(|_| ended())?;
        answer.await.map_err(|_| ended())
    }

    async fn request(&self, request: Asked, wait: bool) -> Result<Told, Status> {
        let told = self
            .ask(|reply| Happening::Asked {
                request,
                wait,
                reply,
            })
            .await?;
        told.map_err(status)
    }

    fn process(&self, name: &str) -> Result<ProcessId, Status> {
        self.topology
            .process(name)
            .ok_or_else(|| unknown(&self.topology, name))
    }
}

#[async_trait]
impl pb::collector_server::Collector for Service {
    type AttendStream = Outbound<pb::CollectorWord>;
    type WatchStream = Outbound<pb::Event>;

    async fn attend(
        &self,
        request: Request<Streaming<pb::NodeWord>>,
    ) -> Result<Response<Self::AttendStream>, Status> {
        if self.readers.len() >= STREAMS_PER_PROCESS * self.topology.processes().len() {
            let crowd =
                "too many control streams are open: is the same node started again and again?";
            return Err(Status::resource_exhausted(crowd));
        }
        let (words, outbound) = mpsc::channel(WORDS_MAX);
        let end = self.end.child_token();
        let attending = Attending {
            stream: StreamId(self.streams.fetch_add(1, Ordering::Relaxed)),
            inbound: request.into_inner(),
            words,
            end: end.clone(),
            happenings: self.happenings.clone(),
        };
        self.readers.spawn(attending.run());
        let outbound = ReceiverStream::new(outbound).take_until(end.cancelled_owned());
        Ok(Response::new(Box::pin(outbound)))
    }

    async fn snapshot(
        &self,
        request: Request<pb::SnapshotRequest>,
    ) -> Result<Response<pb::SnapshotAnswer>, Status> {
        let pb::SnapshotRequest {
            from,
            wait,
            mode,
            alignment_timeout_ms,
        } = request.into_inner();
        let mode = Some(mode).filter(|mode| !mode.is_empty());
        let mode = mode.map(|mode| mode.parse::<Mode>()).transpose();
        let mode = mode.map_err(|error| Status::invalid_argument(error.to_string()))?;
        let initiators = from.iter().map(|name| self.process(name));
        let initiators = initiators.collect::<Result<BTreeSet<_>, _>>()?;
        let asked = Asked::Snapshot {
            initiators,
            mode,
            alignment_timeout_ms,
        };
        let told = self.request(asked, wait).await?;
        let (snapshot, complete, reason) = match told {
            Told::Begun(snapshot) => (snapshot, false, None),
            Told::Ended(snapshot, reason) => (snapshot, reason.is_none(), reason),
            told => return Err(unexpected(&told)),
        };
        Ok(Response::new(pb::SnapshotAnswer {
            snapshot: snapshot.get(),
            complete,
            reason: reason.unwrap_or_default(),
        }))
    }

    async fn restore(
        &self,
        request: Request<pb::RestoreRequest>,
    ) -> Result<Response<pb::RestoreAnswer>, Status> {
        let pb::RestoreRequest { snapshot, newest } = request.into_inner();
        let snapshot = (!newest).then_some(SnapshotId::new(snapshot));
        match self.request(Asked::Restore(snapshot), false).await? {
            Told::Running(generation, snapshot) => Ok(Response::new(pb::RestoreAnswer {
                generation: generation.get(),
                snapshot: snapshot.get(),
            })),
            told => Err(unexpected(&told)),
        }
    }

    async fn stop(&self, _: Request<pb::StopRequest>) -> Result<Response<pb::StopAnswer>, Status> {
        match self.request(Asked::Stop, false).await? {
            Told::Stopped(snapshot) => {
                let snapshot = snapshot.get();
                Ok(Response::new(pb::StopAnswer { snapshot }))
            }
            told => Err(unexpected(&told)),
        }
    }

    async fn command(
        &self,
        request: Request<pb::CommandRequest>,
    ) -> Result<Response<pb::CommandAnswer>, Status> {
        let pb::CommandRequest { process, text } = request.into_inner();
        let process = self.process(&process)?;
        let answer = self.ask(|reply| Happening::Command {
            process,
            text,
            reply,
        });
        let late = |_| {
            Status::deadline_exceeded(format!(
                "{} has not answered in {} s: the command may or may not have been done",
                self.topology.name(process),
                COMMAND_BOUND.as_secs()
            ))
        };
        let refusal = timeout(COMMAND_BOUND, answer)
            .await
            .map_err(late)??
            .map_err(status)?;
        let refusal = refusal.unwrap_or_default();
        Ok(Response::new(pb::CommandAnswer { refusal }))
    }

    async fn status(
        &self,
        _: Request<pb::StatusRequest>,
    ) -> Result<Response<pb::StatusAnswer>, Status> {
        self.ask(Happening::Status).await.map(Response::new)
    }

    async fn watch(
        &self,
        _: Request<pb::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let events = self.ask(Happening::Watch).await?;
        Ok(Response::new(Box::pin(watching(events))))
    }
}

/// The events one watcher is told; ends with the job, or when the watcher falls too far behind.
fn watching(events: broadcast::Receiver<String>) -> impl Stream<Item = Result<pb::Event, Status>> {
    futures::stream::unfold(Some(events), |events| async move {
        let mut events = events?;
        match events.recv().await {
            Ok(json) => Some((Ok(pb::Event { json }), Some(events))),
            Err(broadcast::error::RecvError::Closed) => None,
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                let lagged = format!(
                    "this watcher is too slow, {missed} events are lost to it: watch again, and \
                     ask for the status first"
                );
                Some((Err(Status::data_loss(lagged)), None))
            }
        }
    })
}

fn status(untold: Untold) -> Status {
    match untold {
        Untold::Refused(reason) => Status::failed_precondition(reason),
        Untold::Unavailable(reason) => Status::unavailable(reason),
        Untold::Overrun => Status::resource_exhausted("too many requests are open: try again"),
    }
}

fn unknown(topology: &Topology, name: &str) -> Status {
    let names: Vec<_> = topology
        .processes()
        .map(|process| topology.name(process))
        .collect();
    let names = match names.len() {
        // A thousand names help nobody.
        0..=16 => names.join(", "),
        count => format!("{}, … {count} in all", names[..16].join(", ")),
    };
    Status::not_found(format!("no process is called '{name}': there are {names}"))
}

fn unexpected(told: &Told) -> Status {
    Status::internal(format!(
        "the collector has answered something else: {told:?}"
    ))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn a_watcher_that_is_too_slow_is_told_so_and_left() {
        let (telling, events) = broadcast::channel(2);
        let mut watching = pin!(watching(events));
        for event in ["one", "two", "three"] {
            telling.send(event.to_owned()).unwrap();
        }
        let status = watching.next().await.unwrap().unwrap_err();
        assert_eq!(status.code(), tonic::Code::DataLoss);
        assert!(status.message().contains("1 events"), "{status}");
        assert!(watching.next().await.is_none());
    }

    #[tokio::test]
    async fn a_watcher_is_told_the_last_event_before_the_end() {
        let (telling, events) = broadcast::channel(2);
        let mut watching = pin!(watching(events));
        telling.send("last".to_owned()).unwrap();
        drop(telling);
        assert_eq!(watching.next().await.unwrap().unwrap().json, "last");
        assert!(watching.next().await.is_none());
    }
}
