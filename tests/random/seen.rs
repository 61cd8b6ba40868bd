//! What a run showed: that every cut is exact, and how often the rare cases occurred.

use cutline::check::judge_manifest;
use cutline::protocol::application::Application as _;
use cutline::protocol::collector::Announcement;
use cutline::protocol::cut::ChannelFacts;
use cutline::protocol::frame::{Batch, Frame};
use cutline::protocol::ids::{ChannelId, SnapshotId};
use cutline::protocol::mode::Mode;
use cutline::protocol::records::{End, Manifest};
use cutline::world::{Notice, World};

use crate::chatter::{Chatter, Log, parse};

/// Adds up, field by field.
macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// How often what was seen.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Seen {
            $($(#[$doc])* pub(crate) $field: u64,)*
        }

        impl Seen {
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

counts! {
    complete,
    aborted,
    non_empty_channels,
    overlapping,
    several_initiators,
    restores,
    restored_in_flight,
    resent,
    breaches,
    /// Complete snapshots, by mode.
    aligned,
    unaligned,
    at_least_once,
    /// A newer snapshot ended an older one.
    superseded,
    /// Channels with a share of that end, in unaligned snapshots.
    sender_shares,
    receiver_shares,
    /// Channels with a share of both.
    both_shares,
    /// The same in aligned ones, where only T can have struck.
    struck_at_sender,
    struck_at_receiver,
    /// Aligned: what was logged of a back edge without T.
    back_edges_logged,
    /// A marker was lost on the wire behind the messages it had overtaken others of: it is sent
    /// again between `after` and `after` + 1.
    overtaking_markers_resent,
    /// The same, and its snapshot was completed all the same.
    inconsistent,
    warned,
    restored_both_shares,
}

impl Seen {
    /// A stream is about to break.
    pub(crate) fn broken(&mut self, world: &World<Chatter>, channel: ChannelId) {
        let mut wire = world.wire(channel).peekable();
        self.resent += u64::from(wire.peek().is_some());
        let overtook = |frame: &&Frame| match frame {
            Frame::Marker(marker) => marker.after < marker.sent,
            Frame::Messages(_) => false,
        };
        self.overtaking_markers_resent += wire.filter(overtook).count() as u64;
    }
}

pub(crate) fn notices(world: &mut World<Chatter>, seen: &mut Seen) {
    let manifests: Vec<_> = world.manifests().cloned().collect();
    for notice in world.take_notices() {
        match notice {
            Notice::Announced(Announcement::Running(_, snapshot)) => {
                seen.restores += u64::from(snapshot != SnapshotId::default());
                let mut restored = manifests.iter();
                let restored = restored.find(|manifest| manifest.snapshot == snapshot);
                let (sender, receiver) = restored.map_or((0, 0), shares);
                seen.restored_in_flight += u64::from(sender + receiver > 0);
                seen.restored_both_shares += u64::from(sender > 0 && receiver > 0);
            }
            Notice::Announced(Announcement::Warned(_)) => seen.warned += 1,
            Notice::Breach(..) => seen.breaches += 1,
            _ => {}
        }
    }
}

/// The ends of channels with a sender share, and those with a receiver share.
fn shares(manifest: &Manifest) -> (usize, usize) {
    let filled = |ends: &[ChannelFacts]| ends.iter().filter(|end| !end.share.is_empty()).count();
    match &manifest.end {
        End::Complete { parts, .. } => {
            let outputs = parts.iter().map(|part| filled(&part.facts.outputs));
            let inputs = parts.iter().map(|part| filled(&part.facts.inputs));
            (outputs.sum(), inputs.sum())
        }
        End::Aborted { .. } => (0, 0),
    }
}

/// Checks every complete snapshot: by its verdicts, and, where all cuts are consistent, against
/// what the applications wrote down themselves.
pub(crate) fn check(world: &World<Chatter>, strict: bool) -> Seen {
    let mut seen = Seen::default();
    let topology = &world.job().topology;
    for manifest in world.manifests() {
        match &manifest.end {
            End::Aborted { reason } => {
                seen.aborted += 1;
                seen.superseded += u64::from(reason.contains("only classic snapshots overlap"));
                continue;
            }
            End::Complete { .. } => seen.complete += 1,
        }
        let verdicts = judge_manifest(topology, manifest);
        let exact = verdicts.get("exact").expect("a verdict");
        let holds = !verdicts.failing().contains(&"exact");
        if manifest.mode.is_consistent() {
            assert!(holds, "{} {manifest:?}", exact.evidence);
        } else if !holds {
            let first = "at-least-once: not a consistent cut";
            assert!(exact.evidence.starts_with(first), "{}", exact.evidence);
            seen.inconsistent += 1;
        }
        count(world, manifest, &mut seen);
        if strict {
            check_logs(world, manifest.snapshot);
        }
    }
    seen
}

fn count(world: &World<Chatter>, manifest: &Manifest, seen: &mut Seen) {
    let (senders, receivers) = shares(manifest);
    seen.non_empty_channels += u64::from(senders + receivers > 0);
    let topology = &world.job().topology;
    let mut share = [0, 0, 0];
    let mut logged = 0;
    for &channel in topology.channels() {
        let (sender, receiver) = recorded(world, manifest.snapshot, channel);
        let (sender, receiver) = (!sender.is_empty(), !receiver.is_empty());
        let back = topology.back_edges().contains(&channel);
        share[0] += u64::from(sender);
        share[1] += u64::from(receiver && !back);
        share[2] += u64::from(sender && receiver);
        logged += u64::from(receiver && back);
    }
    let none = share == [0, 0, 0];
    match manifest.mode {
        Mode::Classic => assert_eq!(senders, 0, "nothing overtakes: {manifest:?}"),
        Mode::Aligned => {
            seen.aligned += 1;
            seen.struck_at_sender += share[0];
            seen.struck_at_receiver += share[1];
            seen.back_edges_logged += if none { logged } else { 0 };
        }
        Mode::Unaligned => {
            seen.unaligned += 1;
            seen.sender_shares += share[0];
            seen.receiver_shares += share[1];
            seen.both_shares += share[2];
        }
        Mode::AtLeastOnce => {
            seen.at_least_once += 1;
            assert_eq!(senders + receivers, 0, "no channel states: {manifest:?}");
        }
    }
}

/// What both ends of a channel recorded, each by its number, hops and money.
type Recorded = Vec<(u64, u8, i64)>;

fn recorded(
    world: &World<Chatter>,
    snapshot: SnapshotId,
    channel: ChannelId,
) -> (Recorded, Recorded) {
    let part = |process| &world.part(snapshot, process).expect("complete").part;
    let read = |share: &[Batch]| -> Recorded {
        let messages = share.iter().flat_map(|batch| batch.messages());
        messages.map(|(_, message)| parse(message)).collect()
    };
    let mut outputs = part(channel.from).outputs.iter();
    let mut inputs = part(channel.to).inputs.iter();
    let output = outputs.find(|end| end.channel == channel).expect("its own");
    let input = inputs.find(|end| end.channel == channel).expect("its own");
    (read(&output.share), read(&input.share))
}

fn check_logs(world: &World<Chatter>, snapshot: SnapshotId) {
    let topology = &world.job().topology;
    let state = |process| &world.part(snapshot, process).expect("complete").state;
    let log = |process| -> Log { serde_json::from_slice(state(process)).unwrap() };
    let mut money = 0;
    for process in topology.processes() {
        money += Chatter::in_state(&world.setup(process), state(process))["money"];
    }
    for &channel in topology.channels() {
        let name = channel.to_string();
        let sent = log(channel.from).sent.get(&name).copied().unwrap_or(0);
        let handled = log(channel.to).handled.get(&name).copied().unwrap_or(0);
        let (sender, receiver) = recorded(world, snapshot, channel);
        let all: Vec<_> = receiver.into_iter().chain(sender).collect();
        let numbers: Vec<_> = all.iter().map(|(number, ..)| *number).collect();
        let exact: Vec<_> = (handled + 1..=sent).collect();
        assert_eq!(numbers, exact, "{snapshot} on {channel}");
        money += all.iter().map(|(_, _, money)| money).sum::<i64>();
    }
    let processes = topology.processes().len() as i64;
    assert_eq!(money, 100 * processes, "money in {snapshot}");
}
