//! What `cutline` says, where, and with which exit status; `running` is about jobs that run.

#![allow(clippy::unwrap_used)] // Clippy takes only the tests themselves for tests.

mod audit;
mod edges;
mod engines;
mod folder;
mod running;
mod stepped;
mod surroundings;
mod tour;

use std::fs;
use std::process::Stdio;

use folder::{Answer, Folder, JOB};

#[test]
fn a_sound_job_file_is_a_yes_on_standard_output() {
    let answer = Folder::new().ask(&["check", "bank.toml"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("alice→bob"), "{}", answer.out);
}

#[test]
fn an_unsound_job_file_is_a_no_with_lines_and_remedies() {
    let folder = Folder::new();
    let text = format!("{JOB}[snapshots]\ntimeout = \"0s\"\nwhenever = 1\n");
    fs::write(folder.path().join("bad.toml"), text).unwrap();
    let answer = folder.ask(&["check", "bad.toml"]);
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    assert!(answer.out.contains("bad.toml:7: ") && answer.out.contains("timeout"));
    assert!(answer.out.contains("bad.toml:8: ") && answer.out.contains("whenever"));
    let json = folder.ask(&["check", "bad.toml", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(value["ok"], false);
    assert_eq!(value["refusals"][0]["line"], 7);
    // Nor can it be run.
    folder
        .ask(&["up", "bad.toml"])
        .assert_error(&["bad.toml:7: "]);
    assert!(!folder.path().join("bad.cutline").exists());
}

#[test]
fn settings_that_the_application_refuses_are_refused_before_anything_starts() {
    let folder = Folder::new();
    fs::write(folder.path().join("odd.toml"), format!("{JOB}colour = 3\n")).unwrap();
    let answer = folder.ask(&["check", "odd.toml"]);
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    assert!(
        answer.out.contains("unknown field `colour`"),
        "{}",
        answer.out
    );
    folder
        .ask(&["up", "odd.toml"])
        .assert_error(&["unknown field `colour`", "[application]"]);
    assert!(!folder.path().join("odd.cutline").exists());
}

#[test]
fn messages_that_the_job_lets_not_pass_are_refused_before_anything_starts() {
    let folder = Folder::new();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("long.toml", &format!("{JOB}padding = 1048576\n"));
    let limits = "[limits]\nmessage_bytes_max = 4\n";
    for name in ["bank", "token", "token-ring", "count"] {
        let job = JOB.replace("\"bank\"", &format!("\"{name}\""));
        write(&format!("{name}.toml"), &format!("{job}{limits}"));
    }
    for name in ["long", "bank", "token", "token-ring", "count"] {
        let file = format!("{name}.toml");
        let answer = folder.ask(&["check", &file]);
        assert_eq!(answer.code, 1, "{name}: {answer:?}");
        let words = "bytes, over limits.message_bytes_max = ";
        assert!(answer.out.contains(words), "{name}: {}", answer.out);
        folder.ask(&["up", &file]).assert_error(&[words]);
        assert!(!folder.path().join(format!("{name}.cutline")).exists());
    }
}

#[test]
fn a_job_file_that_is_not_there_could_not_be_asked_about() {
    Folder::new()
        .ask(&["check", "none.toml"])
        .assert_error(&["cannot read none.toml"]);
}

#[test]
fn an_unknown_command_or_flag_could_not_be_asked() {
    let folder = Folder::new();
    folder
        .ask(&["frobnicate"])
        .assert_error(&["frobnicate", "--help"]);
    folder
        .ask(&["list", "--frobnicate"])
        .assert_error(&["--frobnicate"]);
    folder.ask(&["stop"]).assert_error(&["--snapshot"]);
    folder.ask(&["verify"]).assert_error(&["<ID>"]);
}

#[test]
fn help_has_examples_and_says_what_exit_statuses_mean() {
    let answer = Folder::new().ask(&["--help"]);
    assert_eq!(answer.code, 0);
    assert!(
        answer.out.contains("cutline up bank.toml --detach"),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("Exit status: 0 yes"), "{}", answer.out);
}

#[test]
fn without_a_job_every_command_says_how_to_name_one() {
    let folder = Folder::new();
    let commands: [&[&str]; 8] = [
        &["status"],
        &["list"],
        &["show", "s1"],
        &["verify", "--all"],
        &["snapshot"],
        &["restore"],
        &["down"],
        &["kill", "alice"],
    ];
    for command in commands {
        folder
            .ask(command)
            .assert_error(&["no job found", "--dir", "cutline up FILE"]);
    }
    folder
        .ask(&["list", "--dir", "x.cutline"])
        .assert_error(&["no job directory at x.cutline"]);
}

#[test]
fn of_several_jobs_none_is_guessed() {
    let folder = Folder::with_job("bank.cutline");
    folder.add_job("jobs/ring.cutline");
    folder
        .ask(&["list"])
        .assert_error(&["more than one job", "bank.cutline", "jobs/ring.cutline"]);
    assert_eq!(folder.ask(&["list", "--dir", "bank.cutline"]).code, 0);
    assert_eq!(folder.ask(&["list", "--job", "bank.toml"]).code, 0);
    let by_environment = folder
        .command(&["list"])
        .env("CUTLINE_DIR", "bank.cutline")
        .output();
    assert_eq!(Answer::of(&by_environment.unwrap()).code, 0);
}

#[test]
fn a_job_that_does_not_run_can_be_asked_about_and_nothing_is_made_by_asking() {
    let folder = Folder::with_job("bank.cutline");
    let status = folder.ask(&["status"]);
    assert_eq!((status.code, status.err.as_str()), (1, ""));
    assert!(status.out.starts_with("bank stopped\n"), "{}", status.out);
    let status = folder.ask(&["status", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(
        (&value["up"], &value["phase"]),
        (&false.into(), &"stopped".into())
    );
    let list = folder.ask(&["list", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!(
        (list.code, &value["snapshots"]),
        (0, &serde_json::json!([]))
    );
    folder
        .ask(&["show", "s1"])
        .assert_no(&["bank has no snapshot s1"]);
    folder
        .ask(&["verify", "s1"])
        .assert_no(&["bank has no snapshot s1"]);
    folder
        .ask(&["verify", "--all"])
        .assert_no(&["no complete snapshot to verify"]);
    folder
        .ask(&["show", "first"])
        .assert_error(&["'first' is no snapshot id such as s42"]);
    folder
        .ask(&["snapshot"])
        .assert_error(&["no collector is running"]);
    folder
        .ask(&["restore", "s1"])
        .assert_error(&["no collector is running"]);
    let entries = fs::read_dir(folder.path().join("bank.cutline")).unwrap();
    assert_eq!(entries.count(), 1, "only the job file");
}

#[test]
fn signals_go_to_known_processes_that_run() {
    let folder = Folder::with_job("bank.cutline");
    for command in ["kill", "pause", "resume"] {
        folder
            .ask(&[command, "carol"])
            .assert_no(&["no process 'carol'", "alice, bob"]);
        folder
            .ask(&[command, "alice"])
            .assert_no(&["alice does not run"]);
        folder
            .ask(&[command, "collector"])
            .assert_no(&["collector does not run"]);
    }
}

#[test]
fn down_on_what_does_not_run_is_a_yes() {
    let folder = Folder::with_job("bank.cutline");
    let answer = folder.ask(&["down"]);
    assert_eq!(
        (answer.code, answer.out.as_str()),
        (0, "bank.cutline was not running\n")
    );
}

#[test]
fn a_start_that_fails_says_why_in_one_message_and_leaves_nothing() {
    let folder = Folder::new();
    let text = format!("program = \"no-such-node\"\n{JOB}").replace("bank\"", "own\"");
    fs::write(folder.path().join("own.toml"), text).unwrap();
    for arguments in [&["up", "own.toml"][..], &["up", "own.toml", "--detach"]] {
        let answer = folder.ask(arguments);
        answer.assert_error(&["no-such-node is missing", "correct 'program'"]);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
        assert!(!folder.path().join("own.cutline").exists());
    }
}

#[test]
fn a_reader_that_has_read_enough_is_no_error_and_a_no_stays_one() {
    let folder = Folder::new();
    fs::write(folder.path().join("bad.toml"), format!("{JOB}colour = 3\n")).unwrap();
    for (file, code) in [("bank.toml", 0), ("bad.toml", 1)] {
        // A pipe that nobody reads from before anything is written.
        let (nobody, pipe) = std::io::pipe().unwrap();
        drop(nobody);
        let mut command = folder.command(&["check", file]);
        let child = command.stdout(pipe).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(code), &b""[..]),
            "{file}"
        );
    }
}

#[test]
fn errors_are_json_for_those_who_want_it_and_never_coloured_in_a_pipe() {
    let folder = Folder::new();
    let answer = folder.ask(&["status", "--log-format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&answer.err).unwrap();
    assert_eq!((answer.code, &value["event"]), (2, &"error".into()));
    assert!(!folder.ask(&["status"]).err.contains('\x1b'));
}
