//! A job's directory: where its files are, which job is meant, and who may run it.
//!
//! ```text
//! bank.cutline/
//!   job.toml   the job, as it ran last
//!   store/     its snapshots, unless the job keeps them elsewhere
//!   run/    what is true only while the job runs: emptied when it stops
//!     job.toml            the job, as it is being run
//!     supervisor          pid and start time of `cutline up`
//!     collector.addr      where the collector listens
//!     pids/<who>.<pid>    every incarnation that may still exist
//!     hold/, held/        points at which a scenario stops a program: see `hold`
//!     break/              streams that a scenario breaks
//!     gate                where the deeds of a gated job are released
//!   logs/   one file for each program
//!   trace/  what happened in its processes, if it is traced
//! ```
//!
//! A directory that holds anything else, and nothing that says that it is a job's, is not touched:
//! `--dir` is easily mistyped.

mod contents;
mod taken;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::who::Who;

/// What the name of a job's directory ends in.
pub const SUFFIX: &str = "cutline";

/// How deep below the current directory a job's directory is looked for: deep enough for a
/// folder of jobs, not so deep as to walk a disk.
const SEARCH_DEPTH_MAX: usize = 3;

/// How many entries a search looks at before it gives up, for the same reason.
const SEARCH_ENTRIES_MAX: usize = 20_000;

/// Why a job's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// There is no job here.
    #[error(
        "no job found: there is no *.cutline directory below {}; name one with --dir DIR or \
         --job FILE, or start one with 'cutline up FILE'", .0.display()
    )]
    NoneBelow(PathBuf),
    /// More than one job.
    #[error(
        "more than one job here; name one with --dir:\n{}", list(.0)
    )]
    Several(Vec<PathBuf>),
    /// The directory that was named is not there.
    #[error("no job directory at {}: 'cutline up' creates it", .0.display())]
    Missing(PathBuf),
    /// The directory that was named is nothing of ours.
    #[error(
        "no job.toml in {}, nor anything of a job that runs: name a job's directory with --dir \
         DIR; for a job started by hand, name its file with --job FILE", .0.display()
    )]
    NoJob(PathBuf),
    /// The directory has something else in it.
    #[error(
        "{} is not empty, and no job's directory: leave it alone, and give the job a new or empty \
         one with --dir DIR or 'directory' in its file", .0.display()
    )]
    Foreign(PathBuf),
    /// Another supervisor has it.
    #[error(
        "{} is in use by {holder}: only one 'cutline up' runs a job; end it with 'cutline down \
         --dir {}'", .directory.display(), .directory.display()
    )]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// Who has it, as far as that is known.
        holder: String,
    },
    /// Another supervisor has the store.
    #[error(
        "the store {} is in use by {holder}: end that job, or give this one a store of its own \
         ([store] url in its file)", .store.display()
    )]
    StoreInUse {
        /// The store's directory.
        store: PathBuf,
        /// Who has it, as far as that is known.
        holder: String,
    },
    /// The file system says no.
    #[error("cannot use {}: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

fn list(candidates: &[PathBuf]) -> String {
    let lines: Vec<_> = candidates
        .iter()
        .map(|path| format!("  {}", path.display()))
        .collect();
    lines.join("\n")
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError + '_ {
    |source| DirectoryError::Io {
        path: path.to_owned(),
        source,
    }
}

/// The directory of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDirectory {
    root: PathBuf,
}

impl JobDirectory {
    /// The directory at this path, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The job's directory: the current one, if it is one, or the only one below it.
    ///
    /// # Errors
    /// If there is none or more than one; the candidates are named.
    pub fn find(current: &Path) -> Result<Self, DirectoryError> {
        if is_job(current) && Self::new(current).is_of_job() {
            return Ok(Self::new("."));
        }
        let mut found = below(current);
        match found.len() {
            0 => Err(DirectoryError::NoneBelow(current.to_owned())),
            1 => Ok(Self::new(found.remove(0))),
            _ => Err(DirectoryError::Several(found)),
        }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The job, as it ran last. One that was started and never ran is not there, so that it
    /// cannot hide the one whose snapshots are in the store.
    pub fn job_file(&self) -> PathBuf {
        self.root.join("job.toml")
    }

    /// The job, as it is being run.
    pub fn running_job_file(&self) -> PathBuf {
        self.run().join("job.toml")
    }

    /// What is true only while the job runs.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// One file for each program.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// One file for each incarnation that may still exist.
    pub fn pids(&self) -> PathBuf {
        self.run().join("pids")
    }

    /// Where the collector says where it listens.
    pub fn collector_file(&self) -> PathBuf {
        self.run().join("collector.addr")
    }

    /// Where the supervisor says who it is.
    pub fn supervisor_file(&self) -> PathBuf {
        self.run().join("supervisor")
    }

    /// The log of a program.
    pub fn log(&self, who: &Who) -> PathBuf {
        self.logs().join(format!("{}.log", who.file_name()))
    }

    /// The log of a supervisor that was started with `--detach`.
    pub fn supervisor_log(&self) -> PathBuf {
        // Not a name that `Who::file_name` gives.
        self.logs().join("supervisor+.log")
    }

    /// Whether the directory is there.
    pub fn exists(&self) -> bool {
        self.root.is_dir()
    }

    /// Makes the directory itself, unless it is there. Answers whether it was not.
    ///
    /// # Errors
    /// If the file system says no.
    pub fn make(&self) -> Result<bool, DirectoryError> {
        if let Some(parent) = self.root.parent() {
            fs::create_dir_all(parent).map_err(at(parent))?;
        }
        match fs::create_dir(&self.root) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(at(&self.root)(error)),
        }
    }

    /// Creates what a supervisor needs.
    ///
    /// # Errors
    /// If the file system says no.
    pub fn create(&self) -> Result<(), DirectoryError> {
        let folders = contents::RUN_FOLDERS.map(|folder| self.run().join(folder));
        for path in folders.iter().chain([&self.logs()]) {
            fs::create_dir_all(path).map_err(at(path))?;
        }
        Ok(())
    }
}

fn is_job(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == SUFFIX)
}

/// The job directories below a directory, in order; those inside others are not looked for.
fn below(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut looked_at = 0;
    let mut level = vec![top.to_owned()];
    for _ in 0..SEARCH_DEPTH_MAX {
        let mut deeper = Vec::new();
        for directory in &level {
            let Ok(entries) = fs::read_dir(directory) else {
                continue;
            };
            for entry in entries.flatten() {
                looked_at += 1;
                if looked_at > SEARCH_ENTRIES_MAX {
                    found.sort();
                    return found;
                }
                let path = entry.path();
                let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                // Links are not followed: they may lead round in a circle.
                if hidden || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                if is_job(&path) {
                    found.push(path.strip_prefix(top).unwrap_or(&path).to_owned());
                } else {
                    deeper.push(path);
                }
            }
        }
        level = deeper;
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_job_below_is_the_one_that_is_meant() {
        let top = tempfile::tempdir().unwrap();
        let none = JobDirectory::find(top.path()).unwrap_err().to_string();
        assert!(
            none.contains("no job found") && none.contains("--dir"),
            "{none}"
        );
        fs::create_dir_all(top.path().join("jobs/bank.cutline/run")).unwrap();
        let found = JobDirectory::find(top.path()).unwrap();
        assert_eq!(found.root(), Path::new("jobs/bank.cutline"));
        fs::create_dir(top.path().join("ring.cutline")).unwrap();
        let several = JobDirectory::find(top.path()).unwrap_err().to_string();
        assert!(
            several.contains("jobs/bank.cutline\n  ring.cutline"),
            "{several}"
        );
    }

    #[test]
    fn inside_a_job_s_directory_it_is_the_one_that_is_meant_whether_it_runs_or_not() {
        let top = tempfile::tempdir().unwrap();
        let current = top.path().join("bank.cutline");
        fs::create_dir(&current).unwrap();
        assert!(JobDirectory::find(&current).is_err());
        fs::write(current.join("job.toml"), "").unwrap();
        let found = JobDirectory::find(&current).unwrap();
        assert_eq!(found.root(), Path::new("."));
    }
}
