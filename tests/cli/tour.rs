//! The tour of the README, typed by somebody who reads while typing: every command of it answers as
//! it says there.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::folder::{Answer, Folder};
use crate::running::{json, until};

/// The blocks of commands under the heading that the tour has.
fn tour() -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let from = readme.split_once("### To learn or to teach").unwrap().1;
    let section = from.split_once("\n### ").unwrap().0;
    let blocks = section.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split_once("```").unwrap().0);
    blocks
        .flat_map(|block| block.lines().map(str::to_owned))
        .collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a shell answers to a line, where `cutline` is the one that is tested.
fn typed(folder: &Folder, line: &str) -> Answer {
    let programs = Path::new(env!("CARGO_BIN_EXE_cutline")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    folder.prepare(&mut shell);
    shell.args(["-c", line]);
    shell.env("PATH", format!("{}:{path}", programs.display()));
    Answer::of(&shell.output().unwrap())
}

fn generation(folder: &Folder) -> Option<String> {
    let status = json(&folder.ask(&["status", "--format", "json"]));
    (status["phase"] == "running").then(|| status["generation"].as_str().unwrap().to_owned())
}

/// The snapshots that the store has, the oldest first.
fn complete(folder: &Folder) -> Vec<String> {
    let list = json(&folder.ask(&["list", "--format", "json"]));
    let all = list["snapshots"].as_array().unwrap().iter();
    let complete = all.filter(|row| row["state"] == "complete");
    complete
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_tour_of_the_readme_can_be_followed_by_whoever_takes_the_time_to_read() {
    let folder = Folder::new();
    let jobs = folder.path().join("examples/jobs");
    fs::create_dir_all(&jobs).unwrap();
    let job = fs::read_to_string(root().join("examples/jobs/bank.toml")).unwrap();
    // The reader's minutes, in seconds: snapshots at a quick pace, and little patience.
    let job = job.replace("interval = \"1s\"", "interval = \"20ms\"");
    fs::write(jobs.join("bank.toml"), format!("silence = \"4s\"\n{job}")).unwrap();
    let lines = tour();
    let has = |wanted: &str| lines.iter().any(|line| line.starts_with(wanted));
    for wanted in ["cutline show s1", "cutline restore s1", "printf X", "rm -r"] {
        assert!(has(wanted), "no '{wanted}' in {lines:#?}");
    }
    for line in &lines {
        let line = if let Some(rest) = line.strip_prefix("sleep 11; ") {
            until("the replacement of p3", || {
                generation(&folder).as_deref() == Some("g3")
            });
            rest
        } else {
            line
        };
        if line.starts_with("cutline list") {
            until("as many snapshots as a reader sees", || {
                complete(&folder).len() > 30
            });
        }
        let answer = typed(&folder, line);
        let wanted = i32::from(line.starts_with("cutline verify --all"));
        assert_eq!(answer.code, wanted, "{line}: {answer:?}");
        if line.starts_with("cutline kill p2") {
            until("the restore", || {
                generation(&folder).as_deref() == Some("g2")
            });
        }
        if wanted == 1 {
            assert!(answer.out.contains("s1"), "{answer:?}");
            assert!(answer.out.contains("p2.part"), "{answer:?}");
        }
    }
    assert!(!jobs.join("bank.cutline").exists());
}
