//! Where snapshots live: the collector's records and the parts, over `object_store`, by URL.
//!
//! Everything is created once and never changed. A record is created conditionally, so that of
//! two collectors one is told what the other has written; a part is created conditionally, so
//! that nothing is ever overwritten. What stands in the store and cannot be read is an error that
//! names the file, never "not there". Nothing waits for ever. See `docs/store.md`.

mod error;
mod local;
mod objects;
mod parts;
mod paths;
mod record;
mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStore;
use object_store::path::Path;

use crate::protocol::ids::{Generation, SnapshotId};
use crate::protocol::records::{Begun, LogEntry, Manifest, Outcome, Record, Records, Unreadable};
use objects::Objects;

pub use error::StoreError;
pub use parts::read_parts;
pub use verify::verify;

/// How long one operation on one object may take. A healthy disk needs milliseconds for a record
/// and a tenth of a second for 64 MiB; what takes longer than this is hung, and its caller would
/// rather lose a snapshot than hang too.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Staging files older than this belong to nobody: their writer has given up.
pub const STAGING_AGE: Duration = OPERATION_TIMEOUT;

/// Records that are read at once. Reading is latency, mostly; more than this gains nothing on a
/// local disk and would only hold more of them in memory.
const READS_AT_ONCE: usize = 16;

/// A store. Cloning it is cheap; the clones are one store.
#[derive(Clone, Debug)]
pub struct Store {
    objects: Objects,
}

/// What there is in the store of one snapshot.
#[derive(Clone, Debug, Default)]
struct Found {
    begun: bool,
    manifest: bool,
    parts: Vec<Path>,
}

impl Store {
    /// Opens the store at a URL: `file:///…` or a plain path for a directory, which is created if
    /// need be; `memory:` for one that ends with its last clone.
    ///
    /// # Errors
    /// If the URL makes no sense, needs something this program is built without, or the directory
    /// cannot be created.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let objects = Objects::open(url).await?;
        Ok(Self { objects })
    }

    /// A store over an object store of the caller's own.
    pub fn over(objects: Arc<dyn ObjectStore>) -> Self {
        Self {
            objects: Objects::over(objects),
        }
    }

    /// The directory it is in, if it is in one.
    pub fn directory(&self) -> Option<&std::path::Path> {
        self.objects.root()
    }

    /// The same store with another bound than [`OPERATION_TIMEOUT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.objects.set_timeout(timeout);
        self
    }

    /// The name in the store of a process's part, for messages.
    pub fn part_file(snapshot: SnapshotId, process: &str) -> String {
        paths::part(snapshot, process).to_string()
    }

    /// Reads everything back: the whole log, and every snapshot that has begun with how it ended.
    ///
    /// # Errors
    /// If the store cannot be read, or a record of the log is torn, damaged or missing where there
    /// must be one. Where it is one of a snapshot, only that one cannot be read.
    pub async fn read_all(&self) -> Result<Records, StoreError> {
        // The snapshots first: their generations were in the log before them, so that whoever
        // writes on meanwhile cannot make the log look too short.
        let (snapshots, unreadable) = self.read_snapshots().await?;
        let log = self.read_log().await?;
        let last = log.iter().rev().find_map(|entry| entry.generation);
        for (begun, _) in &snapshots {
            if last.is_none_or(|last| last.generation < begun.generation) {
                let next = log.len() as u64 + 1;
                return Err(StoreError::Gap {
                    file: paths::log(next).to_string(),
                    cause: format!("{} is of {}", begun.snapshot, begun.generation),
                });
            }
        }
        Ok(Records {
            log,
            snapshots,
            unreadable,
        })
    }

    /// Creates a record, unless there is one in its place. Says that it has created it only if it
    /// reads it back: see `docs/store.md` on staging files.
    pub async fn create(&self, record: &Record) -> Outcome {
        let path = paths::record(record);
        let bytes = record::encode(record);
        let created = match self.objects.put(&path, bytes.clone()).await {
            Ok(()) => true,
            Err(StoreError::Exists { .. }) => false,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        let stands = match self.objects.get(&path).await {
            Ok(stands) => stands,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        if created && stands == bytes {
            return Outcome::Created;
        }
        match record::decode_like(record, &path, &stands) {
            Ok(stands) => Outcome::Exists(stands),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    /// Writes a process's part of a snapshot. Writing the very same bytes again is no error, for
    /// the outcome of the first try may have been unknown.
    ///
    /// # Errors
    /// If it is not there, it is not known whether it is, or another part stands in its place.
    pub async fn put_part(
        &self,
        snapshot: SnapshotId,
        process: &str,
        file: Bytes,
    ) -> Result<(), StoreError> {
        let path = paths::part(snapshot, process);
        match self.objects.put(&path, file.clone()).await {
            Err(StoreError::Exists { .. }) if self.objects.get(&path).await? == file => Ok(()),
            done => done,
        }
    }

    /// Reads a process's part of a snapshot.
    ///
    /// # Errors
    /// If it cannot be read; [`StoreError::Missing`] if it is not there.
    pub async fn get_part(&self, snapshot: SnapshotId, process: &str) -> Result<Bytes, StoreError> {
        self.objects.get(&paths::part(snapshot, process)).await
    }

    /// Reads how a snapshot ended.
    ///
    /// # Errors
    /// If it cannot be read or is damaged; [`StoreError::Missing`] if the snapshot has not ended.
    pub async fn manifest(&self, snapshot: SnapshotId) -> Result<Manifest, StoreError> {
        let path = paths::manifest(snapshot);
        record::manifest(snapshot, &path, &self.objects.get(&path).await?)
    }

    /// Reads that a snapshot has begun.
    ///
    /// # Errors
    /// If it cannot be read or is damaged; [`StoreError::Missing`] if it has never begun.
    pub async fn begun(&self, snapshot: SnapshotId) -> Result<Begun, StoreError> {
        let path = paths::begun(snapshot);
        record::begun(snapshot, &path, &self.objects.get(&path).await?)
    }

    /// The snapshots that have begun, in order, deleted ones left out.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotId>, StoreError> {
        let found = self.find_snapshots().await?.into_iter();
        Ok(found
            .filter(|(_, found)| found.begun)
            .map(|(snapshot, _)| snapshot)
            .collect())
    }

    /// Deletes a snapshot: the manifest, so that nobody restores from what is no longer whole;
    /// then the parts; then the record that it began. What is missing is passed over, and what
    /// cannot be deleted does not keep other parts.
    ///
    /// # Errors
    /// The first thing that could not be deleted, or may not have been. Whatever depends on it
    /// still stands, so that the deletion can be tried again.
    pub async fn delete_snapshot(&self, snapshot: SnapshotId) -> Result<(), StoreError> {
        let folder = paths::snapshot(snapshot);
        self.objects.delete(&paths::manifest(snapshot)).await?;
        self.objects.sync(&folder).await?;
        let mut failed = None;
        for path in self.objects.list(&folder).await? {
            if paths::is_part(&path)
                && let Err(error) = self.objects.delete(&path).await
            {
                failed.get_or_insert(error);
            }
        }
        match failed {
            Some(error) => Err(error),
            None => self.objects.delete(&paths::begun(snapshot)).await,
        }
    }

    /// Deletes what writers that were killed have left: staging files of at least this age. A
    /// collector passes [`STAGING_AGE`] at its start; zero is for when nobody else writes.
    /// Answers with the names of what it has deleted.
    ///
    /// # Errors
    /// If the store's directory cannot be read.
    pub async fn sweep_staging(&self, age_min: Duration) -> Result<Vec<String>, StoreError> {
        self.objects.sweep(age_min).await
    }

    async fn read_log(&self) -> Result<Vec<LogEntry>, StoreError> {
        let listed = self.objects.list(&paths::log_folder()).await?;
        let mut numbers: Vec<u64> = listed.iter().filter_map(paths::log_number).collect();
        numbers.sort_unstable();
        for (expected, &number) in (1..).zip(&numbers) {
            if number != expected {
                return Err(StoreError::Gap {
                    file: paths::log(expected).to_string(),
                    cause: format!("{} is there", paths::log(number)),
                });
            }
        }
        let reads = numbers.into_iter().map(|number| async move {
            let path = paths::log(number);
            record::log(number, &path, &self.objects.get(&path).await?)
        });
        stream::iter(reads)
            .buffered(READS_AT_ONCE)
            .try_collect()
            .await
    }

    /// The records of all snapshots, and which cannot be read, and why.
    async fn read_snapshots(
        &self,
    ) -> Result<
        (
            Vec<(Begun, Option<Manifest>)>,
            BTreeMap<SnapshotId, Unreadable>,
        ),
        StoreError,
    > {
        let found = self.find_snapshots().await?.into_iter();
        let reads = found.map(|(snapshot, found)| async move {
            (snapshot, self.read_snapshot(snapshot, found).await)
        });
        let mut reads = stream::iter(reads).buffered(READS_AT_ONCE);
        let (mut snapshots, mut unreadable) = (Vec::new(), BTreeMap::new());
        while let Some((snapshot, read)) = reads.next().await {
            match read {
                Ok(read) => snapshots.extend(read),
                Err(error @ (StoreError::Damaged { .. } | StoreError::Missing { .. })) => {
                    let generation = self.generation_of(snapshot).await;
                    let why = error.to_string();
                    unreadable.insert(snapshot, Unreadable { generation, why });
                }
                Err(error) => return Err(error),
            }
        }
        Ok((snapshots, unreadable))
    }

    /// The generation of a snapshot, if one of its records can be read.
    async fn generation_of(&self, snapshot: SnapshotId) -> Option<Generation> {
        match self.begun(snapshot).await {
            Ok(begun) => Some(begun.generation),
            Err(_) => Some(self.manifest(snapshot).await.ok()?.generation),
        }
    }

    /// Reads the records of a snapshot. Whoever only looks may meet a deletion under way, in
    /// which the manifest goes first and the begin record last.
    async fn read_snapshot(
        &self,
        snapshot: SnapshotId,
        found: Found,
    ) -> Result<Option<(Begun, Option<Manifest>)>, StoreError> {
        if !found.begun && (!found.manifest || found.parts.is_empty()) {
            // Leftovers of a deleted snapshot, written by somebody who did not know.
            return Ok(None);
        }
        let manifest = match self.manifest(snapshot).await {
            Ok(manifest) => Some(manifest),
            Err(StoreError::Missing { .. }) => None,
            Err(error) => return Err(error),
        };
        match self.begun(snapshot).await {
            Ok(begun) => Ok(Some((begun, manifest))),
            // A deletion was faster than this look, unless the manifest is there still.
            Err(error @ StoreError::Missing { .. }) => match self.manifest(snapshot).await {
                Err(StoreError::Missing { .. }) => Ok(None),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    async fn find_snapshots(&self) -> Result<BTreeMap<SnapshotId, Found>, StoreError> {
        let mut snapshots: BTreeMap<SnapshotId, Found> = BTreeMap::new();
        for path in self.objects.list(&paths::snapshots_folder()).await? {
            let Some(snapshot) = paths::snapshot_of(&path) else {
                continue;
            };
            let found = snapshots.entry(snapshot).or_default();
            if path == paths::begun(snapshot) {
                found.begun = true;
            } else if path == paths::manifest(snapshot) {
                found.manifest = true;
            } else if paths::is_part(&path) {
                found.parts.push(path);
            }
        }
        Ok(snapshots)
    }
}

#[cfg(test)]
mod tests;
