//! Markers that overtake on real nodes: under a process that does not take its messages a snapshot
//! has shares at both ends of its channels, and a restore from it loses and doubles nothing.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::running::Up;
use crate::stage::{Stage, until};

/// A small window, so that what a stopped process does not take soon waits in the outboxes of the
/// others.
const JOB: &str = r#"
processes = 3
topology = "mesh"
silence = "60s"
[application]
name = "bank"
balance = 5000
amount_max = 1
every_ms = 1
[snapshots]
interval = "0s"
[store]
retain = 1000
[limits]
window_messages = 20
"#;

/// Who is stopped while a snapshot begins; p1 initiates, and its marker comes to p3 last.
const STOPPED: &str = "p3";

/// Messages that p1 sends in a time that is longer than the limit below, at one a millisecond,
/// and of which half go to p3: more than its window.
const MANY: u64 = 100;

const ROUNDS: usize = 10;

/// A snapshot that began while nobody was stopped in the right moment is taken again, so often.
const TRIES: usize = 20;

fn sent(up: &Up<'_>) -> u64 {
    let status = up.ask(&["status", "--format", "json"]).yes().json();
    status["processes"][0]["sent"].as_u64().unwrap()
}

fn waits_for_many_sends(up: &Up<'_>) {
    let before = sent(up);
    until("messages of p1", || {
        (sent(up) >= before + MANY).then_some(())
    });
}

/// What the two ends of all channels recorded.
fn shares(up: &Up<'_>, snapshot: &str) -> (u64, u64) {
    let shown = up.ask(&["show", snapshot, "--format", "json"]).yes().json();
    let sum = |share: &str| -> u64 {
        let channels = shown["channels"].as_array().unwrap().iter();
        channels
            .map(|channel| channel[share].as_u64().unwrap())
            .sum()
    };
    (sum("sender_share"), sum("receiver_share"))
}

/// Takes a snapshot that begins while a process is stopped, and answers with its id.
fn snapshot(up: &mut Up<'_>, by: &[&str]) -> String {
    let stopped = up.program(STOPPED);
    assert!(stopped.signal(Signal::SIGSTOP).unwrap());
    waits_for_many_sends(up);
    let before = up.events().len();
    let asked = up
        .ask(&[&["snapshot", "--format", "json"], by].concat())
        .yes();
    let id = asked.json()["snapshot"].as_str().unwrap().to_owned();
    waits_for_many_sends(up);
    assert!(stopped.signal(Signal::SIGCONT).unwrap());
    let ended = up.event_after(before, "the end of the snapshot", |event| {
        event["snapshot"] == id.as_str() && ["complete", "aborted"].contains(&kind(event))
    });
    assert_eq!(kind(&ended), "complete", "{}", up.story());
    id
}

fn kind(event: &Value) -> &str {
    event["event"].as_str().unwrap_or_default()
}

fn taken_back_ten_times(by: &[&str]) {
    let stage = Stage::new();
    let mut up = stage.up("bank", JOB);
    up.runs();
    for round in 0..ROUNDS {
        let found = (0..TRIES).find_map(|_| {
            let id = snapshot(&mut up, by);
            let (sender, receiver) = shares(&up, &id);
            (sender > 0 && receiver > 0).then_some(id)
        });
        let id = found.unwrap_or_else(|| panic!("no share at both ends\n{}", up.story()));
        up.ask(&["verify", &id])
            .yes()
            .says(&["every verdict holds"]);
        let killed = ["p3", "p1", "p2"][round % 3];
        let before = up.events().len();
        assert!(up.program(killed).signal(Signal::SIGKILL).unwrap());
        let running = up.event_after(before, "the restore", |event| kind(event) == "running");
        assert_eq!(running["snapshot"], id.as_str(), "{}", up.story());
    }
    // A last cut by the plainest mode, after all of that.
    let last = up.ask(&["snapshot", "--mode", "classic", "--wait"]).yes();
    drop(last);
    up.ask(&["verify", "--all"])
        .yes()
        .says(&["every verdict holds on all"]);
    up.interrupt();
}

#[test]
fn unaligned_snapshots_under_a_stopped_process_are_exact_to_go_back_to() {
    taken_back_ten_times(&["--mode", "unaligned"]);
}

#[test]
fn so_are_aligned_ones_whose_limit_strikes() {
    taken_back_ten_times(&["--mode", "aligned", "--alignment-timeout", "30ms"]);
}

#[test]
fn under_a_stopped_process_an_aligned_one_without_limit_waits_and_then_has_empty_channels() {
    let stage = Stage::new();
    let mut up = stage.up("bank", JOB);
    up.runs();
    let id = snapshot(&mut up, &["--mode", "aligned"]);
    let shown = up.ask(&["show", &id, "--format", "json"]).yes().json();
    assert_eq!(shown["mode"], "aligned");
    for channel in shown["channels"].as_array().unwrap() {
        assert_eq!(channel["sender_share"], 0, "{channel}");
        let back = ["p2→p1", "p3→p1", "p3→p2"];
        let logged = back.contains(&channel["channel"].as_str().unwrap());
        assert!(logged || channel["receiver_share"] == 0, "{channel}");
    }
    up.ask(&["verify", &id]).yes();
    up.interrupt();
}

#[test]
fn a_job_goes_back_to_an_at_least_once_snapshot_with_a_warning_and_verify_says_no() {
    let stage = Stage::new();
    let mut up = stage.up("bank", JOB);
    up.runs();
    // Something is between its markers, sooner or later.
    let by = [
        "snapshot",
        "--mode",
        "at-least-once",
        "--wait",
        "--format",
        "json",
    ];
    let id = until("an inconsistent cut", || {
        let asked = up.ask(&by).yes().json();
        let id = asked["snapshot"].as_str().unwrap().to_owned();
        (up.ask(&["verify", &id]).code == 1).then_some(id)
    });
    up.ask(&["verify", &id])
        .no(&["at-least-once: not a consistent cut"]);
    let before = up.events().len();
    up.ask(&["restore", &id]).yes();
    let warned = up.event_after(before, "a warning", |event| kind(event) == "warning");
    assert!(warned["reason"].as_str().unwrap().contains("at-least-once"));
    // The job runs on, and what comes is consistent in itself, whatever was doubled.
    let later = up.ask(&[
        "snapshot",
        "--mode",
        "unaligned",
        "--wait",
        "--format",
        "json",
    ]);
    assert_eq!(later.yes().json()["state"], "complete");
    up.interrupt();
}
