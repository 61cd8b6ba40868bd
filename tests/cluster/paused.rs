//! A node that is stopped past its deadline and wakes up later, when its place is taken: it
//! changes nothing inside the job, ends, and says why.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::stage::{Stage, until};

/// Well above what a busy machine keeps a node waiting, well below what a test may take.
const SILENCE: &str = "1500ms";

fn job(silence: &str) -> String {
    format!(
        "processes = 3\ntopology = \"mesh\"\nsilence = \"{silence}\"\n\
         [application]\nname = \"bank\"\nevery_ms = 2\n\
         [snapshots]\ninterval = \"100ms\"\nfailures_tolerated = 100\n\
         [store]\nretain = 1000\n"
    )
}

fn is(event: &Value, kind: &str, who: &str) -> bool {
    event["event"] == kind && (event["who"] == who || event["process"] == who)
}

#[test]
fn a_node_that_was_stopped_too_long_is_replaced_and_refused_when_it_wakes() {
    let stage = Stage::new();
    let mut up = stage.up("bank", &job(SILENCE));
    up.runs();
    up.completes(2);

    // Twice: as any process, and as the one that initiates.
    for who in ["p2", "p1"] {
        let before = up.events().len();
        let old = up.program(who);
        assert!(old.signal(Signal::SIGSTOP).unwrap());
        // What was open then waits for it, in vain.
        let aborted = up.event_after(before, "an abort", |event| event["event"] == "aborted");
        up.event_after(before, "the replacement", |event| {
            is(event, "given-up", who)
        });
        let running = |event: &Value| event["event"] == "running";
        let restored = up.event_after(before, "the restore", running);
        assert!(old.exists(), "it is only stopped");
        assert_ne!(up.program(who).pid, old.pid);
        up.completes(2);

        let woken = up.events().len();
        up.ask(&["resume", who])
            .yes()
            .says(&["which has been replaced meanwhile"]);
        let ended = up.event_after(woken, "its end", |event| is(event, "given-up-ended", who));
        assert_eq!(ended["pid"], old.pid);
        assert_eq!(ended["how"], "failed with exit status 1");
        let log = fs::read_to_string(up.root().join(format!("logs/{who}.log"))).unwrap();
        assert_eq!(log.matches("declared lost").count(), 1, "{}", up.story());

        // Nothing happened inside the job on its account.
        up.completes(3);
        let now = up.events();
        let later = now[woken..]
            .iter()
            .filter(|event| running(event) || is(event, "lost", who));
        assert_eq!(later.count(), 0, "{}", up.story());
        let status = up.ask(&["status", "--format", "json"]).yes().json();
        assert_eq!(status["generation"], restored["generation"]);
        let snapshot = aborted["snapshot"].as_str().unwrap();
        let listed = up.ask(&["list", "--format", "json"]).yes().json();
        let listed = listed["snapshots"].as_array().unwrap();
        let row = listed.iter().find(|row| row["id"] == snapshot);
        assert!(row.is_none_or(|row| row["state"] == "aborted"), "{row:?}");
    }
    up.ask(&["verify", "--all"])
        .yes()
        .says(&["every verdict holds"]);
    up.interrupt();
}

#[test]
fn a_node_that_was_stopped_for_a_moment_goes_on() {
    let stage = Stage::new();
    let mut up = stage.up("bank", &job("60s"));
    up.runs();
    up.completes(2);
    let node = up.program("p3");
    assert!(node.signal(Signal::SIGSTOP).unwrap());
    until("the stop", || (!is_running(node.pid)).then_some(()));
    up.ask(&["resume", "p3"]).yes();
    up.completes(3);
    assert_eq!(up.program("p3").pid, node.pid);
    assert_eq!(
        (up.count("lost"), up.count("running")),
        (0, 1),
        "{}",
        up.story()
    );
    up.ask(&["verify", "--all"]).yes();
    up.interrupt();
}

fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    !rest.trim_start().starts_with(['T', 't'])
}

#[test]
fn a_node_that_hangs_when_the_collector_dies_is_replaced_though_it_never_joins_the_next() {
    let stage = Stage::new();
    let mut up = stage.up("bank", &job(SILENCE));
    up.runs();
    up.completes(1);

    let before = up.events().len();
    let hung = up.program("p3");
    assert!(hung.signal(Signal::SIGSTOP).unwrap());
    up.ask(&["kill", "collector"]).yes();
    up.event_after(before, "the replacement", |event| {
        is(event, "given-up", "p3")
    });
    up.event_after(before, "the restore", |event| event["event"] == "running");
    assert_ne!(up.program("p3").pid, hung.pid);
    up.completes(1);
    up.ask(&["verify", "--all"])
        .yes()
        .says(&["every verdict holds"]);
    up.interrupt();
}
