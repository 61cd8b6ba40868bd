//! Traced jobs on real processes: what they wrote down is judged, witnessed, and done again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::stage::Stage;

/// Three accounts whose job is traced; one of them is killed on the way.
const KILLED: &str = r#"
timeout = "60s"
[job]
processes = ["alice", "bob", "carol"]
topology = "mesh"
trace = true
delay = "5ms"
[job.application]
name = "bank"
every_ms = 2
[job.snapshots]
interval = "150ms"
[[step]]
do = "wait"
for = { running = true, snapshots = 2 }
[[step]]
do = "kill"
process = "bob"
[[step]]
do = "wait"
for = { lost = "bob", joined = "bob", running = true }
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "wait"
for = { running = true, snapshots = 4 }
[[step]]
do = "expect"
that = { snapshots = ">= 4", restores = 1, verdicts = "hold", quantities = { money = 3000 } }
"#;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The number of complete snapshots whose recorded state never was; all of them have a witness.
fn witness_all(stage: &Stage, dir: &str) -> usize {
    let listed = stage
        .ask(&["list", "--dir", dir, "--format", "json"])
        .json();
    let mut never = 0;
    for snapshot in listed["snapshots"].as_array().unwrap() {
        if snapshot["state"] != "complete" {
            continue;
        }
        let id = snapshot["id"].as_str().unwrap();
        let witness = stage.ask(&["witness", id, "--dir", dir, "--format", "json"]);
        assert_eq!(witness.code, 0, "{id}: {}{}", witness.out, witness.err);
        let view = json(&witness.out);
        assert!(view["passes_through"] == true && view["ends_alike"] == true);
        never += usize::from(view["occurred"].is_null());
    }
    never
}

/// Changes one byte of the first message in a file, and answers with the line, from 1.
fn alter(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let handled = |line: &String| line.contains("\"event\":\"handle\"");
    let place = lines.iter().position(handled).unwrap();
    let at = lines[place].find("\"message\":\"").unwrap() + "\"message\":\"".len();
    let digit = if &lines[place][at..=at] == "0" {
        "1"
    } else {
        "0"
    };
    lines[place].replace_range(at..=at, digit);
    fs::write(file, lines.join("\n") + "\n").unwrap();
    place as u64 + 1
}

#[test]
fn a_traced_run_with_a_kill_is_judged_witnessed_and_done_again() {
    let stage = Stage::new();
    let ran = stage.run("traced", KILLED).ok();
    for snapshot in ran.view["snapshots"].as_array().unwrap() {
        let verdicts = snapshot["verdicts"].as_array().unwrap();
        for name in ["causal", "replayed"] {
            let found = verdicts.iter().find(|verdict| verdict["name"] == name);
            assert_eq!(found.expect(name)["holds"], "yes", "{snapshot:#}");
        }
    }
    let out = stage.path().join("traced.out");
    let dir = out.to_str().unwrap();

    let replayed = stage.ask(&["replay", dir, "--format", "json"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    let view = json(&replayed.out);
    let generations = view["generations"].as_array().unwrap();
    assert_eq!(generations.len(), 2, "{view:#}");
    for generation in generations {
        assert!(generation["events"].as_u64().unwrap() > 50, "{view:#}");
        let snapshots = generation["snapshots"].as_array().unwrap();
        assert!(!snapshots.is_empty(), "{view:#}");
    }
    let torn = &generations[0]["torn"];
    assert_eq!(*torn, serde_json::json!(["bob"]), "killed, it has no end");
    assert!(
        witness_all(&stage, dir) > 0,
        "some recorded state never was"
    );

    let shiviz = stage.ask(&["trace", dir, "--format", "shiviz"]);
    assert_eq!(shiviz.code, 0);
    assert!(shiviz.out.contains("\n=== g1 ===\n") && shiviz.out.contains("\n=== g2 ===\n"));
    let mermaid = stage.ask(&["trace", dir, "--format", "mermaid"]);
    assert!(
        mermaid.out.starts_with("sequenceDiagram\n"),
        "{}",
        mermaid.err
    );

    let line = alter(&files(&out.join("trace/g2"))[2]);
    let replayed = stage.ask(&["replay", dir, "--format", "json"]);
    assert_eq!(replayed.code, 1, "{}", replayed.out);
    let difference = &json(&replayed.out)["difference"];
    assert_eq!(
        (&difference["generation"], &difference["process"]),
        (&"g2".into(), &"carol".into())
    );
    assert_eq!(difference["event"], line);
    let expected = difference["expected"].as_str().unwrap();
    assert!(expected.starts_with("message "), "{difference}");
}

/// A traced job of four snapshots, each by another mode, and the same once more after a kill. Its
/// channels are so narrow that messages wait in outboxes.
const MODES: &str = r#"
timeout = "60s"
[job]
processes = ["alice", "bob", "carol"]
topology = "ring"
trace = true
delay = "5ms"
[job.application]
name = "bank"
every_ms = 1
[job.limits]
window_messages = 2
[job.snapshots]
interval = "0s"
[[step]]
do = "wait"
for = { running = true, time = "200ms" }
"#;

/// The snapshots, a kill, and the snapshots once more.
fn steps_of_every_mode() -> String {
    let modes = [
        "\"aligned\"",
        "\"at-least-once\"",
        "\"unaligned\"",
        "\"aligned\"\nalignment_timeout = \"0ms\"",
    ];
    let taken =
        modes.map(|mode| format!("[[step]]\ndo = \"snapshot\"\nwait = true\nmode = {mode}\n"));
    let taken = taken.concat();
    let kill = "[[step]]\ndo = \"kill\"\nprocess = \"bob\"\n[[step]]\ndo = \"wait\"\n\
                for = { lost = \"bob\", joined = \"bob\", running = true, time = \"200ms\" }\n";
    format!("{taken}{kill}{taken}")
}

#[test]
fn snapshots_of_every_mode_are_judged_witnessed_and_done_again() {
    let stage = Stage::new();
    let text = format!("{MODES}{}", steps_of_every_mode());
    let ran = stage.run("modes", &text).ok();
    let snapshots = ran.view["snapshots"].as_array().unwrap();
    assert_eq!(snapshots.len(), 8, "{ran}");
    let out = stage.path().join("modes.out");
    let dir = out.to_str().unwrap();
    for snapshot in snapshots {
        let verdicts = snapshot["verdicts"].as_array().unwrap();
        let of = |name: &str| {
            let found = verdicts.iter().find(|verdict| verdict["name"] == name);
            found.expect(name)["holds"].clone()
        };
        assert_eq!(of("replayed"), "yes", "{snapshot:#}");
        let id = snapshot["snapshot"].as_str().unwrap();
        let witness = stage.ask(&["witness", id, "--dir", dir]);
        if snapshot["mode"] == "at-least-once" {
            let why = "there is no such run; at-least-once: not a consistent cut\n";
            assert_eq!(
                witness.code,
                i32::from(snapshot["holds"] == false),
                "{}",
                witness.out
            );
            assert!(
                witness.code == 0 || witness.out.ends_with(why),
                "{}",
                witness.out
            );
        } else {
            assert_eq!(
                (witness.code, of("causal")),
                (0, "yes".into()),
                "{}",
                witness.out
            );
        }
    }
    let replayed = stage.ask(&["replay", dir, "--format", "json"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    let view = json(&replayed.out);
    for (generation, first) in view["generations"].as_array().unwrap().iter().zip([1, 5]) {
        let ids = |numbers: &[u64]| -> Value {
            let ids = numbers.iter().map(|number| format!("s{}", first + number));
            ids.collect::<Vec<_>>().into()
        };
        assert_eq!(generation["snapshots"], ids(&[0, 2, 3]), "{view:#}");
        assert_eq!(generation["inconsistent"], ids(&[1]), "{view:#}");
    }
    // The restart began with what had been overtaken, and with what had not been handled.
    let shares = stage.ask(&["show", "s4", "--dir", dir, "--format", "json"]);
    let channels = json(&shares.out)["channels"].clone();
    let some = |share: &str| {
        let mut counts = channels.as_array().unwrap().iter();
        counts.any(|channel| channel[share].as_u64() > Some(0))
    };
    assert!(
        some("sender_share") && some("receiver_share"),
        "{channels:#}"
    );
    assert_eq!(view["generations"][1]["restored"], "s4");
}

#[test]
fn the_papers_example_on_real_processes_never_occurred_and_is_one_swap_away() {
    let stage = Stage::new();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios/section4.toml");
    stage
        .run_file("section4", &[scenario.to_str().unwrap()])
        .ok();
    let out = stage.path().join("section4.out");
    let dir = out.to_str().unwrap();
    let witness = stage.ask(&["witness", "s1", "--dir", dir, "--format", "json"]);
    assert_eq!(witness.code, 0, "{}{}", witness.out, witness.err);
    let view = json(&witness.out);
    assert_eq!(
        (&view["events"], &view["before_the_cut"]),
        (&4.into(), &1.into())
    );
    assert_eq!(
        (&view["swaps"], &view["occurred"]),
        (&1.into(), &Value::Null)
    );
    let table = stage.ask(&["witness", "s1", "--dir", dir]);
    assert!(
        table
            .out
            .contains("the recorded state never was there in the logged run")
    );
    assert!(table.out.contains("1 swap of neighbours"), "{}", table.out);
}

#[test]
fn a_job_that_is_not_traced_has_no_trace_and_says_so() {
    let stage = Stage::new();
    let untraced = KILLED.replace("trace = true\n", "");
    let ran = stage.run("untraced", &untraced).ok();
    let verdicts = ran.view["snapshots"][0]["verdicts"].to_string();
    assert!(!verdicts.contains("causal") && !verdicts.contains("replayed"));
    let out = stage.path().join("untraced.out");
    assert!(!out.join("trace").exists());
    let dir = out.to_str().unwrap();
    for command in ["replay", "trace"] {
        let answer = stage.ask(&[command, dir]);
        assert_eq!(answer.code, 1, "{}", answer.out);
        assert!(answer.err.contains("trace = true"), "{}", answer.err);
    }
}
