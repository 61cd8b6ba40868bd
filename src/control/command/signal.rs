//! What is done to a program from outside: `kill`, `pause`, `resume`.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::{sleep, timeout};

use super::{CommandError, Reply};
use crate::control::directory::JobDirectory;
use crate::control::incarnations::{self, Condition, OsProcess};
use crate::control::place::Place;
use crate::control::stop;
use crate::control::who::Who;
use crate::job::{COLLECTOR, Job};

/// Between two looks at whether a process has stopped, and how long that is waited for: one that
/// writes to a slow disk may take its time.
const LOOK: Duration = Duration::from_millis(1);
const STOP_MAX: Duration = Duration::from_secs(5);

/// How many names a message lists: those of a thousand processes help nobody.
const LISTED_MAX: usize = 12;

/// `cutline kill`: SIGKILL to the newest incarnation. Replies when it is gone.
///
/// # Errors
/// If there is no such process, or it does not run.
pub async fn kill(place: &Place, name: &str) -> Result<Reply, CommandError> {
    let (directory, who) = find(place, name)?;
    let process = newest(&directory, &who)?;
    send(&who, process, Signal::SIGKILL)?;
    let pid = process.pid;
    if stop::gone(&[process], stop::KILL_GRACE).await.is_empty() {
        Ok(Reply::yes(format!("killed {who} (pid {pid})\n")))
    } else {
        let seconds = Duration::as_secs(&stop::KILL_GRACE);
        let left = format!("{who} (pid {pid}) was killed but is still there after {seconds} s");
        Err(CommandError::No(left))
    }
}

/// `cutline pause`: SIGSTOP to the newest incarnation. Replies when it has stopped.
///
/// # Errors
/// If there is no such process, or it does not run.
pub async fn pause(place: &Place, name: &str) -> Result<Reply, CommandError> {
    let (directory, who) = find(place, name)?;
    let process = newest(&directory, &who)?;
    send(&who, process, Signal::SIGSTOP)?;
    // It stops when it next leaves the kernel.
    let stops = async {
        while process.condition() == Condition::Alive {
            sleep(LOOK).await;
        }
    };
    if timeout(STOP_MAX, stops).await.is_err() {
        let late = format!("{who} (pid {}) has not stopped yet", process.pid);
        return Err(CommandError::No(late));
    }
    if process.condition() == Condition::Gone {
        let gone = format!("{who} (pid {}) has ended meanwhile", process.pid);
        return Err(CommandError::No(gone));
    }
    Ok(Reply::yes(format!("paused {who} (pid {})\n", process.pid)))
}

/// `cutline resume`: SIGCONT to every incarnation that is stopped, those that have been replaced
/// meanwhile included.
///
/// # Errors
/// If there is no such process, or none of it is stopped.
pub fn resume(place: &Place, name: &str) -> Result<Reply, CommandError> {
    let (directory, who) = find(place, name)?;
    let current = newest(&directory, &who)?;
    let file_name = who.file_name();
    let records = incarnations::all(&directory).into_iter();
    let of_it = records.filter(|record| record.file_name == file_name);
    let stopped: Vec<_> = of_it
        .map(|record| record.process)
        .filter(|process| process.condition() == Condition::Stopped)
        .collect();
    if stopped.is_empty() {
        let pid = current.pid;
        return Err(CommandError::No(format!("{who} (pid {pid}) is not paused")));
    }
    let mut text = String::new();
    for process in stopped {
        send(&who, process, Signal::SIGCONT)?;
        let replaced = if process == current {
            ""
        } else {
            ", which has been replaced meanwhile"
        };
        text.push_str(&format!("resumed {who} (pid {}){replaced}\n", process.pid));
    }
    Ok(Reply::yes(text))
}

fn find(place: &Place, name: &str) -> Result<(JobDirectory, Who), CommandError> {
    let (job, directory) = place.job()?;
    let who = Who::named(name);
    match who {
        Who::Process(_) if job.topology().process(name).is_none() => Err(unknown(&job, name)),
        who => Ok((directory, who)),
    }
}

fn unknown(job: &Job, name: &str) -> CommandError {
    let topology = job.topology();
    let names = topology.processes().map(|process| topology.name(process));
    let mut known: Vec<_> = names.take(LISTED_MAX).collect();
    if topology.processes().len() > LISTED_MAX {
        known.push("…");
    }
    known.push(COLLECTOR);
    CommandError::UnknownProcess {
        job: job.name().to_owned(),
        name: name.to_owned(),
        known: known.join(", "),
    }
}

fn newest(directory: &JobDirectory, who: &Who) -> Result<OsProcess, CommandError> {
    incarnations::newest(directory, who).ok_or_else(|| {
        CommandError::No(format!(
            "{who} does not run under a 'cutline up' of {}",
            directory.root().display()
        ))
    })
}

fn send(who: &Who, process: OsProcess, signal: Signal) -> Result<(), CommandError> {
    match process.signal(signal) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CommandError::No(format!(
            "{who} (pid {}) has ended",
            process.pid
        ))),
        Err(source) => Err(CommandError::Signal {
            who: who.to_string(),
            pid: process.pid,
            source,
        }),
    }
}
