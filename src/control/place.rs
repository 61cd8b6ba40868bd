//! Which job a command is about: from the flags, or from where one stands.

use std::io;
use std::path::PathBuf;

use super::directory::{DirectoryError, JobDirectory};
use crate::job::{Job, JobError};

/// Why it cannot be told which job is meant.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// There is none, or more than one.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The job file makes no sense.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The system does not say where we are.
    #[error("cannot tell the current directory")]
    Current(#[source] io::Error),
    /// There is a directory, but not what it is the directory of.
    #[error(
        "no job.toml in {}: 'cutline up' writes it; for a job started by hand, name its file with \
         --job FILE", .0.display()
    )]
    NoJobFile(PathBuf),
}

/// What the flags say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The job's directory.
    pub dir: Option<PathBuf>,
    /// The job file.
    pub job: Option<PathBuf>,
}

impl Place {
    /// The directory of the job that is meant. Where no job file says that it is one, something
    /// in the directory must.
    ///
    /// # Errors
    /// If there is no such job, or it cannot be told which.
    pub fn directory(&self) -> Result<JobDirectory, PlaceError> {
        let directory = match (&self.dir, &self.job) {
            (Some(dir), _) => JobDirectory::new(dir),
            (None, Some(file)) => JobDirectory::new(Job::load(file)?.directory()),
            (None, None) => {
                let current = std::env::current_dir().map_err(PlaceError::Current)?;
                JobDirectory::find(&current)?
            }
        };
        let root = directory.root().to_owned();
        if !directory.exists() {
            return Err(DirectoryError::Missing(root).into());
        }
        match self.job.is_some() || directory.is_of_job() {
            true => Ok(directory),
            false => Err(DirectoryError::NoJob(root).into()),
        }
    }

    /// The same, but for a directory that a command names itself.
    #[must_use]
    pub fn at(&self, directory: Option<PathBuf>) -> Self {
        Self {
            dir: directory.or_else(|| self.dir.clone()),
            job: self.job.clone(),
        }
    }

    /// The job that is meant, with its directory.
    ///
    /// # Errors
    /// If there is no such job, it cannot be told which, or its file makes no sense.
    pub fn job(&self) -> Result<(Job, JobDirectory), PlaceError> {
        let directory = self.directory()?;
        let own = [directory.job_file(), directory.running_job_file()];
        let own = own.into_iter().find(|file| file.is_file());
        let no_file = || PlaceError::NoJobFile(directory.root().to_owned());
        let file = self.job.clone().or(own).ok_or_else(no_file)?;
        // A directory may have been moved, or named differently from what the file says.
        Ok((
            Job::load(&file)?.with_directory(directory.root()),
            directory,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_or_has_no_job_is_named() {
        let top = tempfile::tempdir().unwrap();
        let place = |name: &str| Place {
            dir: Some(top.path().join(name)),
            job: None,
        };
        let missing = place("bank.cutline").job().unwrap_err().to_string();
        assert!(missing.contains("no job directory at") && missing.contains("bank.cutline"));
        std::fs::create_dir(top.path().join("bank.cutline")).unwrap();
        let empty = place("bank.cutline").job().unwrap_err().to_string();
        assert!(
            empty.contains("no job.toml in") && empty.contains("--job FILE"),
            "{empty}"
        );
    }
}
