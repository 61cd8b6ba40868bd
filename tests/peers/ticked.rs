//! Scenarios in which every channel has its delay: those of a teaching program (six files, naive
//! reads beside Chandy–Lamport), and the demonstration of a course of UC Santa Barbara (CS 271).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cutline::check::{Answer, Verdicts};
use cutline::job::Link;
use cutline::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use serde_json::Value;

use crate::stage::{Recorded, Stage};
use crate::{file, peers};

/// Longer than any of these scenarios goes on.
const TICKS_MAX: u64 = 10_000;

/// What is to happen.
struct Plan {
    balances: Vec<(String, u64)>,
    /// From, to, delay.
    channels: Vec<(String, String, u64)>,
    /// When, from, to, how much.
    transfers: Vec<(u64, String, String, u64)>,
    snapshot_at: u64,
    initiator: String,
    /// When each process is read without an algorithm.
    reads: BTreeMap<String, u64>,
}

/// What came of it.
struct Outcome {
    stage: Stage,
    recorded: Recorded,
    /// Ticks from the begin of the snapshot to its end.
    took: u64,
    reads: Verdicts,
    read_total: i64,
}

impl Plan {
    fn read(text: &str) -> Self {
        let file: Value = serde_json::from_str(text).unwrap();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let number = |value: &Value| value.as_u64().unwrap();
        let processes = list(&file["processes"]);
        let channels = list(&file["channels"]);
        let transfers = list(&file["transfers"]);
        let snapshot = &file["snapshot"];
        let snapshot_at = number(&snapshot["at"]);
        let balances: Vec<_> = processes
            .iter()
            .map(|process| (text(&process["id"]), number(&process["balance"])))
            .collect();
        let everyone = balances.iter().map(|(name, _)| (name.clone(), snapshot_at));
        let mut reads: BTreeMap<_, _> = everyone.collect();
        for read in list(&snapshot["naive_reads"]) {
            reads.insert(text(&read["process"]), number(&read["at"]));
        }
        Self {
            balances,
            channels: channels
                .iter()
                .map(|one| (text(&one["from"]), text(&one["to"]), number(&one["delay"])))
                .collect(),
            transfers: transfers
                .iter()
                .map(|one| {
                    let (from, to) = (text(&one["from"]), text(&one["to"]));
                    (number(&one["at"]), from, to, number(&one["amount"]))
                })
                .collect(),
            snapshot_at,
            initiator: text(&snapshot["initiator"]),
            reads,
        }
    }

    fn total(&self) -> u64 {
        self.balances.iter().map(|(_, balance)| balance).sum()
    }

    /// Tick by tick until everything has happened: transfers, then the snapshot, then what
    /// arrives, then the naive reads.
    fn run(&self) -> Outcome {
        let links = self.channels.iter();
        let links = links.map(|(from, to, _)| Link::new(from, to)).collect();
        let stage = Stage::new(&self.balances, links);
        let delays = self.channels.iter();
        let delays = delays.map(|(from, to, delay)| (stage.channel(from, to), *delay));
        let mut clock = Clock {
            delays: delays.collect(),
            due: BTreeMap::new(),
            stage,
            now: 0,
        };
        let last = self.transfers.iter().map(|one| one.0);
        let last = last.chain(self.reads.values().copied()).max().unwrap_or(0);
        let (mut id, mut ended) = (None, None);
        let mut read = BTreeMap::new();
        while ended.is_none() || !clock.is_empty() || clock.now <= last {
            let now = clock.now;
            assert!(now < TICKS_MAX, "it does not come to an end");
            for (_, from, to, amount) in self.transfers.iter().filter(|one| one.0 == now) {
                let channel = clock.stage.channel(from, to);
                clock.stage.send(channel, *amount);
                clock.enqueue();
            }
            if now == self.snapshot_at {
                let initiator = clock.stage.process(&self.initiator);
                id = Some(clock.stage.snapshot(initiator));
                clock.enqueue();
            }
            clock.deliver();
            for (name, _) in self.reads.iter().filter(|(_, at)| **at == now) {
                let process = clock.stage.process(name);
                read.insert(process, clock.stage.read(process));
            }
            if ended.is_none() && id.is_some_and(|id| clock.stage.recorded(id).is_some()) {
                ended = Some(now);
            }
            clock.now += 1;
        }
        let held = read
            .values()
            .map(|state| state.quantities.as_ref().unwrap()["tokens"]);
        Outcome {
            read_total: held.sum(),
            reads: clock.stage.judge_reads(read, self.total()),
            recorded: clock.stage.recorded(id.unwrap()).expect("complete"),
            took: ended.unwrap() - self.snapshot_at,
            stage: clock.stage,
        }
    }
}

/// When what is in the channels arrives.
struct Clock {
    stage: Stage,
    delays: BTreeMap<ChannelId, u64>,
    due: BTreeMap<ChannelId, VecDeque<u64>>,
    now: u64,
}

impl Clock {
    /// What has been put into channels since the last time sets out now.
    fn enqueue(&mut self) {
        for (&channel, delay) in &self.delays {
            let due = self.due.entry(channel).or_default();
            while due.len() < self.stage.waiting(channel) {
                let last = due.back().copied().unwrap_or(0);
                due.push_back(last.max(self.now + delay));
            }
        }
    }

    /// Delivers what is due, and what is sent thereby with no delay.
    fn deliver(&mut self) {
        loop {
            let mut due = self.due.iter();
            let first = due.find(|(_, due)| due.front().is_some_and(|&at| at <= self.now));
            let Some((&channel, _)) = first else { return };
            self.due.get_mut(&channel).unwrap().pop_front();
            self.stage.deliver(channel);
            self.enqueue();
        }
    }

    fn is_empty(&self) -> bool {
        self.due.values().all(VecDeque::is_empty)
    }
}

/// What is published of a scenario.
struct Published {
    name: &'static str,
    naive_total: i64,
    /// Whether the naive reads are a consistent cut, be it an incomplete one.
    naive_consistent: bool,
    messages: usize,
}

const PUBLISHED: [Published; 5] = [
    published("quiet", 300, true, 0),
    published("in-flight", 290, true, 1),
    published("double-count", 310, false, 1),
    published("missing-transfer", 290, true, 1),
    published("marker-window", 290, true, 1),
];

const fn published(
    name: &'static str,
    naive_total: i64,
    naive_consistent: bool,
    messages: usize,
) -> Published {
    Published {
        name,
        naive_total,
        naive_consistent,
        messages,
    }
}

/// A scenario of the teaching program; none where it is not at hand.
fn plan(name: &str) -> Option<Plan> {
    let folder = peers("andrii2g/scenarios")?;
    file(&folder, &format!("{name}.json")).map(|text| Plan::read(&text))
}

#[test]
fn naive_reads_go_wrong_as_published_and_the_snapshot_never() {
    for published in PUBLISHED {
        let Some(plan) = plan(published.name) else {
            continue;
        };
        let outcome = plan.run();
        let name = published.name;
        assert_eq!(outcome.recorded.total(), 300, "{name}");
        assert_eq!(outcome.recorded.messages(), published.messages, "{name}");
        assert_eq!(outcome.read_total, published.naive_total, "{name}");
        let holds = |verdict: &str| outcome.reads.get(verdict).unwrap().holds;
        let expected = |yes: bool| if yes { Answer::Yes } else { Answer::No };
        assert_eq!(
            holds("non-negative"),
            expected(published.naive_consistent),
            "{name}: {}",
            outcome.reads
        );
        assert_eq!(
            holds("conserved"),
            expected(published.naive_total == 300),
            "{name}"
        );
        // Reads that miss a message are consistent and worth nothing: that is for `exact` to say.
        let is_whole = published.naive_consistent && published.naive_total == 300;
        assert!(holds("exact") == Answer::Yes || !is_whole, "{name}");
        assert_eq!(outcome.reads.hold(), is_whole, "{name}: {}", outcome.reads);
    }
}

#[test]
fn the_window_between_markers_catches_the_message_on_its_way() {
    let Some(plan) = plan("marker-window") else {
        return;
    };
    let outcome = plan.run();
    assert_eq!(outcome.took, 12);
    let a_to_b = outcome.stage.channel("A", "B");
    assert_eq!(outcome.recorded.channels[&a_to_b], [10]);
}

/// Two errors that cancel out: the sum is right, and the cut impossible.
#[test]
fn reads_that_balance_by_chance_are_still_no_cut() {
    let Some(mut plan) = plan("quiet") else {
        return;
    };
    for channel in &mut plan.channels {
        channel.2 = 1;
    }
    plan.reads = [("A", 4), ("B", 10), ("C", 4)]
        .map(|(name, at)| (name.to_owned(), at))
        .into();
    let (a, b) = ("A".to_owned(), "B".to_owned());
    plan.transfers = vec![(6, a.clone(), b.clone(), 10), (8, b, a, 10)];
    let outcome = plan.run();
    assert_eq!(outcome.read_total, 300);
    assert_eq!(outcome.reads.get("conserved").unwrap().holds, Answer::Yes);
    assert_eq!(outcome.reads.get("non-negative").unwrap().holds, Answer::No);
    assert_eq!(outcome.recorded.total(), 300);
}

/// Its traffic is drawn by a generator that is not at hand; whatever is drawn, this must come out.
#[test]
fn seeded_traffic_keeps_its_total() {
    if let Some(plan) = plan("seeded-traffic") {
        let outcome = plan.run();
        assert_eq!((plan.total(), outcome.recorded.total()), (400, 400));
    }
}

/// The fields of every line that is no comment.
fn fields(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_whitespace().collect())
        .collect()
}

/// C begins; a second later A sends 5 to B, which has C's marker by then, but not A's.
#[test]
fn the_demonstration_of_santa_barbara_finds_five_on_their_way() {
    let Some(folder) = peers("ucsb-cs271") else {
        return;
    };
    let Some(top) = file(&folder, "w22-pa2.top") else {
        return;
    };
    let fields = fields(&top);
    let count: usize = fields[0][0].parse().unwrap();
    let (servers, links) = fields[1..].split_at(count);
    let name = str::to_owned;
    let plan = Plan {
        balances: servers
            .iter()
            .map(|one| (name(one[0]), one[1].parse().unwrap()))
            .collect(),
        // Every send takes three seconds; a tick is a second.
        channels: links
            .iter()
            .map(|one| (name(one[0]), name(one[1]), 3))
            .collect(),
        transfers: vec![(1, name("A"), name("B"), 5)],
        snapshot_at: 0,
        initiator: name("C"),
        reads: BTreeMap::new(),
    };
    let Outcome {
        stage, recorded, ..
    } = plan.run();
    let held = ["A", "B", "C", "D"].map(|name| recorded.balances[&stage.process(name)]);
    assert_eq!(held, [5, 10, 10, 10]);
    let filled: BTreeSet<_> = recorded
        .channels
        .iter()
        .filter(|(_, all)| !all.is_empty())
        .collect();
    assert_eq!(filled, [(&stage.channel("A", "B"), &vec![5])].into());
    assert_eq!(recorded.total(), 40);
}

/// The course lets any client begin, several at once, while others are under way.
#[test]
fn snapshots_of_several_clients_at_once_all_balance() {
    let Some(folder) = peers("ucsb-cs271") else {
        return;
    };
    let Some(top) = file(&folder, "w22-pa2.top") else {
        return;
    };
    let fields = fields(&top);
    let servers = fields[1..5].iter();
    let balances: Vec<_> = servers
        .map(|one| (one[0].to_owned(), one[1].parse().unwrap()))
        .collect();
    let links = fields[5..]
        .iter()
        .map(|one| Link::new(one[0], one[1]))
        .collect();
    let mut stage = Stage::new(&balances, links);
    let a_to_b = stage.channel("A", "B");
    assert!(!stage.send(a_to_b, 11), "insufficient balance");
    assert!(stage.send(a_to_b, 5));
    let starts: Vec<ProcessId> = ["C", "A"].map(|name| stage.process(name)).into();
    let ids: Vec<SnapshotId> = starts
        .into_iter()
        .map(|process| stage.snapshot(process))
        .collect();
    let channels = stage.topology().channels().to_vec();
    while let Some(&channel) = channels
        .iter()
        .rev()
        .find(|&&channel| stage.waiting(channel) > 0)
    {
        stage.deliver(channel);
    }
    for id in ids {
        assert_eq!(stage.recorded(id).expect("complete").total(), 40);
    }
}
