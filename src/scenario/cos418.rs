//! Scenarios in the form of COS 418, Princeton's course on distributed systems: a file of the
//! topology (`.top`) and a file of what happens (`.events`).
//!
//! Ids are opaque and sorted by their bytes, so `N10` stands before `N2`. Lines with no `tick`
//! between them happen together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::top::Servers;
use super::{Bound, Condition, Expectation, STEPS_MAX, Scenario, ScenarioError, Scheduled, Step};
use super::{TIMEOUT, WAIT_TIMEOUT, read_file};
use crate::job::{Document, Job, list, unfit, unreached};
use crate::protocol::ids::{ChannelId, ProcessId};

/// How long everything is under way, in ticks. The files count on it that nothing arrives in the
/// tick in which it is sent; between one and five ticks is what the course's own simulator draws.
/// The longest leaves most time to do all that is to begin together.
const DELAY_TICKS: u64 = 5;

/// What the application `token` counts.
const QUANTITY: &str = "tokens";

/// The text of a file, and its name for what is wrong in it.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The file.
    pub origin: &'a Path,
    /// What it holds.
    pub text: &'a str,
}

impl Scenario {
    /// Reads and checks a scenario in the COS 418 form.
    ///
    /// # Errors
    /// If a file cannot be read, or with everything in it that makes no sense.
    pub fn load_cos418(events: &Path, top: &Path, tick_ms: u64) -> Result<Self, ScenarioError> {
        let (events_text, top_text) = (read_file(events)?, read_file(top)?);
        let events = Text {
            origin: events,
            text: &events_text,
        };
        Self::from_cos418(
            events,
            Text {
                origin: top,
                text: &top_text,
            },
            tick_ms,
        )
    }

    /// Checks a scenario in the COS 418 form. A tick lasts `tick_ms`; the file of events gives
    /// the job its name and directory.
    ///
    /// # Errors
    /// With everything that makes no sense.
    pub fn from_cos418(
        events: Text<'_>,
        top: Text<'_>,
        tick_ms: u64,
    ) -> Result<Self, ScenarioError> {
        let servers = Servers::read(top)?;
        let delay = Duration::from_millis(tick_ms.saturating_mul(DELAY_TICKS));
        let snapshots = lines(events.text)
            .filter(|(_, fields)| fields[0] == "snapshot")
            .count();
        let job = servers.job(events.origin, snapshots as u64, delay)?;
        let document = Document::new(events.origin.to_string_lossy(), events.text);
        let total = servers.total();
        let mut script = Script {
            document: &document,
            job: &job,
            total,
            tick_ms,
            ticks: Duration::ZERO,
            snapshots: 0,
            steps: Vec::new(),
        };
        let mut last = 1;
        for (line, fields) in lines(events.text) {
            script.event(line, &fields);
            last = line;
        }
        script.end(last);
        let (timeout, steps) = (TIMEOUT + script.ticks, script.steps);
        document.verdict().map_err(ScenarioError::Refused)?;
        let name = stem(events.origin);
        Ok(Self {
            name,
            job,
            timeout,
            steps,
            notes: servers.notes,
        })
    }
}

/// The lines that say something, with their numbers and fields; a line has at least one.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (u32, Vec<&str>)> {
    let numbered = (1..).zip(text.lines());
    let fields = numbered.map(|(line, text)| (line, text.split_whitespace().collect::<Vec<_>>()));
    fields.filter(|(_, fields)| fields.first().is_some_and(|first| !first.starts_with('#')))
}

pub(super) fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// An `.events` file.
struct Script<'a> {
    document: &'a Document,
    job: &'a Job,
    total: i64,
    tick_ms: u64,
    ticks: Duration,
    snapshots: u64,
    steps: Vec<Scheduled>,
}

impl Script<'_> {
    fn event(&mut self, line: u32, fields: &[&str]) {
        let step = match *fields {
            ["send", from, to, tokens] => self.send(line, from, to, tokens),
            ["snapshot", process] => self.snapshot(line, process),
            ["tick"] => self.tick(line, "1"),
            ["tick", count] => self.tick(line, count),
            _ => {
                let problem = format!("'{}' is no event", fields.join(" "));
                self.refuse(
                    line,
                    problem,
                    "write send FROM TO N, snapshot ID, tick or tick N",
                );
                None
            }
        };
        let Some(step) = step else { return };
        let is_tick = |step: &Step| matches!(step, Step::Wait { .. });
        let after_tick = self.steps.last().is_none_or(|last| is_tick(&last.step));
        let together = !after_tick && !is_tick(&step);
        self.steps.push(Scheduled {
            line,
            at: None,
            together,
            step,
        });
        if self.steps.len() == STEPS_MAX + 1 {
            self.refuse(
                line,
                format!("this is event {STEPS_MAX} and one"),
                "take fewer",
            );
        }
    }

    fn refuse(&self, line: u32, problem: impl Into<String>, remedy: impl Into<String>) {
        self.document.refuse(Some(line), problem, remedy);
    }

    fn process(&self, line: u32, id: &str) -> Option<ProcessId> {
        let topology = self.job.topology();
        let process = topology.process(id);
        if process.is_none() {
            let known = list(topology.processes().map(|process| topology.name(process)));
            self.refuse(
                line,
                format!("there is no server '{id}'"),
                format!("use one of {known}"),
            );
        }
        process
    }

    fn send(&self, line: u32, from: &str, to: &str, tokens: &str) -> Option<Step> {
        let (process, end) = (self.process(line, from), self.process(line, to));
        let (process, end) = (process?, end?);
        if !self.job.topology().contains(ChannelId::new(process, end)) {
            let problem = format!("there is no link {from} {to} to send on");
            self.refuse(line, problem, "add it to the topology");
        }
        match tokens.parse::<u32>() {
            Ok(tokens) if i64::from(tokens) <= self.total => Some(Step::Send {
                process,
                text: format!("send {to} {tokens}"),
            }),
            Ok(_) => {
                let problem = format!("the send waits for ever: there are {} tokens", self.total);
                self.refuse(line, problem, "send fewer");
                None
            }
            Err(_) => {
                self.refuse(
                    line,
                    format!("'{tokens}' is no number of tokens"),
                    "give one from 0",
                );
                None
            }
        }
    }

    fn snapshot(&mut self, line: u32, id: &str) -> Option<Step> {
        let from = BTreeSet::from([self.process(line, id)?]);
        if let Some((problem, _)) = unreached(self.job.topology(), &from) {
            self.refuse(line, problem, "begin at another server, or add links");
        }
        self.snapshots += 1;
        Some(Step::Snapshot {
            from,
            mode: None,
            alignment_timeout: None,
            wait: false,
        })
    }

    fn tick(&mut self, line: u32, count: &str) -> Option<Step> {
        let Ok(count) = count.parse::<u64>() else {
            self.refuse(
                line,
                format!("'{count}' is no number of ticks"),
                "give one from 0",
            );
            return None;
        };
        let time = Duration::from_millis(count.saturating_mul(self.tick_ms));
        self.ticks = self.ticks.saturating_add(time);
        if let Some(problem) = unfit(self.ticks) {
            self.refuse(
                line,
                format!("up to here it takes {problem}"),
                "shorten the ticks",
            );
            return None;
        }
        let conditions = vec![Condition::Time(time)];
        Some(Step::Wait {
            conditions,
            timeout: time + WAIT_TIMEOUT,
        })
    }

    /// All snapshots complete, nothing moves any more, and every token is there.
    fn end(&mut self, line: u32) {
        let conditions = vec![Condition::Snapshots(self.snapshots), Condition::Idle];
        let mut expectations = vec![Expectation::Snapshots(Bound::Exactly(self.snapshots))];
        // Where the file takes none there is nothing to be judged.
        if self.snapshots > 0 {
            let all = BTreeMap::from([(QUANTITY.to_owned(), self.total)]);
            expectations.extend([Expectation::Verdicts, Expectation::Quantities(all)]);
        }
        let wait = Step::Wait {
            conditions,
            timeout: WAIT_TIMEOUT,
        };
        for step in [wait, Step::Expect { expectations }] {
            self.steps.push(Scheduled {
                line,
                at: None,
                together: false,
                step,
            });
        }
    }
}
