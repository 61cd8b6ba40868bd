//! From the tables of a scenario file to its steps, with every name looked up.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::snapshot::snapshot;
use super::{Condition, Point, STEPS_MAX, Scenario, Scheduled, Step, TIMEOUT, Target};
use super::{WAIT_TIMEOUT, conditions};
use crate::job::{COLLECTOR, Job, JobError, Placed, Section, beside, list, not};
use crate::protocol::Topology;
use crate::protocol::ids::{ChannelId, ProcessId, SnapshotId};

/// The words for steps.
const STEPS: [&str; 10] = [
    "send", "snapshot", "kill", "pause", "resume", "restart", "break", "restore", "wait", "expect",
];

/// Reads a scenario. None without its job; whatever is wrong is in the document.
pub(super) fn read(mut root: Section<'_>, origin: &Path) -> Option<Scenario> {
    let job = read_job(&mut root, origin);
    let timeout = root.duration("timeout");
    let timeout = timeout.unwrap_or(Placed {
        value: TIMEOUT,
        line: None,
    });
    if timeout.value.is_zero() {
        root.refuse(
            timeout.line,
            "timeout is zero",
            "give a duration such as \"60s\"",
        );
    }
    let tables = root.tables("step");
    root.need(
        "step",
        (!tables.is_empty()).then_some(()),
        "add steps: [[step]] do = \"snapshot\"",
    );
    if tables.len() > STEPS_MAX {
        let problem = format!("{} steps, over {STEPS_MAX}", tables.len());
        root.refuse(None, problem, "write a test program instead");
    }
    let document = root.document();
    root.finish();
    let job = job?;
    let mut reader = Reader {
        job: &job,
        topology: job.topology(),
        timeout: timeout.value,
        latest: Duration::ZERO,
        is_first: true,
    };
    let given = tables.len();
    let found = tables
        .into_iter()
        .filter_map(|table| reader.scheduled(table));
    let steps: Vec<Scheduled> = found.collect();
    let is_refused = document.is_refused();
    assert!(
        steps.len() == given || is_refused,
        "a step is left out only with a reason"
    );
    let name = origin
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Some(Scenario {
        name,
        job,
        timeout: timeout.value,
        steps,
        notes: Vec::new(),
    })
}

/// `job = "bank.toml"`, or the job itself in a table `[job]`.
fn read_job(root: &mut Section<'_>, origin: &Path) -> Option<Job> {
    let found = root.own("job");
    let found = root.need(
        "job",
        found,
        "give job = \"bank.toml\", or the job in a table [job]",
    )?;
    if let Some(value) = found.value.as_table() {
        let own = Placed {
            value,
            line: found.line,
        };
        return Job::read(root.document(), "[job]", own, origin);
    }
    let Some(path) = found.value.as_str() else {
        let (problem, remedy) = not(found.value, "the path of a job file, or a table [job]");
        root.refuse(found.line, format!("job {problem}"), remedy);
        return None;
    };
    match Job::load(&beside(origin, path)) {
        Ok(job) => return Some(job),
        Err(JobError::Refused(refusals)) => root.document().adopt(refusals),
        Err(error @ JobError::Read { .. }) => {
            let reason = std::error::Error::source(&error).map(ToString::to_string);
            let problem = format!("{error}: {}", reason.unwrap_or_default());
            root.refuse(
                found.line,
                problem,
                "give a path relative to the scenario file",
            );
        }
    }
    None
}

struct Reader<'j> {
    job: &'j Job,
    topology: &'j Topology,
    timeout: Duration,
    latest: Duration,
    is_first: bool,
}

impl Reader<'_> {
    fn scheduled(&mut self, mut table: Section<'_>) -> Option<Scheduled> {
        let word = table.text("do");
        let remedy = format!("give do = one of {}", list(STEPS));
        let word = table.need("do", word, &remedy)?;
        let at = self.at(&mut table);
        let together = self.together(&mut table, &word.value, at);
        let step = match word.value.as_str() {
            "send" => self.send(&mut table),
            "snapshot" => snapshot(&mut table, self.job, |table, name| {
                self.process(table, name)
            }),
            "kill" => self.kill(&mut table),
            "pause" => self
                .targets(&mut table)
                .map(|targets| Step::Pause { targets }),
            "resume" => self
                .targets(&mut table)
                .map(|targets| Step::Resume { targets }),
            "restart" => self
                .targets(&mut table)
                .map(|targets| Step::Restart { targets }),
            "break" => self.broken(&mut table),
            "restore" => restore(&mut table),
            "wait" => self.wait(&mut table),
            "expect" => expect(&mut table),
            other => {
                table.refuse(word.line, format!("unknown step '{other}'"), remedy);
                return None;
            }
        };
        let line = table.line().unwrap_or_default();
        table.finish();
        Some(Scheduled {
            line,
            at,
            together,
            step: step?,
        })
    }

    fn at(&mut self, table: &mut Section<'_>) -> Option<Duration> {
        let at = table.duration("at")?;
        if at.value < self.latest {
            let problem = "at lies before a step further up, and steps begin in order";
            table.refuse(at.line, problem, "move the step up, or give a later time");
        }
        if at.value >= self.timeout {
            let problem = "at lies at or after the scenario's timeout";
            table.refuse(at.line, problem, "raise timeout, or give an earlier time");
        }
        self.latest = self.latest.max(at.value);
        Some(at.value)
    }

    fn together(&mut self, table: &mut Section<'_>, word: &str, at: Option<Duration>) -> bool {
        let is_first = std::mem::take(&mut self.is_first);
        let Some(Placed { value: true, line }) = table.flag("together") else {
            return false;
        };
        let problem = match word {
            _ if is_first => "the first step has no step before it to begin with",
            _ if at.is_some() => "a step begins at a time or with the step before, not both",
            "wait" | "expect" => "a wait or an expect begins after the step before",
            _ => return true,
        };
        table.refuse(line, problem, "take out together");
        false
    }

    fn process(&self, table: &Section<'_>, name: &Placed<String>) -> Option<ProcessId> {
        let process = self.topology.process(&name.value);
        if process.is_none() {
            let names = self
                .topology
                .processes()
                .map(|process| self.topology.name(process));
            let remedy = format!("use one of {}", list(names));
            table.refuse(
                name.line,
                format!("there is no process '{}'", name.value),
                remedy,
            );
        }
        process
    }

    /// A command as text, or `from`, `to` and `amount` for the application `token`.
    fn send(&self, table: &mut Section<'_>) -> Option<Step> {
        const REMEDY: &str = "give process and text, or from, to and amount";
        let from = table.text("from");
        let to = table.text("to");
        let amount = table.number::<u32>("amount");
        let process = table.text("process");
        let text = table.text("text");
        if from.is_none() && to.is_none() && amount.is_none() {
            let process = table.need("process", process, REMEDY);
            let text = table.need("text", text, REMEDY);
            let process = self.process(table, &process?)?;
            return Some(Step::Send {
                process,
                text: text?.value,
            });
        }
        if let Some(line) = process.map(|p| p.line).or(text.map(|t| t.line)) {
            table.refuse(line, "a command is given in both ways", REMEDY);
        }
        let from = table.need("from", from, REMEDY);
        let to = table.need("to", to, REMEDY);
        let amount = table.need("amount", amount, REMEDY);
        let from = from.and_then(|from| self.process(table, &from));
        let end = to.as_ref().and_then(|to| self.process(table, to));
        let (process, end, to) = (from?, end?, to?);
        if !self.topology.contains(ChannelId::new(process, end)) {
            let channel = self.topology.channel_name(ChannelId::new(process, end));
            let problem = format!("there is no channel {channel} to send on");
            table.refuse(
                to.line,
                problem,
                "send to a neighbour, or add the channel to the job",
            );
        }
        let text = format!("send {} {}", to.value, amount?.value);
        Some(Step::Send { process, text })
    }

    /// A channel, by its ends, and its number if there are several.
    fn broken(&self, table: &mut Section<'_>) -> Option<Step> {
        const REMEDY: &str = "give from and to, and nth where several channels lead there";
        let from = table.text("from");
        let to = table.text("to");
        let nth = table.number::<u32>("nth");
        let from = table.need("from", from, REMEDY);
        let to = table.need("to", to, REMEDY);
        let from = from.and_then(|from| self.process(table, &from));
        let end = to.as_ref().and_then(|to| self.process(table, to));
        let (from, end, to) = (from?, end?, to?);
        let channel = ChannelId {
            nth: nth.map_or(1, |nth| nth.value),
            ..ChannelId::new(from, end)
        };
        if !self.topology.contains(channel) {
            let channel = self.topology.channel_name(channel);
            let problem = format!("there is no channel {channel} whose stream could break");
            table.refuse(to.line, problem, REMEDY);
        }
        Some(Step::Break { channel })
    }

    fn targets(&self, table: &mut Section<'_>) -> Option<BTreeSet<Target>> {
        let names = table.texts("process");
        let remedy = format!("give process = a name, \"{COLLECTOR}\" or a list of them");
        let names = table.need("process", names, &remedy)?;
        if names.is_empty() {
            table.refuse(None, "process names nobody", remedy);
        }
        let target = |name: &Placed<String>| match name.value.as_str() {
            COLLECTOR => Some(Target::Collector),
            _ => self.process(table, name).map(Target::Node),
        };
        let targets: Vec<Option<Target>> = names.iter().map(target).collect();
        targets.into_iter().collect()
    }

    fn kill(&self, table: &mut Section<'_>) -> Option<Step> {
        let found = table.text("at_point");
        let targets = self.targets(table)?;
        let Some(found) = found else {
            return Some(Step::Kill {
                targets,
                at_point: None,
            });
        };
        let names = |of_collector: bool| {
            let points = Point::ALL.into_iter();
            list(points.filter(|point| point.is_of_collector() == of_collector))
        };
        let remedy = format!(
            "use {} for a node, {} for the collector",
            names(false),
            names(true)
        );
        let Ok(point) = found.value.parse::<Point>() else {
            table.refuse(
                found.line,
                format!("unknown point '{}'", found.value),
                remedy,
            );
            return None;
        };
        let passes = |target: &Target| point.is_of_collector() == (*target == Target::Collector);
        if !targets.iter().all(passes) {
            let problem = format!("not all that are to be killed come by the point '{point}'");
            table.refuse(found.line, problem, remedy);
        }
        Some(Step::Kill {
            targets,
            at_point: Some(point),
        })
    }

    fn wait(&self, table: &mut Section<'_>) -> Option<Step> {
        let given = table.duration("timeout");
        let remedy = "give for = { running = true } or other conditions";
        let own = table.own("for");
        table.need("for", own, remedy)?;
        let conditions =
            conditions::conditions(table.table("for"), |table, name| self.process(table, name))?;
        let times = conditions.iter().filter_map(|condition| match condition {
            Condition::Time(time) => Some(*time),
            _ => None,
        });
        let least = times.max().unwrap_or_default();
        let timeout = given
            .as_ref()
            .map_or(least + WAIT_TIMEOUT, |given| given.value);
        if timeout <= least {
            let problem = "the wait's timeout strikes before it can end";
            table.refuse(
                given.and_then(|given| given.line),
                problem,
                "raise the timeout",
            );
        }
        Some(Step::Wait {
            conditions,
            timeout,
        })
    }
}

fn restore(table: &mut Section<'_>) -> Option<Step> {
    let snapshot = table.read("snapshot", |value| {
        let id = value
            .as_str()
            .and_then(|text| text.parse::<SnapshotId>().ok());
        id.ok_or_else(|| not(value, "a snapshot id such as \"s3\""))
    });
    Some(Step::Restore {
        snapshot: snapshot.map(|snapshot| snapshot.value),
    })
}

fn expect(table: &mut Section<'_>) -> Option<Step> {
    let own = table.own("that");
    table.need(
        "that",
        own,
        "give that = { snapshots = 3 } or other expectations",
    )?;
    let expectations = conditions::expectations(table.table("that"))?;
    Some(Step::Expect { expectations })
}
