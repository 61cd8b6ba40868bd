//! Starts that fail: they say why, once, and leave no process, no port and no file.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::{fs, path::Path};

use crate::stage::Stage;

const JOB: &str = "processes = 2\ntopology = \"ring\"\n[application]\nname = \"bank\"\n";

/// Starts the job both ways; each says these words and leaves nothing.
fn fails(stage: &Stage, job: &str, words: &[&str]) {
    let before = entries(stage.path());
    stage.write("bank.toml", job);
    for arguments in [&["up", "bank.toml"][..], &["up", "bank.toml", "--detach"]] {
        let answer = stage.ask(arguments).says(words);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{answer}");
        assert_eq!(stage.processes(), []);
        let mut after = entries(stage.path());
        after.retain(|name| !name.starts_with("asked-") && name != "bank.toml" && name != "tmp");
        assert_eq!(after, before, "{answer}");
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_store_that_cannot_be_made_is_named() {
    let stage = Stage::new();
    stage.write("file", "");
    let job = format!("{JOB}[store]\nurl = \"file/store\"\n");
    fails(&stage, &job, &["file/store"]);
}

#[test]
fn a_program_that_ends_at_once_is_named_with_what_it_said() {
    let stage = Stage::new();
    let program = stage.write("own", "#!/bin/sh\necho 'no licence found' >&2\nexit 2\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let job = format!("program = \"own\"\n{JOB}").replace("\"bank\"", "\"own\"");
    fails(&stage, &job, &["could not start", "no licence found"]);
}

#[test]
fn a_program_that_cannot_be_executed_is_named() {
    let stage = Stage::new();
    stage.write("own", "not a program");
    let job = format!("program = \"own\"\n{JOB}").replace("\"bank\"", "\"own\"");
    fails(&stage, &job, &["own", "Permission denied"]);
}

#[test]
fn a_job_that_runs_is_not_started_twice() {
    let stage = Stage::new();
    let mut up = stage.up("bank", JOB);
    up.runs();
    for arguments in [&["up", "bank.toml"][..], &["up", "bank.toml", "--detach"]] {
        let answer = stage.ask(arguments).says(&["is in use by pid"]);
        assert_eq!(answer.code, 2, "{answer}");
    }
    up.snapshot();
    up.interrupt();
}

#[test]
fn a_port_that_is_taken_is_named_by_collector_and_node() {
    let stage = Stage::new();
    let file = stage.write("bank.toml", JOB);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let programs = [
        (env!("CARGO_BIN_EXE_cutline-collector"), &[][..]),
        (env!("CARGO_BIN_EXE_cutline-node"), &["--process", "p1"][..]),
    ];
    for (program, more) in programs {
        let mut command = stage.program(program);
        command
            .arg("--job")
            .arg(&file)
            .args(["--listen", &address])
            .args(more);
        let answer = crate::asked::Answer::of(command, stage.path(), crate::stage::BOUND);
        let answer = answer.says(&[&address, "in use"]);
        assert_eq!(answer.code, 2, "{answer}");
    }
    assert!(!stage.path().join("bank.cutline/run").exists());
}
