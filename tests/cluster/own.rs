//! A user's own program: the example runs as any other job does, and another's state is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::running::Up;
use crate::stage::{Stage, until};

/// Builds an example, if it is not built yet, and answers with where it is.
fn example(name: &str) -> PathBuf {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut cargo = Command::new(env!("CARGO"));
    let built = cargo
        .args(["build", "--quiet", "--example", name])
        .current_dir(root);
    let built = built.output().unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    // Beside this test's folder.
    let this = std::env::current_exe().unwrap();
    let path = this.parent().unwrap().with_file_name("examples").join(name);
    assert!(path.is_file(), "{} is not there", path.display());
    path
}

/// The job file of an example, with the program where it is.
fn job(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/jobs");
    let text = fs::read_to_string(file.join(format!("{name}.toml"))).unwrap();
    let named = format!("program = \"../../target/debug/examples/{name}\"");
    assert!(text.contains(&named), "{text}");
    let program = example(name);
    text.replace(&named, &format!("program = '{}'", program.display()))
        .replace("interval = \"1s\"", "interval = \"150ms\"")
}

#[test]
fn the_example_runs_is_killed_and_loses_nothing() {
    let stage = Stage::new();
    let mut up = stage.up("counter", &job("counter"));
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
    let mut up = stage.up("counter", &job("counter"));
    up.runs();
    up.completes(1);
    up.interrupt();
    // The same processes and channels, but their states are of something else.
    let counter = job("counter");
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

#[test]
fn a_process_that_handles_or_restores_slowly_is_not_lost_and_its_snapshots_do_not_wait() {
    let stage = Stage::new();
    let mut up = stage.up("slow", &job("slow").replace("\"2s\"", "\"1s\""));
    up.runs();
    let handled = |up: &Up<'_>| {
        let status = up.ask(&["status", "--format", "json"]).yes().json();
        status["processes"][1]["handled"].as_u64().unwrap()
    };
    // At three milliseconds each, more than twice as long as silence is borne.
    until("messages that are handled", || {
        (handled(&up) > 800).then_some(())
    });
    let complete = up.completes(2);
    let in_channels = complete["quantities"]["parcels"]["in_channels"].as_i64();
    assert!(in_channels.unwrap() > 1000, "they pile up: {complete}");
    assert_eq!(up.count("running"), 1, "nobody was lost\n{}", up.story());
    // Both read their state again, and take more than twice as long as silence is borne.
    let before = up.events().len();
    assert!(up.program("p2").signal(Signal::SIGKILL).unwrap());
    let running = up.event_after(before, "the restore", |event| event["event"] == "running");
    assert_eq!(running["generation"], "g2", "at once\n{}", up.story());
    up.ask(&["verify", "--all"])
        .yes()
        .says(&["every verdict holds"]);
    up.interrupt();
}
