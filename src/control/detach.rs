//! `cutline up --detach`: a supervisor in the background, and how it says that it has come up.
//!
//! The program executes itself once more, with what it would do in the foreground. The second
//! one tells the first on its standard output, in one line of JSON, that the job runs or why it
//! does not; after that line nobody listens there any more.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use super::directory::JobDirectory;
use super::{incarnations, logs, stop};

/// How long the foreground waits for the job to run before it leaves the rest to `status`: a
/// large state may take long to load, but a script should not hang on it for ever.
pub const RUNNING_WAIT: Duration = Duration::from_secs(60);

/// How many lines of the supervisor's log are shown when it ends without a word.
const LAST_LINES: usize = 10;

/// What the background says to the foreground.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Every process runs.
    Running {
        /// As a person is told.
        what: String,
    },
    /// The job does not run.
    Failed {
        /// Why.
        reason: String,
        /// Whether it could not even be started.
        start: bool,
    },
}

impl Word {
    /// Says it, in the background program. A foreground that has left is no matter.
    pub fn say(&self) {
        let line = serde_json::to_string(self).expect("a word is only text");
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// What became of a supervisor that was sent into the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detached {
    /// It runs, and so does the job.
    Running {
        /// The supervisor's pid.
        pid: u32,
        /// As a person is told.
        what: String,
    },
    /// It runs, but the job does not do so yet.
    NotYet {
        /// The supervisor's pid.
        pid: u32,
    },
    /// It has ended.
    Failed {
        /// Why.
        reason: String,
        /// Whether the job could not even be started.
        start: bool,
    },
}

impl Detached {
    /// Whether the job has run, or may yet.
    pub const fn has_run(&self) -> bool {
        !matches!(self, Self::Failed { start: true, .. })
    }
}

/// Executes this program in the background with these arguments, and waits until the job runs.
/// Cancelling `interrupted` ends the background again.
///
/// # Errors
/// If the program cannot be executed or its log not be written.
pub async fn detach(
    directory: &JobDirectory,
    arguments: &[OsString],
    interrupted: &CancellationToken,
) -> io::Result<Detached> {
    std::fs::create_dir_all(directory.logs())?;
    let path = directory.supervisor_log();
    let log = logs::open(&path)?;
    let log_from = logs::length(&path);
    let mut child = spawn(arguments, log)?;
    let pid = child.id().expect("nobody has waited for it");
    let out = child.stdout.take().expect("its output is a pipe");
    let word = tokio::select! {
        word = word(out) => Some(word),
        () = tokio::time::sleep(RUNNING_WAIT) => None,
        () = interrupted.cancelled() => {
            end(pid, &mut child).await;
            let reason = "interrupted before the job ran; it has been stopped".to_owned();
            return Ok(Detached::Failed { reason, start: true });
        }
    };
    Ok(match word {
        Some(Some(Word::Running { what })) => Detached::Running { pid, what },
        Some(Some(Word::Failed { reason, start })) => {
            // Until it has cleared up, so that nothing is left when we return.
            let _ = tokio::time::timeout(stop::SUPERVISOR_GRACE, child.wait()).await;
            Detached::Failed { reason, start }
        }
        Some(None) => {
            end(pid, &mut child).await;
            let lines = logs::tail(&path, log_from, LAST_LINES).join("\n  ");
            let reason = format!("the supervisor ended without a word; its log says:\n  {lines}");
            Detached::Failed {
                reason,
                start: true,
            }
        }
        None => Detached::NotYet { pid },
    })
}

fn spawn(arguments: &[OsString], log: File) -> io::Result<Child> {
    // The child makes itself a session of its own, which the leader of a group could not.
    Command::new(std::env::current_exe()?)
        // It would send itself into the background, and that one itself, and so on.
        .env_remove("CUTLINE_DETACH")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
}

/// The first line, if one comes before the end.
async fn word(out: ChildStdout) -> Option<Word> {
    let line = BufReader::new(out)
        .lines()
        .next_line()
        .await
        .ok()
        .flatten()?;
    serde_json::from_str(&line).ok()
}

async fn end(pid: u32, child: &mut Child) {
    let process: Vec<_> = incarnations::of(pid).into_iter().collect();
    stop::end(&process, stop::SUPERVISOR_GRACE, std::future::pending()).await;
    let _ = tokio::time::timeout(stop::KILL_GRACE, child.wait()).await;
}

/// Leaves the session of the terminal, in the background program: first thing, as a signal from
/// the terminal reaches it until then.
///
/// # Errors
/// If the operating system does not allow it.
pub fn leave_terminal() -> io::Result<()> {
    nix::unistd::setsid()?;
    Ok(())
}
