//! Whether the recorded states follow from what the applications were given.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::judge::{count, process_name};
use super::order::Logged;
use super::rerun::{Difference, Origin, check_sends, check_state, in_channels, shown};
use super::verdict::Verdict;
use crate::protocol::application::Application;
use crate::protocol::ids::{ChannelId, MessageNumber, ProcessId, SnapshotId};
use crate::protocol::topology::Topology;
use crate::protocol::trace::{Event, What, checksum};

/// What one process wrote down in a generation.
pub type ProcessTrace = Vec<Logged>;

/// The checksums of what was sent in the generation, and of what was in the channels before.
type SentSums = BTreeMap<(ChannelId, MessageNumber), u32>;

/// `replayed`: each process, alone and from where its generation began, is given what its trace
/// says it was given. It must send what it sent, and come to the state it recorded; and what it
/// handled must be what was sent. `states` are the recorded states as they are stored, as far as
/// they can be read.
///
/// The cut's consistency is none of this verdict's business: an inconsistent cut has states that
/// follow from their inputs as well.
pub fn replayed<A: Application>(
    origin: &Origin,
    traces: &[ProcessTrace],
    snapshot: SnapshotId,
    states: &BTreeMap<ProcessId, Bytes>,
) -> Verdict {
    const NAME: &str = "replayed";
    let topology = origin.topology();
    let sums = sent_sums(origin, traces);
    let (mut findings, mut unknown, mut events) = (Vec::new(), Vec::new(), 0);
    for process in topology.processes() {
        let name = || process_name(topology, process);
        let trace = traces.get(process.index()).map_or(&[][..], Vec::as_slice);
        let Some(record) = trace
            .iter()
            .position(|logged| logged.event.what.records(snapshot))
        else {
            unknown.push(format!("the trace of {} has no record of it", name()));
            continue;
        };
        let mut alone = match origin.application::<A>(process) {
            Ok(alone) => alone,
            Err(error) => {
                findings.push(error.to_string());
                continue;
            }
        };
        let before = &trace[..=record];
        events += before.len();
        let again = (1..).zip(before).try_for_each(|(number, logged)| {
            let differs = |(expected, got)| Difference {
                process,
                event: number,
                expected,
                got,
            };
            let event = &logged.event;
            check_handled(topology, event, &sums).map_err(differs)?;
            check_sends(topology, &event.sends, &alone.give(&event.what)).map_err(differs)?;
            match event.what {
                What::Record { state, .. } => check_state(state, &alone.state()).map_err(differs),
                _ => Ok(()),
            }
        });
        if let Err(difference) = again {
            findings.push(difference.text(topology));
            continue;
        }
        let state = alone.state();
        if let Some(stored) = states.get(&process).filter(|stored| ***stored != state) {
            let (name, stored, state) = (name(), shown(stored), shown(&state));
            findings.push(format!("{name} recorded {stored}, and comes to {state}"));
        }
    }
    Verdict::unless(NAME, &findings, || match unknown.is_empty() {
        false => Verdict::unknown(NAME, unknown.join("; ")),
        true => {
            let states = count(traces.len(), "state");
            let evidence = format!("{states} follow from {}", count(events, "event"));
            Verdict::yes(NAME, evidence)
        }
    })
}

fn sent_sums(origin: &Origin, traces: &[ProcessTrace]) -> SentSums {
    let mut sums = SentSums::new();
    for message in in_channels(&origin.parts) {
        let sum = checksum(&message.bytes);
        sums.insert((message.channel, message.number), sum);
    }
    for sent in traces
        .iter()
        .flatten()
        .flat_map(|logged| &logged.event.sends)
    {
        sums.insert((sent.channel, sent.number), sent.checksum);
    }
    sums
}

/// A message that is handled is the one that was sent, if its sending was written down.
fn check_handled(
    topology: &Topology,
    event: &Event,
    sums: &SentSums,
) -> Result<(), (String, String)> {
    let What::Handle {
        channel,
        number,
        message,
    } = &event.what
    else {
        return Ok(());
    };
    match sums.get(&(*channel, *number)) {
        Some(&sum) if sum != checksum(message) => {
            let channel = topology.channel_name(*channel);
            let handled = format!("{number} on {channel} {} handled", shown(message));
            Err((handled, format!("another sent, with checksum {sum:08x}")))
        }
        _ => Ok(()),
    }
}
