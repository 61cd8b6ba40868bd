//! A folder with a job file in it, and the program to be asked there.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub(crate) const JOB: &str = r#"
processes = ["alice", "bob"]
topology = "ring"
[application]
name = "bank"
"#;

/// The folder. What still runs in it is ended with it.
pub(crate) struct Folder {
    top: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        // Ids are given out when a test asks, however long it takes.
        let job = format!("{JOB}[snapshots]\ninterval = \"0s\"\n");
        fs::write(top.path().join("bank.toml"), job).unwrap();
        Self { top }
    }

    /// With the directory of a job that was up once.
    pub(crate) fn with_job(name: &str) -> Self {
        let folder = Self::new();
        folder.add_job(name);
        folder
    }

    pub(crate) fn add_job(&self, name: &str) {
        let directory = self.path().join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(
            directory.join("job.toml"),
            format!("name = \"bank\"\n{JOB}"),
        )
        .unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.top.path()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(arguments);
        self.prepare(&mut command);
        command
    }

    /// Has a program run in the folder, with nothing in its environment that changes what it does:
    /// whoever runs the tests may have settings of their own.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.current_dir(self.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CUTLINE_") {
                command.env_remove(name);
            }
        }
    }

    pub(crate) fn ask(&self, arguments: &[&str]) -> Answer {
        Answer::of(&self.command(arguments).output().unwrap())
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            code: output.status.code().expect("it was not killed"),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// It could not be asked: nothing on standard output, and this on standard error.
    pub(crate) fn assert_error(&self, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "'{word}' is not in {}", self.err);
        }
    }

    /// The answer is no, for this reason.
    pub(crate) fn assert_no(&self, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (1, ""), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "'{word}' is not in {}", self.err);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for below in ["", "examples/jobs"].map(|folder| self.path().join(folder)) {
            for entry in fs::read_dir(below).into_iter().flatten().flatten() {
                if entry.path().join("run").is_dir() {
                    let directory = entry.path();
                    let _ = self
                        .command(&["down", "--dir", directory.to_str().unwrap()])
                        .output();
                }
            }
        }
    }
}
