//! Directories and stores that are not, or not only, a job's: they are left as they are.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::folder::{Answer, Folder, JOB};
use crate::running::{signal, until, up};
use crate::surroundings::collector;

fn write(folder: &Folder, name: &str, text: &str) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

#[test]
fn down_leaves_a_directory_alone_that_is_no_jobs() {
    let folder = Folder::new();
    write(&folder, "system/run/sshd.pid", "1");
    for arguments in [
        &["down", "--dir", "system"][..],
        &["down", "--dir", "system", "--job", "bank.toml"],
    ] {
        let answer = folder.ask(arguments);
        answer.assert_error(&["system", "no job", "--dir DIR"]);
        assert_eq!(names(&folder.path().join("system/run")), ["sshd.pid"]);
    }
}

#[test]
fn up_leaves_a_directory_alone_that_is_no_jobs() {
    let folder = Folder::new();
    write(&folder, "project/run/notes.txt", "precious");
    write(&folder, "project/README", "precious");
    let up = ["up", "bank.toml", "--dir", "project"];
    for arguments in [&[&up[..], &["--detach"]].concat()[..], &up] {
        let answer = folder.ask(arguments);
        answer.assert_error(&["project is not empty, and no job's directory", "--dir DIR"]);
        assert_eq!(names(&folder.path().join("project")), ["README", "run"]);
        assert_eq!(names(&folder.path().join("project/run")), ["notes.txt"]);
    }
}

#[test]
fn a_directory_that_was_empty_is_taken_and_only_what_is_the_jobs_is_cleared_from_it() {
    let folder = Folder::new();
    let directory = folder.path().join("given");
    fs::create_dir(&directory).unwrap();
    write(&folder, "plain", "a file");
    let stuck = format!("{JOB}[store]\nurl = \"plain/store\"\n");
    write(&folder, "stuck.toml", &stuck);
    let failed = folder.ask(&["up", "stuck.toml", "--dir", "given"]);
    failed.assert_error(&["could not start", "plain/store"]);
    // As it was, so that the corrected job finds it empty again.
    assert!(names(&directory).is_empty());

    let answer = folder.ask(&["up", "bank.toml", "--dir", "given", "--detach"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    write(&folder, "given/run/notes.txt", "precious");
    let down = folder.ask(&["down", "--dir", "given"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert_eq!(names(&directory.join("run")), ["notes.txt"]);
    fs::remove_dir_all(directory.join("run")).unwrap();
}

/// Long for an end, and far below the half minute that a store waits for a file.
const SOON: Duration = Duration::from_secs(15);

/// How often it is tried to come between two moments of another program.
const TRIES: usize = 20;

#[test]
fn of_two_that_begin_at_once_the_loser_removes_nothing_of_the_winners() {
    let folder = Folder::new();
    let directory = folder.path().join("bank.cutline");
    for _ in 0..TRIES {
        let mut command = folder.command(&["up", "bank.toml", "--detach"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The foreground has found nothing, and made the directory; its supervisor comes later.
        let log = directory.join("logs/supervisor+.log");
        let begun = until_some(&mut child, || File::open(&log).ok());
        let winner = begun.and_then(|_| File::open(&directory).ok());
        let has_won = winner.as_ref().is_some_and(|own| own.try_lock().is_ok());
        if has_won {
            write(&folder, "bank.cutline/store/mine", "precious");
        }
        let answer = Answer::of(&child.wait_with_output().unwrap());
        if has_won {
            answer.assert_error(&["in use by another cutline"]);
            assert!(directory.join("store/mine").exists());
            return;
        }
        folder.ask(&["down", "--dir", "bank.cutline"]);
        let _ = fs::remove_dir_all(&directory);
    }
    panic!("never came first in {TRIES} tries");
}

/// Asks again and again, without a pause, while a program runs.
fn until_some<T>(child: &mut Child, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    while child.try_wait().unwrap().is_none() {
        if let Some(answer) = ask() {
            return Some(answer);
        }
    }
    None
}

#[test]
fn a_job_that_was_started_by_hand_is_not_said_to_be_down_and_stays_reachable() {
    let folder = Folder::new();
    let by_hand = collector(&folder);
    let address = folder.path().join("bank.cutline/run/collector.addr");
    for _ in 0..2 {
        let down = folder.ask(&["down"]);
        down.assert_no(&["started by hand", "end its programs", "stop --snapshot"]);
        assert!(address.exists());
    }
    let status = folder.ask(&["status"]);
    assert_eq!(status.code, 0, "{status:?}");
    // One that was killed has left its address; nobody answers there.
    drop(by_hand);
    assert!(address.exists());
    let down = folder.ask(&["down"]);
    assert_eq!(
        (down.code, down.out.as_str()),
        (0, "bank.cutline was not running\n")
    );
    assert!(!folder.path().join("bank.cutline/run").exists());
}

#[test]
fn what_killed_writers_have_left_in_the_store_is_gone_after_down() {
    let folder = Folder::new();
    let directory = up(&folder);
    assert_eq!(folder.ask(&["snapshot", "--wait"]).code, 0);
    let left = ["store/snapshots/s1/alice.part#7", "store/log/9.json#1"];
    let write_both = || {
        for file in left {
            fs::write(directory.join(file), "half of").unwrap();
        }
    };
    let are_gone = || left.iter().all(|file| !directory.join(file).exists());
    // By the supervisor, at its end; without one, by `down`.
    for _ in 0..2 {
        write_both();
        assert!(!are_gone());
        assert_eq!(folder.ask(&["down"]).code, 0);
        assert!(are_gone());
    }
    assert_eq!(folder.ask(&["verify", "--all"]).code, 0);
}

#[test]
fn a_store_that_a_running_job_has_is_given_to_no_other() {
    let folder = Folder::new();
    let shared = format!("{JOB}[store]\nurl = \"shared\"\n");
    for name in ["bank.toml", "other.toml"] {
        write(&folder, name, &shared);
    }
    write(&folder, "story.toml", TWO);
    up(&folder);
    assert_eq!(
        folder
            .ask(&["snapshot", "--wait", "--dir", "bank.cutline"])
            .code,
        0
    );
    for arguments in [&["up", "other.toml", "--detach"][..], &["up", "other.toml"]] {
        let answer = folder.ask(arguments);
        answer.assert_error(&["shared/ is in use by pid ", "--background", "[store] url"]);
        assert!(!folder.path().join("other.cutline").exists());
    }
    assert_eq!(folder.ask(&["status", "--dir", "bank.cutline"]).code, 0);
    assert_eq!(folder.ask(&["down", "--dir", "bank.cutline"]).code, 0);

    // Nor does a scenario begin in somebody's snapshots.
    let run = folder.ask(&["run", "story.toml", "--out", "kept"]);
    run.assert_error(&["shared/ is not empty", "leave out [store] url"]);
    assert!(!folder.path().join("kept").exists());
    // With nobody running, it is the other's.
    let answer = folder.ask(&["up", "other.toml", "--detach"]);
    assert!(answer.out.contains("continues from s1"), "{answer:?}");
}

#[test]
fn a_store_may_be_the_jobs_directory_itself() {
    let folder = Folder::new();
    let own = format!("{JOB}[store]\nurl = \"bank.cutline\"\n");
    write(&folder, "bank.toml", &own);
    let directory = up(&folder);
    assert_eq!(folder.ask(&["snapshot", "--wait"]).code, 0);
    assert!(directory.join("snapshots/s1/manifest.json").exists());
    assert_eq!(folder.ask(&["down"]).code, 0);
}

/// The second snapshot is for somebody else to take.
const TWO: &str = r#"
job = "bank.toml"
timeout = "60s"
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "wait"
for = { snapshots = 2 }
"#;

#[test]
fn a_scenario_can_be_interrupted_also_while_its_snapshots_are_judged() {
    let folder = Folder::new();
    let job = format!("{JOB}[snapshots]\ninterval = \"0s\"\n");
    write(&folder, "bank.toml", &job);
    write(&folder, "story.toml", TWO);
    let mut command = folder.command(&["run", "story.toml", "--out", "kept"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let kept = folder.path().join("kept");
    let snapshot = kept.join("store/snapshots/s1");
    until("the snapshot", || snapshot.join("manifest.json").exists());
    // Whoever reads this waits until the store gives it up, after half a minute.
    let part = snapshot.join("alice.part");
    fs::remove_file(&part).unwrap();
    nix::unistd::mkfifo(&part, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let taken = folder.ask(&["snapshot", "--wait", "--dir", "kept"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    until("the end of its programs", || !kept.join("run").exists());
    // Nothing tells that judging has begun but that it has not ended.
    assert!(child.try_wait().unwrap().is_none());
    let begin = Instant::now();
    signal(child.id(), nix::sys::signal::Signal::SIGINT);
    let answer = Answer::of(&child.wait_with_output().unwrap());
    answer.assert_error(&["interrupted; everything is stopped"]);
    assert!(begin.elapsed() < SOON, "{answer:?}");
}
