//! Deleting snapshots and sweeping what killed writers have left.

use std::fs;

use super::*;
use crate::protocol::cut::Facts;
use crate::protocol::events::StoredPart;
use crate::protocol::ids::ProcessId;
use crate::protocol::topology::Topology;

#[tokio::test]
async fn deleting_leaves_nothing_and_minds_nothing_missing() {
    let (folder, store) = directory().await;
    fill(&store).await;
    store.delete_snapshot(S1).await.unwrap();
    assert_eq!(
        files(folder.path()),
        ["log/1.json", "snapshots/s2/begun.json"]
    );
    assert!(!folder.path().join("snapshots/s1").exists());
    store.delete_snapshot(S1).await.unwrap();
    fs::remove_dir_all(folder.path().join("snapshots/s2")).unwrap();
    store.delete_snapshot(S2).await.unwrap();
    assert_eq!(store.snapshots().await.unwrap(), []);
}

#[tokio::test]
async fn a_deletion_that_fails_leaves_what_depends_on_it() {
    let store = faulty(Fault::Undeletable("manifest"));
    fill(&store).await;
    let error = store.delete_snapshot(S1).await.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot delete snapshots/s1/manifest.json"),
        "{error}"
    );
    assert_eq!(store.get_part(S1, "alice").await.unwrap(), "a");

    let store = faulty(Fault::Undeletable("_42ob"));
    fill(&store).await;
    let error = store.delete_snapshot(S1).await.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot delete snapshots/s1/_42ob.part"),
        "{error}"
    );
    assert!(matches!(
        store.get_part(S1, "alice").await,
        Err(StoreError::Missing { .. })
    ));
    assert!(matches!(
        store.manifest(S1).await,
        Err(StoreError::Missing { .. })
    ));
    assert!(store.begun(S1).await.is_ok());
}

#[tokio::test]
async fn what_a_zombie_writes_into_a_deleted_snapshot_is_passed_over() {
    let (_folder, store) = directory().await;
    fill(&store).await;
    store.delete_snapshot(S1).await.unwrap();
    store
        .put_part(S1, "alice", Bytes::from_static(b"late"))
        .await
        .unwrap();
    assert_eq!(store.read_all().await.unwrap().snapshots.len(), 1);
    store.delete_snapshot(S1).await.unwrap();
    create(&store, manifest(S1, 1)).await;
    assert_eq!(store.read_all().await.unwrap().snapshots.len(), 1);
}

#[tokio::test]
async fn only_old_staging_files_are_swept() {
    let (folder, store) = directory().await;
    fill(&store).await;
    let written = files(folder.path());
    let left = [
        "log/1.json#1",
        "snapshots/s1/alice.part#1",
        "snapshots/s9/manifest.json#2",
    ];
    fs::create_dir(folder.path().join("snapshots/s9")).unwrap();
    for name in left {
        fs::write(folder.path().join(name), b"half").unwrap();
    }
    fs::write(folder.path().join("log/notes#1"), b"a stranger's").unwrap();
    assert_eq!(
        store.sweep_staging(STAGING_AGE).await.unwrap(),
        Vec::<String>::new()
    );
    let old = fs::File::options()
        .append(true)
        .open(folder.path().join(left[1]))
        .unwrap();
    old.set_modified(std::time::SystemTime::now() - STAGING_AGE)
        .unwrap();
    assert_eq!(store.sweep_staging(STAGING_AGE).await.unwrap(), [left[1]]);
    assert_eq!(store.read_all().await.unwrap().snapshots.len(), 2);
    assert_eq!(
        store.sweep_staging(Duration::ZERO).await.unwrap(),
        [left[0], left[2]]
    );
    fs::remove_file(folder.path().join("log/notes#1")).unwrap();
    assert_eq!(files(folder.path()), written);
}

#[tokio::test]
async fn a_snapshot_that_is_deleted_while_it_is_verified_is_gone_and_not_damaged() {
    let names = vec!["alice".to_owned()];
    let topology = Topology::new(names, Vec::new()).unwrap();
    let facts = Facts {
        process: ProcessId::new(0),
        outputs: Vec::new(),
        inputs: Vec::new(),
        in_state: Quantities::new(),
        in_channels: Quantities::new(),
        initial: Quantities::new(),
        clock: None,
    };
    let part = StoredPart {
        bytes: 1,
        checksum: 0,
        facts,
    };
    for fault in [Fault::Retired("alice"), Fault::Undeletable("nothing")] {
        let is_retired = matches!(fault, Fault::Retired(_));
        let store = faulty(fault);
        create(&store, log(1, 7)).await;
        create(&store, begun(S1)).await;
        let put = store.put_part(S1, "alice", Bytes::from_static(b"a")).await;
        put.unwrap();
        let Record::Manifest(mut manifest) = manifest(S1, 7) else {
            unreachable!("it is one");
        };
        if let End::Complete { parts, .. } = &mut manifest.end {
            parts.push(part.clone());
        }
        create(&store, Record::Manifest(manifest)).await;
        match verify(&store, &topology, S1).await {
            Err(StoreError::Missing { file }) => {
                assert!(is_retired && file.ends_with("s1/manifest.json"), "{file}");
            }
            Ok(verified) => assert!(!is_retired && !verified.holds, "{verified}"),
            Err(error) => panic!("{error}"),
        }
    }
}
