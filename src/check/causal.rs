//! Whether any process had seen what, by the cut, had not happened yet: the vector clocks tell.

use std::collections::BTreeMap;

use super::judge::count;
use super::verdict::Verdict;
use crate::protocol::ids::ProcessId;
use crate::protocol::topology::Topology;

/// A vector clock: how many events of each process its owner had seen. A process that is not in
/// it has not been heard of.
pub(super) type Clock = BTreeMap<ProcessId, u64>;

/// Judges the clocks that processes recorded along with their states: for all i and j, j must not
/// have seen more of i than i itself had done.
pub(super) fn causal(topology: &Topology, clocks: &BTreeMap<ProcessId, &Clock>) -> Verdict {
    let seen = |clock: &Clock, of: ProcessId| clock.get(&of).copied().unwrap_or(0);
    let mut findings = Vec::new();
    for (&of, own) in clocks {
        let done = seen(own, of);
        for (&by, other) in clocks {
            let known = seen(other, of);
            if known > done {
                let (by, of) = (topology.name(by), topology.name(of));
                findings.push(format!(
                    "{by} has seen {known} events of {of}, who had {done}"
                ));
            }
        }
    }
    Verdict::unless("causal", &findings, || {
        let without = topology
            .processes()
            .find(|process| !clocks.contains_key(process));
        match without {
            Some(_) if clocks.is_empty() => Verdict::unknown("causal", "no process has a clock"),
            Some(process) => {
                let process = topology.name(process);
                Verdict::unknown("causal", format!("{process} has no clock"))
            }
            None => Verdict::yes("causal", count(clocks.len(), "clock")),
        }
    })
}
