//! A world of token holders in which a message or marker is delivered when the script says so,
//! and at no other time.

use std::collections::BTreeMap;

use cutline::apps::BuiltIn;
use cutline::check::{Account, Content, State, Verdicts, judge_account, judge_manifest};
use cutline::job::{Job, Link, Parts};
use cutline::protocol::Topology;
use cutline::protocol::application::Application as _;
use cutline::protocol::collector::Request;
use cutline::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use cutline::protocol::process::Settings;
use cutline::protocol::records::Manifest;
use cutline::world::{self, Choice, World};
use serde_json::{Map, Value, json};

/// More choices than any of these scripts needs between two of its lines.
const STEPS_MAX: usize = 20_000;

pub(crate) struct Stage {
    world: World<BuiltIn>,
    snapshots: u64,
}

/// What came out of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    Message(u64),
    Marker,
}

/// What a snapshot recorded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) balances: BTreeMap<ProcessId, u64>,
    /// The amounts in every channel, in order.
    pub(crate) channels: BTreeMap<ChannelId, Vec<u64>>,
}

impl Recorded {
    pub(crate) fn total(&self) -> u64 {
        let carried = self.channels.values().flatten();
        self.balances.values().chain(carried).sum()
    }

    pub(crate) fn messages(&self) -> usize {
        self.channels.values().map(Vec::len).sum()
    }
}

impl Stage {
    pub(crate) fn new(balances: &[(String, u64)], channels: Vec<Link>) -> Self {
        let mut parts = Parts::new("peers", "/peers.cutline");
        parts.imported = true;
        parts.processes = balances.iter().map(|(name, _)| name.clone()).collect();
        parts.channels = channels;
        parts.application = "token".to_owned();
        let balances = balances.iter();
        let balances = balances.map(|(name, tokens)| (name.clone(), json!(tokens)));
        let balances = Value::Object(balances.collect());
        parts.settings = Map::from_iter([("balances".to_owned(), balances)]);
        parts.snapshots.interval = std::time::Duration::ZERO;
        let job = Job::new(parts).unwrap();
        let first = ProcessId::new(0);
        let mut world = World::new(world::Job {
            topology: job.topology().clone(),
            application: job.application().to_owned(),
            settings: job.setup(first).settings,
            seed: job.seed(),
            process: Settings {
                limits: job.limits(),
                snapshot_timeout_ms: 10_000,
                trace: false,
            },
            policy: job.policy(),
        })
        .unwrap();
        assert!(world.stabilize(STEPS_MAX) && world.is_running());
        Self {
            world,
            snapshots: 0,
        }
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.world.job().topology
    }

    pub(crate) fn process(&self, name: &str) -> ProcessId {
        self.topology().process(name).unwrap()
    }

    pub(crate) fn channel(&self, from: &str, to: &str) -> ChannelId {
        ChannelId::new(self.process(from), self.process(to))
    }

    pub(crate) fn balance(&self, process: ProcessId) -> u64 {
        match self.world.process(process).unwrap().application().unwrap() {
            BuiltIn::Token(token) => token.balance(),
            other => panic!("{other:?}"),
        }
    }

    /// Puts an amount into a channel, if its sender has so much.
    pub(crate) fn send(&mut self, channel: ChannelId, amount: u64) -> bool {
        if self.balance(channel.from) < amount {
            return false;
        }
        let to = self.topology().name(channel.to);
        let command = format!("send {to} {amount}");
        let before = self.waiting(channel);
        self.world.command(channel.from, &command);
        self.settle();
        assert_eq!(self.waiting(channel), before + 1, "each message is a frame");
        true
    }

    /// How many messages and markers wait in a channel.
    pub(crate) fn waiting(&self, channel: ChannelId) -> usize {
        self.world.on_the_wire(channel)
    }

    /// Delivers what is first in a channel that is not empty.
    pub(crate) fn deliver(&mut self, channel: ChannelId) -> Delivered {
        assert!(self.waiting(channel) > 0, "{channel} is empty");
        let (handled, balance) = (self.handled(channel), self.balance(channel.to));
        self.world.apply(&Choice::Arrive(channel));
        self.world.apply(&Choice::Take(channel));
        let handled = self.handled(channel) - handled;
        let gained = self.balance(channel.to) - balance;
        self.settle();
        match handled {
            0 => Delivered::Marker,
            1 => Delivered::Message(gained),
            more => panic!("{more} messages at once"),
        }
    }

    /// Begins a snapshot at one process; it has recorded when this returns.
    pub(crate) fn snapshot(&mut self, initiator: ProcessId) -> SnapshotId {
        let initiators = [initiator].into();
        self.world.ask(Request::Snapshot {
            initiators,
            mode: None,
            alignment_timeout_ms: None,
        });
        self.snapshots += 1;
        let id = SnapshotId::new(self.snapshots);
        self.settle();
        let mut recorded = self.world.process(initiator).unwrap().recordings();
        assert!(recorded.any(|(open, _)| open == id) || self.recorded(id).is_some());
        drop(recorded);
        id
    }

    /// What a snapshot recorded, once it is complete; its verdicts hold.
    pub(crate) fn recorded(&self, snapshot: SnapshotId) -> Option<Recorded> {
        let manifest = self.manifest(snapshot)?;
        assert!(manifest.is_complete(), "{manifest:?}");
        let verdicts = judge_manifest(self.topology(), manifest);
        assert!(verdicts.hold(), "{verdicts}");
        let mut balances = BTreeMap::new();
        let mut channels = BTreeMap::new();
        for process in self.topology().processes() {
            let restored = self.world.part(snapshot, process).unwrap();
            let setup = self.world.setup(process);
            let held = BuiltIn::in_state(&setup, &restored.state)["tokens"];
            balances.insert(process, held.try_into().unwrap());
            for input in &restored.part.inputs {
                let messages = input.share.iter().flat_map(|batch| batch.messages());
                let amounts =
                    messages.map(|(_, message)| u64::from_le_bytes(message.try_into().unwrap()));
                channels.insert(input.channel, amounts.collect());
            }
        }
        Some(Recorded { balances, channels })
    }

    /// What somebody sees who reads a process now, without an algorithm.
    pub(crate) fn read(&self, process: ProcessId) -> State {
        let machine = self.world.process(process).unwrap();
        let outboxes = machine.outboxes().iter();
        let held = i64::try_from(self.balance(process)).unwrap();
        State {
            quantities: Some([("tokens".to_owned(), held)].into()),
            sent: outboxes
                .map(|outbox| (outbox.channel(), outbox.sent()))
                .collect(),
            received: machine.positions().collect(),
            clock: None,
        }
    }

    /// The verdicts on such reads, taken for a snapshot whose channels are empty.
    pub(crate) fn judge_reads(&self, states: BTreeMap<ProcessId, State>, total: u64) -> Verdicts {
        let channels = self.topology().channels().iter();
        let empty = Content {
            messages: Some(Vec::new()),
            quantities: None,
        };
        let total = i64::try_from(total).unwrap();
        judge_account(&Account {
            topology: self.world.job().topology.clone(),
            is_stated: true,
            states,
            contents: channels.map(|&channel| (channel, empty.clone())).collect(),
            expected: Some([("tokens".to_owned(), total)].into()),
        })
    }

    fn manifest(&self, snapshot: SnapshotId) -> Option<&Manifest> {
        let mut manifests = self.world.manifests();
        manifests.find(|manifest| manifest.snapshot == snapshot)
    }

    fn handled(&self, channel: ChannelId) -> u64 {
        let machine = self.world.process(channel.to).unwrap();
        let mut positions = machine.positions();
        let (_, handled) = positions.find(|(input, _)| *input == channel).unwrap();
        handled.get()
    }

    /// Everything takes its course, except that nothing is delivered.
    fn settle(&mut self) {
        let is_held = |choice: &Choice| {
            matches!(
                choice,
                Choice::Arrive(_) | Choice::Take(_) | Choice::Tick(_)
            )
        };
        for _ in 0..STEPS_MAX {
            match self
                .world
                .choices()
                .into_iter()
                .find(|choice| !is_held(choice))
            {
                Some(choice) => self.world.apply(&choice),
                None => return,
            }
        }
        panic!("it does not come to rest");
    }
}
