//! Steps in words, for the story that a run tells.

use std::fmt;

use super::{Bound, Condition, Expectation, Step, Target};
use crate::job::{COLLECTOR, list};
use crate::protocol::Topology;
use crate::protocol::ids::ProcessId;

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(number) => write!(f, "{number}"),
            Self::AtLeast(number) => write!(f, "at least {number}"),
            Self::AtMost(number) => write!(f, "at most {number}"),
        }
    }
}

impl Target {
    /// The name of the process, or `collector`.
    pub fn name(self, topology: &Topology) -> &str {
        match self {
            Self::Node(process) => topology.name(process),
            Self::Collector => COLLECTOR,
        }
    }
}

impl Step {
    /// The step as a sentence would have it: `kill p2 at recorded`.
    pub fn describe(&self, topology: &Topology) -> String {
        let names = |processes: &mut dyn Iterator<Item = &ProcessId>| {
            list(processes.map(|process| topology.name(*process)))
        };
        let targets = |targets: &std::collections::BTreeSet<Target>| {
            list(targets.iter().map(|target| target.name(topology)))
        };
        match self {
            Self::Send { process, text } => format!("tell {}: {text}", topology.name(*process)),
            Self::Snapshot {
                from,
                mode,
                alignment_timeout,
                wait,
            } => {
                let mode = mode.map_or_else(String::new, |mode| format!("{mode} "));
                let limit = alignment_timeout.map_or_else(String::new, |limit| {
                    format!(", unaligned after {}", humantime::format_duration(limit))
                });
                let from = match from.is_empty() {
                    true => String::new(),
                    false => format!(" from {}", names(&mut from.iter())),
                };
                let wait = if *wait { ", and wait for it" } else { "" };
                format!("{mode}snapshot{from}{limit}{wait}")
            }
            Self::Kill {
                targets: who,
                at_point: None,
            } => format!("kill {}", targets(who)),
            Self::Kill {
                targets: who,
                at_point: Some(point),
            } => {
                format!("kill {} at {point}", targets(who))
            }
            Self::Pause { targets: who } => format!("pause {}", targets(who)),
            Self::Resume { targets: who } => format!("resume {}", targets(who)),
            Self::Restart { targets: who } => format!("restart {}", targets(who)),
            Self::Break { channel } => {
                format!("break the stream of {}", topology.channel_name(*channel))
            }
            Self::Restore {
                snapshot: Some(snapshot),
            } => format!("restore {snapshot}"),
            Self::Restore { snapshot: None } => "restore the newest snapshot".to_owned(),
            Self::Wait { conditions, .. } => {
                let conditions = conditions
                    .iter()
                    .map(|condition| condition.describe(topology));
                format!("wait for {}", list(conditions))
            }
            Self::Expect { expectations } => {
                let expectations = expectations.iter().map(Expectation::describe);
                format!("expect {}", list(expectations))
            }
        }
    }
}

impl Condition {
    /// The condition in words: `p2 lost`.
    pub fn describe(&self, topology: &Topology) -> String {
        match self {
            Self::Snapshots(count) => format!("{count} complete snapshots"),
            Self::Generation(generation) => format!("generation {generation}"),
            Self::Running => "everyone running".to_owned(),
            Self::Lost(process) => format!("{} lost", topology.name(*process)),
            Self::Joined(process) => format!("{} joined", topology.name(*process)),
            Self::Time(time) => humantime::format_duration(*time).to_string(),
            Self::Idle => "nothing moving".to_owned(),
        }
    }
}

impl Expectation {
    /// The expectation in words: `complete snapshots: at least 3`.
    pub fn describe(&self) -> String {
        match self {
            Self::Snapshots(bound) => format!("complete snapshots: {bound}"),
            Self::Aborted(bound) => format!("aborted snapshots: {bound}"),
            Self::Restores(bound) => format!("restores: {bound}"),
            Self::Generation(bound) => format!("generation: {bound}"),
            Self::Verdicts => "every verdict holds".to_owned(),
            Self::Quantities(quantities) => {
                let amounts = quantities
                    .iter()
                    .map(|(name, amount)| format!("{name} = {amount}"));
                format!("in every complete snapshot {}", list(amounts))
            }
        }
    }
}
