//! From the JSON form to snapshots, with every name looked up. What is in no topology, or at the
//! wrong end of a channel, is refused with its path in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::Snapshot;
use super::form::{FORMAT, File, Graph, Named, Told, ToldContent, ToldState};
use crate::check::{Account, Content, Message, State};
use crate::job::{Document, Refusals, imported_refusal};
use crate::protocol::Topology;
use crate::protocol::clock::Clock;
use crate::protocol::ids::{ChannelId, MessageNumber, ProcessId};

/// What to do about anything that is not of the form.
const REMEDY: &str = "docs/audit.md shows the form";

pub(super) fn read(text: &str, origin: &Path) -> Result<Vec<Snapshot>, Refusals> {
    let document = Document::new(origin.to_string_lossy(), text);
    let mut snapshots = Vec::new();
    match serde_json::from_str::<File>(text) {
        Ok(file) => {
            let document = &document;
            snapshots = Reader { document }.file(file);
        }
        Err(error) => {
            // The place is told apart from what is wrong there.
            let message = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let problem = message.strip_suffix(&place).unwrap_or(&message);
            let line = u32::try_from(error.line()).ok().filter(|&line| line > 0);
            let remedy = if error.is_data() {
                REMEDY
            } else {
                "correct the JSON"
            };
            document.refuse(line, problem, remedy);
        }
    }
    document.verdict()?;
    Ok(snapshots)
}

struct Reader<'d> {
    document: &'d Document,
}

/// The processes and channels that a snapshot may speak of.
struct Names {
    topology: Arc<Topology>,
    is_stated: bool,
}

impl Reader<'_> {
    fn refuse(&self, path: &str, problem: impl AsRef<str>, remedy: &str) {
        let problem = format!("{path}: {}", problem.as_ref());
        self.document.refuse(None, problem, remedy);
    }

    fn file(&self, file: File) -> Vec<Snapshot> {
        if file.format != FORMAT {
            let problem = format!("'{}' is no format that is known here", file.format);
            self.refuse("format", problem, &format!("write \"{FORMAT}\""));
            return Vec::new();
        }
        if file.snapshots.is_empty() {
            self.refuse("snapshots", "there is none", "tell of one or more");
        }
        let mut stated = None;
        if let Some(graph) = &file.topology {
            let Graph {
                processes,
                channels,
            } = graph;
            let processes = processes.iter().map(String::as_str);
            let channels = channels.iter().map(String::as_str);
            stated = self.topology("topology", processes, channels);
            if stated.is_none() {
                return Vec::new();
            }
        }
        let mut names = BTreeSet::new();
        let mut snapshots = Vec::new();
        for (place, told) in file.snapshots.into_iter().enumerate() {
            let path = format!("snapshots[{place}]");
            let name = told
                .name
                .clone()
                .unwrap_or(format!("snapshot {}", place + 1));
            if name.is_empty() || name.contains(char::is_control) {
                let problem = format!("'{}' is no name", name.escape_debug());
                self.refuse(&path, problem, "give one that can be printed");
            }
            if !names.insert(name.clone()) {
                self.refuse(
                    &path,
                    format!("'{name}' is named twice"),
                    "rename one of them",
                );
            }
            let Some(topology) = stated.clone().or_else(|| self.gathered(&path, &told)) else {
                continue;
            };
            let names = Names {
                topology: Arc::new(topology),
                is_stated: stated.is_some(),
            };
            let mut account = self.account(&path, told, &names);
            let everywhere = file.expected.as_ref().map(|amounts| &amounts.0);
            account.expected = account.expected.or(everywhere.cloned());
            snapshots.push(Snapshot { name, account });
        }
        snapshots
    }

    /// The topology that a snapshot speaks of, where none is stated.
    fn gathered(&self, path: &str, told: &Told) -> Option<Topology> {
        let mut channels: BTreeSet<&str> = told.channels.0.keys().map(String::as_str).collect();
        let mut processes = BTreeSet::new();
        for (name, state) in &told.processes.0 {
            processes.insert(name.as_str());
            let counted = state.sent.0.keys().chain(state.received.0.keys());
            channels.extend(counted.map(String::as_str));
            let clock = state.clock.iter().flat_map(|clock| clock.0.keys());
            processes.extend(clock.map(String::as_str));
        }
        let ends = channels.iter().filter_map(|channel| ends(channel));
        processes.extend(ends.flat_map(|(from, to, _)| [from, to]));
        let mut written = BTreeMap::new();
        for channel in channels {
            // `a->b` in one place and `a→b` in another are one channel.
            written.insert(channel.replace("->", "→"), channel);
        }
        self.topology(path, processes.into_iter(), written.into_values())
    }

    fn topology<'a>(
        &self,
        path: &str,
        processes: impl Iterator<Item = &'a str>,
        channels: impl Iterator<Item = &'a str>,
    ) -> Option<Topology> {
        let mut places = BTreeMap::new();
        let mut names = Vec::new();
        let mut is_sound = true;
        let mut refuse = |problem: String, remedy: &str| {
            is_sound = false;
            self.refuse(path, problem, remedy);
        };
        for name in processes {
            if let Some((problem, remedy)) = imported_refusal(name) {
                refuse(problem, remedy);
            }
            let place = u32::try_from(names.len()).expect("a file has fewer names");
            if places.insert(name, ProcessId::new(place)).is_some() {
                refuse(format!("process '{name}' is given twice"), "take one out");
            }
            names.push(name.to_owned());
        }
        let mut found = BTreeSet::new();
        for name in channels {
            let Some((from, to, nth)) = ends(name) else {
                refuse(
                    format!("'{name}' is no channel"),
                    "write one as a→b or a->b",
                );
                continue;
            };
            let (Some(&from), Some(&to)) = (places.get(from), places.get(to)) else {
                refuse(
                    format!("{name} leads from or to no process"),
                    "add the process",
                );
                continue;
            };
            if from == to {
                let problem = format!("{name} leads from a process to itself");
                refuse(problem, "leave out what a process keeps to itself");
            } else if !found.insert(ChannelId { from, to, nth }) {
                refuse(
                    format!("{name} is given twice"),
                    "take one out, or write a→b#2",
                );
            }
        }
        if names.is_empty() {
            refuse("there is no process".to_owned(), "tell of one or more");
        }
        is_sound.then(|| Topology::new(names, found).expect("it was checked"))
    }

    fn account(&self, path: &str, told: Told, names: &Names) -> Account {
        let mut states = BTreeMap::new();
        for (name, state) in told.processes.0 {
            let path = format!("{path}.processes.{name}");
            if let Some(process) = self.process(&path, &name, names) {
                states.insert(process, self.state(&path, process, state, names));
            }
        }
        let mut contents = BTreeMap::new();
        for (name, content) in told.channels.0 {
            let path = format!("{path}.channels.{name}");
            if let Some(channel) = self.channel(&path, &name, names)
                && contents
                    .insert(channel, self.content(&path, content))
                    .is_some()
            {
                self.refuse(&path, "it is given twice", "take one out");
            }
        }
        Account {
            topology: names.topology.clone(),
            is_stated: names.is_stated,
            states,
            contents,
            expected: told.expected.map(|amounts| amounts.0),
        }
    }

    fn process(&self, path: &str, name: &str, names: &Names) -> Option<ProcessId> {
        let process = names.topology.process(name);
        if process.is_none() {
            let problem = format!("the topology has no process '{name}'");
            self.refuse(path, problem, "add it there, or correct the name");
        }
        process
    }

    fn channel(&self, path: &str, name: &str, names: &Names) -> Option<ChannelId> {
        let channel = names.topology.channel(name);
        if channel.is_none() {
            let problem = format!("the topology has no channel '{name}'");
            self.refuse(path, problem, "add it there, or correct the name");
        }
        channel
    }

    fn state(&self, path: &str, process: ProcessId, told: ToldState, names: &Names) -> State {
        let counts = |key: &str, counts: Named<u64>, of: fn(ChannelId) -> ProcessId| {
            let mut found = BTreeMap::new();
            for (name, count) in counts.0 {
                let path = format!("{path}.{key}.{name}");
                let Some(channel) = self.channel(&path, &name, names) else {
                    continue;
                };
                if of(channel) != process {
                    let remedy =
                        "write what is sent at the sender, what is received at the receiver";
                    self.refuse(&path, "this is not the process's end of it", remedy);
                } else if found.insert(channel, MessageNumber::new(count)).is_some() {
                    self.refuse(&path, "it is given twice", "take one out");
                }
            }
            found
        };
        let sent = counts("sent", told.sent, |channel| channel.from);
        let received = counts("received", told.received, |channel| channel.to);
        let clock = told.clock.and_then(|clock| {
            let path = format!("{path}.clock");
            let mut counts = vec![0; names.topology.processes().len()];
            for (name, seen) in clock.0 {
                if let Some(process) = self.process(&path, &name, names) {
                    counts[process.index()] = seen;
                }
            }
            Clock::of_counts(counts)
        });
        State {
            quantities: told.holds.map(|amounts| amounts.0),
            sent,
            received,
            clock,
        }
    }

    fn content(&self, path: &str, told: ToldContent) -> Content {
        let quantities = told.holds.map(|amounts| amounts.0);
        let messages = told.messages.map(|messages| {
            let read = messages.into_iter().enumerate().map(|(place, message)| {
                let path = format!("{path}.messages[{place}]");
                if message.number == Some(0) {
                    self.refuse(&path, "the number is 0", "count from 1");
                }
                if quantities.is_some() && message.carries.is_some() {
                    let problem = "amounts of the channel and of its messages";
                    self.refuse(&path, problem, "tell one of them");
                }
                Message {
                    number: message.number.map(MessageNumber::new),
                    quantities: message.carries.map(|amounts| amounts.0),
                }
            });
            read.collect::<Vec<_>>()
        });
        if messages.is_none() && quantities.is_none() {
            let remedy = "write \"messages\": [] for an empty channel";
            self.refuse(path, "neither messages nor what it holds", remedy);
        }
        Content {
            messages,
            quantities,
        }
    }
}

/// The ends of a channel, and which of the parallel ones it is.
fn ends(channel: &str) -> Option<(&str, &str, u32)> {
    let (from, rest) = channel
        .split_once('→')
        .or_else(|| channel.split_once("->"))?;
    match rest.split_once('#') {
        None => Some((from, rest, 1)),
        Some((to, nth)) => Some((from, to, nth.parse().ok().filter(|&nth| nth > 1)?)),
    }
}
