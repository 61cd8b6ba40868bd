//! What is asked of the collector: `status`, `snapshot`, `restore`, `stop`.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use super::read::{open, records};
use super::{CommandError, Progress, Reply, id, told};
use crate::control::client::{ClientError, JobClient, JobStatus, ProcessStatus, SnapshotEnd};
use crate::control::directory::JobDirectory;
use crate::control::incarnations::{self, Condition};
use crate::control::place::Place;
use crate::control::view::{Format, ListView, ProcessState, StatusView, View as _};
use crate::control::wanted::WantedSnapshot;
use crate::control::who::Who;
use crate::job::Job;
use crate::protocol::ids::SnapshotId;

/// How long to look for a collector while a supervisor is there: it has just died, mostly, and
/// is being started again.
const COLLECTOR_WAIT: Duration = Duration::from_secs(10);

/// From one look to the next; a try costs little.
const RETRY: Duration = Duration::from_millis(50);

/// Connects to a job's collector; while a supervisor is there, one that is just being started
/// again is waited for.
pub(in crate::control) async fn connect(
    directory: &JobDirectory,
    progress: Progress<'_>,
) -> Result<JobClient, ClientError> {
    let begin = Instant::now();
    let trying = async {
        loop {
            let connected = JobClient::connect(directory.root()).await;
            let absent = matches!(connected, Err(ClientError::NotRunning { .. }));
            if !absent || !directory.is_locked() || begin.elapsed() >= COLLECTOR_WAIT {
                return connected;
            }
            sleep(RETRY).await;
        }
    };
    progress
        .during(|| "for the collector to come back".to_owned(), trying)
        .await
}

/// `cutline status`: how the job stands. No, if it does not run.
///
/// # Errors
/// If there is no such job, or its collector does not answer.
pub async fn status(
    place: &Place,
    format: Format,
    progress: Progress<'_>,
) -> Result<Reply, CommandError> {
    let directory = place.directory()?;
    let status = async { connect(&directory, progress).await?.status().await };
    let view = match status.await {
        Ok(status) => running(&directory, status),
        Err(ClientError::NotRunning { .. }) => {
            let (job, _) = place.job()?;
            stopped(&job, &directory, progress).await?
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Reply {
        text: view.render(format),
        yes: view.up,
    })
}

fn running(directory: &JobDirectory, status: JobStatus) -> StatusView {
    let processes = status
        .processes
        .iter()
        .map(|process| state(directory, process));
    StatusView {
        up: true,
        supervisor: supervisor(directory),
        term: Some(status.term.to_string()),
        generation: Some(status.generation.to_string()),
        restored: Some(status.restored.to_string()),
        newest: newest(status.complete),
        processes: processes.collect(),
        job: status.job,
        phase: status.phase,
        open: status.open,
        complete: status.complete_count,
        aborted: status.aborted_count,
        failures_in_row: status.failures_in_row,
    }
}

fn state(directory: &JobDirectory, process: &ProcessStatus) -> ProcessState {
    let here = incarnations::newest(directory, &Who::Process(process.name.clone()));
    let paused = here.is_some_and(|here| here.condition() == Condition::Stopped);
    let known = process.pid > 0;
    ProcessState {
        process: process.name.clone(),
        state: match (paused, process.live) {
            (true, _) => "paused",
            (false, true) => "live",
            (false, false) => "lost",
        },
        pid: here
            .map(|here| here.pid)
            .or_else(|| known.then_some(process.pid)),
        address: Some(process.address.clone()).filter(|address| !address.is_empty()),
        holding: process.holding.clone(),
        generation: (process.holding != "nothing").then(|| process.generation.to_string()),
        handled: process.handled,
        sent: process.sent,
    }
}

/// What the store says of a job that does not run.
async fn stopped(
    job: &Job,
    directory: &JobDirectory,
    progress: Progress<'_>,
) -> Result<StatusView, CommandError> {
    let records = records(open(job).await?.as_ref(), progress).await?;
    let snapshots = ListView::new(job.name(), &records).snapshots;
    let ids = |state: &str| -> Vec<String> {
        let of_it = snapshots.iter().filter(|row| row.state == state);
        of_it.map(|row| row.id.clone()).collect()
    };
    let complete = ids("complete");
    Ok(StatusView {
        job: job.name().to_owned(),
        up: false,
        phase: "stopped".to_owned(),
        supervisor: supervisor(directory),
        term: None,
        generation: None,
        restored: None,
        newest: newest(records.restore_point()),
        open: ids("open"),
        complete: complete.len() as u64,
        aborted: ids("aborted").len() as u64,
        failures_in_row: 0,
        processes: Vec::new(),
    })
}

/// The restore point, unless it is the initial state.
fn newest(restore_point: SnapshotId) -> Option<String> {
    (restore_point != SnapshotId::default()).then(|| restore_point.to_string())
}

fn supervisor(directory: &JobDirectory) -> Option<u32> {
    let process = incarnations::read(&directory.supervisor_file())?;
    process.exists().then_some(process.pid)
}

/// `cutline snapshot`: takes one. With `wait`, no if it is aborted.
///
/// # Errors
/// If the job does not run, or it cannot begin one.
pub async fn snapshot(
    place: &Place,
    wanted: WantedSnapshot,
    wait: bool,
    format: Format,
    progress: Progress<'_>,
) -> Result<Reply, CommandError> {
    let mut client = connect(&place.directory()?, progress).await?;
    if !wait {
        let beginning = client.snapshot(wanted);
        let waiting = progress.during(|| "for the snapshot to begin".to_owned(), beginning);
        let snapshot = waiting.await?;
        let object = json!({ "snapshot": snapshot.to_string(), "state": "open" });
        return Ok(told(format, &format!("{snapshot} has begun"), &object));
    }
    let ending = client.snapshot_to_its_end(wanted);
    match progress
        .during(|| "for the snapshot to end".to_owned(), ending)
        .await?
    {
        SnapshotEnd::Complete(snapshot) => {
            let object = json!({ "snapshot": snapshot.to_string(), "state": "complete" });
            Ok(told(format, &format!("{snapshot} is complete"), &object))
        }
        SnapshotEnd::Aborted(snapshot, reason) => {
            let id = snapshot.to_string();
            let object = json!({ "snapshot": id, "state": "aborted", "reason": reason });
            let reply = told(
                format,
                &format!("{snapshot} was aborted: {reason}"),
                &object,
            );
            Ok(Reply {
                yes: false,
                ..reply
            })
        }
    }
}

/// `cutline restore`: takes the job back.
///
/// # Errors
/// If the job does not run, or cannot be taken back there.
pub async fn restore(
    place: &Place,
    snapshot: Option<&str>,
    format: Format,
    progress: Progress<'_>,
) -> Result<Reply, CommandError> {
    let snapshot = snapshot.map(id).transpose()?;
    let mut client = connect(&place.directory()?, progress).await?;
    let restoring = client.restore(snapshot);
    let waiting = progress.during(|| "for every process to run again".to_owned(), restoring);
    let (generation, snapshot) = waiting.await?;
    let object = json!({
        "generation": generation.to_string(), "snapshot": snapshot.to_string(),
    });
    let from = crate::control::notice::cut(snapshot);
    Ok(told(
        format,
        &format!("running generation {generation} from {from}"),
        &object,
    ))
}

/// `cutline stop --snapshot`: takes a last snapshot and ends the job. Replies when everything has
/// ended.
///
/// # Errors
/// If the job does not run, or that snapshot fails; the job goes on then.
pub async fn stop_with_snapshot(
    place: &Place,
    format: Format,
    progress: Progress<'_>,
) -> Result<Reply, CommandError> {
    let directory = place.directory()?;
    let mut client = connect(&directory, progress).await?;
    let stopping = client.stop();
    let waiting = progress.during(|| "for the last snapshot".to_owned(), stopping);
    let snapshot = waiting.await?;
    let begin = Instant::now();
    let ended = async {
        // The supervisor hears of it and ends by itself.
        while directory.is_locked() && begin.elapsed() < crate::control::stop::SUPERVISOR_GRACE {
            sleep(RETRY).await;
        }
    };
    progress
        .during(|| "for the job's programs to end".to_owned(), ended)
        .await;
    let object = json!({ "snapshot": snapshot.to_string(), "state": "complete" });
    Ok(told(format, &format!("stopped after {snapshot}"), &object))
}
