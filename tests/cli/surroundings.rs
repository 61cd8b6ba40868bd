//! What a job is not to be confused by: its user's environment, a collector that was started by
//! hand, snapshots that the job has turned away from.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::folder::{Answer, Folder};
use crate::running::{json, until, up};

/// A program that was started by hand; killed when the test is over.
pub(crate) struct ByHand(pub(crate) Child);

impl Drop for ByHand {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The collector of the job in this folder, started by hand; it answers.
pub(crate) fn collector(folder: &Folder) -> ByHand {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutline-collector"));
    folder.prepare(&mut command);
    let command = command.args(["--job", "bank.toml"]);
    let by_hand = ByHand(command.stderr(Stdio::null()).spawn().unwrap());
    let address = folder.path().join("bank.cutline/run/collector.addr");
    until("its address", || address.exists());
    by_hand
}

#[test]
fn the_newest_snapshot_is_that_of_the_current_line_also_of_a_job_that_is_down() {
    let folder = Folder::new();
    up(&folder);
    for _ in 0..3 {
        assert_eq!(folder.ask(&["snapshot", "--wait"]).code, 0);
    }
    let restored = folder.ask(&["restore", "s1"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    let newest = || json(&folder.ask(&["status", "--format", "json"]))["newest"].clone();
    assert_eq!(newest(), "s1");
    assert_eq!(folder.ask(&["down"]).code, 0);
    assert_eq!(newest(), "s1");
    let again = folder.ask(&["up", "bank.toml", "--detach"]);
    assert!(again.out.contains("continues from s1,"), "{again:?}");
    // A line goes on: what is taken on it is the newest, though the others are still there.
    assert_eq!(folder.ask(&["snapshot", "--wait"]).out, "s4 is complete\n");
    assert_eq!(folder.ask(&["down"]).code, 0);
    assert_eq!(newest(), "s4");
}

#[test]
fn what_is_exported_for_programs_started_by_hand_opens_no_job_to_the_network() {
    let folder = Folder::new();
    let mut command = folder.command(&["up", "bank.toml", "--detach"]);
    let exported = [
        // Not where a collector listens by itself, and yet on this host.
        ("LISTEN", "127.0.0.2:0"),
        ("INSECURE", "true"),
        ("ADVERTISE", "10.0.0.1:0"),
        ("COLLECTOR", "127.0.0.1:9"),
        ("PROCESS", "alice"),
    ];
    for (variable, value) in exported {
        command.env(format!("CUTLINE_{variable}"), value);
    }
    let answer = Answer::of(&command.output().unwrap());
    assert_eq!(answer.code, 0, "{answer:?}");
    let address = folder.path().join("bank.cutline/run/collector.addr");
    let address = fs::read_to_string(address).unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let status = json(&folder.ask(&["status", "--format", "json"]));
    for process in status["processes"].as_array().unwrap() {
        let address = process["address"].as_str().unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{process}");
    }
}

#[test]
fn programs_that_are_started_by_hand_take_the_same_from_the_environment() {
    let folder = Folder::new();
    for program in [
        env!("CARGO_BIN_EXE_cutline-collector"),
        env!("CARGO_BIN_EXE_cutline-node"),
    ] {
        let mut command = Command::new(program);
        folder.prepare(&mut command);
        command.env("CUTLINE_JOB", "bank.toml");
        command.env("CUTLINE_PROCESS", "alice");
        command.env("CUTLINE_LISTEN", "192.0.2.1:0");
        let refused = Answer::of(&command.output().unwrap());
        refused.assert_error(&["192.0.2.1:0", "without TLS", "--insecure"]);
        // Allowed, it finds that this is no address of this host.
        command.env("CUTLINE_INSECURE", "true");
        let unbound = Answer::of(&command.output().unwrap());
        unbound.assert_error(&["192.0.2.1:0", "listen"]);
        assert!(!unbound.err.contains("without TLS"), "{unbound:?}");
    }
}

#[test]
fn a_program_that_cannot_start_says_why_also_where_nothing_is_logged() {
    let folder = Folder::new();
    for (program, name) in [
        (env!("CARGO_BIN_EXE_cutline-collector"), "cutline-collector"),
        (env!("CARGO_BIN_EXE_cutline-node"), "cutline-node"),
    ] {
        let mut command = Command::new(program);
        folder.prepare(&mut command);
        command.env("CUTLINE_LOG", "off");
        command.env("CUTLINE_PROCESS", "alice");
        command.args(["--job", "none.toml"]);
        let answer = Answer::of(&command.output().unwrap());
        answer.assert_error(&[&format!(
            "{name}: reading the job file: cannot read none.toml"
        )]);
        assert_eq!(answer.err.lines().count(), 1, "{answer:?}");
    }
}

#[test]
fn a_job_that_was_started_by_hand_is_not_taken_over() {
    let folder = Folder::new();
    let by_hand = collector(&folder);
    let address = folder.path().join("bank.cutline/run/collector.addr");
    let before = fs::read_to_string(&address).unwrap();
    for arguments in [&["up", "bank.toml", "--detach"][..], &["up", "bank.toml"]] {
        let refused = folder.ask(arguments);
        refused.assert_error(&["bank.cutline", "started by hand", "end its programs first"]);
        assert_eq!(fs::read_to_string(&address).unwrap(), before);
    }
    assert_eq!(folder.ask(&["status"]).code, 0);
    // One that is gone has left its address; nobody answers there.
    drop(by_hand);
    let up = folder.ask(&["up", "bank.toml", "--detach"]);
    assert_eq!(up.code, 0, "{up:?}");
}

#[test]
fn a_job_can_be_asked_about_from_inside_its_directory_although_it_does_not_run() {
    let folder = Folder::with_job("bank.cutline");
    let mut command = folder.command(&["list"]);
    command.current_dir(folder.path().join("bank.cutline"));
    let list = Answer::of(&command.output().unwrap());
    assert_eq!(
        (list.code, list.out.as_str()),
        (0, "bank has no snapshots\n")
    );
}
