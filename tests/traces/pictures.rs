//! Traces for other programs, read back by the rules of those programs.

use std::collections::BTreeMap;

use cutline::protocol::trace::Event;
use cutline::trace::{dot, mermaid, shiviz};
use serde_json::Value;

use crate::stage::{bank, events, run};

/// One event of a ShiViz log.
struct Entry {
    host: String,
    clock: BTreeMap<String, u64>,
}

/// Reads a log as ShiViz does: two lines of expressions, then executions, each of pairs of lines.
fn executions(log: &str) -> Vec<(String, Vec<Entry>)> {
    let mut lines = log.lines();
    assert_eq!(
        lines.next(),
        Some(r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})")
    );
    assert_eq!(lines.next(), Some(r"^=== (?<trace>.*) ===$"));
    let mut executions: Vec<(String, Vec<Entry>)> = Vec::new();
    while let Some(line) = lines.next() {
        let name = line
            .strip_prefix("=== ")
            .and_then(|rest| rest.strip_suffix(" ==="));
        if let Some(name) = name {
            executions.push((name.to_owned(), Vec::new()));
            continue;
        }
        let (host, clock) = lines.next().unwrap().split_once(' ').unwrap();
        assert!(!host.is_empty() && !line.is_empty());
        let clock: Value = serde_json::from_str(clock).unwrap();
        let counts = clock.as_object().unwrap().iter();
        let counts = counts.map(|(name, count)| (name.clone(), count.as_u64().unwrap()));
        executions.last_mut().unwrap().1.push(Entry {
            host: host.to_owned(),
            clock: counts.collect(),
        });
    }
    executions
}

#[test]
fn a_shiviz_log_keeps_the_rules_of_shiviz() {
    let world = run(bank(41), true);
    let generations: Vec<Vec<Event>> = [1, 2].map(|generation| events(&world, generation)).into();
    let executions = executions(&shiviz(&world.job().topology, &generations));
    let names: Vec<_> = executions.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["g1", "g2"]);
    for ((_, entries), events) in executions.iter().zip(&generations) {
        assert_eq!(entries.len(), events.len());
        let mut last: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in entries {
            // Its own host is in its clock, begins at 1, and goes up by exactly 1.
            let own = last.entry(&entry.host).or_default();
            assert_eq!(entry.clock[&entry.host], *own + 1);
            *own += 1;
        }
        let mut learnt = 0;
        for entry in entries {
            for (host, &count) in &entry.clock {
                // Every event that is known is one of the log.
                assert!((1..=last[host.as_str()]).contains(&count));
                learnt += usize::from(*host != entry.host);
            }
        }
        assert!(learnt > 20, "processes hear of one another");
    }
}

#[test]
fn a_sequence_diagram_has_an_arrow_for_every_message() {
    let world = run(bank(42), false);
    let events = events(&world, 1);
    let text = mermaid(&world.job().topology, &events);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("sequenceDiagram"));
    let count = |needle: &str| text.lines().filter(|line| line.contains(needle)).count();
    let handled = events
        .iter()
        .filter(|event| matches!(event.what, cutline::protocol::trace::What::Handle { .. }));
    assert_eq!(count("->>"), handled.count());
    let sent: usize = events.iter().map(|event| event.sends.len()).sum();
    assert_eq!(count("->>") + count("--)"), sent);
    assert_eq!(count("participant"), 3);
    let recorded = world.manifests().filter(|manifest| manifest.is_complete());
    assert_eq!(count("record s"), 3 * recorded.count());
    assert!(count(" in s") > 0, "a message is in a channel state");
}

#[test]
fn a_topology_is_a_graph_with_an_edge_for_every_channel() {
    let job = crate::stage::job("bank", &["p1→p2", "p1→p2#2", "p2→p1"], Value::Null, 1);
    let graph = "\
digraph \"two\" {
    \"p1\";
    \"p2\";
    \"p1\" -> \"p2\";
    \"p1\" -> \"p2\" [label=\"#2\"];
    \"p2\" -> \"p1\";
}
";
    assert_eq!(dot("two", &job.topology), graph);
}
