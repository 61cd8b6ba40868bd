//! What one process is collecting for one open snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::clock::Clock;
use super::cut::{InputPart, OutputPart, Part};
use super::events::StoredPart;
use super::frame::{Batch, Frame, Marker};
use super::ids::{ChannelId, Generation, MessageNumber, ProcessId, SnapshotId};
use super::link::{Inbox, Outbox};
use super::mode::{Mode, Taking};

/// How far a recording is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Inputs are still open or markers still wait to be handed to the driver.
    Open,
    /// The part is being written.
    Storing,
    /// The part is on disk; kept to be reported again to a new collector.
    Stored(Box<StoredPart>),
}

/// One process's recording of one snapshot; begins when the local state is taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Recording {
    snapshot: SnapshotId,
    mode: Mode,
    recorded_ms: u64,
    stage: Stage,
    inputs: Vec<InputRecording>,
    outputs: Vec<OutputPart>,
    /// Outputs whose marker has not been handed to the driver.
    markers_waiting: BTreeSet<ChannelId>,
    bytes: u64,
    /// The process's clock when it recorded, where the job is traced.
    clock: Option<Arc<Clock>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InputRecording {
    part: InputPart,
    open: bool,
}

impl Recording {
    /// Begins the recording of every input, at the moment the local state is taken: what is in
    /// an inbox ahead of the snapshot's marker is in the channel. `closed` is the input whose
    /// marker has just been taken from its head, so that nothing was ahead of it.
    pub(super) fn begin(
        (snapshot, taking): (SnapshotId, Taking),
        recorded_ms: u64,
        inboxes: &[Inbox],
        outboxes: &[Outbox],
        closed: Option<ChannelId>,
    ) -> Self {
        let mut bytes = 0;
        let mut inputs = Vec::with_capacity(inboxes.len());
        for inbox in inboxes {
            let channel = inbox.channel();
            let (mut share, mut open) = (Vec::new(), closed != Some(channel));
            let mut ahead = inbox.items();
            while open && let Some(frame) = ahead.next() {
                match frame {
                    Frame::Messages(batch) => {
                        bytes += batch.bytes();
                        share.push(batch.clone());
                    }
                    Frame::Marker(marker) => open = marker.snapshot != snapshot,
                }
            }
            let handled = inbox.handled();
            let part = InputPart {
                channel,
                handled,
                after: MessageNumber::default(),
                share,
            };
            inputs.push(InputRecording { part, open });
        }
        let outputs = outboxes.iter().map(|outbox| OutputPart {
            channel: outbox.channel(),
            sent: outbox.sent(),
            after: outbox.sent(),
            share: Vec::new(),
        });
        Self {
            snapshot,
            mode: taking.mode,
            recorded_ms,
            stage: Stage::Open,
            inputs,
            outputs: outputs.collect(),
            markers_waiting: outboxes.iter().map(Outbox::channel).collect(),
            bytes,
            clock: None,
        }
    }

    /// When it was, by the process's vector clock.
    pub(super) fn clocked(mut self, clock: Option<Arc<Clock>>) -> Self {
        self.clock = clock;
        self
    }

    /// A new batch has come in on an input: it is in the channel unless the marker has come.
    pub(super) fn arrived(&mut self, input: usize, batch: &Batch) {
        // A part that is whole has given its inputs away, and every marker has come.
        if let Some(input) = self.inputs.get_mut(input).filter(|input| input.open) {
            self.bytes += batch.bytes();
            input.part.share.push(batch.clone());
        }
    }

    /// Marker-receiving rule, second half: the channel's state is what has been recorded so far.
    pub(super) fn close(&mut self, input: usize, marker: &Marker) {
        if let Some(input) = self.inputs.get_mut(input) {
            assert_eq!(
                marker.snapshot, self.snapshot,
                "a marker closes its own snapshot only"
            );
            input.open = false;
        }
    }

    /// The marker of this snapshot has been handed to the driver.
    pub(super) fn marker_written(&mut self, channel: ChannelId) {
        self.markers_waiting.remove(&channel);
    }

    /// What the recording holds in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The input whose state is largest: the one to name when the recording grows too large.
    pub(super) fn largest_input(&self) -> Option<ChannelId> {
        let size = |input: &&InputRecording| input.part.share.iter().map(Batch::bytes).sum::<u64>();
        self.inputs
            .iter()
            .max_by_key(size)
            .map(|input| input.part.channel)
    }

    /// What it still waits for, in words; empty when it waits for nothing.
    pub(super) fn waits_for(&self) -> Vec<ChannelId> {
        let open = self
            .inputs
            .iter()
            .filter(|input| input.open)
            .map(|input| input.part.channel);
        open.chain(self.markers_waiting.iter().copied()).collect()
    }

    /// Since when, if the part is not on disk yet.
    pub(super) fn unfinished_since_ms(&self) -> Option<u64> {
        match self.stage {
            Stage::Stored(_) => None,
            Stage::Open | Stage::Storing => Some(self.recorded_ms),
        }
    }

    /// The part, once: when every input is closed and every marker is with the driver.
    pub(super) fn finish(&mut self, process: ProcessId, generation: Generation) -> Option<Part> {
        let closed = self.inputs.iter().all(|input| !input.open);
        if self.stage != Stage::Open || !closed || !self.markers_waiting.is_empty() {
            return None;
        }
        self.stage = Stage::Storing;
        self.bytes = 0;
        Some(Part {
            snapshot: self.snapshot,
            generation,
            process,
            mode: self.mode,
            clock: self.clock.take(),
            outputs: std::mem::take(&mut self.outputs),
            inputs: self.inputs.drain(..).map(|input| input.part).collect(),
        })
    }

    /// The part is on disk.
    pub(super) fn stored(&mut self, part: Box<StoredPart>) {
        assert_eq!(
            self.stage,
            Stage::Storing,
            "a part is stored once, when it is whole"
        );
        self.stage = Stage::Stored(part);
    }

    /// The part on disk, to be reported again.
    pub(super) fn stored_part(&self) -> Option<&StoredPart> {
        match &self.stage {
            Stage::Stored(part) => Some(part),
            Stage::Open | Stage::Storing => None,
        }
    }
}
