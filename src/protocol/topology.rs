//! Which processes there are and which channels connect them; what follows from the graph alone.

mod back_edges;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Bfs;

use super::ids::{ChannelId, ProcessId};

/// A graph that no job can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// No process at all.
    #[error("a topology needs at least one process")]
    Empty,
    /// A name twice.
    #[error("process '{0}' is named twice")]
    DuplicateProcess(String),
    /// A channel from or to a process that is not there.
    #[error("channel {0} leads to or from a process that does not exist")]
    Dangling(ChannelId),
    /// A channel twice.
    #[error("channel {0} is given twice")]
    DuplicateChannel(ChannelId),
    /// A channel from a process to itself.
    #[error("channel {0} leads from a process to itself")]
    SelfChannel(ChannelId),
    /// The named back edges leave a cycle, through these processes.
    #[error("without the back edges there is still a cycle through {}", .0.join(", "))]
    Cycle(Vec<String>),
}

/// The processes and channels of a job. Immutable; shared by everything that runs in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Topology {
    names: Vec<String>,
    channels: Vec<ChannelId>,
    /// The same channels, by where they lead to.
    inward: Vec<ChannelId>,
    fingerprint: u32,
    /// The strongly connected component of each process.
    component: Vec<u32>,
    roots: Vec<ProcessId>,
    back_edges: BTreeSet<ChannelId>,
}

impl Topology {
    /// Checks the graph and works out what follows from it.
    ///
    /// # Errors
    /// If there is no process, a name or a channel is given twice, or a channel dangles or leads
    /// from a process to itself.
    pub fn new(
        names: Vec<String>,
        channels: impl IntoIterator<Item = ChannelId>,
    ) -> Result<Self, TopologyError> {
        if names.is_empty() {
            return Err(TopologyError::Empty);
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(TopologyError::DuplicateProcess(twice.clone()));
        }
        let mut sorted = BTreeSet::new();
        for channel in channels {
            let known = |process: ProcessId| process.index() < names.len();
            if !known(channel.from) || !known(channel.to) {
                return Err(TopologyError::Dangling(channel));
            }
            if channel.from == channel.to {
                return Err(TopologyError::SelfChannel(channel));
            }
            if !sorted.insert(channel) {
                return Err(TopologyError::DuplicateChannel(channel));
            }
        }
        let channels: Vec<_> = sorted.into_iter().collect();
        let graph = graph(names.len(), &channels);
        let components = tarjan_scc(&graph);
        let mut component = vec![0; names.len()];
        for (number, members) in (0u32..).zip(&components) {
            for member in members {
                component[member.index()] = number;
            }
        }
        let roots = roots(&components, &component, &channels);
        let mut inward = channels.clone();
        inward.sort_by_key(|channel| (channel.to, *channel));
        let mut topology = Self {
            fingerprint: fingerprint(&names, &channels),
            inward,
            names,
            channels,
            component,
            roots,
            back_edges: BTreeSet::new(),
        };
        topology.back_edges = topology.search(topology.roots.iter().copied());
        Ok(topology)
    }

    /// All processes, in order.
    pub fn processes(&self) -> impl ExactSizeIterator<Item = ProcessId> + use<> {
        let count = u32::try_from(self.names.len()).expect("more processes than a u32 counts");
        (0..count).map(ProcessId::new)
    }

    /// All channels, in order.
    pub fn channels(&self) -> &[ChannelId] {
        &self.channels
    }

    /// Whether this channel exists.
    pub fn contains(&self, channel: ChannelId) -> bool {
        self.channels.binary_search(&channel).is_ok()
    }

    /// The channels that lead to a process, in order.
    pub fn inputs(&self, process: ProcessId) -> Vec<ChannelId> {
        let begin = self.inward.partition_point(|channel| channel.to < process);
        let rest = self.inward[begin..].iter();
        rest.take_while(|channel| channel.to == process)
            .copied()
            .collect()
    }

    /// The channels that lead from a process, in order.
    pub fn outputs(&self, process: ProcessId) -> Vec<ChannelId> {
        let begin = self
            .channels
            .partition_point(|channel| channel.from < process);
        let rest = self.channels[begin..].iter();
        rest.take_while(|channel| channel.from == process)
            .copied()
            .collect()
    }

    /// The name of a process.
    ///
    /// # Panics
    /// If the process is not of this topology.
    pub fn name(&self, process: ProcessId) -> &str {
        &self.names[process.index()]
    }

    /// The process with this name.
    pub fn process(&self, name: &str) -> Option<ProcessId> {
        self.processes().find(|&process| self.name(process) == name)
    }

    /// A channel with the names of its ends: `alice→bob`.
    pub fn channel_name(&self, channel: ChannelId) -> String {
        channel.named(self.name(channel.from), self.name(channel.to))
    }

    /// The channel with this name, as [`channel_name`](Self::channel_name) writes it; `->` is
    /// taken for the arrow.
    pub fn channel(&self, name: &str) -> Option<ChannelId> {
        let name = name.replace("->", "→");
        let channels = self.channels.iter().copied();
        channels
            .into_iter()
            .find(|&channel| self.channel_name(channel) == name)
    }

    /// Whether what is sent on this channel can come back to its sender by going round: both ends
    /// lie in one strongly connected component. An input and an output of one process of which
    /// this is true lie on a common cycle, and no others do.
    pub fn is_on_cycle(&self, channel: ChannelId) -> bool {
        self.component[channel.from.index()] == self.component[channel.to.index()]
    }

    /// The processes that no marker reaches when these ones initiate.
    pub fn unreached(&self, initiators: &BTreeSet<ProcessId>) -> Vec<ProcessId> {
        let graph = graph(self.names.len(), &self.channels);
        let mut reached = BTreeSet::new();
        for initiator in initiators {
            let mut walk = Bfs::new(&graph, NodeIndex::new(initiator.index()));
            while let Some(node) = walk.next(&graph) {
                reached.insert(node.index());
            }
        }
        let all = self.processes();
        all.filter(|process| !reached.contains(&process.index()))
            .collect()
    }

    /// The first process of each root component: together they reach every process, and no
    /// smaller set does. Where back edges are named, the processes that have no other inputs.
    pub fn default_initiators(&self) -> &[ProcessId] {
        &self.roots
    }

    /// Tells topologies apart in handshakes and in what is stored.
    pub const fn fingerprint(&self) -> u32 {
        self.fingerprint
    }
}

fn fingerprint(names: &[String], channels: &[ChannelId]) -> u32 {
    let mut text = String::new();
    for name in names {
        let _ = writeln!(text, "{name}");
    }
    for channel in channels {
        let _ = writeln!(text, "{channel}");
    }
    crc32c::crc32c(text.as_bytes())
}

fn graph(processes: usize, channels: &[ChannelId]) -> DiGraph<(), ()> {
    let mut graph = DiGraph::with_capacity(processes, channels.len());
    for _ in 0..processes {
        graph.add_node(());
    }
    for channel in channels {
        let end = |process: ProcessId| NodeIndex::new(process.index());
        graph.add_edge(end(channel.from), end(channel.to), ());
    }
    graph
}

/// The smallest process of every component that no channel enters from outside.
fn roots(
    components: &[Vec<NodeIndex>],
    component: &[u32],
    channels: &[ChannelId],
) -> Vec<ProcessId> {
    let mut smallest: BTreeMap<u32, usize> = BTreeMap::new();
    for (number, members) in (0u32..).zip(components) {
        let first = members.iter().map(|node| node.index()).min();
        smallest.insert(number, first.expect("a component has a member"));
    }
    for channel in channels {
        let (from, to) = (
            component[channel.from.index()],
            component[channel.to.index()],
        );
        if from != to {
            smallest.remove(&to);
        }
    }
    let mut roots: Vec<_> = smallest
        .into_values()
        .map(|index| ProcessId::new(u32::try_from(index).expect("a place in the topology")))
        .collect();
    roots.sort_unstable();
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(processes: u32, channels: &[&str]) -> Result<Topology, TopologyError> {
        let names = (0..processes)
            .map(|index| ProcessId::new(index).to_string())
            .collect();
        Topology::new(
            names,
            channels.iter().map(|text| text.parse().expect("a channel")),
        )
    }

    #[test]
    fn one_process_of_each_root_component_reaches_everyone() {
        let graph = topology(5, &["p1→p2", "p2→p1", "p2→p3", "p4→p3", "p3→p5"]).unwrap();
        let initiators = graph.default_initiators();
        assert_eq!(initiators, [ProcessId::new(0), ProcessId::new(3)]);
        assert!(
            graph
                .unreached(&initiators.iter().copied().collect())
                .is_empty()
        );
        let alone = BTreeSet::from([ProcessId::new(2)]);
        let unreached: Vec<_> = graph
            .unreached(&alone)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(unreached, ["p1", "p2", "p4"]);
    }

    #[test]
    fn a_channel_is_on_a_cycle_within_a_component() {
        let graph = topology(3, &["p1→p2", "p2→p1", "p2→p3"]).unwrap();
        let channel = |text: &str| text.parse().unwrap();
        assert!(graph.is_on_cycle(channel("p1→p2")) && graph.is_on_cycle(channel("p2→p1")));
        assert!(!graph.is_on_cycle(channel("p2→p3")));
    }

    #[test]
    fn impossible_graphs_are_refused_by_name() {
        let refusal = |channels: &[&str]| topology(2, channels).unwrap_err().to_string();
        assert!(refusal(&["p1→p3"]).contains("p1→p3"));
        assert!(refusal(&["p1→p2", "p1→p2"]).contains("twice"));
        assert!(refusal(&["p1→p1"]).contains("itself"));
        assert!(topology(2, &["p1→p2", "p1→p2#2"]).is_ok());
    }

    #[test]
    fn another_graph_has_another_fingerprint() {
        let one = topology(3, &["p1→p2"]).unwrap().fingerprint();
        let other = topology(3, &["p1→p3"]).unwrap().fingerprint();
        assert_ne!(one, other);
    }
}
