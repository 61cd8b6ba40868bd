//! What happened how often in a simulation: the sizes of its snapshots, and whether the rare
//! cases occurred for whose sake one simulates.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::check::Verified;
use crate::hold::Point;
use crate::protocol::application::Application;
use crate::protocol::collector::Announcement;
use crate::protocol::cut::{ChannelFacts, Facts};
use crate::protocol::frame::Frame;
use crate::protocol::ids::SnapshotId;
use crate::protocol::mode::{MODES, Mode};
use crate::protocol::records::{End, Manifest, sizes};
use crate::world::World;

use super::Seen;
use super::sizes::marker_bytes;

/// One complete snapshot in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// From its begin record to its manifest, in virtual microseconds.
    pub latency_us: u64,
    /// The markers put on wires for it.
    pub markers: u64,
    /// Their bytes, without what HTTP/2 puts around them.
    pub marker_bytes: u64,
    /// Messages in its channel states.
    pub in_channels: u64,
    begun_us: u64,
}

/// What happened how often.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Every snapshot that was complete.
    pub taken: BTreeMap<SnapshotId, Taken>,
    /// Frames of messages put on wires.
    pub frames: u64,
    /// Messages in them.
    pub messages: u64,
    /// Markers put on wires.
    pub markers: u64,
    /// Nodes killed by a step.
    pub killed_nodes: u64,
    /// Collectors killed by a step.
    pub killed_collectors: u64,
    /// Programs paused by a step.
    pub paused: u64,
    /// Nodes that were given up while they were still there.
    pub replaced: u64,
    /// Hellos that were refused for good.
    pub refused: u64,
    points: BTreeMap<&'static str, u64>,
    others: BTreeMap<&'static str, u64>,
    modes: BTreeMap<Mode, u64>,
    open: BTreeMap<SnapshotId, Taken>,
    /// A restore is under way.
    is_restoring: bool,
}

/// Cases beside those that have a field, by name.
const CASES: [&str; 14] = [
    "complete snapshots",
    "aborted snapshots",
    "restores",
    "restores with messages in channels",
    "losses while restoring",
    "snapshots that overlap",
    "messages in channel states",
    "sender shares that are not empty",
    "receiver shares that are not empty",
    "sender shares that are not empty in aligned snapshots",
    "cuts that are not consistent, at-least-once",
    "streams broken",
    "streams broken with messages on them",
    "streams broken with a marker on them",
];

impl Figures {
    /// Every case with how often it occurred, those that did not included.
    pub fn cases(&self) -> Vec<(String, u64)> {
        let named = [
            ("nodes killed", self.killed_nodes),
            ("collectors killed", self.killed_collectors),
            ("programs paused", self.paused),
            ("nodes replaced while they were there", self.replaced),
            ("streams refused as of another time", self.refused),
        ];
        let others = CASES.iter().map(|&case| {
            let count = self.others.get(case).copied().unwrap_or_default();
            (case.to_owned(), count)
        });
        let points = Point::ALL.iter().map(|point| {
            let count = self.points.get(point.name()).copied().unwrap_or_default();
            (format!("kills at {point}"), count)
        });
        let named = named.map(|(case, count)| (case.to_owned(), count));
        let modes = MODES.iter().map(|mode| {
            let count = self.modes.get(mode).copied().unwrap_or_default();
            (format!("complete snapshots, {mode}"), count)
        });
        others.chain(named).chain(points).chain(modes).collect()
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.messages += other.messages;
        self.markers += other.markers;
        self.killed_nodes += other.killed_nodes;
        self.killed_collectors += other.killed_collectors;
        self.paused += other.paused;
        self.replaced += other.replaced;
        self.refused += other.refused;
        for (mine, others) in [
            (&mut self.points, &other.points),
            (&mut self.others, &other.others),
        ] {
            for (&case, count) in others {
                *mine.entry(case).or_default() += count;
            }
        }
        for (mode, count) in &other.modes {
            *self.modes.entry(*mode).or_default() += count;
        }
    }

    fn count(&mut self, case: &'static str, times: u64) {
        *self.others.entry(case).or_default() += times;
    }

    pub(super) fn killed_at(&mut self, point: Point) {
        *self.points.entry(point.name()).or_default() += 1;
    }

    /// A frame is put on a wire.
    pub(super) fn written(&mut self, frame: &Frame) {
        match frame {
            Frame::Messages(batch) => {
                self.frames += 1;
                self.messages += u64::from(batch.count());
            }
            Frame::Marker(marker) => {
                self.markers += 1;
                if let Some(open) = self.open.get_mut(&marker.snapshot) {
                    open.markers += 1;
                    open.marker_bytes += marker_bytes(*marker);
                }
            }
        }
    }

    /// A stream breaks with these frames on it.
    pub(super) fn broken<'f>(&mut self, wire: impl Iterator<Item = &'f Frame>) {
        let (markers, messages): (Vec<_>, Vec<_>) =
            wire.partition(|frame| matches!(frame, Frame::Marker(_)));
        self.count("streams broken", 1);
        let with_messages = u64::from(!messages.is_empty());
        self.count("streams broken with messages on them", with_messages);
        let with_marker = u64::from(!markers.is_empty());
        self.count("streams broken with a marker on them", with_marker);
    }

    pub(super) fn heard<A: Application>(
        &mut self,
        announcement: &Announcement,
        world: &World<A>,
        now_us: u64,
    ) {
        match announcement {
            Announcement::Begun(snapshot) => {
                self.count("snapshots that overlap", u64::from(!self.open.is_empty()));
                let begun_us = now_us;
                let taken = Taken {
                    begun_us,
                    ..Taken::default()
                };
                self.open.insert(*snapshot, taken);
            }
            Announcement::Ended(manifest) => self.ended(manifest, now_us),
            Announcement::Lost(..) => {
                let again = u64::from(std::mem::replace(&mut self.is_restoring, true));
                self.count("losses while restoring", again);
            }
            Announcement::Restoring(..) => self.is_restoring = true,
            Announcement::Running(generation, snapshot) => {
                self.is_restoring = false;
                if generation.get() > 1 {
                    self.count("restores", 1);
                    let mut manifests = world.manifests();
                    let restored = manifests.find(|manifest| manifest.snapshot == *snapshot);
                    let in_channels = restored.map_or(0, in_channels);
                    let with_some = u64::from(in_channels > 0);
                    self.count("restores with messages in channels", with_some);
                }
            }
            Announcement::Joined(..) | Announcement::Failed(_) | Announcement::Warned(_) => {}
        }
    }

    fn ended(&mut self, manifest: &Manifest, now_us: u64) {
        let mut taken = self.open.remove(&manifest.snapshot).unwrap_or_default();
        if manifest.is_complete() {
            taken.latency_us = now_us.saturating_sub(taken.begun_us);
            taken.in_channels = in_channels(manifest);
            self.taken.insert(manifest.snapshot, taken);
        }
    }

    /// What the snapshots that are kept show when all is over.
    pub(super) fn finish<A: Application>(
        &mut self,
        seen: &Seen,
        world: &World<A>,
        verified: &[Verified],
    ) {
        let broken = verified
            .iter()
            .filter(|each| !each.holds && !each.mode.is_consistent());
        self.count(
            "cuts that are not consistent, at-least-once",
            broken.count() as u64,
        );
        self.count("complete snapshots", seen.complete.len() as u64);
        self.count("aborted snapshots", seen.aborted.len() as u64);
        for manifest in world.manifests() {
            let End::Complete { parts, .. } = &manifest.end else {
                continue;
            };
            *self.modes.entry(manifest.mode).or_default() += 1;
            let shares = |ends: fn(&Facts) -> &Vec<ChannelFacts>| {
                let ends = parts.iter().flat_map(|part| ends(&part.facts));
                ends.filter(|end| !end.share.is_empty()).count() as u64
            };
            let (senders, receivers) = (
                shares(|facts| &facts.outputs),
                shares(|facts| &facts.inputs),
            );
            self.count("sender shares that are not empty", senders);
            if manifest.mode == Mode::Aligned {
                self.count(
                    "sender shares that are not empty in aligned snapshots",
                    senders,
                );
            }
            self.count("receiver shares that are not empty", receivers);
            self.count("messages in channel states", in_channels(manifest));
        }
    }
}

/// Messages in the channel states of a snapshot.
fn in_channels(manifest: &Manifest) -> u64 {
    let End::Complete { parts, .. } = &manifest.end else {
        return 0;
    };
    sizes(parts).1
}
