//! Kills that need no particular point, and several at once.

use std::fs;

use cutline::hold::{held_path, order_path};
use nix::sys::signal::Signal;

use crate::stage::{Stage, until};

const JOB: &str = r#"
timeout = "90s"
[job]
processes = 4
topology = "mesh"
[job.application]
name = "bank"
every_ms = 2
[job.snapshots]
interval = "150ms"

[[step]]
do = "wait"
for = { running = true, snapshots = 2 }
"#;

const AFTERWARDS: &str = r#"
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "expect"
that = { restores = RESTORES, verdicts = "hold", quantities = { money = 4000 } }
"#;

fn afterwards(restores: &str) -> String {
    AFTERWARDS.replace("RESTORES", restores)
}

#[test]
fn two_nodes_die_at_once_and_are_taken_back_together() {
    let stage = Stage::new();
    let steps = r#"
[[step]]
do = "kill"
process = ["p1", "p3"]
[[step]]
do = "wait"
for = { joined = "p1" }
[[step]]
do = "wait"
for = { joined = "p3", running = true }
[[step]]
do = "kill"
process = ["p2", "p4"]
at_point = "recorded"
[[step]]
do = "wait"
for = { joined = "p2" }
[[step]]
do = "wait"
for = { joined = "p4", running = true }
"#;
    let ran = stage
        .run("two", &format!("{JOB}{steps}{}", afterwards("\">= 2\"")))
        .ok();
    assert_eq!(ran.count("died"), 4, "{ran}");
    assert!(ran.number("restores") <= 4, "at most one for each: {ran}");
}

#[test]
fn collector_and_node_die_together() {
    let stage = Stage::new();
    let one = |who: &str| {
        let kill = format!("[[step]]\ndo = \"kill\"\nprocess = [\"collector\", \"{who}\"]\n");
        let wait = "[[step]]\ndo = \"wait\"\nfor = { running = true }\n";
        let snapshot = "[[step]]\ndo = \"snapshot\"\nwait = true\n";
        format!("{kill}{wait}{snapshot}")
    };
    let steps = [one("p1"), one("p2"), one("p3")].concat();
    let ran = stage
        .run("both", &format!("{JOB}{steps}{}", afterwards("3")))
        .ok();
    assert_eq!(ran.count("died"), 6, "{ran}");
}

#[test]
fn a_collector_dies_at_any_moment_and_rolls_nobody_back() {
    let stage = Stage::new();
    let one = "[[step]]\ndo = \"kill\"\nprocess = \"collector\"\n\
               [[step]]\ndo = \"wait\"\nfor = { running = true }\n";
    let ran = stage
        .run(
            "collector",
            &format!("{JOB}{}{}", one.repeat(6), afterwards("0")),
        )
        .ok();
    assert_eq!((ran.count("died"), ran.count("lost")), (6, 0), "{ran}");
    assert_eq!(ran.view["generation"], "g1", "{ran}");
}

#[test]
fn an_idle_node_dies() {
    let stage = Stage::new();
    // A job in which nothing moves and nothing is recorded: four tokens that nobody sends.
    let scenario = r#"
[job]
processes = 3
topology = "ring"
[job.application]
name = "token"
balances = { p1 = 4 }
[job.snapshots]
interval = "0s"
[[step]]
do = "send"
from = "p1"
to = "p2"
amount = 3
[[step]]
do = "wait"
for = { idle = true }
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "kill"
process = "p2"
[[step]]
do = "wait"
for = { lost = "p2", joined = "p2", running = true }
[[step]]
do = "send"
from = "p2"
to = "p3"
amount = 3
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "expect"
that = { snapshots = 2, aborted = 0, restores = 1, verdicts = "hold", quantities = { tokens = 4 } }
"#;
    // That p2 still had its three tokens is what the second send shows.
    stage.run("idle", scenario).ok();
}

#[test]
fn a_node_dies_again_while_its_next_incarnation_is_being_restored() {
    let stage = Stage::new();
    let mut up = stage.up(
        "bank",
        "processes = 4\ntopology = \"mesh\"\n[application]\nname = \"bank\"\nevery_ms = 2\n\
         [snapshots]\ninterval = \"150ms\"\n",
    );
    up.runs();
    for (restore, point) in (1..).zip(["prepared", "ready"]) {
        up.completes(2);
        let first = up.program("p2");
        // The order is for whoever comes by next: the incarnation that is to follow.
        fs::write(order_path(up.root(), "p2"), point).unwrap();
        assert!(first.signal(Signal::SIGKILL).unwrap());
        let held = held_path(up.root(), "p2");
        until("the second incarnation at its point", || {
            held.exists().then_some(())
        });
        let second = until("the second incarnation", || {
            let newest = up.program("p2");
            (newest.pid != first.pid).then_some(newest)
        });
        assert!(second.signal(Signal::SIGKILL).unwrap());
        fs::remove_file(held).unwrap();
        let running = |event: &serde_json::Value| event["event"] == "running";
        until("the third incarnation's running", || {
            (up.events().iter().filter(|event| running(event)).count() > restore).then_some(())
        });
    }
    up.completes(2);
    assert_eq!(up.count("died"), 4, "{}", up.story());
    up.ask(&["verify", "--all"]).yes();
    up.interrupt();
}

#[test]
fn a_run_whose_expectations_do_not_hold_fails() {
    // Or all tests above would mean nothing.
    let stage = Stage::new();
    let scenario = format!("{JOB}{}", afterwards("1"));
    stage
        .run("no", &scenario)
        .fails("expected restores: 1, found 0");
    let scenario = scenario.replace("RESTORES", "0").replace("4000", "4001");
    stage.run("wrong", &scenario).fails("money = 4000 in s1");
}
