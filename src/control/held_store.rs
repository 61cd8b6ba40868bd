//! A store in a directory, while this program alone runs a job on it: two jobs on one store would
//! take the lead from each other until neither runs.

use std::fs::TryLockError;
use std::path::Path;
use std::time::Duration;

use super::directory::DirectoryError;
use super::lock::{self, Lock};
use crate::job::Job;
use crate::store::Store;

/// A store that no other supervisor has.
#[derive(Debug)]
pub(super) struct HeldStore {
    store: Store,
    /// None where it is the job's directory itself, which is locked already.
    _lock: Option<Lock>,
}

impl HeldStore {
    /// Opens a job's store and takes it, for whoever has the job's directory. None if it is in no
    /// directory, or cannot be opened: the collector says then what is wrong with it.
    ///
    /// # Errors
    /// If another supervisor has it.
    pub(super) async fn take(job: &Job, own: &Lock) -> Result<Option<Self>, DirectoryError> {
        let Ok(store) = Store::open(job.store_url().as_str()).await else {
            return Ok(None);
        };
        let Some(root) = store.directory().map(Path::to_owned) else {
            return Ok(None);
        };
        let failed = |source| DirectoryError::Io {
            path: root.clone(),
            source,
        };
        if own.is_on(&root).map_err(failed)? {
            return Ok(Some(Self { store, _lock: None }));
        }
        match Lock::take(&root) {
            Ok(lock) => Ok(Some(Self {
                store,
                _lock: Some(lock),
            })),
            Err(TryLockError::Error(source)) => Err(failed(source)),
            Err(TryLockError::WouldBlock) => Err(DirectoryError::StoreInUse {
                holder: lock::holder(&root),
                store: root,
            }),
        }
    }

    /// Removes what killed writers have left. Only for when every program of the job is gone.
    pub(super) async fn sweep(&self) {
        // What stays harms nobody: the next collector sweeps too, once it is old enough.
        let _ = self.store.sweep_staging(Duration::ZERO).await;
    }
}

/// Whether a job's store is a directory that is not there yet: opening it would create it.
pub(super) fn is_missing(job: &Job) -> bool {
    let url = job.store_url();
    url.scheme() == "file" && url.to_file_path().is_ok_and(|path| !path.exists())
}
