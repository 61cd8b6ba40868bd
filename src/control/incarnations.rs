//! The operating system's processes that belong to a job: who they are, whether they still
//! exist, and signals to them.
//!
//! Every incarnation of every program has a file from just after its start until it has been
//! waited for, so that `cutline down` reaches them all, also after the supervisor was killed. A
//! pid alone may by then be somebody else's; with the time of its start it is not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::directory::JobDirectory;
use super::who::Who;

/// A process of the operating system, told apart from others that get the same pid later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OsProcess {
    /// Its pid.
    pub pid: u32,
    /// When it was started, in the kernel's ticks since the machine was.
    pub start: u64,
    /// Which start under this supervisor it was; the newest of a program has the highest.
    pub nth: u64,
}

/// One start of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncarnationRecord {
    /// The name of the program in file names, as [`Who::file_name`] gives it.
    pub file_name: String,
    /// The process.
    pub process: OsProcess,
    /// Where this is written down.
    pub path: PathBuf,
}

/// How a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It runs, or waits for something.
    Alive,
    /// It has been stopped by a signal.
    Stopped,
    /// It is not there any more, or only waits to be waited for.
    Gone,
}

impl OsProcess {
    /// How the process stands now.
    pub fn condition(&self) -> Condition {
        match stat(self.pid) {
            Some((_, start)) if start != self.start => Condition::Gone,
            Some(('Z' | 'X' | 'x', _)) | None => Condition::Gone,
            Some(('T' | 't', _)) => Condition::Stopped,
            Some(_) => Condition::Alive,
        }
    }

    /// Whether the process still exists, stopped or not.
    pub fn exists(&self) -> bool {
        self.condition() != Condition::Gone
    }

    /// Sends a signal, if the process still exists. Answers whether it did.
    ///
    /// # Errors
    /// If the operating system does not allow it.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        if !self.exists() {
            return Ok(false);
        }
        match signal::kill(pid(self.pid), signal) {
            Ok(()) => Ok(true),
            Err(Errno::ESRCH) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("the kernel's pids are below 2^22"))
}

/// The state and start time of a process, from `/proc/PID/stat`.
fn stat(pid: u32) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets and may itself hold blanks and brackets.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    // The state is the third field of all; the start time is the twenty-second.
    let start = fields.nth(22 - 4)?.parse().ok()?;
    Some((state, start))
}

/// The process that has this pid now.
pub fn of(pid: u32) -> Option<OsProcess> {
    stat(pid).map(|(_, start)| OsProcess { pid, start, nth: 0 })
}

/// Writes down a process that has just been started.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, pid: u32, nth: u64) -> io::Result<OsProcess> {
    // A child that has died at once is still there as long as nobody has waited for it.
    let start = stat(pid).map_or(0, |(_, start)| start);
    let process = OsProcess { pid, start, nth };
    let text = serde_json::to_string(&process).expect("three numbers are always JSON");
    // Written beside and renamed, so that nobody reads half of it. The name is no valid record's.
    let beside = path.with_extension(format!("{pid}-new"));
    fs::write(&beside, text)?;
    fs::rename(&beside, path)?;
    Ok(process)
}

/// What was written down at this path, if it can be read.
pub fn read(path: &Path) -> Option<OsProcess> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Where an incarnation is written down.
pub fn record_path(directory: &JobDirectory, who: &Who, pid: u32) -> PathBuf {
    directory.pids().join(format!("{}.{pid}", who.file_name()))
}

/// Every incarnation that is written down, the oldest start first.
pub fn all(directory: &JobDirectory) -> Vec<IncarnationRecord> {
    let entries = fs::read_dir(directory.pids())
        .into_iter()
        .flatten()
        .flatten();
    let mut records: Vec<_> = entries.filter_map(|entry| record(entry.path())).collect();
    records.sort_by_key(|record| (record.process.nth, record.process.start, record.process.pid));
    records
}

fn record(path: PathBuf) -> Option<IncarnationRecord> {
    let (file_name, pid) = path.file_name()?.to_str()?.rsplit_once('.')?;
    let process = read(&path)?;
    let file_name = file_name.to_owned();
    (pid.parse() == Ok(process.pid)).then_some(IncarnationRecord {
        file_name,
        process,
        path,
    })
}

/// The newest incarnation of a program that still exists.
pub fn newest(directory: &JobDirectory, who: &Who) -> Option<OsProcess> {
    let name = who.file_name();
    let of_it = all(directory)
        .into_iter()
        .rev()
        .filter(|record| record.file_name == name);
    of_it.map(|record| record.process).find(OsProcess::exists)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(
                begin.elapsed() < Duration::from_secs(10),
                "{what} took over ten seconds"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_newest_incarnation_is_the_last_one_started_that_still_exists() {
        let top = tempfile::tempdir().unwrap();
        let directory = JobDirectory::new(top.path().join("x.cutline"));
        directory.create().unwrap();
        let who = Who::named("p1");
        let mut children = [sleeper(), sleeper()];
        for (nth, child) in (1..).zip(&children) {
            write(&record_path(&directory, &who, child.id()), child.id(), nth).unwrap();
        }
        assert_eq!(newest(&directory, &who).unwrap().pid, children[1].id());
        assert!(newest(&directory, &Who::named("p2")).is_none());
        children[1].kill().unwrap();
        // Dead, but not waited for: gone all the same.
        until("the second's end", || {
            newest(&directory, &who).unwrap().pid == children[0].id()
        });
        for child in &mut children {
            let _ = child.kill();
            child.wait().unwrap();
        }
        assert!(newest(&directory, &who).is_none());
        assert_eq!(all(&directory).len(), 2);
    }

    #[test]
    fn a_pid_that_was_given_to_somebody_else_is_not_signalled() {
        let mut child = sleeper();
        let top = tempfile::tempdir().unwrap();
        let process = write(&top.path().join("p1"), child.id(), 1).unwrap();
        let other = OsProcess {
            start: process.start + 1,
            ..process
        };
        assert!(!other.signal(Signal::SIGKILL).unwrap());
        assert!(process.signal(Signal::SIGSTOP).unwrap());
        until("the stop", || process.condition() == Condition::Stopped);
        assert!(process.signal(Signal::SIGKILL).unwrap());
        child.wait().unwrap();
        assert_eq!(process.condition(), Condition::Gone);
        assert!(!process.signal(Signal::SIGKILL).unwrap());
    }
}
