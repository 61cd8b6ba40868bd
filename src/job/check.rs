//! Whether a job's parts make sense together. Everything that does not is named, not only the
//! first.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::CHANNELS_MAX;
use super::parts::Parts;
use super::read::{PROCESSES_MAX, Places};
use super::refusal::list;
use super::table::Document;
use crate::apps::BuiltIn;
use crate::name::{self, COLLECTOR};
use crate::protocol::Topology;
use crate::protocol::ids::{ChannelId, ProcessId};

/// The topology and the initiators, if they make sense; what does not is in the document.
pub(super) fn check(
    parts: &Parts,
    places: &Places,
    document: &Document,
) -> Option<(Topology, BTreeSet<ProcessId>)> {
    let check = Check {
        parts,
        places,
        document,
    };
    check.names();
    check.application();
    check.numbers();
    if places.processes_refused {
        return None;
    }
    let named = check.initiators();
    let (topology, named) = (check.topology()?, named?);
    let topology = check.back_edges(topology, &named)?;
    let initiators = match named {
        none if none.is_empty() => topology.default_initiators().iter().copied().collect(),
        some => some,
    };
    if !places.channels_refused {
        check.reach(&topology, &initiators);
        check.alignment(&topology, &initiators);
    }
    Some((topology, initiators))
}

/// A job being checked.
pub(super) struct Check<'a> {
    pub(super) parts: &'a Parts,
    pub(super) places: &'a Places,
    pub(super) document: &'a Document,
}

impl Check<'_> {
    pub(super) fn refuse(
        &self,
        field: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.document.refuse(self.places.of(field), problem, remedy);
    }

    fn names(&self) {
        let Parts {
            name,
            processes,
            imported,
            ..
        } = self.parts;
        if let Some((problem, remedy)) = name::refusal(name) {
            let problem = format!("{problem} for a job");
            self.refuse("name", problem, format!("give name = \"…\" and {remedy}"));
        }
        if processes.is_empty() && !self.places.processes_refused {
            let remedy = "give processes = 4, or processes = [\"alice\", \"bob\"]";
            self.refuse("processes", "the job has no processes", remedy);
        }
        if processes.len() as u64 > PROCESSES_MAX {
            let problem = format!("{} processes, over {PROCESSES_MAX}", processes.len());
            self.refuse("processes", problem, "take fewer");
        }
        let mut seen = BTreeMap::new();
        for (place, process) in processes.iter().enumerate() {
            let line = self.line(&self.places.processes, place, "processes");
            let refusal = match imported {
                true => name::imported_refusal(process),
                false => name::refusal(process),
            };
            if let Some((problem, remedy)) = refusal {
                self.document
                    .refuse(line, format!("{problem} for a process"), remedy);
            }
            if process == COLLECTOR {
                let problem = format!("'{COLLECTOR}' is what the collector is called");
                self.document
                    .refuse(line, problem, "give the process another name");
            }
            if let Some(first) = seen.insert(process, line) {
                let problem = format!("process '{process}' is named twice{}", first_at(first));
                self.document
                    .refuse(line, problem, "take one out, or rename it");
            }
        }
    }

    fn line(&self, lines: &[Option<u32>], place: usize, field: &str) -> Option<u32> {
        lines
            .get(place)
            .copied()
            .flatten()
            .or_else(|| self.places.of(field))
    }

    /// The topology; none if a name or a channel is wrong.
    fn topology(&self) -> Option<Topology> {
        let Parts {
            processes,
            channels,
            ..
        } = self.parts;
        if channels.len() > CHANNELS_MAX {
            let problem = format!("{} channels, over {CHANNELS_MAX}", channels.len());
            self.refuse("channels", problem, "take fewer");
            return None;
        }
        let ids = (0..).map(ProcessId::new);
        let ids: BTreeMap<&str, ProcessId> =
            processes.iter().map(String::as_str).zip(ids).collect();
        let mut seen = BTreeMap::new();
        let mut taken = Vec::with_capacity(channels.len());
        for (place, link) in channels.iter().enumerate() {
            let line = self.line(&self.places.channels, place, "channels");
            let ends = [&link.from, &link.to].map(|name| ids.get(name.as_str()).copied());
            for (name, end) in [&link.from, &link.to].into_iter().zip(ends) {
                if end.is_none() {
                    let problem = format!("channel {link}: there is no process '{name}'");
                    self.document.refuse(line, problem, self.use_one_of());
                }
            }
            if link.from == link.to {
                let problem = format!("channel {link} leads from a process to itself");
                self.document
                    .refuse(line, problem, "take it out: a process needs none");
            } else if let Some(first) = seen.insert(link, line) {
                let problem = format!("channel {link} is given twice{}", first_at(first));
                let remedy = format!("take one out, or write {}→{}#2", link.from, link.to);
                self.document.refuse(line, problem, remedy);
            }
            if let [Some(from), Some(to)] = ends {
                taken.push(ChannelId {
                    from,
                    to,
                    nth: link.nth,
                });
            }
        }
        if taken.len() < channels.len() {
            return None;
        }
        // Whatever a topology refuses has been refused above, and there with its line.
        Topology::new(processes.clone(), taken).ok()
    }

    fn use_one_of(&self) -> String {
        format!(
            "add it to processes, or use one of {}",
            list(&self.parts.processes)
        )
    }

    /// The initiators as they are named; none if one of them is no process.
    fn initiators(&self) -> Option<BTreeSet<ProcessId>> {
        let Parts {
            processes,
            snapshots,
            ..
        } = self.parts;
        let mut initiators = BTreeSet::new();
        let mut known = true;
        for (place, name) in snapshots.initiators.iter().enumerate() {
            let line = self.line(&self.places.initiators, place, "snapshots");
            let process = (0..).zip(processes).find(|(_, process)| *process == name);
            match process.map(|(index, _)| ProcessId::new(index)) {
                Some(process) if !initiators.insert(process) => {
                    let problem = format!("initiator '{name}' is named twice");
                    self.document.refuse(line, problem, "take one out");
                }
                Some(_) => {}
                None => {
                    known = false;
                    let problem = format!("initiator '{name}' is no process");
                    self.document.refuse(line, problem, self.use_one_of());
                }
            }
        }
        known.then_some(initiators)
    }

    fn reach(&self, topology: &Topology, initiators: &BTreeSet<ProcessId>) {
        if let Some((problem, remedy)) = unreached(topology, initiators) {
            let line = self.line(&self.places.initiators, 0, "snapshots");
            self.document.refuse(line, problem, remedy);
        }
    }

    fn application(&self) {
        let Parts {
            application,
            settings,
            program,
            ..
        } = self.parts;
        if application.is_empty() {
            let remedy = format!(
                "give [application] name = \"…\", one of {}",
                list(BuiltIn::NAMES)
            );
            self.refuse("application", "the job has no application", remedy);
        } else if program.is_none() && !BuiltIn::NAMES.contains(&application.as_str()) {
            let problem = format!("application '{application}' is not built in");
            let remedy = format!(
                "use one of {}, or give program = PATH",
                list(BuiltIn::NAMES)
            );
            self.refuse("application.name", problem, remedy);
        }
        let kept = toml::Value::try_from(settings).ok();
        let kept = kept.and_then(|kept| serde_json::to_value(kept).ok());
        if kept.as_ref().and_then(|kept| kept.as_object()) != Some(settings) {
            let problem = "the application's settings hold what a job file cannot";
            self.refuse(
                "application",
                problem,
                "take out null and numbers from 2^63",
            );
        }
    }
}

/// What is wrong with these initiators and the remedy, if they do not reach every process.
pub(crate) fn unreached(
    topology: &Topology,
    initiators: &BTreeSet<ProcessId>,
) -> Option<(String, String)> {
    let unreached = topology.unreached(initiators);
    if unreached.is_empty() {
        return None;
    }
    let name = |process: &ProcessId| topology.name(*process);
    let problem = format!(
        "no marker from {} reaches {}",
        list(initiators.iter().map(name)),
        list(unreached.iter().map(name)),
    );
    let roots = topology.default_initiators().iter();
    let missing = roots.filter(|root| unreached.contains(root)).map(name);
    Some((
        problem,
        format!("let {} initiate too, or add channels", list(missing)),
    ))
}

fn first_at(line: Option<u32>) -> String {
    line.map_or_else(String::new, |line| format!(", first on line {line}"))
}
