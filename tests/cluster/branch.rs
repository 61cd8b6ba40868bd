//! A restore to an older snapshot begins a new branch: what comes after a crash is on that branch,
//! however new the snapshots of the abandoned one are.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::running::Up;
use crate::stage::Stage;

const JOB: &str = r#"
processes = 3
topology = "ring"
[application]
name = "bank"
every_ms = 2
[snapshots]
interval = "0s"
"#;

/// Kills a node, or the collector, and answers with what the job then runs.
fn crash(up: &mut Up<'_>, who: &str) -> Value {
    let before = up.events().len();
    assert!(up.program(who).signal(Signal::SIGKILL).unwrap());
    up.event_after(before, "the restore", |event| event["event"] == "running")
}

/// Goes back to a snapshot, and sees it told that the job runs: the answer may be faster.
fn restore(up: &mut Up<'_>, snapshot: &str, generation: &str) {
    let before = up.events().len();
    up.ask(&["restore", snapshot]).yes();
    let running = up.event_after(before, "the restore", |event| event["event"] == "running");
    assert_from(&running, generation, snapshot);
}

fn assert_from(running: &Value, generation: &str, snapshot: &str) {
    assert_eq!(
        (&running["generation"], &running["snapshot"]),
        (&generation.into(), &snapshot.into())
    );
}

#[test]
fn a_crash_after_a_restore_does_not_jump_onto_the_abandoned_branch() {
    let stage = Stage::new();
    let mut up = stage.up("bank", JOB);
    assert_from(&up.runs(), "g1", "s0");
    assert_eq!(
        [up.snapshot(), up.snapshot(), up.snapshot()],
        ["s1", "s2", "s3"]
    );
    restore(&mut up, "s1", "g2");
    assert_from(&crash(&mut up, "p2"), "g3", "s1");
    // Nor does a new collector think otherwise, which knows only what is in the store.
    // It says first that everyone still runs.
    assert_from(&crash(&mut up, "collector"), "g3", "s1");
    assert_from(&crash(&mut up, "p1"), "g4", "s1");
    // Nor the next start of the whole job.
    up.interrupt();
    let mut up = Up::start(&stage, "bank");
    assert_from(&up.runs(), "g5", "s1");
    // The new branch has snapshots of its own, with ids that nobody had before.
    assert_eq!(up.snapshot(), "s4");
    assert_from(&crash(&mut up, "p3"), "g6", "s4");
    // And the other can still be gone back to, by name.
    restore(&mut up, "s3", "g7");
    assert_from(&crash(&mut up, "p1"), "g8", "s3");
    up.ask(&["verify", "--all"])
        .yes()
        .says(&["every verdict holds on all 4"]);
    up.interrupt();
}

#[test]
fn without_any_snapshot_a_crash_leads_to_the_initial_state() {
    let stage = Stage::new();
    let mut up = stage.up("bank", JOB);
    up.runs();
    assert_from(&crash(&mut up, "p2"), "g2", "s0");
    assert_eq!(up.snapshot(), "s1");
    restore(&mut up, "s0", "g3");
    // On demand, too, and then it is where a crash leads.
    assert_from(&crash(&mut up, "p1"), "g4", "s0");
    assert_eq!(up.snapshot(), "s2");
    up.ask(&["verify", "--all"]).yes();
    up.interrupt();
}
