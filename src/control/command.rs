//! What the commands of `cutline` do, apart from reading the command line: each finds its job,
//! asks the collector, the store or the operating system, and gives the reply to print.

mod ask;
mod audit;
mod check;
mod read;
mod signal;

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use super::client::ClientError;
use super::directory::DirectoryError;
use super::place::PlaceError;
use super::stop;
use super::view::Format;
use crate::audit::AuditError;
use crate::job::JobError;
use crate::protocol::ids::SnapshotId;
use crate::store::StoreError;
use crate::trace::TraceError;

pub(in crate::control) use ask::connect;
pub use ask::{restore, snapshot, status, stop_with_snapshot};
pub use audit::{AuditFormat, audit};
pub(in crate::control) use check::application_refusal;
pub use check::{JobForm, check};
pub use read::{Which, list, show, verify};
pub(in crate::control) use read::{open, records, verify_all};
pub use signal::{kill, pause, resume};

/// Whoever waits for longer than this is told what for, and again after as long.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a command has to say on standard output, and whether it is a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The text, with the end of its last line.
    pub text: String,
    /// Whether the answer is yes.
    pub yes: bool,
}

impl Reply {
    fn yes(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            yes: true,
        }
    }
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The question was understood, and the answer is no.
    #[error("{0}")]
    No(String),
    /// It cannot be told which job is meant.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The job's directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The job file cannot be read.
    #[error(transparent)]
    Job(#[from] JobError),
    /// What another program tells of its snapshots cannot be read.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The collector cannot be asked.
    #[error(transparent)]
    Client(ClientError),
    /// The store cannot be asked.
    #[error(transparent)]
    Store(StoreError),
    /// No such process.
    #[error("{job} has no process '{name}'; it has {known}")]
    UnknownProcess {
        /// The job.
        job: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No such snapshot id.
    #[error("'{0}' is no snapshot id such as s42: 'cutline list' shows them")]
    NoId(String),
    /// No such generation.
    #[error("'{0}' is no generation such as g3")]
    NoGeneration(String),
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(TraceError),
    /// A signal cannot be sent.
    #[error("cannot signal {who} (pid {pid})")]
    Signal {
        /// To whom.
        who: String,
        /// Its pid.
        pid: u32,
        /// Why.
        source: io::Error,
    },
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(reason) => Self::No(reason),
            error => Self::Client(error),
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Missing { .. } => Self::No(error.to_string()),
            error => Self::Store(error),
        }
    }
}

impl From<TraceError> for CommandError {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::None(_) | TraceError::NoGeneration { .. } => Self::No(error.to_string()),
            error => Self::Trace(error),
        }
    }
}

impl CommandError {
    /// Whether the answer is no, as opposed to there being none.
    pub const fn is_no(&self) -> bool {
        matches!(self, Self::No(_) | Self::UnknownProcess { .. })
    }
}

/// `cutline down`: ends a job, whatever state it is in.
///
/// # Errors
/// If there is no such job or its directory cannot be cleared.
pub async fn down(
    place: &super::place::Place,
    progress: Progress<'_>,
) -> Result<Reply, CommandError> {
    let directory = place.directory()?;
    // Before its file goes with `run/`; a job whose file makes no sense can be ended, too.
    let job = place.job().ok().map(|(job, _)| job);
    let waiting = progress.during(|| "for the job's programs to end".to_owned(), async {
        stop::down(&directory, job.as_ref()).await
    });
    let down = waiting.await?;
    let name = directory.root().display();
    if down.by_hand {
        return Err(CommandError::No(format!(
            "{name}: a collector answers that no 'cutline up' has started: the job was started by \
             hand; end its programs first, or with 'cutline stop --snapshot --dir {name}'"
        )));
    }
    if !down.is_whole() {
        let left: Vec<_> = down.others.left.iter().map(u32::to_string).collect();
        let left = left.join(", ");
        return Err(CommandError::No(format!(
            "{name}: could not end pid {left}"
        )));
    }
    if !down.was_running() {
        return Ok(Reply::yes(format!("{name} was not running\n")));
    }
    let mut text = format!("{name} is down");
    if let Some(pid) = down.supervisor {
        let _ = write!(text, "; ended its supervisor (pid {pid})");
    }
    for (what, pids) in [
        ("ended", &down.others.ended),
        ("killed", &down.others.killed),
    ] {
        if !pids.is_empty() {
            let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
            let _ = write!(text, "; {what} pid {}", pids.join(", "));
        }
    }
    Ok(Reply::yes(text + "\n"))
}

/// Where it is told what is being waited for.
#[derive(Clone, Copy)]
pub struct Progress<'a>(pub &'a dyn Fn(&str));

impl Progress<'_> {
    /// Waits for something that may take long, saying so now and then.
    pub async fn during<T>(self, what: impl Fn() -> String, work: impl Future<Output = T>) -> T {
        let begin = Instant::now();
        let mut ticks = interval(PATIENCE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once.
        ticks.tick().await;
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = ticks.tick() => {
                    let seconds = begin.elapsed().as_secs();
                    (self.0)(&format!("waiting {} ({seconds} s)", what()));
                }
            }
        }
    }
}

/// A snapshot's id as a person types it: `s42` or `42`.
pub(in crate::control) fn id(text: &str) -> Result<SnapshotId, CommandError> {
    let bare = || text.parse().ok().map(SnapshotId::new);
    text.parse()
        .ok()
        .or_else(bare)
        .ok_or_else(|| CommandError::NoId(text.to_owned()))
}

/// A reply that people read as a sentence and programs as an object.
fn told(format: Format, sentence: &str, object: &serde_json::Value) -> Reply {
    Reply::yes(match format {
        Format::Table(_) => format!("{sentence}\n"),
        Format::Json => format!("{object}\n"),
    })
}
