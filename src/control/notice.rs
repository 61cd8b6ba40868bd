//! What is told about a job while it runs: one line each for people, one JSON object each for
//! programs.

use std::fmt::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use serde::Serialize;

use super::who::Who;
use crate::check::{Answer, Verdicts};
use crate::collector::{Complete, JobEvent, Total};
use crate::protocol::ids::SnapshotId;

/// Something worth a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Notice {
    /// Something the supervisor has seen or done.
    Programs(Programs),
    /// Something that happened inside the job, as the collector tells it.
    Job {
        /// What.
        #[serde(flatten)]
        event: JobEvent,
        /// For a complete snapshot: what its manifest says of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        verdicts: Option<Verdicts>,
    },
}

/// What happens to the programs of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Programs {
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
    /// The job does not run yet.
    Waiting {
        /// For how long by now.
        elapsed_ms: u64,
        /// The processes that have not joined.
        processes: Vec<String>,
    },
    /// Everything is being ended.
    Stopping,
    /// Processes could not be ended.
    Left {
        /// Their pids.
        pids: Vec<u32>,
    },
}

impl From<Programs> for Notice {
    fn from(programs: Programs) -> Self {
        Self::Programs(programs)
    }
}

impl Notice {
    /// Whether a person wants to read it, too: what happens many times a second, or is said
    /// better by what follows it, is for programs only.
    pub fn is_notable(&self) -> bool {
        !matches!(
            self,
            Self::Job {
                event: JobEvent::Joined { .. }
                    | JobEvent::Begun { .. }
                    | JobEvent::Replace { .. }
                    | JobEvent::Absent { .. },
                ..
            }
        )
    }
}

impl Notice {
    /// Whether it says that every process runs.
    pub const fn is_running(&self) -> bool {
        matches!(
            self,
            Self::Job {
                event: JobEvent::Running { .. },
                ..
            }
        )
    }

    /// Whether it tells of something that should not be.
    pub fn is_bad(&self) -> bool {
        match self {
            Self::Programs(programs) => matches!(
                programs,
                Programs::Died { .. } | Programs::GivenUp { .. } | Programs::Left { .. }
            ),
            Self::Job { event, verdicts } => {
                let fails = verdicts.as_ref().is_some_and(|verdicts| !verdicts.hold());
                let bad = matches!(
                    event,
                    JobEvent::Aborted { .. }
                        | JobEvent::Failed { .. }
                        | JobEvent::Warning { .. }
                        | JobEvent::Ended { .. }
                );
                bad || fails
            }
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Programs(programs) => programs.fmt(f),
            Self::Job { event, verdicts } => job(f, event, verdicts.as_ref()),
        }
    }
}

impl fmt::Display for Programs {
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
            Self::Waiting {
                elapsed_ms,
                processes,
            } => {
                write!(f, "not running after {} s", elapsed_ms / 1000)?;
                match processes.len() {
                    0 => f.write_str(": every process has joined, and its state is being loaded"),
                    // The names of a thousand help nobody.
                    1..=8 => write!(f, ": waiting for {}", processes.join(", ")),
                    count => write!(f, ": waiting for {count} processes"),
                }
            }
            Self::Stopping => f.write_str("stopping"),
            Self::Left { pids } => write!(f, "could not end {}", listed(pids)),
        }
    }
}

fn listed(pids: &[u32]) -> String {
    let texts: Vec<_> = pids.iter().map(|pid| format!("pid {pid}")).collect();
    texts.join(", ")
}

fn job(f: &mut fmt::Formatter<'_>, event: &JobEvent, verdicts: Option<&Verdicts>) -> fmt::Result {
    match event {
        JobEvent::Joined { process, pid, .. } => write!(f, "{process} has joined (pid {pid})"),
        JobEvent::Lost { process, .. } => write!(f, "{process} is lost"),
        JobEvent::Begun { snapshot } => write!(f, "{snapshot} has begun"),
        JobEvent::Complete(complete) => f.write_str(&snapshot(complete, verdicts)),
        JobEvent::Aborted {
            snapshot, reason, ..
        } => write!(f, "{snapshot} aborted: {reason}"),
        JobEvent::Failed { reason } => write!(f, "a snapshot failed: {reason}"),
        JobEvent::Warning { reason } => write!(f, "warning: {reason}"),
        JobEvent::Restoring {
            generation,
            snapshot,
        } => write!(f, "restoring {} as generation {generation}", cut(*snapshot)),
        JobEvent::Running {
            generation,
            snapshot,
        } => write!(f, "running generation {generation} from {}", cut(*snapshot)),
        JobEvent::Replace { process, .. } => write!(f, "{process} is to be replaced"),
        JobEvent::Absent { process } => write!(f, "{process} has not joined"),
        JobEvent::Finished => f.write_str("the job has finished"),
        JobEvent::Ended { reason } => write!(f, "the job has ended: {reason}"),
    }
}

/// A snapshot as something to start from.
pub fn cut(snapshot: SnapshotId) -> String {
    match snapshot.get() {
        0 => "the initial state (s0)".to_owned(),
        _ => snapshot.to_string(),
    }
}

fn snapshot(complete: &Complete, verdicts: Option<&Verdicts>) -> String {
    let Complete {
        snapshot,
        elapsed_ms,
        in_transit,
        quantities,
        ..
    } = complete;
    let mut text = format!("{snapshot} complete in {elapsed_ms} ms, {in_transit} in channels");
    for (name, total) in quantities {
        let Total {
            in_states,
            in_channels,
            expected,
        } = total;
        let _ = write!(text, ", {name} {in_states} + {in_channels} of {expected}");
    }
    if let Some(verdicts) = verdicts {
        let _ = write!(text, ": {}", verdict_line(verdicts));
    }
    text
}

/// All verdicts in a few words: those that hold by name, those that do not with the evidence.
pub fn verdict_line(verdicts: &Verdicts) -> String {
    let holding = verdicts
        .0
        .iter()
        .filter(|verdict| verdict.holds == Answer::Yes);
    let holding: Vec<_> = holding.map(|verdict| verdict.name).collect();
    let failing = verdicts
        .0
        .iter()
        .filter(|verdict| verdict.holds == Answer::No);
    let failing: Vec<_> = failing
        .map(|verdict| format!("NOT {}: {}", verdict.name, verdict.evidence))
        .collect();
    match (holding.is_empty(), failing.is_empty()) {
        (_, true) => holding.join(", "),
        (true, false) => failing.join("; "),
        (false, false) => format!("{}; {}", failing.join("; "), holding.join(", ")),
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::protocol::ids::Generation;
    use crate::protocol::mode::Mode;

    #[test]
    fn a_notice_is_one_object_with_an_event() {
        let died = Notice::from(Programs::Died {
            who: Who::named("p1"),
            pid: 7,
            how: "was killed by SIGKILL".to_owned(),
            lines: vec!["last words".to_owned()],
        });
        let json = serde_json::to_value(&died).unwrap();
        let expected = serde_json::json!({
            "event": "died", "who": "p1", "pid": 7, "how": "was killed by SIGKILL",
            "lines": ["last words"],
        });
        assert_eq!(json, expected);
        assert_eq!(
            died.to_string(),
            "p1 (pid 7) was killed by SIGKILL\n  | last words"
        );
    }

    #[test]
    fn a_complete_snapshot_is_one_line_with_its_sums() {
        let total = Total {
            in_states: 170,
            in_channels: 30,
            expected: 200,
        };
        let event = JobEvent::Complete(Complete {
            snapshot: SnapshotId::new(4),
            generation: Generation::new(2),
            mode: Mode::Unaligned,
            elapsed_ms: 12,
            bytes: 100,
            in_transit: 3,
            quantities: BTreeMap::from([("money".to_owned(), total)]),
        });
        let notice = Notice::Job {
            event,
            verdicts: None,
        };
        let line = "s4 complete in 12 ms, 3 in channels, money 170 + 30 of 200";
        assert_eq!(notice.to_string(), line);
        let json = serde_json::to_value(&notice).unwrap();
        assert_eq!(
            (&json["event"], &json["snapshot"]),
            (&"complete".into(), &"s4".into())
        );
        assert!(json.get("verdicts").is_none());
    }
}
