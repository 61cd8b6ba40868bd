//! Files of a snapshot that are torn, damaged, swapped or gone.

use std::fs;

use cutline::check::PartState;
use cutline::protocol::events::StoredPart;
use cutline::protocol::ids::{ProcessId, SnapshotId};
use cutline::store::{StoreError, verify};

use crate::handmade::{Books, S1, Stored, money, topology};
use crate::only;

#[tokio::test]
async fn a_torn_part_is_caught_by_intact() {
    let stored = Stored::new(&Books::right()).await;
    let whole = fs::read(stored.file("bob.part")).unwrap();
    for length in 0..whole.len() {
        fs::write(stored.file("bob.part"), &whole[..length]).unwrap();
        let verified = stored.verify().await;
        only(
            &verified,
            "intact",
            "snapshots/s1/bob.part: the part is torn",
        );
        assert_eq!(verified.parts[1].state, PartState::Damaged);
    }
}

#[tokio::test]
async fn a_flipped_bit_is_caught_by_intact() {
    let stored = Stored::new(&Books::right()).await;
    let whole = fs::read(stored.file("alice.part")).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(stored.file("alice.part"), damaged).unwrap();
        only(
            &stored.verify().await,
            "intact",
            "snapshots/s1/alice.part: the part",
        );
    }
}

#[tokio::test]
async fn a_sound_part_in_the_wrong_place_is_caught_by_intact() {
    let stored = Stored::new(&Books::right()).await;
    let other = Books {
        alice: 61,
        ..Books::right()
    };
    let other = Stored::new(&other).await;
    fs::copy(other.file("alice.part"), stored.file("alice.part")).unwrap();
    only(
        &stored.verify().await,
        "intact",
        "alice.part: the part is another",
    );

    // Even if the manifest agrees with it.
    let other = topology();
    let mut of_s2 = Books::right().part(&other, ProcessId::new(0));
    of_s2.part.snapshot = SnapshotId::new(2);
    let file = of_s2.encode();
    let noted = of_s2.stored(&file);
    let stored = Stored::tampered(&Books::right(), |parts| parts[0] = noted).await;
    fs::write(stored.file("alice.part"), file).unwrap();
    only(
        &stored.verify().await,
        "intact",
        "this is the part of p1 in s2, not of p1 in s1",
    );
}

#[tokio::test]
async fn a_manifest_that_lies_about_a_part_is_caught_by_intact() {
    let lie = |parts: &mut Vec<StoredPart>| parts[1].facts.in_state = money(0);
    let stored = Stored::tampered(&Books::right(), lie).await;
    let verified = stored.verify().await;
    assert!(
        verified.verdicts.failing().contains(&"intact"),
        "{verified}"
    );
    assert!(
        verified.parts[1]
            .fault
            .as_ref()
            .unwrap()
            .contains("what the manifest says of it")
    );
}

#[tokio::test]
async fn a_missing_part_is_caught_by_complete() {
    let stored = Stored::new(&Books::right()).await;
    fs::remove_file(stored.file("bob.part")).unwrap();
    let verified = stored.verify().await;
    only(
        &verified,
        "complete",
        "snapshots/s1/bob.part is missing from the store",
    );
    assert_eq!(verified.parts[1].state, PartState::Missing);
}

#[tokio::test]
async fn a_record_that_is_missing_or_torn_is_an_error_that_names_it() {
    let stored = Stored::new(&Books::right()).await;
    for name in ["begun.json", "manifest.json"] {
        let whole = fs::read(stored.file(name)).unwrap();
        let failure = async || {
            verify(&stored.store, &stored.topology, S1)
                .await
                .unwrap_err()
        };
        for length in 0..whole.len() {
            fs::write(stored.file(name), &whole[..length]).unwrap();
            let error = failure().await.to_string();
            assert!(
                error.starts_with(&format!("snapshots/s1/{name} is torn")),
                "{error}"
            );
            fs::write(stored.file(name), &whole).unwrap();
        }
        fs::remove_file(stored.file(name)).unwrap();
        let file = format!("snapshots/s1/{name}");
        assert_eq!(failure().await, StoreError::Missing { file });
        fs::write(stored.file(name), &whole).unwrap();
    }
    assert!(stored.verify().await.holds);
}
