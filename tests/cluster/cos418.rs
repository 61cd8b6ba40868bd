//! The seven tests of a well-known assignment, on real processes: as many complete snapshots as
//! it has golden files, all tokens in each, every verdict; and the golden files themselves where
//! they do not depend on how long messages travel.
//!
//! The files are not part of this repository; without them these tests are skipped, and say so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cutline::job::Job;
use cutline::protocol::ids::{ChannelId, SnapshotId};
use cutline::scenario::GoldenSnapshot;
use cutline::store::Store;
use cutline::wire::part::PartFile;
use serde_json::Value;

use crate::peers::{golden, peers};
use crate::ran::Ran;
use crate::stage::{Stage, block_on};

/// Everything is under way for five ticks.
const TICK_MS: &str = "100";

/// Where a golden file is to come out: long enough for a busy machine and a slow disk to do within
/// five ticks what is to begin together.
const GOLDEN_TICK_MS: &str = "250";

/// The folder with the files, if it is there.
pub(crate) fn data() -> Option<PathBuf> {
    peers("cos418").map(|folder| folder.join("test_data"))
}

/// Runs one test and checks what holds however long messages travel.
fn run(
    stage: &Stage,
    data: &Path,
    (test, top): (&str, &str),
    tick_ms: &str,
) -> (Ran, Vec<GoldenSnapshot>) {
    let file = |name: String| data.join(name).to_str().unwrap().to_owned();
    let (events, top) = (file(format!("{test}.events")), file(format!("{top}.top")));
    let ran = stage
        .run_file(test, &[&events, "--top", &top, "--tick-ms", tick_ms])
        .ok();
    let golden = golden(data, test);
    let snapshots = ran.view["snapshots"].as_array().unwrap();
    assert_eq!(snapshots.len(), golden.len(), "{ran}");
    assert_eq!(
        (ran.number("aborted"), ran.number("restores")),
        (0, 0),
        "{ran}"
    );
    for (snapshot, golden) in snapshots.iter().zip(&golden) {
        assert_eq!(snapshot["holds"], true, "{ran}");
        let tokens = &snapshot["quantities"]["tokens"];
        let count = |field: &str| tokens[field].as_u64().unwrap();
        assert_eq!(
            count("in_states") + count("in_channels"),
            golden.total(),
            "{ran}"
        );
    }
    (ran, golden)
}

/// What a `.snap` file would say of a stored snapshot: tokens, and amounts in channels.
pub(crate) type Found = (BTreeMap<String, u64>, BTreeMap<(String, String), Vec<u64>>);

pub(crate) fn found(ran: &Ran, snapshot: SnapshotId) -> Found {
    let job = Job::load(&ran.directory().join("job.toml")).unwrap();
    let job = job.with_directory(ran.directory());
    let topology = job.topology();
    let (mut tokens, mut channels) = (BTreeMap::new(), BTreeMap::new());
    block_on(async {
        let store = Store::open(job.store_url().as_str()).await.unwrap();
        for process in topology.processes() {
            let name = topology.name(process);
            let file = PartFile::decode(store.get_part(snapshot, name).await.unwrap()).unwrap();
            let state: Value = serde_json::from_slice(&file.state).unwrap();
            tokens.insert(name.to_owned(), state["balance"].as_u64().unwrap());
            for (channel, messages) in messages(&file) {
                let ends = (topology.name(channel.from), topology.name(channel.to));
                let ends = (ends.0.to_owned(), ends.1.to_owned());
                channels.insert(ends, messages);
            }
        }
    });
    (tokens, channels)
}

fn messages(file: &PartFile) -> impl Iterator<Item = (ChannelId, Vec<u64>)> {
    let amount = |message: &[u8]| u64::from_le_bytes(message.try_into().unwrap());
    let inputs = file.part.inputs.iter();
    let amounts = inputs.map(move |input| {
        let messages = input.share.iter().flat_map(|batch| batch.messages());
        (
            input.channel,
            messages
                .map(|(_, message)| amount(message))
                .collect::<Vec<_>>(),
        )
    });
    amounts.filter(|(_, amounts)| !amounts.is_empty())
}

/// The snapshots of a test that does not depend on delays are exactly the golden ones.
fn is_golden(test: &str, top: &str) {
    let Some(data) = data() else { return };
    let stage = Stage::new();
    let (ran, golden) = run(&stage, &data, (test, top), GOLDEN_TICK_MS);
    for (golden, id) in golden.iter().zip(1..) {
        let (tokens, channels) = found(&ran, SnapshotId::new(id));
        assert_eq!(tokens, golden.tokens, "{ran}");
        let expected = golden.channels().into_iter();
        let expected =
            expected.map(|((from, to), amounts)| ((from.to_owned(), to.to_owned()), amounts));
        assert_eq!(channels, expected.collect(), "{ran}");
    }
}

fn holds(test: &str, top: &str) {
    let Some(data) = data() else { return };
    run(&Stage::new(), &data, (test, top), TICK_MS);
}

#[test]
fn two_nodes_simple_is_golden() {
    is_golden("2nodes-simple", "2nodes");
}

#[test]
fn two_nodes_message_is_golden() {
    is_golden("2nodes-message", "2nodes");
}

#[test]
fn three_nodes_simple_holds() {
    holds("3nodes-simple", "3nodes");
}

#[test]
fn three_nodes_bidirectional_messages_holds() {
    holds("3nodes-bidirectional-messages", "3nodes");
}

#[test]
fn eight_nodes_sequential_snapshots_are_golden() {
    is_golden("8nodes-sequential-snapshots", "8nodes");
}

#[test]
fn eight_nodes_concurrent_snapshots_hold() {
    holds("8nodes-concurrent-snapshots", "8nodes");
}

#[test]
fn ten_nodes_hold() {
    holds("10nodes", "10nodes");
}
