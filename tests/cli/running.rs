//! Jobs that run: up, asked about, interfered with, down.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::folder::{Answer, Folder, JOB};

/// A condition that a test waits for comes within this, or the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what} took too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.out).unwrap_or_else(|_| panic!("no JSON: {answer:?}"))
}

/// The pids of everything that is written down as running.
fn pids(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory.join("run/pids"))
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names
        .filter_map(|name| name.rsplit_once('.')?.1.parse().ok())
        .collect()
}

fn exists(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn supervisor(directory: &Path) -> u32 {
    let text = fs::read_to_string(directory.join("run/supervisor")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    value["pid"].as_u64().unwrap().try_into().unwrap()
}

pub(crate) fn signal(pid: u32, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(pid.try_into().unwrap());
    nix::sys::signal::kill(pid, signal).unwrap();
}

/// Runs in the background.
pub(crate) fn up(folder: &Folder) -> PathBuf {
    let answer = folder.ask(&["up", "bank.toml", "--detach"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    folder.path().join("bank.cutline")
}

fn running_generation(folder: &Folder) -> Option<String> {
    let status = json(&folder.ask(&["status", "--format", "json"]));
    (status["phase"] == "running").then(|| status["generation"].as_str().unwrap().to_owned())
}

#[test]
fn a_job_goes_up_in_the_background_and_down_without_a_trace() {
    let folder = Folder::new();
    let answer = folder.ask(&["up", "bank.toml", "--detach"]);
    let first = "bank runs from the initial state (s0), as generation g1 (supervisor pid ";
    assert!(answer.out.starts_with(first), "{answer:?}");
    assert!(answer.out.contains("cutline down --dir"), "{answer:?}");
    let directory = folder.path().join("bank.cutline");
    let all = [pids(&directory), vec![supervisor(&directory)]].concat();
    assert_eq!(all.len(), 4);
    let status = folder.ask(&["status"]);
    assert_eq!(status.code, 0, "{status:?}");
    assert!(
        status
            .out
            .starts_with("bank running, generation g1 from s0"),
        "{status:?}"
    );

    for arguments in [&["up", "bank.toml"][..], &["up", "bank.toml", "--detach"]] {
        let pid = format!("in use by pid {}", supervisor(&directory));
        folder
            .ask(arguments)
            .assert_error(&[&pid, "cutline down --dir"]);
    }
    assert_eq!(folder.ask(&["down"]).code, 0);
    until("the end", || !all.iter().any(|pid| exists(*pid)));
    assert!(!directory.join("run").exists());
    assert_eq!(folder.ask(&["status"]).code, 1);
}

#[test]
fn snapshots_are_taken_listed_shown_and_verified() {
    let folder = Folder::new();
    let directory = up(&folder);
    let taken = folder.ask(&["snapshot", "--wait", "--from", "bob"]);
    assert_eq!(
        (taken.code, taken.out.as_str()),
        (0, "s1 is complete\n"),
        "{taken:?}"
    );
    let begun = json(&folder.ask(&["snapshot", "--format", "json"]));
    assert_eq!(
        begun,
        serde_json::json!({ "snapshot": "s2", "state": "open" })
    );
    folder
        .ask(&["snapshot", "--from", "carol"])
        .assert_no(&["carol"]);
    let list = json(&folder.ask(&["list", "--format", "json"]));
    assert_eq!(list["snapshots"][0]["id"], "s1");
    let show = json(&folder.ask(&["show", "s1", "--format", "json"]));
    assert_eq!(show["channels"].as_array().unwrap().len(), 2);
    let money = &show["quantities"][0];
    let sum = money["in_states"].as_i64().unwrap() + money["in_channels"].as_i64().unwrap();
    assert_eq!(money["expected"].as_i64(), Some(sum));
    let verified = folder.ask(&["verify", "s1"]);
    assert_eq!(verified.code, 0, "{verified:?}");

    // With its word for the running job's end.
    let stopped = folder.ask(&["stop", "--snapshot"]);
    assert_eq!(
        (stopped.code, stopped.out.as_str()),
        (0, "stopped after s3\n"),
        "{stopped:?}"
    );
    assert!(pids(&directory).is_empty());
    for log in fs::read_dir(directory.join("logs")).unwrap() {
        let log = fs::read_to_string(log.unwrap().path()).unwrap();
        assert!(!log.contains("WARN a stream"), "an end is no fault:\n{log}");
    }
    let part = directory.join("store/snapshots/s1/alice.part");
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, &bytes[..bytes.len() - 1]).unwrap();
    let torn = folder.ask(&["verify", "--all"]);
    assert_eq!(torn.code, 1, "{torn:?}");
    let mut lines = torn.out.lines();
    let damage = lines.find(|line| line.starts_with("part of alice: "));
    let damage = damage.unwrap_or_else(|| panic!("{torn:?}"));
    assert_eq!(damage.matches("alice.part").count(), 1, "{damage}");
    assert!(torn.out.ends_with("1 of 3 do not hold\n"), "{torn:?}");
    let json = json(&folder.ask(&["verify", "s1", "--format", "json"]));
    assert_eq!(
        (&json["holds"], &json["snapshots"][0]["holds"]),
        (&false.into(), &false.into())
    );
}

#[test]
fn a_killed_node_comes_back_and_the_job_goes_back_to_the_newest_snapshot() {
    let folder = Folder::new();
    let directory = up(&folder);
    assert_eq!(folder.ask(&["snapshot", "--wait"]).code, 0);
    let killed = folder.ask(&["kill", "alice"]);
    assert!(killed.out.starts_with("killed alice (pid "), "{killed:?}");
    until("the restore", || {
        running_generation(&folder).as_deref() == Some("g2")
    });
    let killed = folder.ask(&["kill", "collector"]);
    assert_eq!(killed.code, 0, "{killed:?}");
    until("its return", || {
        running_generation(&folder).as_deref() == Some("g2")
    });
    let restored = folder.ask(&["restore", "s0"]);
    assert!(
        restored.out.ends_with("from the initial state (s0)\n"),
        "{restored:?}"
    );
    folder.ask(&["restore", "s77"]).assert_no(&["s77"]);
    let log = fs::read_to_string(directory.join("logs/supervisor+.log")).unwrap();
    assert!(log.contains("was killed by SIGKILL\n"), "{log}");
    assert!(log.contains("restoring s1 as generation g2\n"), "{log}");
    // The job now goes on from there; what was after it is an abandoned branch.
    let taken = folder.ask(&["snapshot", "--wait"]);
    let taken = taken.out.strip_suffix(" is complete\n").unwrap().to_owned();
    assert_eq!(folder.ask(&["down"]).code, 0);
    let again = folder.ask(&["up", "bank.toml", "--detach"]);
    let continues = format!("bank continues from {taken}, as generation g4 ");
    assert!(again.out.starts_with(&continues), "{again:?}");
}

#[test]
fn a_node_that_is_paused_too_long_is_replaced_and_down_reaches_both() {
    let folder = Folder::new();
    fs::write(
        folder.path().join("bank.toml"),
        format!("silence = \"4s\"\n{JOB}"),
    )
    .unwrap();
    let directory = up(&folder);
    let paused = folder.ask(&["pause", "alice"]);
    assert!(paused.out.starts_with("paused alice (pid "), "{paused:?}");
    let status = json(&folder.ask(&["status", "--format", "json"]));
    assert_eq!(status["processes"][0]["state"], "paused");
    until("the replacement", || {
        running_generation(&folder).as_deref() == Some("g2")
    });
    let both = pids(&directory);
    assert_eq!(both.len(), 4, "collector, bob and two of alice");
    assert_eq!(folder.ask(&["down"]).code, 0);
    until("the end", || !both.iter().any(|pid| exists(*pid)));
    assert!(!directory.join("run").exists());
}

/// In the foreground, its standard error read up to the line that says that it runs.
fn foreground(folder: &Folder) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut command = folder.command(&["up", "bank.toml"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("bank runs from") {
        line.clear();
        assert!(
            err.read_line(&mut line).unwrap() > 0,
            "it ended before it ran"
        );
    }
    (child, err)
}

#[test]
fn ctrl_c_ends_the_job_with_everything_that_belongs_to_it() {
    let folder = Folder::new();
    let (child, _err) = foreground(&folder);
    let directory = folder.path().join("bank.cutline");
    let all = pids(&directory);
    assert_eq!(all.len(), 3);
    signal(child.id(), nix::sys::signal::Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(out, "bank is stopped; 'cutline up' continues it\n");
    assert!(!all.iter().any(|pid| exists(*pid)));
    assert!(!directory.join("run").exists());
}

#[test]
fn programs_die_with_a_supervisor_that_is_killed_and_down_clears_up() {
    let folder = Folder::new();
    let (mut child, _err) = foreground(&folder);
    let directory = folder.path().join("bank.cutline");
    let all = pids(&directory);
    // One that is stopped, too.
    assert_eq!(folder.ask(&["pause", "bob"]).code, 0);
    child.kill().unwrap();
    child.wait().unwrap();
    until("their end", || !all.iter().any(|pid| exists(*pid)));
    assert_eq!(folder.ask(&["status"]).code, 1);
    assert_eq!(folder.ask(&["down"]).code, 0);
    assert!(!directory.join("run").exists());
    // As it does without.
    let directory = up(&folder);
    assert_eq!(pids(&directory).len(), 3);
}

#[test]
fn a_program_that_keeps_dying_ends_the_job_with_its_last_words() {
    let folder = Folder::new();
    let program = folder.path().join("own-node");
    fs::write(&program, "#!/bin/sh\necho no luck today >&2\nexit 3\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    let limit = "[restarts]\nmax = 2\nwindow = \"1m\"\nbackoff = \"1ms\"\n";
    let text = format!("program = \"own-node\"\n{JOB}{limit}").replace("\"bank\"", "\"own\"");
    fs::write(folder.path().join("own.toml"), text).unwrap();
    for arguments in [&["up", "own.toml"][..], &["up", "own.toml", "--detach"]] {
        folder.ask(arguments).assert_no(&[
            "own has failed: ",
            "failed with exit status 3, and has used its 2 restarts in 1m",
            "  | no luck today",
        ]);
        assert!(!folder.path().join("own.cutline/run").exists());
    }
}

#[test]
fn a_store_that_cannot_be_used_is_a_start_that_fails_and_leaves_nothing() {
    let folder = Folder::new();
    fs::write(folder.path().join("plain"), "a file").unwrap();
    let text = format!("{JOB}[store]\nurl = \"plain/store\"\n");
    fs::write(folder.path().join("stuck.toml"), text).unwrap();
    for arguments in [&["up", "stuck.toml"][..], &["up", "stuck.toml", "--detach"]] {
        folder
            .ask(arguments)
            .assert_error(&["could not start", "plain/store"]);
        assert!(!folder.path().join("stuck.cutline").exists());
    }
}

#[test]
fn another_job_in_the_same_directory_is_refused_and_hides_nothing() {
    let folder = Folder::new();
    up(&folder);
    assert_eq!(folder.ask(&["snapshot", "--wait"]).code, 0);
    assert_eq!(folder.ask(&["down"]).code, 0);
    let other = JOB.replace("\"bob\"", "\"bob\", \"carol\"");
    fs::write(folder.path().join("other.toml"), other).unwrap();
    let refused = folder.ask(&["up", "other.toml", "--dir", "bank.cutline"]);
    refused.assert_error(&["the job cannot start", "another topology"]);
    assert_eq!(folder.ask(&["verify", "s1"]).code, 0);
    let again = folder.ask(&["up", "bank.toml", "--detach"]);
    assert!(
        again.out.starts_with("bank continues from s1, "),
        "{again:?}"
    );
}

const STEPS: &str = r#"
job = "bank.toml"
timeout = "120s"
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "kill"
process = "bob"
[[step]]
do = "wait"
for = { lost = "bob", joined = "bob", running = true }
[[step]]
do = "kill"
process = ["alice", "bob"]
at_point = "recorded"
[[step]]
do = "wait"
for = { running = true, snapshots = 2 }
"#;

/// With a snapshot now and then.
fn scenario(folder: &Folder, expectation: &str) {
    let job = format!("{JOB}[snapshots]\ninterval = \"200ms\"\n");
    fs::write(folder.path().join("bank.toml"), job).unwrap();
    let expect = format!("[[step]]\ndo = \"expect\"\nthat = {{ {expectation} }}\n");
    fs::write(folder.path().join("story.toml"), format!("{STEPS}{expect}")).unwrap();
}

#[test]
fn a_scenario_that_comes_out_as_expected_is_a_yes() {
    let folder = Folder::new();
    let expectation = "snapshots = \">= 2\", restores = \">= 2\", verdicts = \"hold\", \
                       quantities = { money = 2000 }";
    scenario(&folder, expectation);
    let answer = folder.ask(&["run", "story.toml", "--out", "kept", "--seed", "7"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(
        answer.out.lines().last().unwrap().starts_with("ok: "),
        "{answer:?}"
    );
    assert!(answer.err.contains("line 10: wait for"), "{answer:?}");
    assert!(answer.err.contains("killed at recorded"), "{answer:?}");
    assert!(!folder.path().join("kept/run").exists());
    let job = fs::read_to_string(folder.path().join("kept/job.toml")).unwrap();
    assert!(job.starts_with("seed = 7\n"), "{job}");
    assert_eq!(folder.ask(&["verify", "--all", "--dir", "kept"]).code, 0);
    folder
        .ask(&["run", "story.toml", "--out", "kept"])
        .assert_error(&["kept is not empty"]);
}

#[test]
fn a_scenario_that_does_not_come_out_as_expected_is_a_no_that_says_so() {
    let folder = Folder::new();
    scenario(&folder, "restores = 0, quantities = { money = 2001 }");
    let answer = folder.ask(&[
        "run",
        "story.toml",
        "--format",
        "json",
        "--log-format",
        "json",
    ]);
    assert_eq!(answer.code, 1, "{answer:?}");
    let value = json(&answer);
    assert_eq!(value["ok"], false);
    let failures = value["failures"].as_array().unwrap();
    let failures: Vec<_> = failures
        .iter()
        .map(|failure| failure.as_str().unwrap())
        .collect();
    assert!(
        failures[0].starts_with("line 20: expected restores: 0, found "),
        "{failures:?}"
    );
    assert!(failures[1].contains("money = 2000 in s1"), "{failures:?}");
    assert!(
        answer
            .err
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
}

#[test]
fn a_scenario_that_cannot_be_run_could_not_be_asked() {
    let folder = Folder::new();
    folder
        .ask(&["run", "none.toml"])
        .assert_error(&["cannot read none.toml"]);
    fs::write(
        folder.path().join("bad.toml"),
        "job = \"bank.toml\"\n[[step]]\ndo = \"x\"\n",
    )
    .unwrap();
    folder
        .ask(&["run", "bad.toml"])
        .assert_error(&["bad.toml:3: "]);
}

#[test]
fn a_scenario_that_takes_too_long_fails_at_its_line() {
    let folder = Folder::new();
    let text = "job = \"bank.toml\"\ntimeout = \"4s\"\n[[step]]\ndo = \"wait\"\n\
                for = { snapshots = 9 }\n";
    fs::write(folder.path().join("slow.toml"), text).unwrap();
    let answer = folder.ask(&["run", "slow.toml"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    let last = answer.out.lines().last().unwrap();
    assert_eq!(
        last,
        "failed: line 3: the scenario takes longer than its timeout, 4s (seed 1)"
    );
}
