//! A snapshot made by hand, in a store as nodes and collector would have written it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cutline::check::{Verdicts, Verified, judge_manifest};
use cutline::protocol::Topology;
use cutline::protocol::application::Quantities;
use cutline::protocol::clock::Clock;
use cutline::protocol::cut::{InputPart, OutputPart, Part};
use cutline::protocol::events::StoredPart;
use cutline::protocol::frame::Batch;
use cutline::protocol::ids::{ChannelId, Generation, MessageNumber, ProcessId, SnapshotId, Term};
use cutline::protocol::mode::Mode;
use cutline::protocol::records::{Begun, End, Manifest, Outcome, Record};
use cutline::store::{Store, verify};
use cutline::wire::part::PartFile;
use tempfile::TempDir;

pub(crate) const S1: SnapshotId = SnapshotId::new(1);

/// What a snapshot of two processes is made of. As it is, it is right: alice has sent bob 7
/// messages, of which bob has handled 3; bob has sent alice 5, all handled.
pub(crate) struct Books {
    /// Last sent, last handled, and the recorded numbers, by channel.
    pub(crate) channels: BTreeMap<&'static str, (u64, u64, Vec<u64>)>,
    /// What alice and bob hold, what the channels do, and what there must be.
    pub(crate) alice: i64,
    pub(crate) bob: i64,
    pub(crate) in_channels: i64,
    pub(crate) expected: i64,
    /// The clocks of alice and bob, where the job is traced.
    pub(crate) clocks: Option<[[u64; 2]; 2]>,
}

impl Books {
    pub(crate) fn right() -> Self {
        let channels = [
            ("alice→bob", (7, 3, vec![4, 5, 6, 7])),
            ("bob→alice", (5, 5, vec![])),
        ];
        Self {
            channels: channels.into(),
            alice: 60,
            bob: 100,
            in_channels: 40,
            expected: 200,
            clocks: None,
        }
    }

    pub(crate) fn part(&self, topology: &Topology, process: ProcessId) -> PartFile {
        let books = |channel: ChannelId| &self.channels[topology.channel_name(channel).as_str()];
        let outputs = topology
            .outputs(process)
            .into_iter()
            .map(|channel| OutputPart {
                channel,
                sent: MessageNumber::new(books(channel).0),
                after: MessageNumber::new(books(channel).0),
                share: Vec::new(),
            });
        let inputs = topology
            .inputs(process)
            .into_iter()
            .map(|channel| InputPart {
                channel,
                handled: MessageNumber::new(books(channel).1),
                after: MessageNumber::new(books(channel).0),
                share: books(channel)
                    .2
                    .iter()
                    .map(|&number| message(number))
                    .collect(),
            });
        let alice = process == ProcessId::new(0);
        PartFile {
            part: Part {
                snapshot: S1,
                generation: Generation::new(1),
                process,
                mode: Mode::Classic,
                clock: self.clocks.and_then(|clocks| {
                    let own = clocks[process.index()].to_vec();
                    Clock::of_counts(own).map(Arc::new)
                }),
                initial: money(100),
                outputs: outputs.collect(),
                inputs: inputs.collect(),
            },
            topology: topology.fingerprint(),
            application: "bank".to_owned(),
            state_version: 1,
            state: Bytes::from_static(b"accounts"),
            in_state: money(if alice { self.alice } else { self.bob }),
            in_channels: money(if alice { 0 } else { self.in_channels }),
        }
    }
}

pub(crate) fn message(number: u64) -> Batch {
    let packed = Bytes::from_static(b"\x02\x00\x00\x00hi");
    Batch::new(MessageNumber::new(number), 1, packed).unwrap()
}

pub(crate) fn money(amount: i64) -> Quantities {
    Quantities::from([("money".to_owned(), amount)])
}

pub(crate) fn topology() -> Topology {
    let names = vec!["alice".to_owned(), "bob".to_owned()];
    let (alice, bob) = (ProcessId::new(0), ProcessId::new(1));
    Topology::new(
        names,
        [ChannelId::new(alice, bob), ChannelId::new(bob, alice)],
    )
    .unwrap()
}

/// A snapshot in a store in a directory.
pub(crate) struct Stored {
    pub(crate) folder: TempDir,
    pub(crate) store: Store,
    pub(crate) topology: Topology,
    pub(crate) manifest: Manifest,
}

impl Stored {
    pub(crate) async fn new(books: &Books) -> Self {
        Self::tampered(books, |_| ()).await
    }

    /// The same, with the manifest changed before it is written.
    pub(crate) async fn tampered(books: &Books, tamper: impl FnOnce(&mut Vec<StoredPart>)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().to_str().unwrap()).await.unwrap();
        let topology = topology();
        let (generation, term) = (Generation::new(1), Term::new(1));
        let begun = Begun {
            snapshot: S1,
            generation,
            mode: Mode::Classic,
            term,
            nonce: 1,
        };
        assert_eq!(store.create(&Record::Begun(begun)).await, Outcome::Created);
        let mut parts = Vec::new();
        for process in topology.processes() {
            let part = books.part(&topology, process);
            let file = part.encode();
            parts.push(part.stored(&file));
            store
                .put_part(S1, topology.name(process), file)
                .await
                .unwrap();
        }
        tamper(&mut parts);
        let manifest = Manifest {
            snapshot: S1,
            generation,
            term,
            nonce: 1,
            mode: Mode::Classic,
            topology: topology.fingerprint(),
            end: End::Complete {
                parts,
                expected: money(books.expected),
                elapsed_ms: 3,
            },
        };
        let record = Record::Manifest(Box::new(manifest.clone()));
        assert_eq!(store.create(&record).await, Outcome::Created);
        Self {
            folder,
            store,
            topology,
            manifest,
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("snapshots/s1").join(name)
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(self.file(name)).unwrap();
        change(&mut bytes);
        fs::write(self.file(name), bytes).unwrap();
    }

    pub(crate) async fn verify(&self) -> Verified {
        verify(&self.store, &self.topology, S1).await.unwrap()
    }

    pub(crate) fn judge_manifest(&self) -> Verdicts {
        judge_manifest(&self.topology, &self.manifest)
    }
}
