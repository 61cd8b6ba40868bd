//! The servers and links of a COS 418 scenario, and the job they become.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use super::cos418::{lines, stem};
use super::{ScenarioError, Text};
use crate::job::{Document, Job, JobError, Link, Parts};
use crate::job::{imported_refusal, list, plain};

/// No more snapshots than this are let to be open at once, however many the file takes.
const OPEN_MAX: u64 = 64;

/// A `.top` file.
#[derive(Default)]
pub(super) struct Servers {
    tokens: BTreeMap<String, u64>,
    links: BTreeSet<Link>,
    pub(super) notes: Vec<String>,
}

impl Servers {
    pub(super) fn read(top: Text<'_>) -> Result<Self, ScenarioError> {
        let document = Document::new(top.origin.to_string_lossy(), top.text);
        let mut servers = Self::default();
        let mut lines = lines(top.text);
        let count = lines.next().and_then(|(line, fields)| match fields[..] {
            [count] => Some((line, count.parse::<usize>().ok()?)),
            _ => None,
        });
        let Some((first, count)) = count else {
            let problem = "the file does not begin with the number of servers";
            document.refuse(None, problem, "put it into the first line");
            return Err(document
                .verdict()
                .map_err(ScenarioError::Refused)
                .expect_err("refused"));
        };
        let mut seen = 0;
        for (line, fields) in lines.by_ref().take(count) {
            servers.server(&document, line, &fields);
            seen += 1;
        }
        if seen < count {
            let problem = format!("{count} servers are announced, and {seen} lines follow");
            document.refuse(Some(first), problem, "correct the number, or add servers");
        }
        for (line, fields) in lines {
            servers.link(&document, top.origin, line, &fields);
        }
        let sum = servers.tokens.values().try_fold(0i64, |sum, &tokens| {
            sum.checked_add(i64::try_from(tokens).ok()?)
        });
        if sum.is_none() {
            document.refuse(None, "there are 2^63 tokens or more", "give fewer");
        }
        document.verdict().map_err(ScenarioError::Refused)?;
        Ok(servers)
    }

    fn server(&mut self, document: &Document, line: u32, fields: &[&str]) {
        let server = match fields[..] {
            [id, tokens] => tokens.parse().ok().map(|tokens| (id, tokens)),
            _ => None,
        };
        let Some((id, tokens)) = server else {
            let problem = format!("'{}' is no server", fields.join(" "));
            return document.refuse(Some(line), problem, "write an id and its tokens");
        };
        if let Some((problem, remedy)) = imported_refusal(id) {
            document.refuse(Some(line), problem, remedy);
        }
        if self.tokens.insert(id.to_owned(), tokens).is_some() {
            document.refuse(
                Some(line),
                format!("server '{id}' is given twice"),
                "take one out",
            );
        }
    }

    fn link(&mut self, document: &Document, origin: &Path, line: u32, fields: &[&str]) {
        let [from, to] = fields[..] else {
            let problem = format!("'{}' is no link", fields.join(" "));
            return document.refuse(Some(line), problem, "write the ids of its two ends");
        };
        for end in [from, to] {
            if !self.tokens.contains_key(end) {
                let remedy = format!("use one of {}", list(self.tokens.keys()));
                document.refuse(Some(line), format!("there is no server '{end}'"), remedy);
            }
        }
        let origin = origin.display();
        if from == to {
            self.notes.push(format!(
                "{origin}:{line}: a link from {from} to itself is ignored"
            ));
        } else if !self.links.insert(Link::new(from, to)) {
            self.notes.push(format!(
                "{origin}:{line}: {from}→{to} is given twice and taken once"
            ));
        }
    }

    pub(super) fn total(&self) -> i64 {
        let sum = self
            .tokens
            .values()
            .fold(0, |sum: u64, tokens| sum.saturating_add(*tokens));
        i64::try_from(sum).unwrap_or(i64::MAX)
    }

    pub(super) fn job(
        &self,
        events: &Path,
        snapshots: u64,
        delay: Duration,
    ) -> Result<Job, ScenarioError> {
        let file = std::path::absolute(events).unwrap_or_else(|_| PathBuf::from(events));
        let mut parts = Parts::new(plain(&stem(events)), file.with_extension("cutline"));
        parts.imported = true;
        parts.processes = self.tokens.keys().cloned().collect();
        parts.channels = self.links.iter().cloned().collect();
        parts.application = "token".into();
        let balances = self
            .tokens
            .iter()
            .map(|(id, &tokens)| (id.clone(), tokens.into()));
        parts.settings = Map::from_iter([("balances".into(), Value::Object(balances.collect()))]);
        // Snapshots are taken by the script alone, each of them counts, and all may be open.
        parts.snapshots.interval = Duration::ZERO;
        parts.snapshots.open_max = parts.snapshots.open_max.max(snapshots.min(OPEN_MAX));
        parts.store.retain = parts.store.retain.max(snapshots);
        parts.delay = delay;
        Job::new(parts).map_err(|error| match error {
            JobError::Refused(refusals) => ScenarioError::Refused(refusals),
            JobError::Read { path, source } => ScenarioError::Read { path, source },
        })
    }
}
