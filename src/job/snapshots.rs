//! How a job's snapshots are taken: read from `[snapshots]`, and held against its graph.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use toml::de::DeValue;

use super::check::Check;
use super::graph::Link;
use super::parts::Snapshots;
use super::read::{Places, read_link};
use super::refusal::list;
use super::table::Section;
use super::value::not;
use crate::protocol::Topology;
use crate::protocol::ids::ProcessId;
use crate::protocol::mode::{MODES, Mode};

pub(super) fn read(root: &mut Section<'_>, places: &mut Places) -> Snapshots {
    let mut section = root.table("snapshots");
    places.note_section("snapshots", &section);
    let mode = section.read("mode", mode);
    let mut duration = |key, field| places.note(field, section.duration(key));
    let alignment_timeout = duration("alignment_timeout", "snapshots.alignment_timeout");
    let interval = duration("interval", "snapshots.interval").unwrap_or_default();
    let pause = duration("pause", "snapshots.pause").unwrap_or_default();
    let timeout = duration("timeout", "snapshots.timeout").unwrap_or_default();
    let open_max = places.note("snapshots.open_max", section.number("open_max"));
    let mut initiators = Vec::new();
    for name in section.texts("initiators").unwrap_or_default() {
        places.initiators.push(name.line);
        initiators.push(name.value);
    }
    let mut back_edges = Vec::new();
    for text in section.texts("back_edges").unwrap_or_default() {
        let read = read_link(&section, &text).unwrap_or_default();
        places.back_edges.extend(read.iter().map(|_| text.line));
        back_edges.extend(read);
    }
    let failures = section.number("failures_tolerated");
    let mode = places.note("snapshots.mode", mode);
    section.finish();
    Snapshots {
        mode: mode.unwrap_or_default(),
        alignment_timeout,
        back_edges,
        interval,
        pause,
        timeout,
        open_max: open_max.unwrap_or_default(),
        failures_tolerated: failures.map_or(0, |failures| failures.value),
        initiators,
    }
}

/// A mode by its name.
pub(crate) fn mode(value: &DeValue<'_>) -> Result<Mode, (String, String)> {
    let word = value.as_str().unwrap_or_default();
    let modes = list(MODES.map(Mode::name));
    Mode::from_str(word).map_err(|_| not(value, &format!("a mode, one of {modes}")))
}

/// What is wrong with these initiators and the remedy, if a snapshot of this mode would wait for
/// no input of some process, and nothing triggers it there.
pub(crate) fn untriggered(
    topology: &Topology,
    mode: Mode,
    initiators: &BTreeSet<ProcessId>,
) -> Option<(String, String)> {
    let untriggered = topology.untriggered(initiators);
    if !mode.aligns() || untriggered.is_empty() {
        return None;
    }
    let names = list(untriggered.iter().map(|&process| topology.name(process)));
    let problem = format!("{mode} snapshots wait for no input of {names}");
    Some((problem, format!("let {names} initiate too")))
}

impl Check<'_> {
    /// The topology with the back edges that are named, or that are found from these initiators,
    /// or from the default ones if there are none.
    pub(super) fn back_edges(
        &self,
        topology: Topology,
        initiators: &BTreeSet<ProcessId>,
    ) -> Option<Topology> {
        let named = &self.parts.snapshots.back_edges;
        if named.is_empty() && initiators.is_empty() {
            return Some(topology);
        }
        if named.is_empty() {
            return Some(topology.with_back_edges_from(initiators));
        }
        let mut channels = BTreeSet::new();
        for (place, link) in named.iter().enumerate() {
            match topology.channel(&link.to_string()) {
                Some(channel) => drop(channels.insert(channel)),
                None => self.refuse_back_edge(place, link),
            }
        }
        if channels.len() < named.iter().collect::<BTreeSet<_>>().len() {
            return None;
        }
        let ordered = topology.with_back_edges(channels);
        let refuse = |error| {
            let line = self.places.back_edges.first().copied().flatten();
            let remedy = "name a channel of every cycle, or none: they are found then";
            self.refuse_at(line, format!("snapshots.back_edges: {error}"), remedy);
        };
        ordered.map_err(refuse).ok()
    }

    fn refuse_back_edge(&self, place: usize, link: &Link) {
        let line = self.places.back_edges.get(place).copied().flatten();
        let problem = format!("back edge {link} is no channel of the job");
        self.refuse_at(line, problem, "take it out, or add the channel");
    }

    /// An aligned snapshot must be triggered wherever no marker comes.
    pub(super) fn alignment(&self, topology: &Topology, initiators: &BTreeSet<ProcessId>) {
        let mode = self.parts.snapshots.mode;
        if let Some((problem, remedy)) = untriggered(topology, mode, initiators) {
            let line = self.places.initiators.first().copied().flatten();
            self.refuse_at(line, problem, remedy);
        }
    }

    fn refuse_at(&self, line: Option<u32>, problem: String, remedy: impl Into<String>) {
        let line = line.or_else(|| self.places.of("snapshots"));
        self.document.refuse(line, problem, remedy);
    }
}
