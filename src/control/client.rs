//! A user's side of the collector's calls: finds the collector of a job by the job's directory,
//! and says what to do when it cannot.

use std::error::Error as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, ConnectError, Status, Streaming};

use super::wanted::WantedSnapshot;
use crate::collector::{AddressError, JobEvent, read_address, text};
use crate::protocol::ids::{Generation, Incarnation, SnapshotId, Term};
use crate::wire::pb;
use crate::wire::pb::collector_client::CollectorClient;

/// The collector is on this host or near; a connection that takes longer will not come.
const CONNECT_BOUND: Duration = Duration::from_secs(3);

/// The loop answers at once; a collector that takes longer is stopped.
const ANSWER_BOUND: Duration = Duration::from_secs(3);

/// Notices a collector that was stopped while an answer is waited for.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Why there is no answer, or the answer is no.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens where the job's directory says, or it says nothing.
    #[error(
        "no collector is running for {}: start it with `cutline up FILE`",
        dir.display()
    )]
    NotRunning {
        /// The job's directory.
        dir: PathBuf,
    },
    /// The job's directory is not in order.
    #[error(transparent)]
    Address(AddressError),
    /// It is there and says nothing.
    #[error(
        "the collector at {address} does not answer: if it is paused, `cutline resume collector` \
         wakes it, and it then does what it was asked; `cutline down` ends it"
    )]
    Silent {
        /// Where it listens.
        address: SocketAddr,
    },
    /// It does not do what was asked; why.
    #[error("{0}")]
    Refused(String),
    /// The connection broke, or the collector ended, before there was an answer.
    #[error("no answer: {0}; `cutline status` says how the job stands")]
    Lost(String),
    /// It answers what makes no sense: it is of another version.
    #[error(
        "the collector's answer makes no sense ({0}): use the version the job was started with"
    )]
    Garbled(String),
}

impl ClientError {
    /// Whether the collector was asked and said no, as opposed to not being asked at all.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

/// How a snapshot that was waited for came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotEnd {
    /// It is complete.
    Complete(SnapshotId),
    /// It was aborted; why.
    Aborted(SnapshotId, String),
}

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobStatus {
    /// The job's name.
    pub job: String,
    /// The collector's leadership.
    #[serde(serialize_with = "text::serialize")]
    pub term: Term,
    /// The current generation.
    #[serde(serialize_with = "text::serialize")]
    pub generation: Generation,
    /// The snapshot it started from.
    #[serde(serialize_with = "text::serialize")]
    pub restored: SnapshotId,
    /// `starting`, `restoring`, `running`, `stopping` or `ended`.
    pub phase: String,
    /// The open snapshots.
    pub open: Vec<String>,
    /// The snapshot that a loss would take the job back to.
    #[serde(serialize_with = "text::serialize")]
    pub complete: SnapshotId,
    /// Snapshots completed under this collector.
    pub complete_count: u64,
    /// Snapshots aborted under this collector.
    pub aborted_count: u64,
    /// Failures since the last complete snapshot.
    pub failures_in_row: u64,
    /// Every process, in the job's order.
    pub processes: Vec<ProcessStatus>,
}

/// How one process stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessStatus {
    /// Its name.
    pub name: String,
    /// Whether a node is attached for it.
    pub live: bool,
    /// Which start of the node it is.
    #[serde(serialize_with = "text::serialize")]
    pub incarnation: Incarnation,
    /// Where it takes its inputs' streams.
    pub address: String,
    /// Its process id on its host.
    pub pid: u32,
    /// `nothing`, `prepared` or `running`.
    pub holding: String,
    /// The generation it has prepared or runs.
    #[serde(serialize_with = "text::serialize")]
    pub generation: Generation,
    /// Messages handled since the job began, without what restores took back.
    pub handled: u64,
    /// Messages sent since the job began, without what restores took back.
    pub sent: u64,
}

/// A connection to the collector of one job.
#[derive(Clone, Debug)]
pub struct JobClient {
    dir: PathBuf,
    address: SocketAddr,
    calls: CollectorClient<Channel>,
}

impl JobClient {
    /// Connects to the collector of the job in `dir`.
    ///
    /// # Errors
    /// If there is none.
    pub async fn connect(dir: &Path) -> Result<Self, ClientError> {
        Self::connect_with(dir, KEEPALIVE).await
    }

    async fn connect_with(dir: &Path, keepalive: Duration) -> Result<Self, ClientError> {
        let not_running = || ClientError::NotRunning {
            dir: dir.to_owned(),
        };
        let address = read_address(dir).map_err(|error| match error {
            AddressError::Absent { .. } => not_running(),
            error => ClientError::Address(error),
        })?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let endpoint = endpoint.expect("a socket's address makes a URL");
        let channel = endpoint
            .connect_timeout(CONNECT_BOUND)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(keepalive)
            .keep_alive_timeout(keepalive)
            .connect()
            .await
            .map_err(|_| not_running())?;
        Ok(Self {
            dir: dir.to_owned(),
            address,
            calls: CollectorClient::new(channel),
        })
    }

    /// Where the collector listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins a snapshot.
    ///
    /// # Errors
    /// If none can begin.
    pub async fn snapshot(
        &mut self,
        wanted: impl Into<WantedSnapshot>,
    ) -> Result<SnapshotId, ClientError> {
        let request = wanted.into().request(false);
        let answer = self
            .calls
            .snapshot(request)
            .await
            .map_err(|status| self.lost(status))?;
        Ok(SnapshotId::new(answer.into_inner().snapshot))
    }

    /// Takes a snapshot and waits until it has ended.
    ///
    /// # Errors
    /// If none can begin.
    pub async fn snapshot_to_its_end(
        &mut self,
        wanted: impl Into<WantedSnapshot>,
    ) -> Result<SnapshotEnd, ClientError> {
        let request = wanted.into().request(true);
        let answer = self
            .calls
            .snapshot(request)
            .await
            .map_err(|status| self.lost(status))?;
        let pb::SnapshotAnswer {
            snapshot,
            complete,
            reason,
        } = answer.into_inner();
        let snapshot = SnapshotId::new(snapshot);
        Ok(match complete {
            true => SnapshotEnd::Complete(snapshot),
            false => SnapshotEnd::Aborted(snapshot, reason),
        })
    }

    /// Takes the job back to a snapshot, or to the newest one, and waits until everyone runs.
    ///
    /// # Errors
    /// If there is no such snapshot, or the job does not run.
    pub async fn restore(
        &mut self,
        snapshot: Option<SnapshotId>,
    ) -> Result<(Generation, SnapshotId), ClientError> {
        let request = pb::RestoreRequest {
            snapshot: snapshot.unwrap_or_default().get(),
            newest: snapshot.is_none(),
        };
        let answer = self
            .calls
            .restore(request)
            .await
            .map_err(|status| self.lost(status))?;
        let pb::RestoreAnswer {
            generation,
            snapshot,
        } = answer.into_inner();
        Ok((Generation::new(generation), SnapshotId::new(snapshot)))
    }

    /// Takes a last snapshot and ends the job.
    ///
    /// # Errors
    /// If that snapshot fails; the job goes on then.
    pub async fn stop(&mut self) -> Result<SnapshotId, ClientError> {
        let answer = self.calls.stop(pb::StopRequest {}).await;
        let answer = answer.map_err(|status| self.lost(status))?;
        Ok(SnapshotId::new(answer.into_inner().snapshot))
    }

    /// Hands a word to the application of a process and waits until it has been handled.
    ///
    /// # Errors
    /// If the application refuses it, or no node is there.
    pub async fn command(&mut self, process: &str, text: &str) -> Result<(), ClientError> {
        let request = pb::CommandRequest {
            process: process.to_owned(),
            text: text.to_owned(),
        };
        let answer = self
            .calls
            .command(request)
            .await
            .map_err(|status| self.lost(status))?;
        match answer.into_inner().refusal {
            refusal if refusal.is_empty() => Ok(()),
            refusal => Err(ClientError::Refused(refusal)),
        }
    }

    /// How the job stands.
    ///
    /// # Errors
    /// If the collector does not answer.
    pub async fn status(&mut self) -> Result<JobStatus, ClientError> {
        let answer = self.calls.status(pb::StatusRequest {});
        let answer = timeout(ANSWER_BOUND, answer).await;
        let answer = answer.map_err(|_| silent(self.address))?;
        Ok(job_status(
            answer.map_err(|status| self.lost(status))?.into_inner(),
        ))
    }

    /// Everything that happens from now on.
    ///
    /// # Errors
    /// If the collector does not answer.
    pub async fn watch(&mut self) -> Result<Watch, ClientError> {
        let answer = self.calls.watch(pb::WatchRequest {});
        let answer = timeout(ANSWER_BOUND, answer).await;
        let answer = answer.map_err(|_| silent(self.address))?;
        let events = answer.map_err(|status| self.lost(status))?.into_inner();
        Ok(Watch { events })
    }

    fn lost(&self, status: Status) -> ClientError {
        match status.code() {
            // Nobody could be connected to, so nothing was asked.
            Code::Unavailable if is_unconnected(&status) => ClientError::NotRunning {
                dir: self.dir.clone(),
            },
            // It comes from this side, too: somebody is there, and has said nothing for too long.
            Code::Unavailable if status.source().is_some() => silent(self.address),
            _ => refusal(status),
        }
    }
}

fn is_unconnected(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

const fn silent(address: SocketAddr) -> ClientError {
    ClientError::Silent { address }
}

/// What happens in a job, as it happens.
#[derive(Debug)]
pub struct Watch {
    events: Streaming<pb::Event>,
}

impl Watch {
    /// The next event; `None` when the collector has ended.
    ///
    /// # Errors
    /// If the connection breaks, or this watcher is too slow.
    pub async fn next(&mut self) -> Result<Option<JobEvent>, ClientError> {
        let Some(pb::Event { json }) = self.events.message().await.map_err(refusal)? else {
            return Ok(None);
        };
        let event = serde_json::from_str(&json);
        event.map(Some).map_err(|_| ClientError::Garbled(json))
    }
}

fn refusal(status: Status) -> ClientError {
    let message = status.message().to_owned();
    match status.code() {
        Code::FailedPrecondition | Code::NotFound | Code::ResourceExhausted => {
            ClientError::Refused(message)
        }
        Code::Unimplemented | Code::Internal | Code::InvalidArgument => {
            ClientError::Garbled(message)
        }
        _ => ClientError::Lost(message),
    }
}

fn job_status(answer: pb::StatusAnswer) -> JobStatus {
    let open = answer
        .open
        .into_iter()
        .map(|id| SnapshotId::new(id).to_string());
    let processes = answer.processes.into_iter().map(|process| ProcessStatus {
        name: process.name,
        live: process.live,
        incarnation: Incarnation::new(process.incarnation),
        address: process.address,
        pid: process.pid,
        holding: process.holding,
        generation: Generation::new(process.generation),
        handled: process.handled,
        sent: process.sent,
    });
    JobStatus {
        job: answer.job,
        term: Term::new(answer.term),
        generation: Generation::new(answer.generation),
        restored: SnapshotId::new(answer.restored),
        phase: answer.phase,
        open: open.collect(),
        complete: SnapshotId::new(answer.complete),
        complete_count: answer.complete_count,
        aborted_count: answer.aborted_count,
        failures_in_row: answer.failures_in_row,
        processes: processes.collect(),
    }
}

#[cfg(test)]
mod tests;
