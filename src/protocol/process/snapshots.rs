//! Snapshots at one process: open, record, close, end.

use super::Process;
use crate::protocol::application::Application;
use crate::protocol::events::{Effect, Report, StoredPart};
use crate::protocol::frame::{Batch, Marker};
use crate::protocol::ids::{ChannelId, SnapshotId};
use crate::protocol::mode::{Records, Taking};
use crate::protocol::recording::Recording;

/// Recordings that may be under way at once. The collector allows far fewer; this bounds what a
/// peer speaking nonsense can make a node hold.
const RECORDINGS_MAX: usize = 64;

impl<A: Application> Process<A> {
    /// The trigger at an initiator. If a marker was faster there is nothing left to do.
    pub(super) fn trigger(
        &mut self,
        snapshot: SnapshotId,
        taking: Taking,
        effects: &mut Vec<Effect>,
    ) {
        if self.running().is_none() {
            return self.decline(snapshot, "the process is not running".to_owned(), effects);
        }
        self.record(snapshot, taking, None, effects);
    }

    /// Marker-receiving rule, first half: a marker has come to the head of its inbox.
    pub(super) fn marker_counts(
        &mut self,
        channel: ChannelId,
        marker: &Marker,
        effects: &mut Vec<Effect>,
    ) {
        match marker.taking.mode.records() {
            Records::AtFirstMarker | Records::WhenAligned => {
                self.record(marker.snapshot, marker.taking, Some(channel), effects);
            }
        }
    }

    /// Takes the local state, puts the marker on every output and opens the recording of every
    /// input, in one step: nothing can be handled or sent between.
    fn record(
        &mut self,
        snapshot: SnapshotId,
        taking: Taking,
        closed: Option<ChannelId>,
        effects: &mut Vec<Effect>,
    ) {
        if self.ended.contains(snapshot) || self.recordings.contains_key(&snapshot) {
            return;
        }
        if self.recordings.len() >= RECORDINGS_MAX {
            let reason = format!("{RECORDINGS_MAX} snapshots are being recorded already");
            return self.decline(snapshot, reason, effects);
        }
        let begun = (snapshot, taking);
        let (inboxes, outboxes) = (&self.inboxes, &self.outboxes);
        let recording = Recording::begin(begun, self.now_ms, inboxes, outboxes, closed);
        if recording.bytes() > self.settings.limits.recording_bytes_max {
            let reason = self.too_large(&recording);
            return self.decline(snapshot, reason, effects);
        }
        let clock = self.capture(snapshot, taking.mode, effects);
        self.recordings.insert(snapshot, recording.clocked(clock));
        for outbox in &mut self.outboxes {
            outbox.push_marker(snapshot, taking);
        }
        self.finish(snapshot, effects);
    }

    /// A batch has come in: it belongs to the channel's state in every recording still open.
    pub(super) fn record_arrival(
        &mut self,
        input: usize,
        batch: &Batch,
        effects: &mut Vec<Effect>,
    ) {
        let bound = self.settings.limits.recording_bytes_max;
        for recording in self.recordings.values_mut() {
            recording.arrived(input, batch);
        }
        let over = self.recordings.iter();
        let over = over.filter(|(_, recording)| recording.bytes() > bound);
        let over = over.map(|(&snapshot, recording)| (snapshot, self.too_large(recording)));
        for (snapshot, reason) in over.collect::<Vec<_>>() {
            self.decline(snapshot, reason, effects);
        }
    }

    fn too_large(&self, recording: &Recording) -> String {
        let bound = self.settings.limits.recording_bytes_max;
        let channel = recording.largest_input();
        let channel = channel.map(|channel| self.setup.topology.channel_name(channel));
        format!(
            "the recording is over recording_bytes_max = {bound}, most of it from {}",
            channel.unwrap_or_default()
        )
    }

    /// A marker has come in: its channel's state is closed, wherever the marker stands.
    pub(super) fn close_input(&mut self, input: usize, marker: &Marker, effects: &mut Vec<Effect>) {
        if let Some(recording) = self.recordings.get_mut(&marker.snapshot) {
            recording.close(input, marker);
            self.finish(marker.snapshot, effects);
        }
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
            && let Some(part) = recording.finish(process, generation)
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
        if let Some(recording) = self.recordings.remove(&snapshot)
            && recording.unfinished_since_ms().is_some()
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

    /// Time passes. A node ends what takes too long by its own clock: an abort that never
    /// arrives must not keep a recording for ever.
    pub(super) fn time(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        self.now_ms = self.now_ms.max(now_ms);
        let timeout_ms = self.settings.snapshot_timeout_ms;
        let late = self.recordings.iter().filter_map(|(&snapshot, recording)| {
            let since_ms = recording.unfinished_since_ms()?;
            (self.now_ms - since_ms >= timeout_ms).then_some((snapshot, recording.waits_for()))
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
