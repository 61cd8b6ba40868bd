//! PLACEHOLDER until the store's branch is merged: the calls the collector makes, on plain files.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use url::Url;

use crate::protocol::ids::SnapshotId;
use crate::protocol::records::{LogEntry, Outcome, Record, Records};

/// Placeholder.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(String);

/// Placeholder.
#[derive(Clone, Debug)]
pub struct Store(PathBuf);

#[allow(missing_docs, clippy::unused_async, clippy::missing_errors_doc)]
impl Store {
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let url = Url::parse(url).map_err(|error| StoreError(error.to_string()))?;
        let dir = url
            .to_file_path()
            .map_err(|()| StoreError("no file URL".into()))?;
        fs::create_dir_all(dir.join("log")).map_err(|error| StoreError(error.to_string()))?;
        Ok(Self(dir))
    }

    pub async fn read_all(&self) -> Result<Records, StoreError> {
        let mut records = Records::default();
        while let Some(entry) = read::<LogEntry>(&self.log(records.log.len() as u64 + 1)) {
            records.log.push(entry);
        }
        for id in 1.. {
            let dir = self.snapshot(SnapshotId::new(id));
            let Some(begun) = read(&dir.join("begun.json")) else {
                break;
            };
            records
                .snapshots
                .push((begun, read(&dir.join("manifest.json"))));
        }
        Ok(records)
    }

    pub async fn create(&self, record: &Record) -> Outcome {
        let (path, json) = match record {
            Record::Log(entry) => (self.log(entry.number), serde_json::to_vec(entry)),
            Record::Begun(begun) => (
                self.snapshot(begun.snapshot).join("begun.json"),
                serde_json::to_vec(begun),
            ),
            Record::Manifest(end) => (
                self.snapshot(end.snapshot).join("manifest.json"),
                serde_json::to_vec(end),
            ),
        };
        let _ = path.parent().map(fs::create_dir_all);
        let Ok(mut file) = fs::File::create_new(&path) else {
            return match record {
                Record::Log(_) => Outcome::Exists(Record::Log(read(&path).expect("placeholder"))),
                Record::Begun(_) => {
                    Outcome::Exists(Record::Begun(read(&path).expect("placeholder")))
                }
                Record::Manifest(_) => {
                    Outcome::Exists(Record::Manifest(read(&path).expect("placeholder")))
                }
            };
        };
        match file.write_all(&json.expect("placeholder")) {
            Ok(()) => Outcome::Created,
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    pub async fn delete_snapshot(&self, snapshot: SnapshotId) -> Result<(), StoreError> {
        let deleted = fs::remove_dir_all(self.snapshot(snapshot));
        deleted.map_err(|error| StoreError(error.to_string()))
    }

    fn log(&self, number: u64) -> PathBuf {
        self.0.join(format!("log/{number}.json"))
    }

    fn snapshot(&self, snapshot: SnapshotId) -> PathBuf {
        self.0.join(format!("snapshots/{}", snapshot.get()))
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
