//! Jobs come up, end, and are ended, and leave nothing behind; what dies too often ends its job.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::stage::{Stage, until};

const JOB: &str = r#"
processes = 3
topology = "mesh"
[application]
name = "bank"
every_ms = 2
[snapshots]
interval = "150ms"
"#;

#[test]
fn a_program_that_dies_too_often_ends_the_job_with_the_cause() {
    let stage = Stage::new();
    let job = format!("{JOB}[restarts]\nmax = 2\nwindow = \"60s\"\nbackoff = \"10ms\"\n");
    let mut up = stage.up("bank", &job);
    up.runs();
    for restored in 1..=2 {
        let before = up.events().len();
        assert!(up.program("p2").signal(Signal::SIGKILL).unwrap());
        let running = up.event_after(before, "the restore", |event| event["event"] == "running");
        assert_eq!(running["generation"], format!("g{}", restored + 1));
    }
    // Others have restarts of their own.
    let before = up.events().len();
    assert!(up.program("p1").signal(Signal::SIGKILL).unwrap());
    up.event_after(before, "the restore", |event| event["event"] == "running");
    let last = up.program("p2");
    assert!(last.signal(Signal::SIGKILL).unwrap());
    let cause = "p2 was killed by SIGKILL, and has used its 2 restarts in 1m";
    // The last lines of its log, which say more than a signal's name.
    let answer = up
        .ends()
        .no(&["bank has failed", cause, "  | ", "the node has started"]);
    assert!(answer.err.contains("control stream open"), "{answer}");
    stage.assert_nothing_runs();
    assert!(!stage.path().join("bank.cutline/run").exists());
}

#[test]
fn ctrl_c_leaves_no_process_no_port_and_no_file_of_the_run() {
    let stage = Stage::new();
    let mut up = stage.up("bank", JOB);
    up.runs();
    up.completes(1);
    // One of them stopped: it ends all the same.
    up.ask(&["pause", "p1"]).yes();
    let status = up.ask(&["status", "--format", "json"]).yes().json();
    let processes = status["processes"].as_array().unwrap();
    let mut addresses: Vec<SocketAddr> = processes
        .iter()
        .map(|row| row["address"].as_str().unwrap().parse().unwrap())
        .collect();
    let collector = fs::read_to_string(up.root().join("run/collector.addr")).unwrap();
    addresses.push(collector.trim().parse().unwrap());
    let root = up.root().to_owned();
    let answer = up.interrupt();
    assert!(answer.out.contains("bank is stopped"), "{answer}");
    // When the supervisor has ended, everything has.
    assert_eq!(stage.processes(), []);
    for address in addresses {
        let refused = TcpStream::connect_timeout(&address, Duration::from_secs(1));
        assert!(refused.is_err(), "somebody still listens at {address}");
    }
    assert!(!root.join("run").exists());
    let staging = files(&root.join("store"))
        .into_iter()
        .filter(|file| file.contains('#'));
    assert_eq!(staging.collect::<Vec<_>>(), [""; 0]);
}

/// Every file below a folder.
fn files(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path.display().to_string()),
        }
    }
    found
}

#[test]
fn down_reaches_a_node_that_is_stopped_and_one_that_was_replaced() {
    let stage = Stage::new();
    let job = format!("silence = \"1s\"\n{JOB}");
    stage.write("bank.toml", &job);
    stage
        .ask(&["up", "bank.toml", "--detach"])
        .yes()
        .says(&["bank runs"]);
    let status = || {
        stage
            .ask(&["status", "--format", "json", "--job", "bank.toml"])
            .json()
    };
    let pid = || status()["processes"][0]["pid"].as_u64();
    let first = pid().unwrap();
    stage.ask(&["pause", "p1", "--job", "bank.toml"]).yes();
    until("the replacement of p1", || {
        pid().filter(|pid| *pid != first)
    });
    stage.ask(&["pause", "p2", "--job", "bank.toml"]).yes();
    let nodes = stage
        .processes()
        .into_iter()
        .filter(|(_, line)| line.contains("--process"));
    // Two that are stopped, one in the place of the first, and one may have come for the second.
    assert!(nodes.count() >= 4, "{:#?}", stage.processes());
    stage.ask(&["down", "--job", "bank.toml"]).yes();
    assert_eq!(stage.processes(), []);
    assert!(!stage.path().join("bank.cutline/run").exists());
}

#[test]
fn nodes_die_with_a_supervisor_that_is_killed_and_the_next_start_continues() {
    let stage = Stage::new();
    let mut up = stage.up("bank", JOB);
    up.runs();
    up.completes(2);
    up.signal(Signal::SIGKILL);
    stage.assert_nothing_runs();
    drop(up);
    let mut up = crate::running::Up::start(&stage, "bank");
    assert_ne!(up.runs()["snapshot"], "s0");
    up.completes(1);
    up.ask(&["verify", "--all"]).yes();
    up.interrupt();
}

#[test]
fn two_jobs_run_side_by_side_and_know_nothing_of_each_other() {
    let stage = Stage::new();
    let mut one = stage.up("one", JOB);
    let mut two = stage.up("two", JOB);
    one.runs();
    two.runs();
    one.completes(1);
    two.completes(1);
    assert!(one.program("p1").signal(Signal::SIGKILL).unwrap());
    one.event("the restore", |event| {
        event["event"] == "running" && event["generation"] == "g2"
    });
    two.completes(2);
    assert_eq!(
        (two.count("lost"), two.count("running")),
        (0, 1),
        "{}",
        two.story()
    );
    // Where both are meant, neither is guessed.
    let unclear = stage.ask(&["status"]);
    assert_eq!(unclear.code, 2, "{unclear}");
    for up in [&one, &two] {
        up.ask(&["verify", "--all"]).yes();
    }
    one.interrupt();
    two.completes(1);
    two.interrupt();
}

#[test]
fn a_last_snapshot_ends_the_job_and_the_next_start_begins_there() {
    let stage = Stage::new();
    let mut up = stage.up("bank", &JOB.replace("150ms", "0s"));
    up.runs();
    let stopped = up.ask(&["stop", "--snapshot"]).yes();
    let answer = up.ends().yes();
    assert!(
        stopped.out.contains("s1") && answer.out.contains("bank has finished"),
        "{answer}"
    );
    assert_eq!(stage.processes(), []);
    let mut up = crate::running::Up::start(&stage, "bank");
    assert_eq!(up.runs()["snapshot"], "s1");
    up.interrupt();
}

/// New settings make other initial states. What is restored is as it was, and so is what it must
/// add up to, also after the snapshot that was restored has been deleted.
#[test]
fn a_job_may_be_continued_with_other_settings() {
    let stage = Stage::new();
    let job = format!("{JOB}\n[store]\nretain = 2\n");
    let mut up = stage.up("bank", &job.replace("150ms", "0s"));
    up.runs();
    up.ask(&["stop", "--snapshot"]).yes();
    up.ends().yes();
    let richer = job.replace("every_ms = 2", "every_ms = 2\nbalance = 5000");
    assert_ne!(richer, job);
    stage.write("bank.toml", &richer);
    let mut up = crate::running::Up::start(&stage, "bank");
    assert_eq!(up.runs()["snapshot"], "s1");
    up.completes(4);
    let verified = up.ask(&["verify", "--all"]).yes();
    assert!(!verified.out.contains("s1 "), "{verified}");
    up.ask(&["kill", "p2"]).yes();
    up.completes(4);
    up.ask(&["verify", "--all"]).yes();
    up.interrupt();
}
