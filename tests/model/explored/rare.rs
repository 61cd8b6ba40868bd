//! What happens only sometimes, counted while the worlds are explored: a model in which it never
//! did would prove little.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use cutline::protocol::collector::Announcement;
use cutline::protocol::cut::ChannelFacts;
use cutline::protocol::frame::Frame;
use cutline::protocol::ids::{ChannelId, SnapshotId};
use cutline::protocol::mode::Mode;
use cutline::protocol::records::{End, Manifest};
use cutline::world::{Choice, Notice, World};

use super::findings::inexact_channels;
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
    /// A marker overtakes a message that waits in an outbox.
    OvertakesOutbox,
    /// A marker counts while a message waits ahead of it in an inbox, or is to come.
    OvertakesInbox,
    /// A complete snapshot is of a cut that is not consistent.
    Inconsistent,
}

impl fmt::Display for Rare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "complete",
            Self::Aborted => "aborted",
            Self::InFlight => "messages in flight",
            Self::Overlap => "snapshots overlap",
            Self::MarkerAgain => "marker sent again",
            Self::TakenBack => "taken back",
            Self::TakenBackInFlight => "taken back with messages in flight",
            Self::FromTheStart => "taken back to the start",
            Self::CompleteAfter => "complete after the fault",
            Self::OvertakesOutbox => "overtakes in an outbox",
            Self::OvertakesInbox => "overtakes in an inbox",
            Self::Inconsistent => "not consistent, and called so",
        })
    }
}

const RARES: [Rare; 12] = [
    Rare::Complete,
    Rare::Aborted,
    Rare::InFlight,
    Rare::Overlap,
    Rare::MarkerAgain,
    Rare::TakenBack,
    Rare::TakenBackInFlight,
    Rare::FromTheStart,
    Rare::CompleteAfter,
    Rare::OvertakesOutbox,
    Rare::OvertakesInbox,
    Rare::Inconsistent,
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
    pub(crate) fn look(&self, before: &World<Script>, choice: &Choice, after: &Outcome<'_>) {
        for notice in after.notices {
            match notice {
                Notice::Announced(Announcement::Ended(manifest)) => {
                    self.ended(manifest, after);
                }
                Notice::Announced(Announcement::Restoring(_, restored)) => {
                    self.restoring(*restored, after.world);
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

    fn ended(&self, manifest: &Manifest, after: &Outcome<'_>) {
        if !manifest.is_complete() {
            return self.note(Rare::Aborted);
        }
        let (outputs, inputs) = shares(manifest);
        let overtakes = manifest.mode == Mode::Unaligned || after.limited;
        let inexact = inexact_channels(after.world, manifest.snapshot);
        let shown = [
            (Rare::Complete, true),
            (Rare::CompleteAfter, after.is_late),
            (Rare::InFlight, outputs || inputs),
            (Rare::OvertakesOutbox, outputs),
            (Rare::OvertakesInbox, inputs && overtakes),
            (Rare::Inconsistent, !inexact.is_empty()),
        ];
        for (rare, _) in shown.into_iter().filter(|(_, shown)| *shown) {
            self.note(rare);
        }
    }

    fn restoring(&self, restored: SnapshotId, world: &World<Script>) {
        if restored == SnapshotId::default() {
            return self.note(Rare::FromTheStart);
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
            .map(|rare| format!("{rare}: {}", self.count(rare)))
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
    /// Snapshots have a limit.
    pub(crate) limited: bool,
}

/// Whether messages are in the sender shares, and in the receiver shares.
fn shares(manifest: &Manifest) -> (bool, bool) {
    let End::Complete { parts, .. } = &manifest.end else {
        return (false, false);
    };
    let holds = |ends: &[ChannelFacts]| ends.iter().any(|end| !end.share.is_empty());
    let mut facts = parts.iter().map(|part| &part.facts);
    let outputs = facts.clone().any(|facts| holds(&facts.outputs));
    (outputs, facts.any(|facts| holds(&facts.inputs)))
}

fn is_in_flight(manifest: &Manifest) -> bool {
    let (outputs, inputs) = shares(manifest);
    outputs || inputs
}

/// A frame has gone on the wire: is it a marker that its sender had put there before?
fn is_marker_again(before: &World<Script>, after: &World<Script>, channel: ChannelId) -> bool {
    let Some(Frame::Marker(marker)) = after.wire(channel).last() else {
        return false;
    };
    let sender = before.process(channel.from);
    sender.is_some_and(|sender| {
        let mut recordings = sender.recordings();
        recordings.any(|(snapshot, waits_for)| {
            snapshot == marker.snapshot && !waits_for.contains(&channel)
        })
    })
}
