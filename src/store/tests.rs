//! The store keeps what it was given, says when it has not, and waits for nothing for ever.

mod deletion;
mod faulty;

use std::fs;
use std::path::Path as FilePath;
use std::time::Instant;

use futures::future::join_all;
use object_store::memory::InMemory;
use tempfile::TempDir;
use url::Url;

use super::*;
use crate::protocol::application::Quantities;
use crate::protocol::ids::{Generation, Term};
use crate::protocol::mode::Mode;
use crate::protocol::records::{End, GenerationEntry};
use faulty::{Fault, Faulty};

const S1: SnapshotId = SnapshotId::new(1);
const S2: SnapshotId = SnapshotId::new(2);

async fn directory() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().to_str().unwrap()).await.unwrap();
    (folder, store)
}

fn faulty(fault: Fault) -> Store {
    let inner = InMemory::new();
    Store::over(Arc::new(Faulty { inner, fault }))
}

fn log(number: u64, nonce: u64) -> Record {
    Record::Log(LogEntry {
        number,
        term: Term::new(number),
        nonce,
        topology: 0xfeed,
        generation: Some(GenerationEntry {
            generation: Generation::new(number),
            restored: SnapshotId::new(0),
        }),
    })
}

fn begun(snapshot: SnapshotId) -> Record {
    Record::Begun(Begun {
        snapshot,
        generation: Generation::new(1),
        mode: Mode::Classic,
        term: Term::new(1),
        nonce: 1,
    })
}

fn manifest(snapshot: SnapshotId, nonce: u64) -> Record {
    Record::Manifest(Box::new(Manifest {
        snapshot,
        generation: Generation::new(1),
        term: Term::new(1),
        nonce,
        mode: Mode::Classic,
        topology: 0xfeed,
        end: End::Complete {
            parts: Vec::new(),
            expected: Quantities::from([("money".to_owned(), 400)]),
            elapsed_ms: 12,
        },
    }))
}

async fn create(store: &Store, record: Record) {
    assert_eq!(store.create(&record).await, Outcome::Created);
}

/// A log of one generation, `s1` complete with two parts, `s2` open.
async fn fill(store: &Store) {
    create(store, log(1, 7)).await;
    create(store, begun(S1)).await;
    store
        .put_part(S1, "alice", Bytes::from_static(b"a"))
        .await
        .unwrap();
    store
        .put_part(S1, "Bob", Bytes::from_static(b"b"))
        .await
        .unwrap();
    create(store, manifest(S1, 7)).await;
    create(store, begun(S2)).await;
}

fn files(root: &FilePath) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&path).iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.push(name);
        }
    }
    found.sort_unstable();
    found
}

#[tokio::test]
async fn what_was_created_is_read_back_in_order() {
    let (folder, store) = directory().await;
    for store in [store, Store::open("memory:").await.unwrap()] {
        assert_eq!(store.read_all().await.unwrap(), Records::default());
        fill(&store).await;
        for number in 2..=11 {
            create(&store, log(number, 7)).await;
        }
        let read = store.read_all().await.unwrap();
        let numbers: Vec<_> = read.log.iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, (1..=11).collect::<Vec<_>>());
        let ended: Vec<_> = read
            .snapshots
            .iter()
            .map(|(begun, end)| (begun.snapshot, end.is_some()))
            .collect();
        assert_eq!(ended, [(S1, true), (S2, false)]);
        assert_eq!(store.get_part(S1, "Bob").await.unwrap(), "b");
        assert_eq!(store.snapshots().await.unwrap(), [S1, S2]);
    }
    let names = files(folder.path());
    assert!(
        names.contains(&"snapshots/s1/_42ob.part".to_owned()),
        "{names:?}"
    );
    assert!(!names.iter().any(|name| name.contains('#')), "{names:?}");
}

#[tokio::test]
async fn of_many_creators_one_creates_and_the_others_read_what_it_wrote() {
    let (_folder, store) = directory().await;
    let records: Vec<_> = (0..8).map(|nonce| manifest(S1, nonce)).collect();
    let outcomes = join_all(records.iter().map(|record| store.create(record))).await;
    let created: Vec<_> = (0..8)
        .filter(|&n| outcomes[n] == Outcome::Created)
        .collect();
    let [winner] = created[..] else {
        panic!("created by {created:?}");
    };
    for (loser, outcome) in outcomes.iter().enumerate().filter(|&(n, _)| n != winner) {
        assert_eq!(
            *outcome,
            Outcome::Exists(records[winner].clone()),
            "{loser}"
        );
    }
    let again = store.create(&records[winner]).await;
    assert_eq!(again, Outcome::Exists(records[winner].clone()));
}

#[tokio::test]
async fn a_create_that_left_another_record_there_has_not_created() {
    let other = String::from_utf8(record::encode(&manifest(S1, 9)).to_vec()).unwrap();
    let store = faulty(Fault::Replaced(
        "manifest",
        Box::leak(other.into_boxed_str()),
    ));
    let outcome = store.create(&manifest(S1, 1)).await;
    assert_eq!(outcome, Outcome::Exists(manifest(S1, 9)));
    let store = faulty(Fault::Replaced("manifest", "{\"for"));
    let Outcome::Failed(reason) = store.create(&manifest(S1, 1)).await else {
        panic!("half a record is no record");
    };
    assert!(
        reason.starts_with("snapshots/s1/manifest.json is torn"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_full_disk_fails_the_operation_and_names_the_file() {
    let store = faulty(Fault::Full("s1"));
    let Outcome::Failed(reason) = store.create(&begun(S1)).await else {
        panic!("there was no room");
    };
    assert_eq!(
        reason,
        "cannot create snapshots/s1/begun.json: no storage space"
    );
    let error = store
        .put_part(S1, "alice", Bytes::from_static(b"a"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot create snapshots/s1/alice.part: no storage space"
    );
    create(&store, begun(S2)).await;
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_given_up_on() {
    let store = faulty(Fault::Silent("s1")).with_timeout(Duration::from_millis(20));
    let asked = Instant::now();
    let error = store.get_part(S1, "alice").await.unwrap_err();
    let text = "cannot read snapshots/s1/alice.part: the store does not answer";
    assert_eq!(error.to_string(), text);
    assert!(matches!(store.create(&begun(S1)).await, Outcome::Failed(_)));
    let put = store.put_part(S1, "alice", Bytes::new()).await;
    assert!(matches!(put, Err(StoreError::TimedOut { .. })));
    assert!(asked.elapsed() < OPERATION_TIMEOUT / 2);
    create(&store, begun(S2)).await;
}

#[tokio::test]
async fn a_part_is_never_overwritten_but_may_be_put_again() {
    let (_folder, store) = directory().await;
    let put = async |bytes| store.put_part(S1, "alice", Bytes::from_static(bytes)).await;
    put(b"one").await.unwrap();
    put(b"one").await.unwrap();
    let file = "snapshots/s1/alice.part".to_owned();
    assert_eq!(put(b"other").await, Err(StoreError::Exists { file }));
    assert_eq!(store.get_part(S1, "alice").await.unwrap(), "one");
    let file = "snapshots/s1/Alice.part".replace('A', "_41");
    assert_eq!(
        store.get_part(S1, "Alice").await,
        Err(StoreError::Missing { file })
    );
}

#[tokio::test]
async fn a_torn_record_is_never_taken_for_none() {
    let (folder, store) = directory().await;
    fill(&store).await;
    for name in [
        "log/1.json",
        "snapshots/s1/begun.json",
        "snapshots/s1/manifest.json",
    ] {
        let file = folder.path().join(name);
        let whole = fs::read(&file).unwrap();
        for length in 0..whole.len() {
            fs::write(&file, &whole[..length]).unwrap();
            let error = match store.read_all().await {
                Err(error) => error.to_string(),
                // The others can be read.
                Ok(mut records) => {
                    let read = records.snapshots.iter().map(|(begun, _)| begun.snapshot);
                    assert!(!records.log.is_empty() && read.eq([S2]));
                    let unreadable = records.unreadable.remove(&S1).unwrap();
                    assert_eq!(
                        unreadable.generation,
                        Some(Generation::new(1)),
                        "as the other says"
                    );
                    unreadable.why
                }
            };
            assert!(
                error.starts_with(&format!("{name} is torn")),
                "{length}: {error}"
            );
        }
        fs::write(&file, &whole).unwrap();
        assert!(store.read_all().await.unwrap().unreadable.is_empty());
    }
    fs::write(folder.path().join("snapshots/s1/manifest.json"), b"").unwrap();
    assert!(matches!(
        store.manifest(S1).await,
        Err(StoreError::Damaged { .. })
    ));
    let Outcome::Failed(reason) = store.create(&manifest(S1, 1)).await else {
        panic!("something stands there");
    };
    assert_eq!(
        reason,
        "snapshots/s1/manifest.json is torn or damaged: it is empty"
    );
}

#[tokio::test]
async fn a_hole_in_the_records_is_an_error_that_names_the_file() {
    let (folder, store) = directory().await;
    fill(&store).await;
    for number in 2..=3 {
        create(&store, log(number, 7)).await;
    }
    let without = async |name: &str| {
        let file = folder.path().join(name);
        let kept = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let read = store.read_all().await;
        fs::write(&file, kept).unwrap();
        match read {
            Ok(mut records) => match records.unreadable.remove(&S1) {
                Some(unreadable) => Err(unreadable.why),
                None => Ok(records),
            },
            Err(error) => Err(error.to_string()),
        }
    };
    for name in ["log/1.json", "log/2.json", "snapshots/s1/begun.json"] {
        let error = without(name).await.unwrap_err();
        assert!(error.starts_with(&format!("{name} is missing")), "{error}");
    }
    // The last record of the log is missed if a snapshot of its generation has begun.
    let mut of_g4 = begun(SnapshotId::new(3));
    if let Record::Begun(begun) = &mut of_g4 {
        begun.generation = Generation::new(4);
    }
    create(&store, log(4, 7)).await;
    create(&store, of_g4).await;
    let error = without("log/4.json").await.unwrap_err();
    assert_eq!(
        error,
        "log/4.json is missing from the store, though s3 is of g4"
    );
    // A snapshot without manifest has not ended: that is no fault.
    let read = without("snapshots/s1/manifest.json").await.unwrap();
    assert_eq!(read.snapshots[0].1, None);
}

#[tokio::test]
async fn a_path_below_a_regular_file_is_refused_with_the_reason() {
    let (folder, store) = directory().await;
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    for below in [file.clone(), file.join("store")] {
        let url = below.to_str().unwrap().to_owned();
        let error = Store::open(&url).await.unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("the store '{url}' cannot be opened: ")),
            "{error}"
        );
    }
    // A file where a folder should be is not an empty folder.
    fs::rename(&file, folder.path().join("snapshots")).unwrap();
    let error = store.read_all().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot list snapshots: "), "{error}");
    let Outcome::Failed(reason) = store.create(&begun(S1)).await else {
        panic!("there is no such folder");
    };
    assert!(
        reason.starts_with("cannot create snapshots/s1/begun.json: "),
        "{reason}"
    );
    assert!(reason.contains("ot a directory"), "{reason}");
}

#[tokio::test]
async fn a_store_that_is_gone_is_not_an_empty_one() {
    let (folder, store) = directory().await;
    fill(&store).await;
    folder.close().unwrap();
    assert!(matches!(
        store.read_all().await,
        Err(StoreError::Failed { .. })
    ));
}

#[tokio::test]
async fn urls_name_a_directory_or_say_what_is_lacking() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a b/c#1");
    let url = Url::from_file_path(&deep).unwrap();
    fill(&Store::open(url.as_str()).await.unwrap()).await;
    assert!(deep.join("log/1.json").exists());
    let refusal = async |url: &str| Store::open(url).await.unwrap_err().to_string();
    let error = refusal("s3://bucket/job").await;
    assert!(
        error.contains("'s3://bucket/job'") && error.contains("feature 'aws'"),
        "{error}"
    );
    assert!(refusal("gs://bucket").await.contains("feature 'gcp'"));
    assert!(
        refusal("ftp://host/job")
            .await
            .contains("nothing is known of ftp:")
    );
    assert!(refusal("file://relative/path").await.contains("file:///"));
    assert!(refusal("").await.contains("empty"));
}
