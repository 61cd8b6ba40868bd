//! The programs of tests, built with the feature, and what becomes of one test under a mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Test programs by their names.
pub(crate) struct Programs(BTreeMap<String, PathBuf>);

/// What became of a test.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    /// It ran and failed, and this is the first that it said.
    Failed(String),
    /// There is no such test, or the program broke off.
    DidNotRun(String),
}

impl Programs {
    /// Builds them, with the feature that this one is built with; where that was done, it is quick.
    pub(crate) fn build(names: BTreeSet<&str>) -> Self {
        let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        build.args(["test", "--no-run", "--features", "mutants"]);
        build.args(["--message-format", "json"]);
        build.args(names.iter().flat_map(|name| ["--test", name]));
        let built = build.output().expect("cargo");
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        assert!(built.status.success(), "{said}");
        let lines = built.stdout.split(|byte| *byte == b'\n');
        let messages = lines.filter_map(|line| serde_json::from_slice(line).ok());
        let programs = messages.filter_map(|message: serde_json::Value| {
            let name = message["target"]["name"].as_str()?.to_owned();
            Some((name, message["executable"].as_str()?.into()))
        });
        Self(programs.collect())
    }

    /// Runs one test of a program, under a mutant or without.
    pub(crate) fn run(&self, program: &str, test: &str, mutant: Option<&str>) -> Verdict {
        let mut run = Command::new(&self.0[program]);
        run.args([test, "--exact"]);
        run.env_remove("CUTLINE_MUTANT").env_remove("REWRITE");
        run.env("RUST_BACKTRACE", "0");
        run.envs(mutant.map(|mutant| ("CUTLINE_MUTANT", mutant)));
        let output = run.output().expect("the test runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let tells = |of: &str| said.contains(&format!("test {test} ... {of}"));
        match (tells("ok"), tells("FAILED")) {
            (true, false) => Verdict::Passed,
            (false, true) => Verdict::Failed(reason(&said)),
            _ => Verdict::DidNotRun(said.into_owned()),
        }
    }
}

/// The line behind that which tells where it panicked.
fn reason(said: &str) -> String {
    let mut lines = said
        .lines()
        .skip_while(|line| !line.contains("panicked at"));
    lines.nth(1).unwrap_or_default().to_owned()
}
