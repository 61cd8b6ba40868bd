//! How a scenario came out.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::asked::Answer;

/// The lines of each program's log that are shown when a test fails, and how much of each.
const LAST_LINES: usize = 25;
const LINE_CHARS: usize = 200;

/// A scenario that has come to its end.
pub(crate) struct Ran {
    answer: Answer,
    directory: PathBuf,
    /// The answer, in the form `docs/scenario.md` describes.
    pub(crate) view: Value,
    /// Everything that was told meanwhile, in order.
    pub(crate) events: Vec<Value>,
}

impl Ran {
    pub(crate) fn new(answer: Answer, directory: PathBuf) -> Self {
        let events = events(&answer.err);
        let view = serde_json::from_str(&answer.out).unwrap_or_default();
        Self {
            answer,
            directory,
            view,
            events,
        }
    }

    /// Every expectation and every verdict holds.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert!(self.answer.code == 0 && self.view["ok"] == true, "{self}");
        self
    }

    /// An expectation does not hold; this word is in what is said about it.
    #[track_caller]
    pub(crate) fn fails(self, word: &str) -> Self {
        assert!(self.answer.code == 1 && self.view["ok"] == false, "{self}");
        let failures = self.view["failures"].to_string();
        assert!(failures.contains(word), "'{word}' is not in {self}");
        self
    }

    /// The events of one kind.
    pub(crate) fn events<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events
            .iter()
            .filter(move |event| event["event"] == kind)
    }

    /// How many events of one kind there were.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.events(kind).count()
    }

    /// A number of the answer.
    #[track_caller]
    pub(crate) fn number(&self, field: &str) -> u64 {
        self.view[field]
            .as_u64()
            .unwrap_or_else(|| panic!("no {field} in {self}"))
    }

    /// How many messages were found in channels, in all snapshots together.
    pub(crate) fn in_transit(&self) -> u64 {
        let found = self
            .events("complete")
            .map(|event| event["in_transit"].as_u64());
        found.flatten().sum()
    }

    /// Where the job was kept.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.answer)?;
        f.write_str(&last_lines(&self.directory.join("logs")))
    }
}

/// What a program tells on standard error, an object a line.
pub(crate) fn events(text: &str) -> Vec<Value> {
    let read = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.to_owned())));
    read.collect()
}

/// The end of every log in a folder.
pub(crate) fn last_lines(logs: &Path) -> String {
    let mut text = String::new();
    let entries = fs::read_dir(logs).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let log = fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<String> = log
            .lines()
            .map(|line| line.chars().take(LINE_CHARS).collect())
            .collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        text.push_str(&format!("--- {}\n{}\n", path.display(), last.join("\n")));
    }
    text
}
