//! Whether the cut is closed under *happened before*, by the vector clocks of the processes alone.

use super::judge::{count, process_name};
use super::verdict::Verdict;
use crate::protocol::clock::Clock;
use crate::protocol::cut::Facts;
use crate::protocol::ids::ProcessId;
use crate::protocol::topology::Topology;

/// `causal`: for all i and j, V_i[i] ≥ V_j[i]. None where no part has a clock, since then the job
/// is not traced and nobody asks.
pub(super) fn causal(topology: &Topology, facts: &[&Facts]) -> Option<Verdict> {
    let clocks = facts.iter().filter_map(|facts| {
        let clock = facts.clock.as_ref()?;
        Some((facts.process, clock))
    });
    of_clocks(topology, &clocks.collect::<Vec<_>>())
}

/// The same of the clocks alone, each with its process.
pub(super) fn of_clocks(topology: &Topology, clocks: &[(ProcessId, &Clock)]) -> Option<Verdict> {
    if clocks.is_empty() {
        return None;
    }
    let mut findings = Vec::new();
    for &(process, own) in clocks {
        for &(other, clock) in clocks {
            let (at, knows) = (own.of(process), clock.of(process));
            if knows > at {
                let [process, other] = [process, other].map(|id| process_name(topology, id));
                findings.push(format!(
                    "{other} knew of event {knows} of {process}, which had recorded at event {at}"
                ));
            }
        }
    }
    let all = topology.processes().len();
    Some(Verdict::unless("causal", &findings, || {
        if clocks.len() < all {
            let known = clocks.len();
            let reason = format!("only {known} of {} have a clock", count(all, "part"));
            return Verdict::unknown("causal", reason);
        }
        // Wide enough for what a file of somebody else's may say.
        let events = clocks.iter().map(|&(id, clock)| u128::from(clock.of(id)));
        let events: u128 = events.sum();
        let evidence = format!("{events} events before the cut know of none behind it");
        Verdict::yes("causal", evidence)
    }))
}
