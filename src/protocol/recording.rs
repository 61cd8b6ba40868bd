//! What one process is collecting for one open snapshot: from the first word of it, over the
//! moment at which the local state is taken, to the part on disk. One recorder for every mode; it
//! asks the mode its questions.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::application::Quantities;
use super::clock::Clock;
use super::cut::{InputPart, OutputPart, Part};
use super::events::StoredPart;
use super::frame::{Batch, Frame};
use super::ids::{ChannelId, Generation, MessageNumber, ProcessId, SnapshotId};
use super::link::{Inbox, Outbox, Overtaken};
use super::mode::{Records, Taking};
use super::mutant::{Mutant::*, is};

/// How far a recording is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The local state has not been taken: markers are waited for.
    Waiting,
    /// It has been; inputs are still open or markers still wait to be handed to the driver.
    Open,
    /// The part is being written.
    Storing,
    /// The part is on disk; kept to be reported again to a new collector.
    Stored(Box<StoredPart>),
}

/// One process's recording of one snapshot; begins with the first marker off the wire, or the
/// trigger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Recording {
    snapshot: SnapshotId,
    taking: Taking,
    opened_ms: u64,
    /// When the limit T strikes, if there is one: the earliest that any marker or the trigger
    /// has told of.
    strikes_ms: Option<u64>,
    /// Whether markers overtake here: by the mode, or since T has struck.
    overtakes: bool,
    triggered: bool,
    stage: Stage,
    inputs: Vec<InputRecording>,
    counts: Counts,
    outputs: Vec<OutputPart>,
    /// Outputs whose marker has not been handed to the driver.
    markers_waiting: BTreeSet<ChannelId>,
    bytes: u64,
    /// The process's clock when it recorded, where the job is traced.
    clock: Option<Arc<Clock>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InputRecording {
    channel: ChannelId,
    /// Whether an alignment waits for its marker: it is no back edge.
    awaited: bool,
    /// The last message ahead of its marker, once that is off the wire.
    after: Option<MessageNumber>,
    /// Whether its marker has come to the head of the inbox.
    counted: bool,
    handled: MessageNumber,
    share: Vec<Batch>,
}

/// What is asked of all inputs whenever something happens on one: it is counted, as there may be
/// many thousands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Counts {
    /// Those whose marker is not off the wire.
    open: usize,
    /// Those whose marker has come to the head of the inbox.
    counted: usize,
    /// Those whose marker has not, and an alignment waits for it.
    awaited: usize,
}

impl Counts {
    fn of(inputs: &[InputRecording]) -> Self {
        let count = |holds: fn(&&InputRecording) -> bool| inputs.iter().filter(holds).count();
        Self {
            open: count(|input| input.after.is_none()),
            counted: count(|input| input.counted),
            awaited: count(|input| input.awaited && !input.counted),
        }
    }
}

impl Recording {
    /// Opens the snapshot at a process with these inputs, which an alignment waits for or not.
    pub(super) fn open(
        snapshot: SnapshotId,
        taking: Taking,
        now_ms: u64,
        inputs: impl Iterator<Item = (ChannelId, bool)>,
    ) -> Self {
        let inputs = inputs.map(|(channel, awaited)| InputRecording {
            channel,
            awaited,
            after: None,
            counted: false,
            handled: MessageNumber::default(),
            share: Vec::new(),
        });
        let inputs: Vec<InputRecording> = inputs.collect();
        Self {
            snapshot,
            taking,
            opened_ms: now_ms,
            strikes_ms: None,
            overtakes: taking.mode.overtakes(),
            triggered: false,
            stage: Stage::Waiting,
            counts: Counts::of(&inputs),
            inputs,
            outputs: Vec::new(),
            markers_waiting: BTreeSet::new(),
            bytes: 0,
            clock: None,
        }
    }

    /// A marker, or the trigger, tells how much of the limit was used before it came here. Each
    /// tells of a part of the way only, so that the most is nearest to the truth.
    pub(super) fn hasten(&mut self, now_ms: u64, used_ms: u64) {
        if let Some(limit_ms) = self.taking.limit_ms {
            let strikes_ms = now_ms.saturating_add(limit_ms.saturating_sub(used_ms));
            let before_ms = self.strikes_ms.unwrap_or(u64::MAX);
            self.strikes_ms = Some(before_ms.min(strikes_ms));
        }
    }

    /// How much of the limit is used.
    pub(super) fn used_ms(&self, now_ms: u64) -> u64 {
        let left_ms = |strikes_ms: u64| strikes_ms.saturating_sub(now_ms);
        let limit_ms = self.taking.limit_ms.unwrap_or(0);
        limit_ms.saturating_sub(self.strikes_ms.map_or(0, left_ms))
    }

    /// The collector asks this process to initiate it.
    pub(super) fn trigger(&mut self) {
        self.triggered = true;
    }

    /// Marker-receiving rule, second half: the channel's state is what stood ahead of the marker.
    pub(super) fn marker_came(&mut self, input: usize, after: MessageNumber) {
        if let Some(input) = self.inputs.get_mut(input) {
            self.counts.open -= usize::from(input.after.is_none());
            input.after = Some(after);
        }
    }

    /// The marker has come to the head of its inbox.
    pub(super) fn marker_counts(&mut self, input: usize) {
        if let Some(input) = self.inputs.get_mut(input) {
            if !input.counted {
                self.counts.counted += 1;
                self.counts.awaited -= usize::from(input.awaited);
            }
            input.counted = true;
        }
    }

    /// Whether T strikes now: from here on, markers overtake.
    pub(super) fn strike(&mut self, now_ms: u64) -> bool {
        let strikes = !self.overtakes
            && matches!(self.stage, Stage::Waiting | Stage::Open)
            && self
                .strikes_ms
                .is_some_and(|strikes_ms| strikes_ms <= now_ms);
        self.overtakes |= strikes;
        strikes
    }

    /// When T will strike, if it may yet.
    pub(super) fn strikes_ms(&self) -> Option<u64> {
        let may = !self.overtakes && matches!(self.stage, Stage::Waiting | Stage::Open);
        self.strikes_ms.filter(|_| may)
    }

    pub(super) fn overtakes(&self) -> bool {
        self.overtakes
    }

    /// Whether it is time to take the local state. A marker that may overtake counts wherever it
    /// stands, and without a marker or a trigger there would be no recording.
    pub(super) fn is_due(&self) -> bool {
        let opened = self.triggered || self.counts.counted > 0;
        self.stage == Stage::Waiting
            && (self.overtakes
                || opened
                    && match self.taking.mode.records() {
                        Records::AtFirstMarker => !is(RecordsLate) || self.counts.awaited == 0,
                        Records::WhenAligned => self.counts.awaited == 0,
                    })
    }

    /// Whether this input is held: nothing is handled that stands behind its marker until the
    /// local state has been taken.
    pub(super) fn holds(&self, input: usize) -> bool {
        let counted = |input: &InputRecording| input.counted;
        (self.stage == Stage::Waiting || is(NeverReleases))
            && self.taking.mode.holds()
            && !is(ReleasesEarly)
            && !self.overtakes
            && self.inputs.get(input).is_some_and(counted)
    }

    /// How the snapshot is taken.
    pub(super) fn taking(&self) -> Taking {
        self.taking
    }

    /// The local state is taken: what stands in an inbox ahead of the marker is in the channel.
    pub(super) fn begin(&mut self, inboxes: &[Inbox]) {
        for (input, inbox) in self.inputs.iter_mut().zip(inboxes) {
            input.handled = inbox.handled();
            if is(ForgetsOvertakenInput) && input.after.is_some() {
                continue;
            }
            let ahead = |batch: &&Batch| input.after.is_none_or(|after| batch.last() <= after);
            let messages = inbox.items().filter_map(|frame| match frame {
                Frame::Messages(batch) => Some(batch),
                Frame::Marker(_) => None,
            });
            if self.taking.mode.is_consistent() && !is(ForgetsInbox) {
                input.share = messages.take_while(ahead).cloned().collect();
                self.bytes += input.share.iter().map(Batch::bytes).sum::<u64>();
            }
        }
    }

    /// It has been taken, at this time of the process's vector clock if there is one, and the
    /// markers have been put at the back of every outbox.
    pub(super) fn markers_put(&mut self, outboxes: &[Outbox], clock: Option<Arc<Clock>>) {
        self.stage = Stage::Open;
        self.clock = clock;
        let outputs = outboxes.iter().map(|outbox| OutputPart {
            channel: outbox.channel(),
            sent: outbox.sent(),
            after: outbox.sent(),
            share: Vec::new(),
        });
        self.outputs = outputs.collect();
        self.markers_waiting = outboxes.iter().map(Outbox::channel).collect();
    }

    /// Whether the marker on this output has not been handed to the driver.
    pub(super) fn marker_waits(&self, channel: ChannelId) -> bool {
        self.markers_waiting.contains(&channel)
    }

    /// The marker on this output has overtaken what stood ahead of it.
    pub(super) fn overtook(&mut self, output: usize, overtaken: Overtaken) {
        if let Some(output) = self.outputs.get_mut(output) {
            self.bytes += overtaken.share.iter().map(Batch::bytes).sum::<u64>();
            output.after = overtaken.after;
            output.share = overtaken.share;
            if is(DropsSenderShare) {
                output.share.clear();
            }
        }
    }

    /// A new batch has come in on an input: it is in the channel unless the marker has come.
    pub(super) fn arrived(&mut self, input: usize, batch: &Batch) {
        let records = self.stage == Stage::Open && self.taking.mode.is_consistent();
        let input = self.inputs.get_mut(input).filter(|_| records);
        if let Some(input) = input.filter(|input| input.after.is_none() || is(LogsBehindMarker)) {
            if is(ForgetsBackEdge) && !input.awaited {
                return;
            }
            self.bytes += batch.bytes();
            input.share.push(batch.clone());
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

    /// The channel whose state is largest: the one to name when the recording grows too large.
    pub(super) fn largest_channel(&self) -> Option<ChannelId> {
        let inputs = self
            .inputs
            .iter()
            .map(|input| (input.channel, &input.share));
        let outputs = self.outputs.iter();
        let outputs = outputs.map(|output| (output.channel, &output.share));
        let size = |share: &[Batch]| share.iter().map(Batch::bytes).sum::<u64>();
        let largest = outputs.chain(inputs).max_by_key(|(_, share)| size(share));
        largest.map(|(channel, _)| channel)
    }

    /// The channels whose markers it still waits for; none when it waits for nothing.
    pub(super) fn waits_for(&self) -> Vec<ChannelId> {
        let recorded = self.stage != Stage::Waiting;
        let awaited = |input: &&InputRecording| match self.taking.mode.records() {
            _ if recorded => input.after.is_none(),
            Records::AtFirstMarker => input.after.is_some(),
            Records::WhenAligned => input.awaited && !input.counted,
        };
        let inputs = self.inputs.iter().filter(awaited);
        let inputs = inputs.map(|input| input.channel);
        inputs.chain(self.markers_waiting.iter().copied()).collect()
    }

    /// Since when, if the part is not on disk yet.
    pub(super) fn unfinished_since_ms(&self) -> Option<u64> {
        match self.stage {
            Stage::Stored(_) => None,
            Stage::Waiting | Stage::Open | Stage::Storing => Some(self.opened_ms),
        }
    }

    /// Whether the local state has been taken and is not on disk yet.
    pub(super) fn has_state(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Storing)
    }

    /// The part, once: when every input is closed and every marker is with the driver.
    pub(super) fn finish(
        &mut self,
        process: ProcessId,
        generation: Generation,
        initial: &Quantities,
    ) -> Option<Part> {
        let waits = self.counts.open > 0 || !self.markers_waiting.is_empty();
        if self.stage != Stage::Open || waits {
            return None;
        }
        self.stage = Stage::Storing;
        self.bytes = 0;
        self.counts = Counts::default();
        if is(ForgetsChannel)
            && let Some(first) = self.inputs.first_mut()
        {
            first.share.clear();
        }
        let inputs = self.inputs.drain(..).map(|input| InputPart {
            channel: input.channel,
            handled: input.handled,
            after: input.after.expect("every input is closed"),
            share: input.share,
        });
        Some(Part {
            snapshot: self.snapshot,
            generation,
            process,
            mode: self.taking.mode,
            clock: self.clock.take(),
            initial: initial.clone(),
            inputs: inputs.collect(),
            outputs: std::mem::take(&mut self.outputs),
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

    /// Whether what is counted is what a look at each input finds.
    pub(super) fn is_kept_right(&self) -> bool {
        self.counts == Counts::of(&self.inputs)
    }

    /// The part on disk, to be reported again.
    pub(super) fn stored_part(&self) -> Option<&StoredPart> {
        match &self.stage {
            Stage::Stored(part) => Some(part),
            Stage::Waiting | Stage::Open | Stage::Storing => None,
        }
    }
}
