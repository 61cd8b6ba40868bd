//! What happens only sometimes, counted while the worlds are explored: a model in which it never
//! did would prove little.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use cutline::protocol::collector::Announcement;
use cutline::protocol::cut::ChannelFacts;
use cutline::protocol::ids::SnapshotId;
use cutline::protocol::mode::Mode;
use cutline::protocol::records::{End, Manifest};
use cutline::world::{Choice, Notice, World};

use super::findings::inexact_channels;
use super::resent;
use super::script::Script;

macro_rules! rares {
    ($($(#[$doc:meta])* $name:ident = $shown:literal,)*) => {
        /// Something that happens only sometimes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Rare {
            $($(#[$doc])* $name,)*
        }

        impl fmt::Display for Rare {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $shown,)*
                })
            }
        }

        const RARES: &[Rare] = &[$(Rare::$name),*];
    };
}

rares! {
    /// A snapshot is complete.
    Complete = "complete",
    /// A snapshot is aborted.
    Aborted = "aborted",
    /// A snapshot is aborted because a newer one has begun.
    Superseded = "a newer ends an older",
    /// A message is in a channel of a complete snapshot.
    InFlight = "messages in flight",
    /// The same, on a back edge.
    BackEdge = "logged on a back edge",
    /// Two snapshots are being recorded at one process.
    Overlap = "snapshots overlap",
    /// A marker that was on the wire is put there again: behind message `after`, which is sent
    /// again too, and ahead of `after` + 1.
    MarkerBetween = "marker sent again between `after` and `after`+1",
    /// A marker that has overtaken messages is put on the wire again, ahead of them.
    OvertakingAgain = "overtaking marker sent again",
    /// A marker that may overtake stays behind messages that a broken stream took back.
    BehindTakenBack = "overtakes nothing that a stream took back",
    /// A process records while what it sent is neither acknowledged nor on a stream.
    RecordsWhileDown = "records while a stream is down",
    /// A marker arrives whose snapshot has ended.
    LateMarker = "late marker ignored",
    /// The job is taken back to a snapshot that was taken.
    TakenBack = "taken back",
    /// The same, with messages in its channels.
    TakenBackInFlight = "taken back with messages in flight",
    /// The same, with a sender share.
    TakenBackSender = "taken back with a sender share",
    /// The same, with a receiver share.
    TakenBackReceiver = "taken back with a receiver share",
    /// The job is taken back to its initial state.
    FromTheStart = "taken back to the start",
    /// A snapshot completes after the fault.
    CompleteAfter = "complete after the fault",
    /// A collector finds a complete snapshot of the one before.
    Found = "found complete by the next collector",
    /// A marker overtakes a message that waits in an outbox.
    OvertakesOutbox = "overtakes in an outbox",
    /// A marker counts while a message waits ahead of it in an inbox, or is to come.
    OvertakesInbox = "overtakes in an inbox",
    /// T strikes while a marker waits in an outbox behind messages.
    StrikesOutbox = "T strikes at the sender",
    /// T strikes while messages wait ahead of a marker in an inbox, or are to come.
    StrikesInbox = "T strikes at the receiver",
    /// A complete snapshot is of a cut that is not consistent.
    Inconsistent = "not consistent, and called so",
}

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
                    self.note_shown(resent::recorded(*process, after));
                }
                _ => {}
            }
        }
        self.note_shown(resent::shown(before, choice, after));
    }

    fn ended(&self, manifest: &Manifest, after: &Outcome<'_>) {
        if !manifest.is_complete() {
            let status = after.world.collector().map(|collector| collector.status());
            let mut open = status.into_iter().flat_map(|status| status.open);
            if open.any(|newer| newer > manifest.snapshot) {
                self.note(Rare::Superseded);
            }
            return self.note(Rare::Aborted);
        }
        let shares = Shares::of(manifest, after.world);
        let inexact = inexact_channels(after.world, manifest.snapshot);
        let shown = [
            (Rare::Complete, true),
            (Rare::CompleteAfter, after.is_late),
            (Rare::InFlight, shares.sender || shares.receiver),
            (Rare::BackEdge, shares.back_edge && after.mode.holds()),
            (Rare::OvertakesOutbox, shares.sender && !after.limited),
            (
                Rare::OvertakesInbox,
                shares.receiver && after.mode.overtakes(),
            ),
            (Rare::StrikesOutbox, shares.sender && after.limited),
            (Rare::StrikesInbox, shares.awaited && after.limited),
            (Rare::Inconsistent, !inexact.is_empty()),
        ];
        self.note_shown(shown);
    }

    fn restoring(&self, restored: SnapshotId, world: &World<Script>) {
        if restored == SnapshotId::default() {
            return self.note(Rare::FromTheStart);
        }
        self.note(Rare::TakenBack);
        let mut manifests = world.manifests();
        let manifest = manifests.find(|manifest| manifest.snapshot == restored);
        let shares = Shares::of(manifest.expect("it is complete"), world);
        let shown = [
            (Rare::TakenBackInFlight, shares.sender || shares.receiver),
            (Rare::TakenBackSender, shares.sender),
            (Rare::TakenBackReceiver, shares.receiver),
        ];
        self.note_shown(shown);
    }

    fn note_shown(&self, shown: impl IntoIterator<Item = (Rare, bool)>) {
        for (rare, _) in shown.into_iter().filter(|(_, shown)| *shown) {
            self.note(rare);
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = RARES.iter().filter(|rare| self.count(**rare) > 0);
        let seen: Vec<_> = seen
            .map(|rare| format!("{rare}: {}", self.count(*rare)))
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
    /// The mode of its snapshots.
    pub(crate) mode: Mode,
    /// They have a limit.
    pub(crate) limited: bool,
}

/// Where a complete snapshot holds messages.
struct Shares {
    sender: bool,
    receiver: bool,
    /// The receiver's, on a back edge.
    back_edge: bool,
    /// The same, on another channel.
    awaited: bool,
}

impl Shares {
    fn of(manifest: &Manifest, world: &World<Script>) -> Self {
        let parts = match &manifest.end {
            End::Complete { parts, .. } => parts.as_slice(),
            End::Aborted { .. } => &[],
        };
        let facts = parts.iter().map(|part| &part.facts);
        let holds = |end: &&ChannelFacts| !end.share.is_empty();
        let mut inputs = facts.clone().flat_map(|of| &of.inputs).filter(holds);
        let back_edges = world.job().topology.back_edges();
        Self {
            sender: facts.flat_map(|of| &of.outputs).any(|end| holds(&end)),
            receiver: inputs.clone().next().is_some(),
            awaited: inputs.clone().any(|end| !back_edges.contains(&end.channel)),
            back_edge: inputs.any(|end| back_edges.contains(&end.channel)),
        }
    }
}
