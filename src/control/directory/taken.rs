//! The exclusive right to run the job of a directory.

use std::fs::TryLockError;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{DirectoryError, JobDirectory, at};
use crate::control::incarnations;
use crate::control::lock::Lock;

/// How long somebody may have the lock who only asks whether it is taken: far longer than that
/// takes, and no wait to speak of for whoever is refused in the end.
const MOMENT: Duration = Duration::from_millis(500);

/// From one try to take the lock to the next; a try costs two calls of the system.
const RETRY: Duration = Duration::from_millis(10);

impl JobDirectory {
    /// Takes the exclusive right to run the job; it lasts until the answer is dropped.
    ///
    /// # Errors
    /// If somebody else has it (who is in the message), or the directory cannot be opened.
    pub fn lock(&self) -> Result<Lock, DirectoryError> {
        Lock::take(&self.root).map_err(|refused| match refused {
            TryLockError::WouldBlock => DirectoryError::InUse {
                directory: self.root.clone(),
                holder: self.holder(),
            },
            TryLockError::Error(source) => at(&self.root)(source),
        })
    }

    /// The same, waiting at most so long for somebody who is about to let go of it: whoever only
    /// asks whether it is taken has it for a moment.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub async fn lock_within(&self, at_most: Duration) -> Result<Lock, DirectoryError> {
        let deadline = Instant::now() + at_most;
        loop {
            match self.lock() {
                Err(DirectoryError::InUse { .. }) if Instant::now() < deadline => {
                    sleep(RETRY).await;
                }
                done => return done,
            }
        }
    }

    /// The same for whoever wants to run the job: does not wait for a supervisor that is there.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub async fn lock_to_run(&self) -> Result<Lock, DirectoryError> {
        let supervisor = incarnations::read(&self.supervisor_file());
        let runs = supervisor.is_some_and(|supervisor| supervisor.exists());
        self.lock_within(if runs { Duration::ZERO } else { MOMENT })
            .await
    }

    /// Whether somebody has the exclusive right to run the job. Takes it for a moment itself.
    pub fn is_locked(&self) -> bool {
        matches!(self.lock(), Err(DirectoryError::InUse { .. }))
    }

    fn holder(&self) -> String {
        match incarnations::read(&self.supervisor_file()) {
            Some(process) => format!("pid {}", process.pid),
            None => "another cutline, which is just starting or stopping".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_says_who_holds_the_first() {
        let top = tempfile::tempdir().unwrap();
        let directory = JobDirectory::new(top.path().join("bank.cutline"));
        assert!(directory.make().unwrap() && !directory.make().unwrap());
        directory.create().unwrap();
        let lock = directory.lock().unwrap();
        let this = std::process::id();
        incarnations::write(&directory.supervisor_file(), this, 0).unwrap();
        let refusal = directory.lock().unwrap_err().to_string();
        assert!(refusal.contains(&format!("pid {this}")), "{refusal}");
        fs::write(directory.run().join("hold/p1"), "recorded").unwrap();
        directory.clear_leftovers().unwrap();
        assert!(!directory.run().join("hold/p1").exists() && directory.pids().is_dir());
        drop(lock);
        assert!(!directory.is_locked());
    }

    #[tokio::test]
    async fn whoever_wants_to_run_the_job_waits_for_those_who_only_look_and_for_no_supervisor() {
        let top = tempfile::tempdir().unwrap();
        let directory = JobDirectory::new(top.path().join("bank.cutline"));
        directory.make().unwrap();
        directory.create().unwrap();
        let look = directory.lock().unwrap();
        let wanted = directory.lock_to_run();
        tokio::pin!(wanted);
        // It is refused at first.
        let early = tokio::time::timeout(Duration::ZERO, &mut wanted).await;
        assert!(early.is_err(), "{early:?}");
        drop(look);
        let _lock = wanted.await.unwrap();
        let this = std::process::id();
        incarnations::write(&directory.supervisor_file(), this, 0).unwrap();
        let refused = directory.lock_to_run().await;
        assert!(
            matches!(refused, Err(DirectoryError::InUse { .. })),
            "{refused:?}"
        );
    }
}
