//! Back edges: the channels that an alignment does not wait for, so that on a cycle nobody waits
//! for himself.
//!
//! Without its back edges a graph has an order. A process that waits for the markers of its other
//! inputs then waits for processes before it only, and those that have no other inputs are the
//! ones to trigger.

use std::collections::BTreeSet;

use petgraph::algo::tarjan_scc;

use super::{Topology, TopologyError, graph};
use crate::protocol::ids::{ChannelId, ProcessId};

impl Topology {
    /// The channels that an alignment does not wait for; what comes on them is logged.
    pub fn back_edges(&self) -> &BTreeSet<ChannelId> {
        &self.back_edges
    }

    /// The same graph with these back edges. Who initiates by default is then who has no input
    /// left.
    ///
    /// # Errors
    /// If one is no channel, or if what is left still has a cycle.
    pub fn with_back_edges(mut self, named: BTreeSet<ChannelId>) -> Result<Self, TopologyError> {
        if let Some(&unknown) = named.iter().find(|&&channel| !self.contains(channel)) {
            return Err(TopologyError::Dangling(unknown));
        }
        let left = self.channels.iter().copied();
        let left: Vec<_> = left.filter(|channel| !named.contains(channel)).collect();
        let components = tarjan_scc(&graph(self.names.len(), &left));
        if let Some(cycle) = components.iter().find(|members| members.len() > 1) {
            let mut members: Vec<_> = cycle.iter().map(|node| node.index()).collect();
            members.sort_unstable();
            let names = members.iter().map(|&index| self.names[index].clone());
            return Err(TopologyError::Cycle(names.collect()));
        }
        self.back_edges = named;
        self.roots = self.without_awaited_inputs();
        Ok(self)
    }

    /// The same graph with the back edges that a depth-first search from these processes finds.
    #[must_use]
    pub fn with_back_edges_from(mut self, initiators: &BTreeSet<ProcessId>) -> Self {
        self.back_edges = self.search(initiators.iter().copied());
        self
    }

    /// The processes all of whose inputs, if there are any, are back edges: no marker that counts
    /// comes to them, so they record on the trigger.
    pub fn without_awaited_inputs(&self) -> Vec<ProcessId> {
        let inputs = self.channels.iter();
        let awaited = inputs.filter(|channel| !self.back_edges.contains(channel));
        let awaiting: BTreeSet<_> = awaited.map(|channel| channel.to).collect();
        let all = self.processes();
        all.filter(|process| !awaiting.contains(process)).collect()
    }

    /// The processes that would have to initiate an aligned snapshot and are not among these.
    pub fn untriggered(&self, initiators: &BTreeSet<ProcessId>) -> Vec<ProcessId> {
        let mut first = self.without_awaited_inputs();
        first.retain(|process| !initiators.contains(process));
        first
    }

    /// Depth first, in the order of the topology; a channel to a process that is still on the way
    /// leads back. What nobody reaches is searched last, so that nothing is left on a cycle.
    pub(super) fn search(
        &self,
        initiators: impl IntoIterator<Item = ProcessId>,
    ) -> BTreeSet<ChannelId> {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            Never,
            OnTheWay,
            Done,
        }
        let mut seen = vec![Seen::Never; self.names.len()];
        let mut back = BTreeSet::new();
        for start in initiators.into_iter().chain(self.processes()) {
            if seen[start.index()] != Seen::Never {
                continue;
            }
            seen[start.index()] = Seen::OnTheWay;
            let mut way = vec![(start, self.leading_from(start).iter())];
            while let Some((process, outputs)) = way.last_mut() {
                let Some(&channel) = outputs.next() else {
                    seen[process.index()] = Seen::Done;
                    way.pop();
                    continue;
                };
                match seen[channel.to.index()] {
                    Seen::Never => {
                        seen[channel.to.index()] = Seen::OnTheWay;
                        way.push((channel.to, self.leading_from(channel.to).iter()));
                    }
                    Seen::OnTheWay => drop(back.insert(channel)),
                    Seen::Done => {}
                }
            }
        }
        back
    }

    /// The outputs of a process: they stand together, as channels are sorted by their sender.
    fn leading_from(&self, process: ProcessId) -> &[ChannelId] {
        let first = self
            .channels
            .partition_point(|channel| channel.from < process);
        let behind = self
            .channels
            .partition_point(|channel| channel.from <= process);
        &self.channels[first..behind]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(processes: u32, channels: &[&str]) -> Topology {
        let names = (1..=processes).map(|number| format!("p{number}")).collect();
        Topology::new(names, edges(channels)).expect("a graph")
    }

    fn edges(channels: &[&str]) -> BTreeSet<ChannelId> {
        let channels = channels.iter();
        channels
            .map(|text| text.parse().expect("a channel"))
            .collect()
    }

    fn from(process: u32) -> BTreeSet<ProcessId> {
        BTreeSet::from([ProcessId::new(process - 1)])
    }

    #[test]
    fn a_graph_without_cycles_has_no_back_edges() {
        let dag = topology(4, &["p1→p2", "p1→p3", "p2→p4", "p3→p4"]);
        assert!(dag.back_edges().is_empty());
        assert_eq!(dag.without_awaited_inputs(), [ProcessId::new(0)]);
    }

    #[test]
    fn the_channel_that_closes_a_ring_leads_back_to_whoever_initiates() {
        let ring = topology(3, &["p1→p2", "p2→p3", "p3→p1"]);
        assert_eq!(*ring.back_edges(), edges(&["p3→p1"]));
        let turned = ring.with_back_edges_from(&from(2));
        assert_eq!(*turned.back_edges(), edges(&["p1→p2"]));
        assert_eq!(turned.untriggered(&from(1)), [ProcessId::new(1)]);
        assert!(turned.untriggered(&from(2)).is_empty());
    }

    #[test]
    fn what_is_found_always_leaves_a_graph_without_cycles() {
        let mesh = ["p1→p2", "p2→p1", "p1→p3", "p3→p1", "p2→p3", "p3→p2"];
        for initiator in 1..=3 {
            let mesh = topology(3, &mesh).with_back_edges_from(&from(initiator));
            let found = mesh.back_edges().clone();
            let first = mesh.with_back_edges(found).expect("an order");
            assert_eq!(
                first.without_awaited_inputs(),
                Vec::from_iter(from(initiator))
            );
        }
    }

    #[test]
    fn named_ones_must_break_every_cycle_and_say_who_is_to_initiate() {
        let ring = topology(3, &["p1→p2", "p2→p3", "p3→p1"]);
        let named = ring
            .clone()
            .with_back_edges(edges(&["p1→p2"]))
            .expect("an order");
        assert_eq!(named.default_initiators(), [ProcessId::new(1)]);
        let cyclic = ring.clone().with_back_edges(BTreeSet::new()).unwrap_err();
        assert!(cyclic.to_string().contains("p1, p2, p3"), "{cyclic}");
        assert!(ring.with_back_edges(edges(&["p2→p1"])).is_err());
    }
}
