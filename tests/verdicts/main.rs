//! Verdicts can fail. Hand-made inconsistent snapshots, in a store as nodes and collector would
//! have written them: each fault is caught by the verdict that should catch it, and by no accident
//! of another.
#![allow(clippy::unwrap_used)]

mod files;
mod handmade;
#[path = "../traces/memory.rs"]
mod memory;
mod traced;

use std::fs;

use cutline::check::{Answer, Verdicts, Verified};
use cutline::protocol::events::StoredPart;
use cutline::protocol::ids::{Generation, ProcessId, Term};
use cutline::protocol::mode::Mode;
use cutline::protocol::records::{Begun, End, Outcome, Record};
use handmade::{Books, S1, Stored};

/// Exactly this verdict fails, with this evidence; every other one holds.
fn only(verified: &Verified, name: &str, evidence: &str) {
    for verdict in &verified.verdicts.0 {
        let expected = if verdict.name == name {
            Answer::No
        } else {
            Answer::Yes
        };
        assert_eq!(verdict.holds, expected, "{verified}");
    }
    let found = verified.verdicts.get(name).expect("a verdict of that name");
    assert!(found.evidence.contains(evidence), "{verified}");
    assert!(!verified.holds);
}

/// The same from the manifest alone, which knows nothing of the files.
fn only_in_manifest(verdicts: &Verdicts, name: &str) {
    assert_eq!(verdicts.failing(), [name], "{verdicts}");
    for verdict in &verdicts.0 {
        assert_eq!(
            verdict.holds == Answer::Unknown,
            verdict.name == "intact",
            "{verdicts}"
        );
    }
}

#[tokio::test]
async fn a_consistent_snapshot_passes_every_verdict() {
    let stored = Stored::new(&Books::right()).await;
    let verified = stored.verify().await;
    assert!(verified.holds);
    assert_eq!(
        verified.to_string(),
        format!(
            "s1 of g1, classic, complete: every verdict holds
verdict       holds    evidence
complete      yes      2 parts, 2 channels with both ends
intact        yes      2 files of {} bytes as their checksums say
non-negative  yes      8 handled of 12 sent
exact         yes      4 messages in 1 channel
conserved     yes      money: 160 in states + 40 in channels = 200",
            verified.parts.iter().map(|part| part.bytes).sum::<u64>()
        )
    );
    let verdicts = stored.judge_manifest();
    assert!(verdicts.hold(), "{verdicts}");
    assert_eq!(verdicts.get("intact").unwrap().holds, Answer::Unknown);
}

#[tokio::test]
async fn a_negative_channel_is_caught_by_non_negative() {
    let mut books = Books::right();
    books.channels.insert("bob→alice", (5, 6, vec![]));
    let stored = Stored::new(&books).await;
    let evidence = "bob→alice handled up to m6, sent up to m5";
    only(&stored.verify().await, "non-negative", evidence);
    only_in_manifest(&stored.judge_manifest(), "non-negative");
}

#[tokio::test]
async fn a_missing_message_is_caught_by_exact() {
    let mut books = Books::right();
    books.channels.insert("alice→bob", (7, 3, vec![4, 6, 7]));
    let stored = Stored::new(&books).await;
    only(&stored.verify().await, "exact", "alice→bob: m5 missing");
    only_in_manifest(&stored.judge_manifest(), "exact");
}

#[tokio::test]
async fn a_doubled_message_is_caught_by_exact() {
    let mut books = Books::right();
    books
        .channels
        .insert("alice→bob", (7, 3, vec![4, 5, 5, 6, 7]));
    let stored = Stored::new(&books).await;
    only(
        &stored.verify().await,
        "exact",
        "alice→bob: m5 recorded twice",
    );
    only_in_manifest(&stored.judge_manifest(), "exact");
}

#[tokio::test]
async fn a_wrong_total_is_caught_by_conserved() {
    for (alice, in_channels, expected, evidence) in [
        (
            61,
            40,
            200,
            "money: 161 in states + 40 in channels = 201, not 200",
        ),
        (
            60,
            39,
            200,
            "money: 160 in states + 39 in channels = 199, not 200",
        ),
        // Made money that the manifest was made to expect.
        (61, 40, 201, "= 201, but the initial states hold 200"),
    ] {
        let books = Books {
            alice,
            in_channels,
            expected,
            ..Books::right()
        };
        let stored = Stored::new(&books).await;
        only(&stored.verify().await, "conserved", evidence);
        only_in_manifest(&stored.judge_manifest(), "conserved");
    }
}

#[tokio::test]
async fn a_missing_process_or_end_of_a_channel_is_caught_by_complete() {
    let stored = Stored::tampered(&Books::right(), |parts| drop(parts.pop())).await;
    let verified = stored.verify().await;
    assert_eq!(verified.verdicts.failing(), ["complete"], "{verified}");
    assert_eq!(
        verified.verdicts.get("complete").unwrap().evidence,
        "bob has no part"
    );
    for unknown in ["non-negative", "exact", "conserved"] {
        assert_eq!(
            verified.verdicts.get(unknown).unwrap().holds,
            Answer::Unknown
        );
    }

    let cut = |parts: &mut Vec<StoredPart>| drop(parts[1].facts.inputs.pop());
    let verdicts = Stored::tampered(&Books::right(), cut)
        .await
        .judge_manifest();
    let evidence = &verdicts.get("complete").unwrap().evidence;
    assert_eq!(evidence, "alice→bob lacks its receiver's end");

    let twice = |parts: &mut Vec<StoredPart>| parts.push(parts[1].clone());
    let verdicts = Stored::tampered(&Books::right(), twice)
        .await
        .judge_manifest();
    let evidence = &verdicts.get("complete").unwrap().evidence;
    assert!(evidence.starts_with("bob has 2 parts"), "{evidence}");

    let stranger = |parts: &mut Vec<StoredPart>| parts[1].facts.process = ProcessId::new(8);
    let verdicts = Stored::tampered(&Books::right(), stranger)
        .await
        .judge_manifest();
    let evidence = &verdicts.get("complete").unwrap().evidence;
    assert!(
        evidence.contains("p9 has a part but is no process"),
        "{evidence}"
    );
}

#[tokio::test]
async fn a_snapshot_of_another_topology_is_caught_by_complete() {
    let mut stored = Stored::new(&Books::right()).await;
    stored.manifest.topology += 1;
    only_in_manifest(&stored.judge_manifest(), "complete");
}

/// The published mistake: a channel's content computed as what was sent minus what was received
/// balances on any cut at all. Here bob has received what alice never sent, a message is lost, an
/// end of a channel is lost, and a file is damaged, and the books balance.
#[tokio::test]
async fn conserved_alone_passes_on_a_snapshot_that_is_wrong_in_every_other_way() {
    let mut books = Books::right();
    books.channels.insert("alice→bob", (7, 3, vec![4, 5, 6]));
    books.channels.insert("bob→alice", (5, 9, vec![]));
    let stored = Stored::tampered(&books, |parts| {
        let end = parts[0].facts.outputs[0].clone();
        parts[0].facts.outputs.push(end);
    })
    .await;
    stored.change("alice.part", |bytes| bytes[30] ^= 1);
    let verified = stored.verify().await;
    let failing = ["complete", "intact", "non-negative", "exact"];
    assert_eq!(verified.verdicts.failing(), failing, "{verified}");
    let conserved = verified.verdicts.get("conserved").unwrap();
    assert_eq!(conserved.holds, Answer::Yes, "{verified}");
}

#[tokio::test]
async fn an_application_without_quantities_leaves_conserved_open() {
    let mut stored = Stored::new(&Books::right()).await;
    let End::Complete {
        parts, expected, ..
    } = &mut stored.manifest.end
    else {
        panic!("it was made complete");
    };
    expected.clear();
    for part in parts {
        part.facts.in_state.clear();
        part.facts.in_channels.clear();
        part.facts.initial.clear();
    }
    let verdicts = stored.judge_manifest();
    let conserved = verdicts.get("conserved").unwrap();
    assert_eq!(conserved.holds, Answer::Unknown);
    assert_eq!(conserved.evidence, "the application names no quantity");
    assert!(verdicts.hold());
}

#[tokio::test]
async fn absurd_numbers_in_a_manifest_are_judged_and_not_stumbled_over() {
    let mut books = Books::right();
    books.channels.insert("bob→alice", (u64::MAX, 0, vec![]));
    books
        .channels
        .insert("alice→bob", (0, u64::MAX, vec![u64::MAX - 1]));
    (books.alice, books.bob) = (i64::MAX, i64::MAX);
    let verified = Stored::new(&books).await.verify().await;
    let failing = ["non-negative", "exact", "conserved"];
    assert_eq!(verified.verdicts.failing(), failing, "{verified}");
}

#[tokio::test]
async fn an_aborted_snapshot_is_not_complete_and_says_why() {
    let mut stored = Stored::new(&Books::right()).await;
    stored.store.delete_snapshot(S1).await.unwrap();
    stored.manifest.end = End::Aborted {
        reason: "bob was lost".to_owned(),
    };
    let record = Record::Manifest(Box::new(stored.manifest.clone()));
    assert_eq!(stored.store.create(&record).await, Outcome::Created);
    let begun = Begun {
        snapshot: S1,
        generation: Generation::new(1),
        mode: Mode::Classic,
        term: Term::new(1),
        nonce: 1,
    };
    assert_eq!(
        stored.store.create(&Record::Begun(begun)).await,
        Outcome::Created
    );
    let verified = stored.verify().await;
    assert_eq!(verified.verdicts.failing(), ["complete"]);
    assert_eq!(verified.verdicts, stored.judge_manifest());
    assert!(
        verified
            .to_string()
            .starts_with("s1 of g1, classic, aborted: bob was lost\n")
    );
}

#[tokio::test]
async fn what_verify_says_has_a_stable_form_in_json() {
    let stored = Stored::new(&Books::right()).await;
    fs::remove_file(stored.file("bob.part")).unwrap();
    let verified = serde_json::to_value(stored.verify().await).unwrap();
    let bytes = verified["parts"][0]["bytes"].clone();
    let expected = serde_json::json!({
        "snapshot": "s1",
        "generation": "g1",
        "mode": "classic",
        "outcome": "complete",
        "reason": null,
        "holds": false,
        "verdicts": [
            {"name": "complete", "holds": "no",
             "evidence": "snapshots/s1/bob.part is missing from the store"},
            {"name": "intact", "holds": "yes",
             "evidence": format!("1 file of {bytes} bytes as their checksums say")},
            {"name": "non-negative", "holds": "yes", "evidence": "8 handled of 12 sent"},
            {"name": "exact", "holds": "yes", "evidence": "4 messages in 1 channel"},
            {"name": "conserved", "holds": "yes",
             "evidence": "money: 160 in states + 40 in channels = 200"},
        ],
        "quantities": {
            "money": {"in_states": 160, "in_channels": 40, "initial": 200, "expected": 200},
        },
        "parts": [
            {"process": "alice", "file": "snapshots/s1/alice.part", "bytes": bytes,
             "state": "intact", "fault": null},
            {"process": "bob", "file": "snapshots/s1/bob.part",
             "bytes": verified["parts"][1]["bytes"], "state": "missing",
             "fault": "snapshots/s1/bob.part is missing from the store"},
        ],
    });
    assert_eq!(verified, expected);
}
