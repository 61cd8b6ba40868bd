//! The 21 golden snapshots of a well-known assignment, by the delays that were drawn for them.
//!
//! The files are not part of this repository; without them these tests are skipped, and say so.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cutline::apps::BuiltIn;
use cutline::protocol::ids::SnapshotId;
use cutline::scenario::{GoldenSnapshot, Scenario, Text};
use cutline::sim::{self, Course, Delays, Discipline, Settings};
use cutline::world::World;
use serde_json::Value;

const TICK_MS: u64 = 20;

/// The folder with the files, if it is there.
fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/peers");
    let peers = std::env::var_os("CUTLINE_PEERS").map_or(beside, PathBuf::from);
    let data = peers.join("cos418");
    if data.is_dir() {
        return Some(data);
    }
    println!(
        "skipped: there is no folder {}; CUTLINE_PEERS says where",
        data.display()
    );
    None
}

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

/// Every snapshot of a test is, token by token, the golden one. Answers how many there are.
fn golden(test: &str, top: &str) -> usize {
    let Some(data) = data() else { return 0 };
    let file = |name: String| data.join("test_data").join(name);
    let (events, top) = (file(format!("{test}.events")), file(format!("{top}.top")));
    let scenario = Scenario::load_cos418(&events, &top, TICK_MS).unwrap();
    let outcome = sim::run::<BuiltIn>(&scenario, &settings(&data), &mut |_, _| {}).unwrap();
    assert_eq!(outcome.failures, Vec::<String>::new());
    let numbered = (0..).map(
        |number| match test.contains("snapshots") || test == "10nodes" {
            true => file(format!("{test}{number}.snap")),
            false => file(format!("{test}.snap")),
        },
    );
    let one = usize::from(!(test.contains("snapshots") || test == "10nodes"));
    let paths = numbered.take(if one == 1 { 1 } else { usize::MAX });
    let mut count = 0;
    for (path, id) in paths.take_while(|path| path.exists()).zip(1..) {
        let text = fs::read_to_string(&path).unwrap();
        let origin = path.as_path();
        let text = Text {
            text: &text,
            origin,
        };
        let golden = GoldenSnapshot::parse(text).unwrap();
        let (tokens, channels) = found(&outcome.world, SnapshotId::new(id));
        assert_eq!(tokens, golden.tokens, "{}", path.display());
        let expected = golden.channels().into_iter();
        let expected: Channels = expected
            .map(|((from, to), amounts)| ((from.to_owned(), to.to_owned()), amounts))
            .collect();
        assert_eq!(channels, expected, "{}", path.display());
        count += 1;
    }
    assert_eq!(outcome.seen.complete.len(), count);
    count
}

#[test]
fn all_twenty_one_golden_snapshots_are_equal() {
    let tests = [
        ("2nodes-simple", "2nodes", 1),
        ("2nodes-message", "2nodes", 1),
        ("3nodes-simple", "3nodes", 1),
        ("3nodes-bidirectional-messages", "3nodes", 1),
        ("8nodes-sequential-snapshots", "8nodes", 2),
        ("8nodes-concurrent-snapshots", "8nodes", 5),
        ("10nodes", "10nodes", 10),
    ];
    for (test, top, expected) in tests {
        let found = golden(test, top);
        assert!(found == expected || data().is_none(), "{test}: {found}");
    }
}
