//! `cutline up`: runs a job in this process until it ends or somebody ends it, telling what
//! happens; or sends itself into the background to do so.

use std::cell::Cell;
use std::ffi::OsString;
use std::io;

use super::detach::{self, Detached, Word};
use super::directory::{DirectoryError, JobDirectory};
use super::interrupt::Interrupts;
use super::log::Log;
use super::notice::{Notice, cut};
use super::session::{Session, SessionError, refuse_by_hand};
use super::supervisor::Ending;
use crate::collector::JobEvent;
use crate::job::Job;
use crate::protocol::ids::{Generation, SnapshotId};

/// Why a job is not up.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// It could not be started.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Signals cannot be taken over, or the program cannot be executed again.
    #[error("cannot {action}")]
    System {
        /// What was to be done.
        action: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It could not be started in the background; why.
    #[error("{0}")]
    Background(String),
    /// It ran, and could not go on; why.
    #[error("{0}")]
    Failed(String),
}

impl UpError {
    /// Whether the job ran, and so the answer is no.
    pub const fn is_no(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// Runs the job here. Answers with the last word on it.
///
/// # Errors
/// If it cannot be started or cannot go on.
pub async fn foreground(job: Job, log: &Log, is_background: bool) -> Result<String, UpError> {
    let ran = here(job, log, is_background).await;
    if let (true, Err(error)) = (is_background, &ran) {
        let start = !error.is_no();
        let reason = chain(error);
        Word::Failed { reason, start }.say();
    }
    ran
}

async fn here(job: Job, log: &Log, is_background: bool) -> Result<String, UpError> {
    let taking_over = |source| {
        let action = "listen for signals";
        UpError::System { action, source }
    };
    let interrupts = Interrupts::listen().map_err(taking_over)?;
    let (shutdown, hurry) = (interrupts.shutdown.clone(), interrupts.hurry.clone());
    let name = job.name().to_owned();
    let session = Session::open(job, log.format().name()).await?;
    let directory = session.directory().root().display().to_string();
    log.say("starting", &format!("starting {name} in {directory}"));
    let first = Cell::new(true);
    let tell = |notice: Notice| {
        if let Some((generation, snapshot)) = running(&notice)
            && first.replace(false)
        {
            let what = begun(&name, generation, snapshot);
            log.notice_as(&notice, &what);
            if is_background {
                Word::Running { what }.say();
            }
        } else {
            log.notice(&notice);
        }
    };
    match interrupts
        .during(session.run(&shutdown, &hurry, &tell))
        .await?
    {
        Ending::Finished => Ok(format!("{name} has finished")),
        Ending::Stopped => Ok(format!("{name} is stopped; 'cutline up' continues it")),
        Ending::Failed(reason) => Err(UpError::Failed(format!("{name} has failed: {reason}"))),
    }
}

fn running(notice: &Notice) -> Option<(Generation, SnapshotId)> {
    match notice {
        Notice::Job {
            event:
                JobEvent::Running {
                    generation,
                    snapshot,
                },
            ..
        } => Some((*generation, *snapshot)),
        _ => None,
    }
}

/// The first time that everything runs.
fn begun(name: &str, generation: Generation, snapshot: SnapshotId) -> String {
    match snapshot.get() {
        0 => format!(
            "{name} runs from {}, as generation {generation}",
            cut(snapshot)
        ),
        _ => format!("{name} continues from {snapshot}, as generation {generation}"),
    }
}

/// Runs the job in the background: executes this program once more, with these arguments.
/// Answers, when the job runs, with what to tell.
///
/// # Errors
/// If it cannot be started.
pub async fn background(job: &Job, arguments: &[OsString]) -> Result<String, UpError> {
    let system = |action| move |source| UpError::System { action, source };
    let interrupts = Interrupts::listen().map_err(system("listen for signals"))?;
    let directory = JobDirectory::new(job.directory());
    let interrupted = interrupts.shutdown.clone();
    let made = directory.make().map_err(SessionError::Directory)?;
    // Asked here, too, so that a second `up`, or one in a wrong place, writes nothing at all.
    let lock = directory.lock_to_run().await;
    let may = lock.and_then(|_lock| directory.look());
    may.map_err(SessionError::Directory)?;
    refuse_by_hand(&directory, job).await?;
    let detached = interrupts
        .during(detach::detach(&directory, arguments, &interrupted))
        .await;
    let detached = detached.map_err(system("start the supervisor in the background"));
    if made && !matches!(&detached, Ok(detached) if detached.has_run()) {
        remove(&directory).map_err(SessionError::Directory)?;
    }
    let name = job.name();
    let dir = directory.root().display();
    let how = format!(
        "  cutline status --dir {dir}\n  cutline down --dir {dir}\nlogs are in {}",
        directory.logs().display()
    );
    match detached? {
        Detached::Running { pid, what } => Ok(format!("{what} (supervisor pid {pid})\n{how}")),
        Detached::NotYet { pid } => Err(UpError::Background(format!(
            "{name} does not run yet, after {}; its supervisor (pid {pid}) goes on trying:\n{how}",
            super::log::seconds(detach::RUNNING_WAIT)
        ))),
        Detached::Failed { reason, start } if start => Err(UpError::Background(reason)),
        Detached::Failed { reason, .. } => Err(UpError::Failed(reason)),
    }
}

/// Removes what was made for a job that never ran; unless another `up` has come first, and it is
/// that one's.
fn remove(directory: &JobDirectory) -> Result<(), DirectoryError> {
    let Ok(_lock) = directory.lock() else {
        return Ok(());
    };
    match directory.job_file().exists() {
        true => Ok(()),
        false => directory.unmake(true),
    }
}

/// An error with its causes, as it is printed.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Some messages already hold their cause's.
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}
