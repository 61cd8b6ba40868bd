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
    /// A peer did what no correct peer does, or a node or the job broke off.
    Broke(String),
}

/// What is wrong with what has just ended.
pub(crate) fn of_manifest(world: &World<Script>, manifest: &Manifest) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !manifest.is_complete() {
        return findings;
    }
    let id = manifest.snapshot;
    let topology = &world.job().topology;
    for &channel in topology.channels() {
        let part = |process: ProcessId| world.part(id, process);
        let ends = part(channel.from).zip(part(channel.to));
        if !ends.is_some_and(|(from, to)| is_exact(channel, from, to)) {
            findings.push(Finding::Inexact(id, channel));
        }
    }
    let verdicts = judge_manifest(topology, manifest);
    for verdict in verdicts.failing() {
        findings.push(Finding::Verdict(id, verdict));
    }
    findings
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
