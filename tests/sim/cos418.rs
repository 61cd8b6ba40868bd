//! The 21 golden snapshots of a well-known assignment, by the delays that were drawn for them.
//!
//! The files are not part of this repository; without them these tests are skipped, and say so.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use cutline::apps::BuiltIn;
use cutline::protocol::ids::SnapshotId;
use cutline::scenario::Scenario;
use cutline::sim::{self, Course, Delays, Discipline, Settings};
use cutline::world::World;
use serde_json::Value;

use crate::peers::{TESTS, golden, peers};

const TICK_MS: u64 = 20;

/// The delays that the assignment's simulator draws with the seed of its tests.
fn settings(data: &Path) -> Settings {
    let derived = fs::read_dir(data.join("derived")).unwrap();
    let mut paths = derived.map(|entry| entry.unwrap().path());
    let drawn = paths.find(|path| path.to_str().unwrap().contains("intn5_seed"));
    let text = fs::read_to_string(drawn.unwrap()).unwrap();
    let drawn = text.lines().map(|line| line.trim().parse().unwrap());
    let course = Course {
        tick: Duration::from_millis(TICK_MS),
        drawn: drawn.collect(),
    };
    Settings {
        delays: Delays::none(),
        discipline: Discipline::Course(course),
    }
}

type Channels = BTreeMap<(String, String), Vec<u64>>;

/// What a `.snap` file would say of a snapshot: tokens, and amounts in channels.
fn found(world: &World<BuiltIn>, snapshot: SnapshotId) -> (BTreeMap<String, u64>, Channels) {
    let topology = &world.job().topology;
    let (mut tokens, mut channels) = (BTreeMap::new(), Channels::new());
    for process in topology.processes() {
        let restored = world.part(snapshot, process).unwrap();
        let state: Value = serde_json::from_slice(&restored.state).unwrap();
        let balance = state["balance"].as_u64().unwrap();
        tokens.insert(topology.name(process).to_owned(), balance);
        for input in &restored.part.inputs {
            let messages = input.share.iter().flat_map(|batch| batch.messages());
            let amounts = messages
                .map(|(_, message)| u64::from_le_bytes(message.try_into().unwrap()))
                .collect::<Vec<_>>();
            if !amounts.is_empty() {
                let from = topology.name(input.channel.from).to_owned();
                channels.insert((from, topology.name(process).to_owned()), amounts);
            }
        }
    }
    (tokens, channels)
}

/// Every snapshot of a test is, token by token, the golden one.
fn is_golden(data: &Path, test: &str, top: &str) {
    let file = |name: String| data.join("test_data").join(name);
    let (events, top) = (file(format!("{test}.events")), file(format!("{top}.top")));
    let scenario = Scenario::load_cos418(&events, &top, TICK_MS).unwrap();
    let outcome = sim::run::<BuiltIn>(&scenario, &settings(data), &mut |_, _| {}).unwrap();
    assert_eq!(outcome.failures, Vec::<String>::new());
    let golden = golden(&data.join("test_data"), test);
    assert_eq!(outcome.seen.complete.len(), golden.len());
    for (golden, id) in golden.iter().zip(1..) {
        let (tokens, channels) = found(&outcome.world, SnapshotId::new(id));
        assert_eq!(tokens, golden.tokens, "{test}, s{id}");
        let expected = golden.channels().into_iter();
        let expected: Channels = expected
            .map(|((from, to), amounts)| ((from.to_owned(), to.to_owned()), amounts))
            .collect();
        assert_eq!(channels, expected, "{test}, s{id}");
    }
}

#[test]
fn all_twenty_one_golden_snapshots_are_equal() {
    let Some(data) = peers("cos418") else { return };
    for (test, top, _) in TESTS {
        is_golden(&data, test, top);
    }
    assert_eq!(TESTS.iter().map(|(.., golden)| golden).sum::<usize>(), 21);
}
