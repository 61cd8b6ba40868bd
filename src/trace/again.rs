//! A trace done again: the first event that comes out differently.

use crate::check::{Difference, Origin, Recorded};
use crate::protocol::application::{Application, Refusal};
use crate::protocol::cut::Restored;
use crate::protocol::ids::SnapshotId;
use crate::protocol::topology::Topology;
use crate::protocol::trace::Event;
use crate::world::Replay;

use super::line::Names;

/// What came of doing one generation again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many events came out as they were logged.
    pub events: usize,
    /// The first that did not.
    pub difference: Option<Difference>,
    /// The snapshots that were taken again, with their parts.
    pub snapshots: Vec<(SnapshotId, Vec<Restored>)>,
    /// Those that everyone recorded, by a mode whose cuts are not consistent: each state came out
    /// as it was logged, and together they are nothing that could be taken again.
    pub inconsistent: Vec<SnapshotId>,
}

/// Does the events of a generation again, one after the other, by the same machines as the nodes'.
///
/// # Errors
/// If an application refuses its settings.
pub fn replay<A: Application>(
    origin: &Origin,
    names: &Names,
    events: &[Event],
) -> Result<Replayed, Refusal> {
    let Origin {
        setups,
        limits,
        parts,
    } = origin;
    let mut replay = Replay::<A>::new(setups, limits, parts, events)?;
    let mut done = vec![0; setups.len()];
    let mut difference = None;
    let mut same = 0;
    for event in events {
        let number = &mut done[event.process.index()];
        *number += 1;
        let differs = |expected, got| Difference {
            process: event.process,
            event: *number,
            expected,
            got,
        };
        difference = match replay.apply(event) {
            Ok(said) if said == *event => None,
            Ok(said) => {
                let (expected, got) = unlike(names, event, &said);
                Some(differs(expected, got))
            }
            Err(got) => Some(differs(names.write(event, 0), got)),
        };
        if difference.is_some() {
            break;
        }
        same += 1;
    }
    let all = difference.is_none();
    Ok(Replayed {
        events: same,
        difference,
        snapshots: replay.snapshots().collect(),
        inconsistent: match all {
            true => replay.inconsistent().collect(),
            false => Vec::new(),
        },
    })
}

/// In what two events differ: the fields of their lines that do.
fn unlike(names: &Names, expected: &Event, got: &Event) -> (String, String) {
    let fields = |event: &Event| {
        let line = names.write(event, 0);
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&line).expect("a line is an object");
        object
    };
    let [expected, got] = [expected, got].map(fields);
    let keys = expected
        .keys()
        .chain(got.keys())
        .collect::<std::collections::BTreeSet<_>>();
    let differing = keys
        .into_iter()
        .filter(|key| expected.get(*key) != got.get(*key));
    let differing: Vec<_> = differing.collect();
    let text = |object: &serde_json::Map<String, serde_json::Value>| {
        let fields = differing.iter().map(|key| match object.get(*key) {
            Some(value) => format!("{key} {value}"),
            None => format!("no {key}"),
        });
        fields.collect::<Vec<_>>().join(", ")
    };
    (text(&expected), text(&got))
}

/// What of a snapshot that was taken again is not as it is stored.
pub fn unlike_stored(topology: &Topology, stored: &[Restored], again: &[Restored]) -> Vec<String> {
    let mut findings = Vec::new();
    for (stored, again) in stored.iter().zip(again) {
        let name = topology.name(stored.part.process);
        if stored.state != again.state {
            findings.push(format!("the state of {name}"));
        }
        let sent = |restored: &Restored| {
            let outputs = restored.part.outputs.iter();
            outputs
                .map(|output| (output.channel, output.sent))
                .collect::<Vec<_>>()
        };
        let handled = |restored: &Restored| {
            let inputs = restored.part.inputs.iter();
            inputs
                .map(|input| (input.channel, input.handled))
                .collect::<Vec<_>>()
        };
        if sent(stored) != sent(again) || handled(stored) != handled(again) {
            findings.push(format!("what {name} had sent and handled"));
        }
    }
    let [stored, again] = [stored, again].map(|parts| Recorded::of(topology, parts));
    for (&channel, content) in &stored.channels {
        if again.channels.get(&channel) != Some(content) {
            findings.push(format!("what is in {}", topology.channel_name(channel)));
        }
    }
    findings
}
