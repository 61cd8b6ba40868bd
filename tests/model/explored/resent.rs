//! What happens only sometimes to the frames of a channel: sent again, too late, or kept in place.

use cutline::protocol::events::Holding;
use cutline::protocol::frame::{Frame, Marker};
use cutline::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use cutline::world::{Choice, Operation, World};

use super::rare::{Outcome, Rare};
use super::script::Script;

/// What a step shows of frames.
pub(crate) fn shown(
    before: &World<Script>,
    choice: &Choice,
    after: &Outcome<'_>,
) -> Vec<(Rare, bool)> {
    match *choice {
        Choice::Send(channel) => {
            let again = marker_again(before, after.world, channel);
            vec![
                (
                    Rare::MarkerBetween,
                    again.is_some_and(|marker| is_between(after.world, channel, &marker)),
                ),
                (
                    Rare::OvertakingAgain,
                    again.is_some_and(|marker| marker.after < marker.sent),
                ),
            ]
        }
        Choice::Arrive(channel) => {
            vec![(Rare::LateMarker, is_late(before, after.world, channel))]
        }
        Choice::Store(at, _) => {
            let reads = before.pending().get(at) == Some(&Operation::Read);
            let status = after.world.collector().map(|collector| collector.status());
            let found = status.is_some_and(|status| {
                status.complete > SnapshotId::default() && status.complete_count == 0
            });
            vec![(Rare::Found, reads && found && after.is_late)]
        }
        _ => Vec::new(),
    }
}

/// What is to be seen at a process that has just recorded.
pub(crate) fn recorded(process: ProcessId, after: &Outcome<'_>) -> Vec<(Rare, bool)> {
    let Some(machine) = after.world.process(process) else {
        return Vec::new();
    };
    let overlap = machine.recordings().count() > 1;
    let mut closed = machine.outboxes().iter().filter(|outbox| !outbox.is_open());
    let down = closed.any(|outbox| outbox.unacknowledged() > 0);
    // A marker that has overtaken everything is what the next frame would be.
    let mut ahead = false;
    for outbox in machine.outboxes().iter().filter(|outbox| outbox.is_open()) {
        let mut world = after.world.clone();
        world.apply(&Choice::Send(outbox.channel()));
        let next = world.wire(outbox.channel()).last();
        ahead |= matches!(next, Some(Frame::Messages(_)));
    }
    vec![
        (Rare::Overlap, overlap),
        (Rare::RecordsWhileDown, down),
        (
            Rare::BehindTakenBack,
            ahead && after.mode.overtakes() && after.is_late,
        ),
    ]
}

/// The frame that has gone on the wire, if it is a marker that its sender had put there before.
fn marker_again(
    before: &World<Script>,
    after: &World<Script>,
    channel: ChannelId,
) -> Option<Marker> {
    let Some(Frame::Marker(marker)) = after.wire(channel).last() else {
        return None;
    };
    let mut recordings = before.process(channel.from)?.recordings();
    let was_sent = recordings
        .any(|(snapshot, waits_for)| snapshot == marker.snapshot && !waits_for.contains(&channel));
    was_sent.then_some(*marker)
}

/// Whether the message before a marker that is sent again is ahead of it on the same stream, as
/// it is sent again too, and the next one is behind it.
fn is_between(world: &World<Script>, channel: ChannelId, marker: &Marker) -> bool {
    let frames = world.wire(channel);
    let ahead = frames
        .len()
        .checked_sub(2)
        .and_then(|at| world.wire(channel).nth(at));
    let is_ahead = matches!(ahead, Some(Frame::Messages(batch)) if batch.last() == marker.after);
    let sender = world.process(channel.from);
    let mut outboxes = sender.into_iter().flat_map(|sender| sender.outboxes());
    let outbox = outboxes.find(|outbox| outbox.channel() == channel);
    is_ahead && outbox.is_some_and(|outbox| outbox.sent() > marker.after)
}

/// Whether the frame that has arrived is a marker that opens nothing, as its snapshot has ended.
fn is_late(before: &World<Script>, after: &World<Script>, channel: ChannelId) -> bool {
    let Some(Frame::Marker(marker)) = before.wire(channel).next() else {
        return false;
    };
    let records = |world: &World<Script>| {
        world.process(channel.to).is_some_and(|machine| {
            let mut recordings = machine.recordings();
            !matches!(machine.holding(), Holding::Running(_))
                || recordings.any(|(snapshot, _)| snapshot == marker.snapshot)
        })
    };
    !records(before) && !records(after)
}
