//! What a supervisor is given, what it is told meanwhile, and how it can end.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::control::directory::{DirectoryError, JobDirectory};
use crate::control::who::Who;
use crate::job::Restarts;

/// A program of the job and how it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which one.
    pub who: Who,
    /// The file to execute.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// What is to be kept running, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The job's directory.
    pub directory: JobDirectory,
    /// The programs.
    pub members: Vec<Member>,
    /// How often one may be started again.
    pub restarts: Restarts,
    /// How long a node may be silent.
    pub silence: Duration,
}

/// What a supervisor must know of what happens inside the job.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Every process runs.
    Running,
    /// The collector has given up this incarnation, which may still exist.
    Replace {
        /// The process.
        who: Who,
        /// The pid it said it had.
        pid: u32,
    },
    /// This process has not joined the collector for as long as a node may be silent.
    Absent(Who),
    /// The job has come to its end.
    Finished,
    /// The job cannot go on; why.
    Failed(String),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The job has come to its end.
    Finished,
    /// Somebody wanted it to end.
    Stopped,
    /// The job could not go on; why.
    Failed(String),
}

/// Why a job cannot even be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A program cannot be executed.
    #[error("cannot start {who}: {}: {source}", .program.display())]
    Spawn {
        /// Which one.
        who: Who,
        /// The file.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A program ended at once, saying why.
    #[error("{who} could not start: {}", .lines.join("\n  "))]
    Program {
        /// Which one.
        who: Who,
        /// The last lines of its log.
        lines: Vec<String>,
    },
    /// The collector found that the job cannot run before it ever did; why.
    #[error("the job cannot start: {0}")]
    Job(String),
}
