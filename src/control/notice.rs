//! What is told about a job while it runs: one line each for people, one JSON object each for
//! programs.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use serde::Serialize;

use super::who::Who;

/// Something worth a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Notice {
    /// Programs of an earlier supervisor were still there and have been ended.
    Swept {
        /// Their pids.
        pids: Vec<u32>,
    },
    /// A program has ended though nobody wanted it to.
    Died {
        /// Which one.
        who: Who,
        /// Its pid.
        pid: u32,
        /// How it ended.
        how: String,
        /// The last lines of its log.
        lines: Vec<String>,
    },
    /// A program has been started again.
    Restarted {
        /// Which one.
        who: Who,
        /// Its new pid.
        pid: u32,
    },
    /// The collector has given up an incarnation that still exists.
    GivenUp {
        /// Which process.
        who: Who,
        /// Its pid.
        pid: u32,
    },
    /// An incarnation that was given up has ended.
    GivenUpEnded {
        /// Which process.
        who: Who,
        /// Its pid.
        pid: u32,
        /// How it ended.
        how: String,
    },
    /// Processes could not be ended.
    Left {
        /// Their pids.
        pids: Vec<u32>,
    },
}

impl Notice {
    /// One line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a notice has only texts and numbers")
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Swept { pids } => {
                write!(f, "ended what an earlier run left behind: {}", listed(pids))
            }
            Self::Died {
                who,
                pid,
                how,
                lines,
            } => {
                write!(f, "{who} (pid {pid}) {how}")?;
                lines.iter().try_for_each(|line| write!(f, "\n  | {line}"))
            }
            Self::Restarted { who, pid } => write!(f, "{who} started again (pid {pid})"),
            Self::GivenUp { who, pid } => {
                write!(
                    f,
                    "{who} (pid {pid}) does not answer: another takes its place"
                )
            }
            Self::GivenUpEnded { who, pid, how } => {
                write!(f, "{who}'s replaced incarnation (pid {pid}) {how}")
            }
            Self::Left { pids } => write!(f, "could not end {}", listed(pids)),
        }
    }
}

fn listed(pids: &[u32]) -> String {
    let texts: Vec<_> = pids.iter().map(|pid| format!("pid {pid}")).collect();
    texts.join(", ")
}

/// How a process ended, as the end of a sentence about it.
pub fn how(status: ExitStatus) -> String {
    if let Some(number) = status.signal() {
        return match Signal::try_from(number) {
            Ok(signal) => format!("was killed by {signal}"),
            Err(_) => format!("was killed by signal {number}"),
        };
    }
    match status.code() {
        Some(0) => "ended".to_owned(),
        Some(code) => format!("failed with exit status {code}"),
        None => "ended in an unknown way".to_owned(),
    }
}
