//! A run that passes through a recorded state: S₀ → S* → Sₙ.
//!
//! The state a snapshot recorded need never have been there. But every event before the cut can be
//! done ahead of every event behind it, keeping each process's own order, and the run that comes
//! out is a legal one: it begins and ends as the real run did, and passes through the recorded
//! state (Chandy and Lamport 1985, section 4). Here that run is made and done, not assumed.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::rerun::{Difference, Origin, Rerun, RerunError, in_channels};
use crate::protocol::application::Application;
use crate::protocol::cut::Restored;
use crate::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use crate::protocol::topology::Topology;
use crate::protocol::trace::{Event, What};

/// What a snapshot recorded: the global state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The local states, in the order of the processes.
    pub states: Vec<Bytes>,
    /// What is in each channel.
    pub channels: BTreeMap<ChannelId, Vec<Bytes>>,
}

impl Recorded {
    /// The global state in the parts of a snapshot, which are in the order of the processes.
    pub fn of(topology: &Topology, parts: &[Restored]) -> Self {
        let channels = topology.channels().iter();
        let mut channels: BTreeMap<_, _> = channels.map(|&c| (c, Vec::new())).collect();
        for message in in_channels(parts) {
            channels
                .entry(message.channel)
                .or_default()
                .push(message.bytes);
        }
        Self {
            states: parts.iter().map(|part| part.state.clone()).collect(),
            channels,
        }
    }
}

/// Why there is no witness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWitness {
    /// A process's recording is not among the events.
    #[error("the trace does not reach the recording of {snapshot} at {process}")]
    NoRecord {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The process.
        process: String,
    },
    /// The events cannot be done at all.
    #[error(transparent)]
    Rerun(#[from] RerunError),
    /// Done again in the order they were logged, they come out differently.
    #[error("done again, the logged run comes out differently: {0}")]
    Differs(String),
}

/// An event of the application in a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The event.
    pub event: Event,
    /// Whether it is before the cut.
    pub is_before: bool,
    /// Whether it has another place in the other run.
    pub is_moved: bool,
}

/// A run that passes through a recorded state, beside the one that was logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// The run as it was logged.
    pub logged: Vec<Step>,
    /// The same events, those before the cut first.
    pub moved: Vec<Step>,
    /// How many are before the cut.
    pub before: usize,
    /// Exchanges of two neighbours that make the one run of the other.
    pub swaps: u64,
    /// After how many events of the logged run the recorded state was there, if it ever was.
    pub occurred: Option<usize>,
    /// Where the moved run is none, if it is none: the cut is then not consistent.
    pub broken: Option<Difference>,
    /// What is not as it was recorded, when the moved run comes to the cut.
    pub unlike: Vec<String>,
    /// Whether both runs end in the same global state.
    pub ends_alike: bool,
}

impl Witness {
    /// Whether the moved run is one, passes through the recorded state and ends as the real one.
    pub fn holds(&self) -> bool {
        self.broken.is_none() && self.unlike.is_empty() && self.ends_alike
    }
}

/// Makes the witness of a snapshot from the events of its generation, in an order that respects
/// what was before what.
///
/// # Errors
/// If an event is missing that it takes, or the logged run cannot be done again.
pub fn witness<A: Application>(
    origin: &Origin,
    events: &[Event],
    snapshot: SnapshotId,
    recorded: &Recorded,
) -> Result<Witness, NoWitness> {
    let topology = origin.topology();
    let parted = part(topology, events, snapshot)?;
    let mut logged = Watched::<A>::new(origin, recorded)?;
    let mut occurred = logged.is_there().then_some(0);
    let mut order = Vec::new();
    for (event, &is_before) in events.iter().zip(&parted) {
        let is_step = logged.apply(event);
        let is_step = is_step.map_err(|error| NoWitness::Differs(error.text(topology)))?;
        if is_step {
            order.push((event, is_before));
            if occurred.is_none() && logged.is_there() {
                occurred = Some(order.len());
            }
        }
    }
    let before = order.iter().filter(|(_, is_before)| *is_before).count();
    let mut witness = Witness {
        snapshot,
        moved: Vec::new(),
        before,
        swaps: swaps(&order),
        occurred,
        broken: None,
        unlike: Vec::new(),
        ends_alike: false,
        logged: steps(&order, before),
    };
    let (first, second): (Vec<_>, Vec<_>) = witness
        .logged
        .iter()
        .cloned()
        .partition(|step| step.is_before);
    witness.moved = [first, second].concat();

    let mut moved = Watched::<A>::new(origin, recorded)?;
    let all = events.iter().zip(&parted);
    let (ahead, behind): (Vec<_>, Vec<_>) = all.partition(|(_, is_before)| **is_before);
    let mut apply = |moved: &mut Watched<'_, A>, (event, _): &(&Event, &bool)| {
        if let (None, Err(difference)) = (&witness.broken, moved.apply(event)) {
            witness.broken = Some(difference);
        }
    };
    for each in &ahead {
        apply(&mut moved, each);
    }
    let unlike = moved.unlike(topology);
    for each in &behind {
        apply(&mut moved, each);
    }
    witness.unlike = unlike;
    witness.ends_alike = moved.is_like(&logged, topology);
    Ok(witness)
}

/// For every event, whether it is before the cut. The recording itself is behind it.
fn part(
    topology: &Topology,
    events: &[Event],
    snapshot: SnapshotId,
) -> Result<Vec<bool>, NoWitness> {
    let mut has_recorded = BTreeSet::new();
    let mut before = Vec::with_capacity(events.len());
    for event in events {
        if event.what.records(snapshot) {
            has_recorded.insert(event.process);
        }
        before.push(!has_recorded.contains(&event.process));
    }
    match topology
        .processes()
        .find(|process| !has_recorded.contains(process))
    {
        None => Ok(before),
        Some(process) => Err(NoWitness::NoRecord {
            snapshot,
            process: topology.name(process).to_owned(),
        }),
    }
}

/// Pairs of an event behind the cut and a later one before it: as many adjacent swaps it takes.
fn swaps(order: &[(&Event, bool)]) -> u64 {
    let (mut behind, mut swaps) = (0, 0);
    for (_, is_before) in order {
        match is_before {
            true => swaps += behind,
            false => behind += 1,
        }
    }
    swaps
}

fn steps(order: &[(&Event, bool)], before: usize) -> Vec<Step> {
    let (mut ahead, mut behind) = (0, before);
    let steps = order.iter().enumerate().map(|(place, (event, is_before))| {
        let next = if *is_before { &mut ahead } else { &mut behind };
        let is_moved = *next != place;
        *next += 1;
        Step {
            event: (*event).clone(),
            is_before: *is_before,
            is_moved,
        }
    });
    steps.collect()
}

/// A run, and what of it is not as it was recorded.
struct Watched<'a, A> {
    rerun: Rerun<A>,
    recorded: &'a Recorded,
    states: Vec<Vec<u8>>,
    unlike_states: BTreeSet<ProcessId>,
    unlike_channels: BTreeSet<ChannelId>,
}

impl<'a, A: Application> Watched<'a, A> {
    fn new(origin: &Origin, recorded: &'a Recorded) -> Result<Self, RerunError> {
        let rerun = Rerun::new(origin)?;
        let topology = origin.topology();
        let states = topology.processes().map(|process| rerun.state(process));
        let mut watched = Self {
            states: states.collect(),
            rerun,
            recorded,
            unlike_states: BTreeSet::new(),
            unlike_channels: BTreeSet::new(),
        };
        for process in topology.processes() {
            watched.look_at(process);
        }
        for &channel in topology.channels() {
            watched.look_into(channel);
        }
        Ok(watched)
    }

    /// Does the event, and answers whether it was one of the application: an input that changes
    /// neither the state nor a channel is none.
    fn apply(&mut self, event: &Event) -> Result<bool, Difference> {
        self.rerun.apply(event)?;
        if !event.what.is_input() {
            return Ok(false);
        }
        let process = event.process;
        let state = self.rerun.state(process);
        let changes = state != self.states[process.index()];
        self.states[process.index()] = state;
        self.look_at(process);
        let handled = match event.what {
            What::Handle { channel, .. } => Some(channel),
            _ => None,
        };
        let touched = event.sends.iter().map(|sent| sent.channel).chain(handled);
        let touched: BTreeSet<_> = touched.collect();
        for &channel in &touched {
            self.look_into(channel);
        }
        Ok(changes || !touched.is_empty())
    }

    fn look_at(&mut self, process: ProcessId) {
        let index = process.index();
        let alike = self
            .recorded
            .states
            .get(index)
            .is_some_and(|recorded| *recorded == self.states[index]);
        match alike {
            true => self.unlike_states.remove(&process),
            false => self.unlike_states.insert(process),
        };
    }

    fn look_into(&mut self, channel: ChannelId) {
        let none = Vec::new();
        let recorded = self.recorded.channels.get(&channel).unwrap_or(&none);
        let content = self.rerun.in_channel(channel);
        let alike = content.len() == recorded.len() && content.eq(recorded);
        match alike {
            true => self.unlike_channels.remove(&channel),
            false => self.unlike_channels.insert(channel),
        };
    }

    fn is_there(&self) -> bool {
        self.unlike_states.is_empty() && self.unlike_channels.is_empty()
    }

    fn unlike(&self, topology: &Topology) -> Vec<String> {
        let states = self.unlike_states.iter();
        let states = states.map(|&process| format!("the state of {}", topology.name(process)));
        let channels = self.unlike_channels.iter();
        let channels = channels.map(|&id| format!("what is in {}", topology.channel_name(id)));
        states.chain(channels).collect()
    }

    fn is_like(&self, other: &Self, topology: &Topology) -> bool {
        let in_channel = |channel| self.rerun.in_channel(channel);
        let mut channels = topology.channels().iter();
        self.states == other.states
            && channels.all(|&channel| in_channel(channel).eq(other.rerun.in_channel(channel)))
    }
}
