//! A store that cannot be written fails snapshots, not the job, until too many have failed in a
//! row; one that can be written again is used again.
//!
//! These tests may run as root, for whom nothing is unwritable: here a regular file stands where a
//! folder should be, or the disk is full.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use serde_json::Value;

use crate::running::Up;
use crate::stage::{Stage, until};

fn job(tolerated: u32, store: &str) -> String {
    format!(
        "processes = 3\ntopology = \"mesh\"\n[application]\nname = \"bank\"\nevery_ms = 2\n\
         [snapshots]\ninterval = \"100ms\"\nfailures_tolerated = {tolerated}\n\
         [store]\nretain = 1000\n{store}"
    )
}

fn is_failure(event: &Value) -> bool {
    event["event"] == "failed" || event["event"] == "aborted"
}

/// The folder that snapshots are written to, with a regular file in its place for a while.
struct Unwritable {
    folder: PathBuf,
    aside: PathBuf,
}

impl Unwritable {
    fn make(store: &Path) -> Self {
        let (folder, aside) = (store.join("snapshots"), store.join("aside"));
        File::create(&aside).unwrap();
        let unwritable = Self { folder, aside };
        unwritable.exchange();
        unwritable
    }

    fn mend(&self) {
        self.exchange();
    }

    /// At one stroke: a job that writes meanwhile would make a folder that is not there.
    fn exchange(&self) {
        let (folder, aside) = (&self.folder, &self.aside);
        renameat2(
            AT_FDCWD,
            folder,
            AT_FDCWD,
            aside,
            RenameFlags::RENAME_EXCHANGE,
        )
        .unwrap();
    }
}

#[test]
fn snapshots_fail_while_the_store_cannot_be_written_and_complete_when_it_is_mended() {
    let stage = Stage::new();
    let mut up = stage.up("bank", &job(100_000, ""));
    up.runs();
    up.completes(2);
    let handled = handled(&up);
    let broken = Unwritable::make(&up.root().join("store"));
    for _ in 0..3 {
        let now = up.events().len();
        let failure = up.event_after(now, "a failure", is_failure);
        assert!(
            failure["reason"].as_str().unwrap().contains("snapshots/"),
            "{failure}"
        );
    }
    // The job itself goes on, by the application's own count.
    until("more messages", || {
        (self::handled(&up) > handled).then_some(())
    });
    assert!(up.is_up());
    broken.mend();
    up.completes(3);
    let status = up.ask(&["status", "--format", "json"]).yes().json();
    assert_eq!(status["failures_in_row"], 0, "{status}");
    assert_eq!(
        (up.count("lost"), up.count("running")),
        (0, 1),
        "{}",
        up.story()
    );
    up.ask(&["verify", "--all"]).yes();
    up.interrupt();
}

fn handled(up: &Up<'_>) -> u64 {
    let status = up.ask(&["status", "--format", "json"]).yes().json();
    let processes = status["processes"].as_array().unwrap();
    processes
        .iter()
        .map(|process| process["handled"].as_u64().unwrap())
        .sum()
}

#[test]
fn one_failure_too_many_ends_the_job_with_the_reason() {
    let stage = Stage::new();
    let mut up = stage.up("bank", &job(3, ""));
    up.runs();
    up.completes(2);
    let before = up.events().len();
    let broken = Unwritable::make(&up.root().join("store"));
    let answer = up.ends().no(&["bank has failed", "snapshots", "in a row"]);
    let events = crate::ran::events(&answer.err);
    let failures = events[before..]
        .iter()
        .filter(|event| is_failure(event))
        .count();
    assert!(failures >= 4, "three are tolerated: {answer}");
    stage.assert_nothing_runs();
    // What was complete before still is, and the job can be continued from there.
    broken.mend();
    let mut up = Up::start(&stage, "bank");
    let running = up.runs();
    assert_ne!(running["snapshot"], "s0", "{running}");
    up.completes(1);
    up.ask(&["verify", "--all"]).yes();
    up.interrupt();
}

/// A small disk of its own.
struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// None where mounting is not allowed.
    fn mount(folder: PathBuf) -> Option<Self> {
        fs::create_dir_all(&folder).unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs"])
            .arg(&folder);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self { folder })
    }

    /// Writes until nothing more fits.
    fn fill(&self) {
        let mut filler = File::create(self.folder.join("filler")).unwrap();
        for bytes in [4096, 64, 1] {
            while filler.write_all(&vec![0; bytes]).is_ok() {}
        }
    }

    fn empty(&self) {
        fs::remove_file(self.folder.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: on a failure, programs may still be ending.
        let mut unmount = Command::new("umount");
        let _ = unmount.arg("--lazy").arg(&self.folder).output();
    }
}

#[test]
fn a_full_disk_fails_snapshots_and_then_the_job() {
    let stage = Stage::new();
    let Some(disk) = Disk::mount(stage.path().join("disk")) else {
        println!("skipped: a full disk needs a mount, which is not allowed here");
        return;
    };
    let mut up = stage.up("bank", &job(30, "url = \"disk/store\"\n"));
    up.runs();
    up.completes(2);
    disk.fill();
    let now = up.events().len();
    up.event_after(now, "a failure", is_failure);
    assert!(up.is_up());
    disk.empty();
    up.completes(2);
    up.ask(&["verify", "--all"]).yes();
    disk.fill();
    let answer = up.ends().no(&["bank has failed", "in a row"]);
    assert!(answer.err.contains("No space left on device"), "{answer}");
    stage.assert_nothing_runs();
    // Nothing half-written passes for whole.
    let verified = stage.ask(&["verify", "--all", "--job", "bank.toml"]);
    verified.yes().says(&["every verdict holds"]);
}
