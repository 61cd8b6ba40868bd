//! Parts on their way to the store and back, off the handling thread.

use std::collections::BTreeMap;
use std::future::ready;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::sleep;

use crate::hold::{Hold, Point};
use crate::protocol::Input;
use crate::protocol::application::{Application, Capture, Setup};
use crate::protocol::cut::{Facts, Loaded, Part};
use crate::protocol::events::StoredPart;
use crate::protocol::ids::{Generation, SnapshotId};
use crate::protocol::records::Manifest;
use crate::store::{Store, StoreError};
use crate::wire::part::{PartFile, Wanted};

/// Results that may wait for the loop: one for each part under way, of which the machine has at
/// most a few; what does not fit waits in its task.
const RESULTS_MAX: usize = 16;

/// How often a store that fails is read before the snapshot counts as unusable, and the pause
/// between: some seconds, in which a busy disk or a full file table is over.
const READS_MAX: u32 = 8;
const READ_PAUSE: Duration = Duration::from_millis(500);

/// What is told when a part is written or read; or how the application panicked meanwhile.
type Done<A> = std::thread::Result<Input<A>>;

/// What a node knows of its parts.
pub(super) struct Parts<A> {
    shared: Arc<Shared<A>>,
    captured: BTreeMap<SnapshotId, JoinHandle<Vec<u8>>>,
    /// What reads a part; one of an older generation is given up.
    loading: Option<JoinHandle<()>>,
    results: mpsc::Receiver<Done<A>>,
}

struct Shared<A> {
    store: Arc<Store>,
    setup: Setup,
    name: String,
    state_version: u32,
    hold: Hold,
    /// One part is read at a time: that of a generation that was given up may still be in memory.
    reads: Arc<Mutex<()>>,
    done: mpsc::Sender<Done<A>>,
}

impl<A: Application> Parts<A> {
    pub(super) fn new(store: Arc<Store>, setup: Setup, hold: Hold) -> Self {
        let (done, results) = mpsc::channel(RESULTS_MAX);
        let shared = Shared {
            store,
            name: setup.topology.name(setup.process).to_owned(),
            state_version: A::state_version(&setup),
            setup,
            hold,
            reads: Arc::default(),
            done,
        };
        Self {
            shared: Arc::new(shared),
            captured: BTreeMap::new(),
            loading: None,
            results,
        }
    }

    /// Where a scenario may stop this node.
    pub(super) fn hold(&self) -> &Hold {
        &self.shared.hold
    }

    /// Begins to encode a captured state.
    pub(super) fn capture(&mut self, snapshot: SnapshotId, capture: Capture) {
        self.captured.insert(snapshot, spawn_blocking(capture));
    }

    /// The snapshot has ended without a part.
    pub(super) fn forget(&mut self, snapshot: SnapshotId) {
        if let Some(encoding) = self.captured.remove(&snapshot) {
            encoding.abort();
        }
    }

    /// Writes a part together with its captured state; [`Input::Stored`] follows.
    pub(super) fn store(&mut self, part: Box<Part>) {
        let shared = self.shared.clone();
        let Some(encoding) = self.captured.remove(&part.snapshot) else {
            return;
        };
        tokio::spawn(async move {
            let snapshot = part.snapshot;
            let stored = shared.put(part, encoding).await;
            if stored.is_ok() {
                shared.hold.at(Point::Stored);
            }
            // Without a receiver the node is ending.
            let _ = shared.done.send(Ok(Input::Stored(snapshot, stored))).await;
        });
    }

    /// Reads the part of a snapshot, and makes an application of its state; [`Input::Loaded`]
    /// follows.
    pub(super) fn load(&mut self, generation: Generation, snapshot: SnapshotId) {
        let shared = self.shared.clone();
        let loading = tokio::spawn(async move {
            let loaded = shared.get(snapshot).await;
            let loaded = loaded.map(|loaded| Input::Loaded(generation, loaded));
            let _ = shared.done.send(loaded).await;
        });
        if let Some(before) = self.loading.replace(loading) {
            before.abort();
        }
    }

    /// The next result. An application that panics on another thread ends the node as it does on
    /// this one.
    pub(super) async fn recv(&mut self) -> Input<A> {
        let done = self.results.recv().await.expect("this side keeps a sender");
        done.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl<A: Application> Shared<A> {
    async fn put(
        self: &Arc<Self>,
        part: Box<Part>,
        encoding: JoinHandle<Vec<u8>>,
    ) -> Result<Box<StoredPart>, String> {
        let state = encoding
            .await
            .map_err(|error| format!("encoding the state: {error}"))?;
        let (snapshot, this) = (part.snapshot, self.clone());
        let encoded = spawn_blocking(move || this.encode(*part, state)).await;
        let (file, stored) = encoded.map_err(|error| format!("encoding the part: {error}"))?;
        let mut put = std::pin::pin!(self.store.put_part(snapshot, &self.name, file));
        let outcome = tokio::select! {
            biased;
            outcome = &mut put => outcome,
            // The write is under way on another thread.
            () = ready(()) => {
                self.hold.at(Point::Uploading);
                put.await
            }
        };
        outcome.map_err(|error| error.to_string())?;
        Ok(Box::new(stored))
    }

    fn encode(&self, part: Part, state: Vec<u8>) -> (Bytes, StoredPart) {
        let facts = Facts::of::<A>(&self.setup, &part, &state);
        let file = PartFile {
            part,
            topology: self.setup.topology.fingerprint(),
            application: self.setup.application.clone(),
            state_version: self.state_version,
            state: state.into(),
            in_state: facts.in_state,
            in_channels: facts.in_channels,
        };
        let bytes = file.encode();
        let stored = file.stored(&bytes);
        (bytes, stored)
    }

    /// Reads a part. A store that does not answer is asked again: only what is certain makes a
    /// snapshot unusable.
    async fn get(
        self: &Arc<Self>,
        snapshot: SnapshotId,
    ) -> std::thread::Result<Result<Box<Loaded<A>>, String>> {
        let turn = self.reads.clone().lock_owned().await;
        let mut tries = 0;
        let (manifest, file) = loop {
            tries += 1;
            match self.read(snapshot).await {
                Ok(read) => break read,
                Err(StoreError::Failed { .. } | StoreError::TimedOut { .. })
                    if tries < READS_MAX =>
                {
                    sleep(READ_PAUSE).await;
                }
                Err(error) => return Ok(Err(error.to_string())),
            }
        };
        let this = self.clone();
        let decoding = spawn_blocking(move || {
            let _turn = turn;
            this.decode(snapshot, &manifest, file)
        });
        match decoding.await.map_err(JoinError::try_into_panic) {
            Ok(loaded) => Ok(loaded),
            Err(Ok(panic)) => Err(panic),
            Err(Err(error)) => Ok(Err(format!("decoding the part: {error}"))),
        }
    }

    async fn read(&self, snapshot: SnapshotId) -> Result<(Manifest, Bytes), StoreError> {
        let manifest = self.store.manifest(snapshot).await?;
        Ok((manifest, self.store.get_part(snapshot, &self.name).await?))
    }

    fn decode(
        &self,
        snapshot: SnapshotId,
        manifest: &Manifest,
        file: Bytes,
    ) -> Result<Box<Loaded<A>>, String> {
        let wanted = Wanted {
            snapshot,
            process: self.setup.process,
            topology: self.setup.topology.fingerprint(),
            application: &self.setup.application,
        };
        let stored = manifest.part_of(self.setup.process);
        let stored = stored.ok_or_else(|| format!("{snapshot} is not complete"))?;
        let name_it = |error: &dyn std::fmt::Display| {
            format!("{}: {error}", Store::part_file(snapshot, &self.name))
        };
        let part = PartFile::decode_stored(file, stored)
            .and_then(|part| part.check_for(&wanted).map(|()| part))
            .map_err(|error| name_it(&error))?;
        let loaded = part.into_restored().load(&self.setup);
        loaded.map(Box::new).map_err(|refusal| name_it(&refusal))
    }
}
