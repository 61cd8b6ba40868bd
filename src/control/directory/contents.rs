//! What is a job's in a directory, and what of it is removed: never anything that is not.

use std::fs;
use std::io;
use std::path::Path;

use super::{DirectoryError, JobDirectory, at};

/// What a job makes in its directory before it has run for the first time.
const BEFORE_JOB_FILE: [&str; 5] = ["run", "store", "logs", "trace", "job.toml.new"];

/// The folders in `run/`.
pub(super) const RUN_FOLDERS: [&str; 4] = ["pids", "hold", "held", "break"];

/// The files in `run/`.
const RUN_FILES: [&str; 4] = ["job.toml", "supervisor", "collector.addr", "gate"];

impl JobDirectory {
    /// Whether something here says that this is a job's directory.
    pub fn is_of_job(&self) -> bool {
        let files = [
            self.job_file(),
            self.running_job_file(),
            self.supervisor_file(),
            self.collector_file(),
        ];
        files.iter().any(|file| file.is_file()) || self.pids().is_dir()
    }

    /// Looks whether a job may have this directory: it is a job's, or has nothing in it but what
    /// one makes before it runs.
    ///
    /// # Errors
    /// If there is anything else in it, or it cannot be read.
    pub fn look(&self) -> Result<(), DirectoryError> {
        let is_ours = |name: &String| BEFORE_JOB_FILE.contains(&name.as_str());
        let fits = self.is_of_job()
            || names(&self.root)?.iter().all(is_ours)
                && names(&self.run())?.iter().all(|name| is_of_run(name));
        fits.then_some(())
            .ok_or_else(|| DirectoryError::Foreign(self.root.clone()))
    }

    /// Whether nothing is in the directory.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn is_empty(&self) -> Result<bool, DirectoryError> {
        Ok(names(&self.root)?.is_empty())
    }

    /// Removes what a supervisor that was itself killed has left: an order to stop at a point,
    /// for one, would stop a program of the next. Whoever calls has taken over already.
    ///
    /// # Errors
    /// If the file system says no.
    pub fn clear_leftovers(&self) -> Result<(), DirectoryError> {
        for path in RUN_FOLDERS.map(|folder| self.run().join(folder)) {
            fs::remove_dir_all(&path).map_err(at(&path))?;
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        let address = self.collector_file();
        match fs::remove_file(&address) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(&address)(error)),
            _ => Ok(()),
        }
    }

    /// Removes what is true only while the job runs: what has one of its names, and then `run/`
    /// itself, unless somebody keeps something there.
    ///
    /// # Errors
    /// If the file system says no.
    pub fn clear_run(&self) -> Result<(), DirectoryError> {
        let run = self.run();
        for name in names(&run)?.iter().filter(|name| is_of_run(name)) {
            remove(&run.join(name))?;
        }
        match fs::remove_dir(&run) {
            Err(error) if !is_passed_over(&error) => Err(at(&run)(error)),
            _ => Ok(()),
        }
    }

    /// Removes everything in the directory, and the directory itself if `all`: for whoever has
    /// found it empty under the lock, and the job has never run.
    ///
    /// # Errors
    /// If the file system says no.
    pub fn unmake(&self, all: bool) -> Result<(), DirectoryError> {
        for name in names(&self.root)? {
            remove(&self.root.join(name))?;
        }
        match all {
            true => fs::remove_dir(&self.root).map_err(at(&self.root)),
            false => Ok(()),
        }
    }
}

fn is_passed_over(error: &io::Error) -> bool {
    use io::ErrorKind::{DirectoryNotEmpty, NotFound};
    matches!(error.kind(), DirectoryNotEmpty | NotFound)
}

/// Removes a file, or a folder with all that is in it.
fn remove(path: &Path) -> Result<(), DirectoryError> {
    let is_folder = path.is_dir() && !path.is_symlink();
    let removed = match is_folder {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    removed.map_err(at(path))
}

/// The names in a directory; none, if it is not there. One that is not UTF-8 is nothing of ours,
/// whatever is shown for it.
fn names(directory: &Path) -> Result<Vec<String>, DirectoryError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(at(directory))?,
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name());
    let names: io::Result<Vec<_>> = entries.map(name).collect();
    let names = names.map_err(at(directory))?.into_iter();
    Ok(names
        .map(|name| name.to_string_lossy().into_owned())
        .collect())
}

/// Whether this is a name in `run/`; a file is first written beside its place, under the second
/// kind of name.
fn is_of_run(name: &str) -> bool {
    let is_unfinished = |begin: &str, end: &str| name.starts_with(begin) && name.ends_with(end);
    RUN_FOLDERS.contains(&name)
        || RUN_FILES.contains(&name)
        || is_unfinished("supervisor.", "-new")
        || is_unfinished("collector.", ".new")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(top: &Path, name: &str) {
        let path = top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    fn looked_at(names: &[&str]) -> (bool, bool) {
        let top = tempfile::tempdir().unwrap();
        for name in names {
            write(top.path(), name);
        }
        let directory = JobDirectory::new(top.path());
        (directory.is_of_job(), directory.look().is_ok())
    }

    #[test]
    fn a_job_may_have_what_is_a_jobs_and_what_is_empty_and_nothing_else() {
        // Up once; being run; by hand, while its collector runs; whatever else is there.
        for of_job in [
            "job.toml",
            "run/job.toml",
            "run/supervisor",
            "run/pids/p1.7",
            "run/collector.addr",
        ] {
            assert_eq!(looked_at(&[of_job, "notes.txt"]), (true, true), "{of_job}");
        }
        // By hand, ended; a start in the background, or one that failed; nothing at all.
        let before: [&[&str]; 4] = [
            &["store/log/1.json", "trace/g1/p1.ndjson"],
            &["logs/supervisor+.log", "run/hold/p1"],
            &["run/collector.7.new", "run/supervisor.7-new", "run/gate"],
            &[],
        ];
        for names in before {
            assert_eq!(looked_at(names), (false, true), "{names:?}");
        }
        let foreign: [&[&str]; 3] = [&["src/main.rs"], &["store/x", "a"], &["run/sshd.pid"]];
        for names in foreign {
            assert_eq!(looked_at(names), (false, false), "{names:?}");
        }
    }

    #[test]
    fn only_what_is_a_jobs_is_removed_from_run() {
        let top = tempfile::tempdir().unwrap();
        let directory = JobDirectory::new(top.path());
        for name in ["supervisor", "pids/p1.7", "collector.7.new", "gate"] {
            write(&directory.run(), name);
        }
        write(&directory.run(), "sshd.pid");
        directory.clear_run().unwrap();
        assert_eq!(names(&directory.run()).unwrap(), ["sshd.pid"]);
        fs::remove_file(directory.run().join("sshd.pid")).unwrap();
        directory.clear_run().unwrap();
        assert!(!directory.run().exists());
        directory.clear_run().unwrap();
    }
}
