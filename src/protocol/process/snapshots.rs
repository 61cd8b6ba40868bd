//! Snapshots at one process: open, record, close, end.

use super::Process;
use crate::protocol::application::Application;
use crate::protocol::events::{Effect, Report, StoredPart};
use crate::protocol::frame::{Batch, Marker};
use crate::protocol::ids::{ChannelId, SnapshotId};
use crate::protocol::link::Outbox;
use crate::protocol::mode::Taking;
use crate::protocol::mutant::{Mutant::*, is};
use crate::protocol::recording::Recording;

/// Recordings that may be under way at once. The collector allows far fewer; this bounds what a
/// peer speaking nonsense can make a node hold.
const RECORDINGS_MAX: usize = 64;

impl<A: Application> Process<A> {
    /// The inputs that are held: their markers have come, others' have not.
    pub fn held(&self) -> impl Iterator<Item = ChannelId> + '_ {
        let inputs = self.inboxes.iter().enumerate();
        let held = inputs.filter(|(input, _)| self.is_held(*input));
        held.map(|(_, inbox)| inbox.channel())
    }

    /// When the limit of a snapshot strikes next, on the clock of [`Input::Time`]; not before the
    /// process runs.
    ///
    /// [`Input::Time`]: crate::protocol::Input::Time
    pub fn strikes_ms(&self) -> Option<u64> {
        self.running()?;
        let recordings = self.recordings.values();
        recordings.filter_map(Recording::strikes_ms).min()
    }

    /// Held by the snapshot that closed it, and by no other: with that recording it is released.
    pub(super) fn is_held(&self, input: usize) -> bool {
        let mut recordings = self.recordings.values();
        recordings.any(|recording| recording.holds(input))
    }

    /// The trigger at an initiator. If a marker was faster it may have nothing left to do.
    pub(super) fn trigger(
        &mut self,
        snapshot: SnapshotId,
        taking: Taking,
        effects: &mut Vec<Effect>,
    ) {
        if self.running().is_none() {
            return self.decline(snapshot, "the process is not running".to_owned(), effects);
        }
        if let Some(recording) = self.opened(snapshot, taking, 0, effects) {
            recording.trigger();
            self.go_on(snapshot, effects);
        }
    }

    /// A marker is off the wire: its channel's state is closed, wherever the marker stands.
    pub(super) fn marker_came(&mut self, input: usize, marker: &Marker, effects: &mut Vec<Effect>) {
        let Marker {
            snapshot,
            taking,
            used_ms,
            after,
            ..
        } = *marker;
        if let Some(recording) = self.opened(snapshot, taking, used_ms, effects) {
            recording.marker_came(input, after);
            self.go_on(snapshot, effects);
        }
    }

    /// Marker-receiving rule, first half: a marker has come to the head of its inbox.
    pub(super) fn marker_counts(
        &mut self,
        input: usize,
        marker: &Marker,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(recording) = self.recordings.get_mut(&marker.snapshot) {
            recording.marker_counts(input);
            self.go_on(marker.snapshot, effects);
        }
    }

    /// The recording of a snapshot, which this word of it may open; none if it has ended.
    fn opened(
        &mut self,
        snapshot: SnapshotId,
        taking: Taking,
        used_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Option<&mut Recording> {
        let has_ended = self.ended.contains(snapshot) && !is(ForwardsEndedMarker);
        if !self.recordings.contains_key(&snapshot) && !has_ended {
            self.open(snapshot, taking, effects);
        }
        let recording = self.recordings.get_mut(&snapshot)?;
        recording.hasten(self.now_ms, used_ms);
        Some(recording)
    }

    /// Only classic snapshots overlap, and only with one another: else the newer ends the older.
    /// This is no failure, and the collector, who began the newer, knows.
    fn open(&mut self, snapshot: SnapshotId, taking: Taking, effects: &mut Vec<Effect>) {
        let apart = |recording: &Recording| !recording.taking().mode.overlaps(taking.mode);
        let mut newer = self.recordings.range(snapshot..);
        if newer.any(|(_, recording)| apart(recording)) {
            return self.ended.insert(snapshot);
        }
        let older = self.recordings.range(..snapshot);
        let older = older.filter(|(_, recording)| apart(recording));
        for older in older.map(|(&older, _)| older).collect::<Vec<_>>() {
            self.end(older, effects);
        }
        if !taking.mode.overlaps(taking.mode) {
            // Of others that are older a marker may be under way still.
            let first = snapshot.get().saturating_sub(RECORDINGS_MAX as u64);
            for older in first..snapshot.get() {
                self.ended.insert(SnapshotId::new(older));
            }
        }
        if self.recordings.len() >= RECORDINGS_MAX {
            let reason = format!("{RECORDINGS_MAX} snapshots are being recorded already");
            return self.decline(snapshot, reason, effects);
        }
        let topology = &self.setup.topology;
        let inputs = self.inboxes.iter().map(|inbox| {
            let channel = inbox.channel();
            (channel, !topology.back_edges().contains(&channel))
        });
        let recording = Recording::open(snapshot, taking, self.now_ms, inputs);
        self.recordings.insert(snapshot, recording);
    }

    /// Does whatever is due for a snapshot. While a restore is under way nothing is: markers of
    /// those who run already are queued, as messages are.
    pub(super) fn go_on(&mut self, snapshot: SnapshotId, effects: &mut Vec<Effect>) {
        if self.running().is_none() {
            return;
        }
        let Some(recording) = self.recordings.get_mut(&snapshot) else {
            return;
        };
        let struck = recording.strike(self.now_ms);
        let recorded = recording.is_due();
        if recorded {
            self.record(snapshot, effects);
        }
        if struck || recorded {
            self.overtake(snapshot, effects);
        }
        self.finish(snapshot, effects);
    }

    /// Takes the local state, puts the marker on every output and opens the recording of every
    /// input, in one step: nothing can be handled or sent between.
    fn record(&mut self, snapshot: SnapshotId, effects: &mut Vec<Effect>) {
        let Some(recording) = self.recordings.get_mut(&snapshot) else {
            return;
        };
        recording.begin(&self.inboxes);
        self.check_size(snapshot, effects);
        let Some(mode) = self.recordings.get(&snapshot).map(|r| r.taking().mode) else {
            return;
        };
        let clock = self.capture(snapshot, mode, effects);
        let recording = self.recordings.get_mut(&snapshot);
        let recording = recording.expect("its state has just been taken");
        let (taking, used_ms) = (recording.taking(), recording.used_ms(self.now_ms));
        for output in 0..self.outboxes.len() {
            let put = |outbox: &mut Outbox| outbox.push_marker(snapshot, taking, used_ms);
            self.outboxes.change(output, put);
        }
        recording.markers_put(&self.outboxes, clock);
    }

    /// Where markers overtake, those that wait in outboxes go to the front.
    fn overtake(&mut self, snapshot: SnapshotId, effects: &mut Vec<Effect>) {
        let recording = self.recordings.get_mut(&snapshot);
        let Some(recording) = recording.filter(|recording| recording.overtakes()) else {
            return;
        };
        let used_ms = recording.used_ms(self.now_ms);
        for output in 0..self.outboxes.len() {
            let overtake = |outbox: &mut Outbox| outbox.overtake(snapshot, used_ms);
            if recording.marker_waits(self.outboxes[output].channel())
                && let Some(overtaken) = self.outboxes.change(output, overtake)
            {
                recording.overtook(output, overtaken);
            }
        }
        self.check_size(snapshot, effects);
    }

    /// A batch has come in: it belongs to the channel's state in every recording still open.
    pub(super) fn record_arrival(
        &mut self,
        input: usize,
        batch: &Batch,
        effects: &mut Vec<Effect>,
    ) {
        for recording in self.recordings.values_mut() {
            recording.arrived(input, batch);
        }
        for snapshot in self.recordings.keys().copied().collect::<Vec<_>>() {
            self.check_size(snapshot, effects);
        }
    }

    /// A recording over its bound ends its snapshot.
    fn check_size(&mut self, snapshot: SnapshotId, effects: &mut Vec<Effect>) {
        let bound = self.settings.limits.recording_bytes_max;
        let recording = self.recordings.get(&snapshot);
        if let Some(recording) = recording.filter(|recording| recording.bytes() > bound) {
            let reason = self.too_large(recording);
            self.decline(snapshot, reason, effects);
        }
    }

    fn too_large(&self, recording: &Recording) -> String {
        let bound = self.settings.limits.recording_bytes_max;
        let channel = recording.largest_channel();
        let channel = channel.map(|channel| self.setup.topology.channel_name(channel));
        format!(
            "the recording is over recording_bytes_max = {bound}, most of it from {}",
            channel.unwrap_or_default()
        )
    }

    /// A marker has been handed to the driver.
    pub(super) fn marker_written(
        &mut self,
        channel: ChannelId,
        marker: &Marker,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(recording) = self.recordings.get_mut(&marker.snapshot) {
            recording.marker_written(channel);
            self.finish(marker.snapshot, effects);
        }
    }

    /// Stores the part when it is complete.
    fn finish(&mut self, snapshot: SnapshotId, effects: &mut Vec<Effect>) {
        let process = self.id();
        let generation = self.generation().expect("only a running process records");
        if let Some(recording) = self.recordings.get_mut(&snapshot)
            && let Some(part) = recording.finish(process, generation, &self.initial)
        {
            effects.push(Effect::Store(Box::new(part)));
        }
    }

    /// The part is on disk, or is not: only now may the collector count on it.
    pub(super) fn stored(
        &mut self,
        snapshot: SnapshotId,
        stored: Result<Box<StoredPart>, String>,
        effects: &mut Vec<Effect>,
    ) {
        let (Some(generation), Some(recording)) =
            (self.generation(), self.recordings.get_mut(&snapshot))
        else {
            return;
        };
        match stored {
            Err(_) if is(HidesFailedPart) => {}
            Err(reason) => self.decline(snapshot, reason, effects),
            Ok(part) => {
                recording.stored(part.clone());
                effects.push(Effect::Report(Report::Stored {
                    snapshot,
                    generation,
                    part,
                }));
            }
        }
    }

    /// Parts that are on disk are reported again to a collector that may not know of them.
    pub(super) fn report_stored(&self, effects: &mut Vec<Effect>) {
        let Some(generation) = self.generation() else {
            return;
        };
        for (&snapshot, recording) in &self.recordings {
            if let Some(part) = recording.stored_part() {
                effects.push(Effect::Report(Report::Stored {
                    snapshot,
                    generation,
                    part: Box::new(part.clone()),
                }));
            }
        }
    }

    /// Ends the snapshot here and tells the collector why.
    fn decline(&mut self, snapshot: SnapshotId, reason: String, effects: &mut Vec<Effect>) {
        self.end(snapshot, effects);
        if let Some(generation) = self.generation() {
            effects.push(Effect::Report(Report::Declined {
                snapshot,
                generation,
                reason,
            }));
        }
    }

    /// The snapshot has ended: what was recorded for it is dropped, late markers are ignored.
    pub(super) fn end(&mut self, snapshot: SnapshotId, effects: &mut Vec<Effect>) {
        self.ended.insert(snapshot);
        if is(MovesLowItself) {
            self.ended.raise(snapshot);
        }
        if let Some(recording) = self.recordings.remove(&snapshot)
            && recording.has_state()
        {
            effects.push(Effect::Forget(snapshot));
        }
    }

    /// All snapshots up to this one have ended, whether or not a word came of each.
    pub(super) fn end_up_to(&mut self, low: SnapshotId, effects: &mut Vec<Effect>) {
        let ended = self.recordings.range(..=low).map(|(&snapshot, _)| snapshot);
        for snapshot in ended.collect::<Vec<_>>() {
            self.end(snapshot, effects);
        }
        self.ended.raise(low);
    }

    /// Time passes: T strikes where it is due. A node ends what takes too long by its own clock,
    /// and releases what it held: an abort that never arrives must not hold a channel for ever.
    pub(super) fn time(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        self.now_ms = self.now_ms.max(now_ms);
        for snapshot in self.recordings.keys().copied().collect::<Vec<_>>() {
            self.go_on(snapshot, effects);
        }
        let timeout_ms = self.settings.snapshot_timeout_ms;
        let late = self.recordings.iter().filter_map(|(&snapshot, recording)| {
            let since_ms = recording.unfinished_since_ms()?;
            (self.now_ms - since_ms >= timeout_ms).then(|| (snapshot, recording.waits_for()))
        });
        for (snapshot, waits_for) in late.collect::<Vec<_>>() {
            let topology = &self.setup.topology;
            let waits_for: Vec<_> = waits_for
                .into_iter()
                .map(|channel| topology.channel_name(channel))
                .collect();
            let what = match waits_for.as_slice() {
                [] => "its part is not on disk".to_owned(),
                channels => format!("it waits for markers on {}", channels.join(", ")),
            };
            self.decline(
                snapshot,
                format!("timed out after {timeout_ms} ms: {what}"),
                effects,
            );
        }
    }
}
