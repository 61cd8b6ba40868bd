//! Traces for other programs: ShiViz, Mermaid, and lines of JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::line::{Names, hexadecimal};
use crate::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use crate::protocol::topology::Topology;
use crate::protocol::trace::{Event, What};

/// How ShiViz is to read the lines that follow: its own default, said all the same.
const SHIVIZ_EVENT: &str = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})";
/// How it tells executions apart.
const SHIVIZ_EXECUTION: &str = r"^=== (?<trace>.*) ===$";

/// Bytes of a message that are shown in a picture.
const SHOWN_MAX: usize = 16;

/// A log for ShiViz: an execution for each generation. Counters are those of the generation: the
/// own one begins at 1 and goes up by one.
pub fn shiviz(topology: &Topology, generations: &[Vec<Event>]) -> String {
    let mut text = format!("{SHIVIZ_EVENT}\n{SHIVIZ_EXECUTION}\n");
    for events in generations {
        let Some(first) = events.first() else {
            continue;
        };
        let _ = writeln!(text, "=== {} ===", first.generation);
        let before = before(topology, events);
        for event in events {
            let mut clock = Map::new();
            for process in topology.processes() {
                let before = before[process.index()];
                let count = event.clock.of(process).saturating_sub(before);
                if count > 0 {
                    clock.insert(topology.name(process).to_owned(), count.into());
                }
            }
            let _ = writeln!(text, "{}", described(topology, event));
            let host = topology.name(event.process);
            let _ = writeln!(text, "{host} {}", Value::Object(clock));
        }
    }
    text
}

/// For each process, its events before the generation; of one that did nothing in it, all.
fn before(topology: &Topology, events: &[Event]) -> Vec<u64> {
    let mut before = vec![u64::MAX; topology.processes().len()];
    for event in events.iter().rev() {
        before[event.process.index()] = event.clock.of(event.process).saturating_sub(1);
    }
    before
}

/// An event as a person reads it, in one line.
pub fn described(topology: &Topology, event: &Event) -> String {
    let mut text = match &event.what {
        What::Start { restored } => format!("start from {restored}"),
        What::Tick => "tick".to_owned(),
        What::Command(command) => format!("command '{}'", command.escape_debug()),
        What::Handle {
            channel,
            number,
            message,
        } => {
            let channel = topology.channel_name(*channel);
            format!("handle {number} of {channel}: {}", shown(message))
        }
        What::Record { snapshot, mode, .. } => format!("record {snapshot}, {mode}"),
        What::End { .. } => "end".to_owned(),
    };
    for sent in &event.sends {
        let (number, channel) = (sent.number, topology.channel_name(sent.channel));
        let _ = write!(text, "; send {number} on {channel}");
    }
    text
}

fn shown(message: &[u8]) -> String {
    match message.len() > SHOWN_MAX {
        true => format!("{}…", hexadecimal(&message[..SHOWN_MAX])),
        false => hexadecimal(message),
    }
}

/// A sequence diagram for Mermaid. A message's arrow stands where it is handled, since an arrow of
/// a sequence diagram takes no time; one that is in a snapshot's channel state says so.
pub fn mermaid(topology: &Topology, events: &[Event]) -> String {
    let mut text = "sequenceDiagram\n".to_owned();
    for process in topology.processes() {
        let (number, name) = (process.index() + 1, topology.name(process));
        let _ = writeln!(text, "    participant p{number} as {}", escaped(name));
    }
    let recorded = recordings(events);
    let mut under_way = BTreeMap::new();
    for event in events {
        let place = event.process.index() + 1;
        match &event.what {
            What::Handle {
                channel, number, ..
            } => {
                let sent = under_way.remove(&(*channel, *number)).unwrap_or_default();
                let handled = event.clock.of(event.process);
                let from = channel.from.index() + 1;
                let label = crossed(&recorded, *channel, (sent, handled));
                let _ = writeln!(text, "    p{from}->>p{place}: {number}{label}");
            }
            What::Tick if event.sends.is_empty() => {}
            what => {
                let event = Event {
                    what: what.clone(),
                    sends: Vec::new(),
                    ..event.clone()
                };
                let what = escaped(&described(topology, &event));
                let _ = writeln!(text, "    Note over p{place}: {what}");
            }
        }
        for sent in &event.sends {
            let own = event.clock.of(event.process);
            under_way.insert((sent.channel, sent.number), own);
        }
    }
    for (channel, number) in under_way.into_keys() {
        let (from, to) = (channel.from.index() + 1, channel.to.index() + 1);
        let _ = writeln!(text, "    p{from}--)p{to}: {number}, not handled");
    }
    text
}

/// When each process recorded each snapshot, by its own counter.
fn recordings(events: &[Event]) -> BTreeMap<(ProcessId, SnapshotId), u64> {
    let records = events.iter().filter_map(|event| match event.what {
        What::Record { snapshot, .. } => {
            Some(((event.process, snapshot), event.clock.of(event.process)))
        }
        _ => None,
    });
    records.collect()
}

/// The snapshots in whose channel states a message is: recorded by its sender after it was sent,
/// and by its receiver before it was handled.
fn crossed(
    recorded: &BTreeMap<(ProcessId, SnapshotId), u64>,
    channel: ChannelId,
    (sent, handled): (u64, u64),
) -> String {
    let first = (channel.to, SnapshotId::default());
    let last = (channel.to, SnapshotId::new(u64::MAX));
    let mut text = String::new();
    for (&(_, snapshot), &received) in recorded.range(first..=last) {
        let by_sender = recorded.get(&(channel.from, snapshot));
        if received < handled && by_sender.is_some_and(|&at| at > sent) {
            let _ = write!(text, " in {snapshot}");
        }
    }
    text
}

/// Mermaid takes `;` and `#` as its own.
fn escaped(text: &str) -> String {
    text.replace('#', "#35;").replace(';', "#59;")
}

/// The lines as they were written, of all processes in one order.
pub fn lines<'a>(names: &Names, events: impl IntoIterator<Item = (&'a Event, u64)>) -> String {
    let mut text = String::new();
    for (event, at_us) in events {
        let _ = writeln!(text, "{}", names.write(event, at_us));
    }
    text
}

/// A topology for Graphviz.
pub fn dot(name: &str, topology: &Topology) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = format!("digraph {} {{\n", quoted(name));
    for process in topology.processes() {
        let _ = writeln!(text, "    {};", quoted(topology.name(process)));
    }
    for channel in topology.channels() {
        let [from, to] = [channel.from, channel.to].map(|end| quoted(topology.name(end)));
        let label = match channel.nth {
            1 => String::new(),
            nth => format!(" [label=\"#{nth}\"]"),
        };
        let _ = writeln!(text, "    {from} -> {to}{label};");
    }
    text + "}\n"
}
