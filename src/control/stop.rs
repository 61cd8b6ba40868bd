//! Ending processes, also those that are stopped or do not listen, and `cutline down`.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};

use super::client::{ClientError, JobClient};
use super::directory::{DirectoryError, JobDirectory};
use super::held_store::{self, HeldStore};
use super::incarnations::{self, OsProcess};
use crate::job::Job;

/// How long a program may take to end by itself: it has streams to close and nothing to save.
pub const TERM_GRACE: Duration = Duration::from_secs(5);

/// How long the kernel may take to end a process that was killed; long only for one that waits
/// for a disk.
pub const KILL_GRACE: Duration = Duration::from_secs(5);

/// How long a supervisor may take: both of the above for its programs, and a little for itself.
pub const SUPERVISOR_GRACE: Duration = Duration::from_secs(12);

/// From one look at a process to the next: there is no signal for the end of other people's
/// children, and this is well below what a user notices.
const POLL: Duration = Duration::from_millis(10);

/// What it took to end some processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Ended when asked to.
    pub ended: Vec<u32>,
    /// Had to be killed.
    pub killed: Vec<u32>,
    /// Still there.
    pub left: Vec<u32>,
}

impl Ended {
    /// How many there were.
    pub fn count(&self) -> usize {
        self.ended.len() + self.killed.len() + self.left.len()
    }
}

/// Ends processes: asks first, also the stopped ones, then kills. `hurry` cuts the asking short.
pub async fn end(
    processes: &[OsProcess],
    grace: Duration,
    hurry: impl Future<Output = ()>,
) -> Ended {
    let mut ended = Ended::default();
    let there: Vec<_> = processes
        .iter()
        .copied()
        .filter(OsProcess::exists)
        .collect();
    for process in &there {
        // A process that is stopped keeps SIGTERM until SIGCONT lets it go on; the other way
        // round it could do something in between.
        let _ = process.signal(Signal::SIGTERM);
        let _ = process.signal(Signal::SIGCONT);
    }
    let left = tokio::select! {
        left = gone(&there, grace) => left,
        () = hurry => existing(&there),
    };
    for process in &left {
        let _ = process.signal(Signal::SIGKILL);
    }
    let still = gone(&left, KILL_GRACE).await;
    let pids = |of: &[OsProcess]| {
        of.iter()
            .map(|process| process.pid)
            .collect::<BTreeSet<_>>()
    };
    let (left, still) = (pids(&left), pids(&still));
    for process in &there {
        let to = if still.contains(&process.pid) {
            &mut ended.left
        } else if left.contains(&process.pid) {
            &mut ended.killed
        } else {
            &mut ended.ended
        };
        to.push(process.pid);
    }
    ended
}

/// Waits until all are gone, at most so long; answers which are still there.
pub async fn gone(processes: &[OsProcess], at_most: Duration) -> Vec<OsProcess> {
    let deadline = Instant::now() + at_most;
    loop {
        let left = existing(processes);
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        sleep(POLL).await;
    }
}

fn existing(processes: &[OsProcess]) -> Vec<OsProcess> {
    processes
        .iter()
        .copied()
        .filter(OsProcess::exists)
        .collect()
}

/// What `down` found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Down {
    /// The supervisor that was there.
    pub supervisor: Option<u32>,
    /// What had to be ended besides: what the supervisor, if any, did not end itself.
    pub others: Ended,
    /// A collector still answers that no supervisor has started, and so is not ours to end.
    pub by_hand: bool,
}

impl Down {
    /// Whether everything is gone.
    pub fn is_whole(&self) -> bool {
        self.others.left.is_empty() && !self.by_hand
    }

    /// Whether there was anything to end.
    pub fn was_running(&self) -> bool {
        self.supervisor.is_some() || self.others.count() > 0
    }
}

/// Ends a job: its supervisor, which ends the rest; then every incarnation that is written down,
/// whatever its state; then sweeps the job's store, as far as the job is known, and clears `run/`.
/// A job that was started by hand is left as it is.
///
/// # Errors
/// If the directory is not there, is no job's, cannot be cleared, or somebody holds on to it.
pub async fn down(directory: &JobDirectory, job: Option<&Job>) -> Result<Down, DirectoryError> {
    if !directory.exists() {
        return Err(DirectoryError::Missing(directory.root().to_owned()));
    }
    directory.look()?;
    let mut down = Down::default();
    // Read before the supervisor clears them away.
    let before: Vec<_> = recorded(directory);
    let supervisor = incarnations::read(&directory.supervisor_file());
    if let Some(supervisor) = supervisor.filter(OsProcess::exists) {
        down.supervisor = Some(supervisor.pid);
        end(&[supervisor], SUPERVISOR_GRACE, std::future::pending()).await;
    }
    // Whoever has the lock by now may start programs behind our back.
    let lock = directory.lock_within(KILL_GRACE).await?;
    let mut left = before;
    left.extend(recorded(directory));
    left.retain(OsProcess::exists);
    left.sort_by_key(|process| process.pid);
    left.dedup();
    down.others = end(&left, TERM_GRACE, std::future::pending()).await;
    down.by_hand = down.is_whole() && answers(directory, job).await;
    if down.is_whole() {
        if let Some(job) = job
            && !held_store::is_missing(job)
            && let Ok(Some(store)) = HeldStore::take(job, &lock).await
        {
            store.sweep().await;
        }
        directory.clear_run()?;
    }
    Ok(down)
}

/// Ends what a supervisor that was itself killed has left behind.
pub async fn sweep(directory: &JobDirectory) -> Ended {
    end(&recorded(directory), TERM_GRACE, std::future::pending()).await
}

/// Whether every program that is written down is gone.
pub(super) fn is_over(directory: &JobDirectory) -> bool {
    existing(&recorded(directory)).is_empty()
}

/// Whether the job's collector listens where the directory says; one that is stopped is there,
/// too. The client waits seconds for it, no longer.
pub(super) async fn answers(directory: &JobDirectory, job: Option<&Job>) -> bool {
    let asking = async { JobClient::connect(directory.root()).await?.status().await };
    match asking.await {
        // Another job's may have got the port of one that was killed.
        Ok(status) => job.is_none_or(|job| job.name() == status.job),
        Err(error) => matches!(error, ClientError::Silent { .. }),
    }
}

fn recorded(directory: &JobDirectory) -> Vec<OsProcess> {
    incarnations::all(directory)
        .into_iter()
        .map(|record| record.process)
        .collect()
}
