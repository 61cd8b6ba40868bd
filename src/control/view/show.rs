//! `cutline show`: what is in one snapshot, from its manifest alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::list::{SnapshotRow, state_tone};
use super::{View, bytes};
use crate::check::{Totals, totals};
use crate::control::table::{Cell, Colour, Table, Tone};
use crate::protocol::application::Quantities;
use crate::protocol::cut::{ChannelFacts, Facts};
use crate::protocol::events::StoredPart;
use crate::protocol::ids::ChannelId;
use crate::protocol::records::{Begun, End, Manifest};
use crate::protocol::topology::Topology;

/// One snapshot in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShowView {
    /// As in the list.
    #[serde(flatten)]
    pub snapshot: SnapshotRow,
    /// What each process recorded.
    pub processes: Vec<ProcessRow>,
    /// What was in each channel.
    pub channels: Vec<ChannelRow>,
    /// What the application names as conserved.
    pub quantities: Vec<QuantityRow>,
}

/// A local state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessRow {
    /// The process.
    pub process: String,
    /// The length of its part.
    pub bytes: u64,
    /// Messages it had sent when it recorded, on all channels.
    pub sent: u64,
    /// Messages it had handled when it recorded, on all channels.
    pub handled: u64,
    /// What its state holds.
    pub in_state: Quantities,
    /// What the messages it recorded carry.
    pub in_channels: Quantities,
}

/// A channel state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChannelRow {
    /// The channel, such as `alice→bob`.
    pub channel: String,
    /// The last message sent before the sender recorded.
    pub sent: u64,
    /// The last message handled before the receiver recorded.
    pub handled: u64,
    /// Messages recorded by the sender, as a marker overtook them.
    pub sender_share: u64,
    /// Messages recorded by the receiver.
    pub receiver_share: u64,
}

/// A conserved quantity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuantityRow {
    /// Its name.
    pub quantity: String,
    /// In all local states.
    pub in_states: i128,
    /// In all channel states.
    pub in_channels: i128,
    /// In all initial states.
    pub expected: i128,
}

impl ShowView {
    /// What the manifest says.
    pub fn new(topology: &Topology, begun: &Begun, manifest: Option<&Manifest>) -> Self {
        let mut view = Self {
            snapshot: SnapshotRow::new(begun, manifest),
            processes: Vec::new(),
            channels: Vec::new(),
            quantities: Vec::new(),
        };
        if let Some(End::Complete {
            parts, expected, ..
        }) = manifest.map(|manifest| &manifest.end)
        {
            let known = parts
                .iter()
                .filter(|part| part.facts.process.index() < topology.processes().len());
            view.processes = known.map(|part| process(topology, part)).collect();
            view.channels = channels(topology, parts);
            view.quantities = quantities(parts, expected);
        }
        view
    }
}

fn process(topology: &Topology, part: &StoredPart) -> ProcessRow {
    let facts = &part.facts;
    let sum = |of: &[ChannelFacts]| of.iter().map(|channel| channel.number.get()).sum();
    ProcessRow {
        process: topology.name(facts.process).to_owned(),
        bytes: part.bytes,
        sent: sum(&facts.outputs),
        handled: sum(&facts.inputs),
        in_state: facts.in_state.clone(),
        in_channels: facts.in_channels.clone(),
    }
}

fn channels(topology: &Topology, parts: &[StoredPart]) -> Vec<ChannelRow> {
    let ends = |of: fn(&Facts) -> &Vec<ChannelFacts>| -> BTreeMap<ChannelId, &ChannelFacts> {
        let all = parts.iter().flat_map(|part| of(&part.facts));
        all.map(|facts| (facts.channel, facts)).collect()
    };
    let (senders, receivers) = (ends(|facts| &facts.outputs), ends(|facts| &facts.inputs));
    let number = |facts: Option<&&ChannelFacts>| facts.map_or(0, |facts| facts.number.get());
    let share = |facts: Option<&&ChannelFacts>| facts.map_or(0, |facts| facts.recorded());
    let rows = topology.channels().iter().map(|channel| {
        let (sender, receiver) = (senders.get(channel), receivers.get(channel));
        ChannelRow {
            channel: topology.channel_name(*channel),
            sent: number(sender),
            handled: number(receiver),
            sender_share: share(sender),
            receiver_share: share(receiver),
        }
    });
    rows.collect()
}

fn quantities(parts: &[StoredPart], expected: &Quantities) -> Vec<QuantityRow> {
    let facts: Vec<_> = parts.iter().map(|part| &part.facts).collect();
    let totals = totals(&facts, expected).into_iter();
    let row = |(quantity, of): (String, Totals)| QuantityRow {
        quantity,
        in_states: of.in_states,
        in_channels: of.in_channels,
        expected: of.expected,
    };
    totals.map(row).collect()
}

/// `money 10, tokens 1`
fn written(quantities: &Quantities) -> String {
    let texts: Vec<_> = quantities
        .iter()
        .map(|(name, amount)| format!("{name} {amount}"))
        .collect();
    texts.join(", ")
}

impl View for ShowView {
    fn table(&self, colour: Colour) -> String {
        let snapshot = &self.snapshot;
        let state = state_tone(snapshot.state).paint(snapshot.state, colour);
        let mut text = format!("{} {state}", snapshot.id);
        if let Some(generation) = &snapshot.generation {
            let _ = write!(text, ", generation {generation}");
        }
        if let Some(mode) = &snapshot.mode {
            let _ = write!(text, ", {mode}");
        }
        if let Some(elapsed_ms) = snapshot.elapsed_ms {
            let _ = write!(text, ", took {elapsed_ms} ms");
        }
        if let Some(reason) = &snapshot.reason {
            let _ = write!(text, ": {reason}");
        }
        text.push('\n');
        if snapshot.state == "complete" {
            text.push_str(&self.tables(colour));
        }
        text
    }
}

impl ShowView {
    fn tables(&self, colour: Colour) -> String {
        let mut processes = Table::new(["process", "sent", "handled", "part", "state holds"]);
        for row in &self.processes {
            processes.row(vec![
                Cell::text(&row.process),
                Cell::number(row.sent),
                Cell::number(row.handled),
                Cell::number(bytes(row.bytes)),
                Cell::text(written(&row.in_state)),
            ]);
        }
        let headings = [
            "channel",
            "sent",
            "handled",
            "in channel",
            "by sender",
            "by receiver",
        ];
        let mut channels = Table::new(headings);
        for row in &self.channels {
            channels.row(vec![
                Cell::text(&row.channel),
                Cell::number(row.sent),
                Cell::number(row.handled),
                Cell::number(row.sender_share + row.receiver_share),
                Cell::number(row.sender_share),
                Cell::number(row.receiver_share),
            ]);
        }
        let headings = [
            "quantity",
            "in states",
            "in channels",
            "together",
            "expected",
        ];
        let mut quantities = Table::new(headings);
        for row in &self.quantities {
            let together = row.in_states + row.in_channels;
            let balanced = together == row.expected;
            quantities.row(vec![
                Cell::text(&row.quantity),
                Cell::number(row.in_states),
                Cell::number(row.in_channels),
                Cell::number(together).toned(if balanced { Tone::Good } else { Tone::Bad }),
                Cell::number(row.expected),
            ]);
        }
        let mut text = format!("\n{}", processes.render(colour));
        if !self.channels.is_empty() {
            let _ = write!(text, "\n{}", channels.render(colour));
        }
        if !self.quantities.is_empty() {
            let _ = write!(text, "\n{}", quantities.render(colour));
        }
        text
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::control::view::Format;
    use crate::protocol::cut::Run;
    use crate::protocol::ids::{Generation, MessageNumber, ProcessId, SnapshotId, Term};
    use crate::protocol::mode::Mode;

    fn end(channel: ChannelId, number: u64, share: Option<(u64, u64)>) -> ChannelFacts {
        let run = |(first, last)| Run {
            first: MessageNumber::new(first),
            last: MessageNumber::new(last),
        };
        ChannelFacts {
            after: None,
            channel,
            number: MessageNumber::new(number),
            share: share.map(run).into_iter().collect(),
        }
    }

    fn part(facts: Facts) -> StoredPart {
        StoredPart {
            bytes: 50,
            checksum: 7,
            facts,
        }
    }

    /// Two processes, a channel, two messages in it.
    pub(in crate::control::view) fn snapshot(number: u64) -> (Begun, Manifest) {
        let [p1, p2] = [ProcessId::new(0), ProcessId::new(1)];
        let channel = ChannelId::new(p1, p2);
        let money = |amount| Quantities::from([("money".to_owned(), amount)]);
        let facts = |process, outputs, inputs, in_state, in_channels| Facts {
            process,
            outputs,
            inputs,
            in_state: money(in_state),
            in_channels: money(in_channels),
            initial: money(10),
            clock: None,
        };
        let sender = facts(p1, vec![end(channel, 5, None)], vec![], 7, 0);
        let receiver = facts(p2, vec![], vec![end(channel, 3, Some((4, 5)))], 11, 2);
        let (snapshot, generation, term, nonce) =
            (SnapshotId::new(number), Generation::new(1), Term::new(1), 9);
        let begun = Begun {
            snapshot,
            generation,
            mode: Mode::Classic,
            term,
            nonce,
        };
        let manifest = Manifest {
            snapshot,
            generation,
            term,
            nonce,
            mode: Mode::Classic,
            topology: 1,
            end: End::Complete {
                parts: vec![part(sender), part(receiver)],
                expected: money(20),
                elapsed_ms: 35,
            },
        };
        (begun, manifest)
    }

    fn topology() -> Topology {
        let names = vec!["alice".to_owned(), "bob".to_owned()];
        Topology::new(names, ["p1→p2".parse().unwrap()]).unwrap()
    }

    #[test]
    fn a_snapshot_is_shown_with_its_states_channels_and_quantities() {
        let (begun, manifest) = snapshot(4);
        let view = ShowView::new(&topology(), &begun, Some(&manifest));
        let text = "\
s4 complete, generation g1, classic, took 35 ms

PROCESS  SENT  HANDLED  PART  STATE HOLDS
alice       5        0  50 B  money 7
bob         0        3  50 B  money 11

CHANNEL    SENT  HANDLED  IN CHANNEL  BY SENDER  BY RECEIVER
alice→bob     5        3           2          0            2

QUANTITY  IN STATES  IN CHANNELS  TOGETHER  EXPECTED
money            18            2        20        20
";
        assert_eq!(view.render(Format::Table(Colour::Off)), text);
    }

    #[test]
    fn the_json_of_show_has_its_documented_shape() {
        let (begun, manifest) = snapshot(4);
        let json = ShowView::new(&topology(), &begun, Some(&manifest)).render(Format::Json);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["id"], "s4");
        let channel = serde_json::json!({
            "channel": "alice→bob", "sent": 5, "handled": 3, "sender_share": 0,
            "receiver_share": 2,
        });
        assert_eq!(value["channels"], serde_json::json!([channel]));
        let quantity = serde_json::json!({
            "quantity": "money", "in_states": 18, "in_channels": 2, "expected": 20,
        });
        assert_eq!(value["quantities"], serde_json::json!([quantity]));
        assert_eq!(value["processes"][1]["in_state"]["money"], 11);
    }

    #[test]
    fn quantities_of_any_size_are_added_up() {
        let (begun, mut manifest) = snapshot(4);
        let End::Complete { parts, .. } = &mut manifest.end else {
            panic!("it is complete");
        };
        for part in parts {
            part.facts.in_state.insert("money".to_owned(), i64::MAX);
            part.facts.in_channels.insert("money".to_owned(), i64::MAX);
        }
        let view = ShowView::new(&topology(), &begun, Some(&manifest));
        assert_eq!(view.quantities[0].in_states, 2 * i128::from(i64::MAX));
        let json = view.render(Format::Json);
        assert!(
            json.contains("\"in_channels\": 18446744073709551614"),
            "{json}"
        );
        let table = view.render(Format::Table(Colour::Off));
        assert!(table.contains("36893488147419103228"), "{table}");
    }

    #[test]
    fn an_open_snapshot_has_nothing_to_show_yet() {
        let (begun, _) = snapshot(4);
        let view = ShowView::new(&topology(), &begun, None);
        assert_eq!(
            view.render(Format::Table(Colour::Off)),
            "s4 open, generation g1, classic\n"
        );
    }
}
