//! A user's own program: the example runs as any other job does, and another's state is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::running::Up;
use crate::stage::Stage;

/// Builds the example, if it is not built yet, and answers with where it is.
fn counter() -> PathBuf {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut cargo = Command::new(env!("CARGO"));
    let built = cargo
        .args(["build", "--quiet", "--example", "counter"])
        .current_dir(root);
    let built = built.output().unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    // Beside this test's folder.
    let this = std::env::current_exe().unwrap();
    let path = this
        .parent()
        .unwrap()
        .with_file_name("examples")
        .join("counter");
    assert!(path.is_file(), "{} is not there", path.display());
    path
}

/// The job file of the examples, with the program where it is.
fn job() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/jobs/counter.toml");
    let text = fs::read_to_string(file).unwrap();
    let named = "program = \"../../target/debug/examples/counter\"";
    assert!(text.contains(named), "{text}");
    let program = counter();
    text.replace(named, &format!("program = '{}'", program.display()))
        .replace("interval = \"1s\"", "interval = \"150ms\"")
}

#[test]
fn the_example_runs_is_killed_and_loses_nothing() {
    let stage = Stage::new();
    let mut up = stage.up("counter", &job());
    up.runs();
    up.completes(2);
    let before = up.events().len();
    assert!(up.program("p2").signal(Signal::SIGKILL).unwrap());
    let running = up.event_after(before, "the restore", |event| event["event"] == "running");
    assert_ne!(running["snapshot"], "s0");
    let complete = up.completes(2);
    let points = &complete["quantities"]["points"];
    let count = |field: &str| points[field].as_i64().unwrap();
    assert_eq!(count("in_states") + count("in_channels"), 300, "{complete}");
    up.ask(&["verify", "--all"])
        .yes()
        .says(&["every verdict holds"]);
    up.interrupt();
}

#[test]
fn a_part_of_another_application_is_refused_by_name() {
    let stage = Stage::new();
    let mut up = stage.up("counter", &job());
    up.runs();
    up.completes(1);
    up.interrupt();
    // The same processes and channels, but their states are of something else.
    let counter = job();
    let lines = counter.lines().filter(|line| !line.starts_with("program"));
    let bank = lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace("\"counter\"", "\"bank\"");
    stage.write("counter.toml", &bank);
    let up = Up::start(&stage, "counter");
    let words = [
        "cannot be restored",
        "snapshots/",
        ".part",
        "'counter'",
        "'bank'",
    ];
    let answer = up.ends().says(&words);
    assert_eq!(answer.code, 2, "it could not even start: {answer}");
}
