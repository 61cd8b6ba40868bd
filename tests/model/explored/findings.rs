//! What must not be: looked for after every step, from what the applications wrote down
//! themselves.

use cutline::check::judge_manifest;
use cutline::protocol::cut::Restored;
use cutline::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use cutline::protocol::records::Manifest;
use cutline::world::{Notice, World};

use super::script::{self, Script};

/// Something is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Finding {
    /// A channel of a complete snapshot holds something else than what was sent and not handled.
    Inexact(SnapshotId, ChannelId),
    /// A verdict on a complete snapshot is no.
    Verdict(SnapshotId, &'static str),
    /// A snapshot that is not exact is called so, or the other way round.
    Unsaid(SnapshotId),
    /// A peer did what no correct peer does, or a node or the job broke off.
    Broke(String),
}

/// What is wrong with what has just ended. A snapshot of a mode without consistent cuts may be
/// anything, but the verdicts must say so.
pub(crate) fn of_manifest(world: &World<Script>, manifest: &Manifest) -> Vec<Finding> {
    if !manifest.is_complete() {
        return Vec::new();
    }
    let id = manifest.snapshot;
    let inexact = inexact_channels(world, id);
    let failing = judge_manifest(&world.job().topology, manifest).failing();
    if !manifest.mode.is_consistent() {
        let unsaid = inexact.is_empty() != failing.is_empty();
        return unsaid.then_some(Finding::Unsaid(id)).into_iter().collect();
    }
    let inexact = inexact
        .into_iter()
        .map(|channel| Finding::Inexact(id, channel));
    let failing = failing.into_iter().map(|name| Finding::Verdict(id, name));
    inexact.chain(failing).collect()
}

/// The channels of a complete snapshot that hold something else than what was sent on them and
/// not handled, by the applications' account.
pub(crate) fn inexact_channels(world: &World<Script>, snapshot: SnapshotId) -> Vec<ChannelId> {
    let part = |process: ProcessId| world.part(snapshot, process);
    let channels = world.job().topology.channels().iter().copied();
    let inexact = channels.filter(|channel| {
        let ends = part(channel.from).zip(part(channel.to));
        !ends.is_some_and(|(from, to)| is_exact(*channel, from, to))
    });
    inexact.collect()
}

/// By the account of both applications: the channel holds what was sent on it and not handled,
/// the receiver's share first.
fn is_exact(channel: ChannelId, from: &Restored, to: &Restored) -> bool {
    let (sender, receiver) = (Script::read(&from.state), Script::read(&to.state));
    let sent = script::of(&sender.sent, channel);
    let handled = script::of(&receiver.handled, channel);
    let output = from
        .part
        .outputs
        .iter()
        .find(|output| output.channel == channel);
    let input = to.part.inputs.iter().find(|input| input.channel == channel);
    let shares = input.into_iter().flat_map(|input| &input.share);
    let shares = shares.chain(output.into_iter().flat_map(|output| &output.share));
    let recorded = shares.flat_map(|batch| batch.messages());
    let recorded: Vec<_> = recorded
        .map(|(_, message)| script::parse(message))
        .collect();
    let number = |index: usize| handled.len() + index + 1;
    let numbered = recorded.iter().enumerate();
    let in_order = numbered.fold(true, |so_far, (index, (n, _))| {
        so_far && *n == number(index)
    });
    let hops = handled
        .iter()
        .copied()
        .chain(recorded.iter().map(|(_, hops)| *hops));
    in_order && hops.eq(sent.iter().copied())
}

/// What is wrong with what has just been noticed.
pub(crate) fn of_notice(notice: &Notice) -> Option<Finding> {
    match notice {
        Notice::Breach(channel, reason) => Some(Finding::Broke(format!("{channel}: {reason}"))),
        Notice::Failed(process, reason) => Some(Finding::Broke(format!("{process}: {reason}"))),
        _ => None,
    }
}
