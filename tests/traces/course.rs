//! The 21 snapshots of the course whose schedules are at hand: their witnesses have the facts that
//! another program found, among them that 13 recorded states never were.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use cutline::apps::Token;
use cutline::check::{Origin, Recorded, witness};
use cutline::protocol::alone::Alone;
use cutline::protocol::application::Setup;
use cutline::protocol::clock::Clock;
use cutline::protocol::ids::{ChannelId, Generation, MessageNumber, ProcessId, SnapshotId};
use cutline::protocol::mode::Mode;
use cutline::protocol::trace::{Event, Sent, What, checksum};
use cutline::scenario::Scenario;
use serde_json::json;

use crate::peers::{TESTS, peers};

/// A schedule as events of the processes, in its order.
struct Schedule {
    origin: Origin,
    events: Vec<Event>,
    sent: BTreeMap<ChannelId, u64>,
    under_way: BTreeMap<ChannelId, VecDeque<(u64, Bytes)>>,
}

impl Schedule {
    fn read(folder: &Path, test: &str, top: &str) -> Self {
        let data = folder.join("test_data");
        let [events, top] = [format!("{test}.events"), format!("{top}.top")];
        let scenario = Scenario::load_cos418(&data.join(events), &data.join(top), 20).unwrap();
        let topology = scenario.job.topology();
        let setups = topology
            .processes()
            .map(|process| scenario.job.setup(process));
        let mut schedule = Self {
            origin: Origin {
                setups: setups.collect(),
                limits: scenario.job.limits(),
                parts: Vec::new(),
            },
            events: Vec::new(),
            sent: BTreeMap::new(),
            under_way: BTreeMap::new(),
        };
        let path = folder.join(format!("derived/{test}.schedule.txt"));
        for line in fs::read_to_string(path).unwrap().lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                ["#", ..] | [_, "complete", ..] => {}
                [_, "enqueue", from, to, what, _] => schedule.send(from, to, what),
                [_, "deliver", from, to, what] => schedule.deliver(from, to, what),
                [_, "record", process, snapshot, tokens, _] => {
                    schedule.record(process, after(snapshot), after(tokens));
                }
                _ => panic!("{line}"),
            }
        }
        schedule
    }

    fn process(&self, name: &str) -> ProcessId {
        self.origin.topology().process(name).unwrap()
    }

    fn channel(&self, from: &str, to: &str) -> ChannelId {
        ChannelId::new(self.process(from), self.process(to))
    }

    fn push(&mut self, process: ProcessId, what: What, sends: Vec<Sent>) {
        let processes = self.origin.setups.len();
        self.events.push(Event {
            process,
            generation: Generation::new(1),
            clock: Arc::new(Clock::new(processes)),
            what,
            sends,
        });
    }

    fn send(&mut self, from: &str, to: &str, what: &str) {
        let Some(tokens) = tokens(what) else { return };
        let channel = self.channel(from, to);
        let number = self.sent.entry(channel).or_default();
        *number += 1;
        let message = Bytes::copy_from_slice(&tokens.to_le_bytes());
        let sent = Sent {
            channel,
            number: MessageNumber::new(*number),
            checksum: checksum(&message),
        };
        let queue = self.under_way.entry(channel).or_default();
        queue.push_back((*number, message));
        let command = What::Command(format!("send {to} {tokens}"));
        self.push(channel.from, command, vec![sent]);
    }

    fn deliver(&mut self, from: &str, to: &str, what: &str) {
        if tokens(what).is_none() {
            return;
        }
        let channel = self.channel(from, to);
        let queue = self.under_way.get_mut(&channel).unwrap();
        let (number, message) = queue.pop_front().unwrap();
        let handle = What::Handle {
            channel,
            number: MessageNumber::new(number),
            message,
        };
        self.push(channel.to, handle, Vec::new());
    }

    fn record(&mut self, process: &str, snapshot: u64, tokens: u64) {
        let process = self.process(process);
        let record = What::Record {
            snapshot: SnapshotId::new(snapshot + 1),
            mode: Mode::Classic,
            state: checksum(&self.state(process, tokens)),
        };
        self.push(process, record, Vec::new());
    }

    /// The state of a process that holds so many tokens.
    fn state(&self, process: ProcessId, tokens: u64) -> Bytes {
        let setup = Setup {
            settings: json!({ "balance": tokens }),
            ..self.origin.setups[process.index()].clone()
        };
        let alone = Alone::<Token>::start(&setup, &self.origin.limits).unwrap();
        alone.state().into()
    }

    /// What a golden file says was recorded.
    fn golden(&self, path: &Path) -> Recorded {
        let topology = self.origin.topology();
        let none = topology
            .channels()
            .iter()
            .map(|&channel| (channel, Vec::new()));
        let mut recorded = Recorded {
            states: vec![Bytes::new(); topology.processes().len()],
            channels: none.collect(),
        };
        for line in fs::read_to_string(path).unwrap().lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                [name, held] => {
                    let process = self.process(name);
                    recorded.states[process.index()] = self.state(process, held.parse().unwrap());
                }
                [from, to, what] => {
                    let message = tokens(what).unwrap().to_le_bytes();
                    let channel = recorded.channels.get_mut(&self.channel(from, to)).unwrap();
                    channel.push(Bytes::copy_from_slice(&message));
                }
                _ => {}
            }
        }
        recorded
    }
}

/// `token(3)`; none for a marker.
fn tokens(what: &str) -> Option<u64> {
    let number = what.strip_prefix("token(")?.strip_suffix(')')?;
    Some(number.parse().unwrap())
}

/// `snapshot=3`
fn after(field: &str) -> u64 {
    field.split_once('=').unwrap().1.parse().unwrap()
}

#[test]
fn the_witnesses_of_the_courses_snapshots_have_the_known_facts() {
    let folder = peers("cos418");
    let facts = |folder: &PathBuf| folder.join("derived/witness-facts.txt").is_file();
    let Some(folder) = folder.filter(facts) else {
        return;
    };
    let facts = fs::read_to_string(folder.join("derived/witness-facts.txt")).unwrap();
    let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in facts.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        known.insert(words.next().unwrap(), words.collect());
    }
    let (mut compared, mut never) = (0, 0);
    for (test, top, _) in TESTS {
        let schedule = Schedule::read(&folder, test, top);
        let names = std::iter::once((format!("{test}.snap"), 1));
        let numbered = (0..10).map(|number| (format!("{test}{number}.snap"), number + 1));
        for (name, snapshot) in names.chain(numbered) {
            let Some(facts) = known.get(name.as_str()) else {
                continue;
            };
            let recorded = schedule.golden(&folder.join("test_data").join(&name));
            let snapshot = SnapshotId::new(snapshot);
            let (origin, events) = (&schedule.origin, &schedule.events);
            let made = witness::<Token>(origin, events, snapshot, &recorded).unwrap();
            let truth = |is: bool| if is { "True" } else { "False" }.to_owned();
            let found = [
                made.logged.len().to_string(),
                made.before.to_string(),
                made.swaps.to_string(),
                truth(made.unlike.is_empty() && made.broken.is_none()),
                truth(made.ends_alike),
                truth(made.occurred.is_some()),
            ];
            assert_eq!(found.as_slice(), facts.as_slice(), "{name}");
            compared += 1;
            never += usize::from(made.occurred.is_none());
        }
    }
    assert_eq!((compared, never), (known.len(), 13));
    eprintln!("{compared} witnesses as known; {never} recorded states never occurred");
}
