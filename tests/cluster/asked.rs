//! What a command of the program answered.

use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::stage::within;

/// Exit status, standard output and standard error.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    /// Runs a command to its end; its output goes to files of the folder, so that it never waits
    /// for us.
    pub(crate) fn of(mut command: Command, folder: &Path, bound: Duration) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = |end: &str| folder.join(format!("asked-{number}.{end}"));
        let (out, err) = (file("out"), file("err"));
        command.stdout(File::create(&out).unwrap());
        command.stderr(File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        let status = within(bound, &format!("{command:?}"), || child.try_wait().unwrap());
        Self {
            code: status
                .code()
                .unwrap_or_else(|| panic!("{command:?}: {status}")),
            out: fs::read_to_string(out).unwrap(),
            err: fs::read_to_string(err).unwrap(),
        }
    }

    /// The answer is yes.
    #[track_caller]
    pub(crate) fn yes(self) -> Self {
        assert_eq!(self.code, 0, "{self}");
        self
    }

    /// The answer is no, and it says so in these words.
    #[track_caller]
    pub(crate) fn no(self, words: &[&str]) -> Self {
        assert_eq!(self.code, 1, "{self}");
        self.says(words)
    }

    /// These words are in it.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            let said = self.out.contains(word) || self.err.contains(word);
            assert!(said, "'{word}' is not in {self}");
        }
        self
    }

    /// Standard output, read as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let read = serde_json::from_str(&self.out);
        read.unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, out, err } = self;
        write!(f, "exit status {code}\n--- out\n{out}\n--- err\n{err}")
    }
}
