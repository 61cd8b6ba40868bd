//! Where one test plays: a folder, the programs run in it, and the proof that none is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::asked::Answer;
use crate::ran::Ran;
use crate::running::Up;

/// Far more than anything that is waited for takes, even on a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(10);

/// A program that is ending gets so long to be gone.
const GONE_BOUND: Duration = Duration::from_secs(10);

/// Held by a test that needs the machine for itself. The test runner of choice has a group for
/// that, see `.config/nextest.toml`; under plain `cargo test` all tests are in one program.
static ALONE: Mutex<()> = Mutex::new(());

/// A folder for one test.
pub(crate) struct Stage {
    top: TempDir,
    /// Only to be dropped.
    #[allow(dead_code)]
    alone: Option<MutexGuard<'static, ()>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self {
            top: tempfile::tempdir().unwrap(),
            alone: None,
        }
    }

    /// For a test under which others would suffer.
    pub(crate) fn alone() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stage = Self::new();
        stage.alone = Some(alone);
        stage
    }

    pub(crate) fn path(&self) -> &Path {
        self.top.path()
    }

    /// Writes a file, and answers with its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A program that will be run in the folder, with its temporary files there too.
    pub(crate) fn program(&self, program: &str) -> Command {
        let temporary = self.path().join("tmp");
        fs::create_dir_all(&temporary).unwrap();
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env("TMPDIR", temporary)
            .stdin(Stdio::null());
        // Whoever runs the tests may have settings of their own.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CUTLINE_") {
                command.env_remove(name);
            }
        }
        command
    }

    pub(crate) fn cutline(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_cutline"));
        command.args(arguments);
        command
    }

    /// Runs a command of the program to its end.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Answer {
        Answer::of(self.cutline(arguments), self.path(), BOUND)
    }

    /// Takes a scenario to its end, and keeps the job in the folder `<name>.out`.
    pub(crate) fn run(&self, name: &str, scenario: &str) -> Ran {
        let file = self.write(&format!("{name}.toml"), scenario);
        self.run_file(name, &[file.to_str().unwrap()])
    }

    /// The same for a scenario that is there already, with whatever flags it needs.
    pub(crate) fn run_file(&self, name: &str, arguments: &[&str]) -> Ran {
        let out = self.path().join(format!("{name}.out"));
        let mut command = self.cutline(&["run", "--format", "json", "--log-format", "json"]);
        command.arg("--out").arg(&out).args(arguments);
        // Its own timeout is over long before.
        let answer = Answer::of(command, self.path(), 10 * BOUND);
        Ran::new(answer, out)
    }

    /// Runs a job in the foreground of another process, until it is told to end.
    pub(crate) fn up(&self, name: &str, job: &str) -> Up<'_> {
        self.write(&format!("{name}.toml"), job);
        Up::start(self, name)
    }

    /// Every process with this folder in its command line, as pid and command line.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        let folder = self.path().to_str().unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let lines = pids.filter_map(|pid| {
            // What has ended and only waits to be waited for has an empty line.
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
        });
        lines.filter(|(_, line)| line.contains(folder)).collect()
    }

    /// Fails unless every process of this folder has ended.
    pub(crate) fn assert_nothing_runs(&self) {
        let begin = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(begin.elapsed() < GONE_BOUND, "left running: {left:#?}");
            std::thread::sleep(LOOK);
        }
    }

    /// Fails unless the folder for temporary files is empty.
    pub(crate) fn assert_no_temporary_file(&self) {
        let entries = fs::read_dir(self.path().join("tmp")).into_iter().flatten();
        let left: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assert_nothing_runs();
            self.assert_no_temporary_file();
            return;
        }
        // A test that fails leaves nothing either.
        for (pid, _) in self.processes() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Waits for the answer to a question.
pub(crate) fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    within(BOUND, what, ask)
}

/// The same, with a bound of one's own.
pub(crate) fn within<T>(bound: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begin.elapsed() < bound, "not within {bound:?}: {what}");
        std::thread::sleep(LOOK);
    }
}

/// Waits for what takes a future, on a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(future)
}
