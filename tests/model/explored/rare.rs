//! What happens only sometimes, counted while the worlds are explored: a model in which it never
//! did would prove little.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use cutline::protocol::collector::Announcement;
use cutline::protocol::events::Holding;
use cutline::protocol::frame::Frame;
use cutline::protocol::ids::{ChannelId, SnapshotId};
use cutline::protocol::records::{End, Manifest};
use cutline::world::{Choice, Notice, World};

use super::script::Script;

/// Something that happens only sometimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rare {
    /// A snapshot is complete.
    Complete,
    /// A snapshot is aborted.
    Aborted,
    /// A message is in a channel of a complete snapshot.
    InFlight,
    /// Two snapshots are being recorded at one process.
    Overlap,
    /// A marker that was on the wire is put there again.
    MarkerAgain,
    /// The job is taken back to a snapshot that was taken.
    TakenBack,
    /// The same, with messages in its channels.
    TakenBackInFlight,
    /// The job is taken back to its initial state.
    FromTheStart,
    /// A snapshot completes after the fault.
    CompleteAfter,
}

const RARES: [Rare; 9] = [
    Rare::Complete,
    Rare::Aborted,
    Rare::InFlight,
    Rare::Overlap,
    Rare::MarkerAgain,
    Rare::TakenBack,
    Rare::TakenBackInFlight,
    Rare::FromTheStart,
    Rare::CompleteAfter,
];

/// How often what was seen, over all steps of an exploration.
#[derive(Debug, Default)]
pub(crate) struct Seen([AtomicU64; RARES.len()]);

impl Seen {
    pub(crate) fn count(&self, rare: Rare) -> u64 {
        self.0[rare as usize].load(Ordering::Relaxed)
    }

    fn note(&self, rare: Rare) {
        self.0[rare as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes what a step has shown.
    pub(crate) fn look(&self, before: &World<Script>, choice: &Choice, after: &mut Outcome<'_>) {
        for notice in after.notices {
            match notice {
                Notice::Announced(Announcement::Ended(manifest)) => {
                    self.ended(manifest, after.is_late);
                }
                Notice::Announced(Announcement::Running(_, restored)) => {
                    self.running(*restored, after.world);
                }
                Notice::Recorded(process, _) => {
                    let machine = after.world.process(*process);
                    if machine.is_some_and(|machine| machine.recordings().count() > 1) {
                        self.note(Rare::Overlap);
                    }
                }
                _ => {}
            }
        }
        if let Choice::Send(channel) = *choice
            && is_marker_again(before, after.world, channel)
        {
            self.note(Rare::MarkerAgain);
        }
    }

    fn ended(&self, manifest: &Manifest, is_late: bool) {
        if !manifest.is_complete() {
            return self.note(Rare::Aborted);
        }
        self.note(Rare::Complete);
        if is_late {
            self.note(Rare::CompleteAfter);
        }
        if is_in_flight(manifest) {
            self.note(Rare::InFlight);
        }
    }

    fn running(&self, restored: SnapshotId, world: &World<Script>) {
        if restored == SnapshotId::default() {
            return self.note(Rare::FromTheStart);
        }
        let first = world.job().topology.processes().next();
        let holding = first.and_then(|first| world.process(first));
        // A new collector that finds everyone running takes nobody back.
        if holding.is_some_and(|machine| matches!(machine.holding(), Holding::Running(_))) {
            return;
        }
        self.note(Rare::TakenBack);
        let mut manifests = world.manifests();
        if manifests.any(|manifest| manifest.snapshot == restored && is_in_flight(manifest)) {
            self.note(Rare::TakenBackInFlight);
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = RARES.into_iter().filter(|rare| self.count(*rare) > 0);
        let seen: Vec<_> = seen
            .map(|rare| format!("{rare:?} {}", self.count(rare)))
            .collect();
        write!(f, "{}", seen.join(", "))
    }
}

/// What a step has led to.
pub(crate) struct Outcome<'a> {
    pub(crate) world: &'a World<Script>,
    pub(crate) notices: &'a [Notice],
    /// The fault of this world has struck.
    pub(crate) is_late: bool,
}

fn is_in_flight(manifest: &Manifest) -> bool {
    let End::Complete { parts, .. } = &manifest.end else {
        return false;
    };
    let facts = parts.iter().map(|part| &part.facts);
    let mut ends = facts.flat_map(|facts| facts.inputs.iter().chain(&facts.outputs));
    ends.any(|end| !end.share.is_empty())
}

/// A frame has gone on the wire: is it a marker that its sender had put there before?
fn is_marker_again(before: &World<Script>, after: &World<Script>, channel: ChannelId) -> bool {
    let Some(Frame::Marker(marker)) = after.frames(channel).last() else {
        return false;
    };
    let sender = before.process(channel.from);
    let waits = sender.and_then(|sender| {
        let mut recordings = sender.recordings();
        recordings.find(|(snapshot, _)| *snapshot == marker.snapshot)
    });
    let waits_for: BTreeSet<_> = waits
        .map(|(_, channels)| channels)
        .into_iter()
        .flatten()
        .collect();
    !waits_for.contains(&channel)
}
