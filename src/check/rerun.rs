//! A whole job run again from its events: applications alone, and channels that are plain queues.
//!
//! Nothing of the protocol takes part: no markers, no recordings. So what a snapshot recorded is
//! held against what the applications and the order of their events make of it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;

use super::judge::process_name;
use crate::protocol::alone::{Alone, Message, messages};
use crate::protocol::application::{Application, Refusal, Setup};
use crate::protocol::cut::Restored;
use crate::protocol::ids::{ChannelId, MessageNumber, ProcessId};
use crate::protocol::link::Limits;
use crate::protocol::topology::Topology;
use crate::protocol::trace::{Event, Sent, What, checksum};

/// Where a generation began.
#[derive(Clone, Debug)]
pub struct Origin {
    /// What each process was started with, in order.
    pub setups: Vec<Setup>,
    /// The job's bounds: an application can tell whether a message is too long.
    pub limits: Limits,
    /// The parts of the snapshot that it was started from, in order; none for the initial state.
    pub parts: Vec<Restored>,
}

impl Origin {
    /// The topology.
    pub fn topology(&self) -> &Topology {
        &self.setups[0].topology
    }

    /// The application of a process, where the generation began.
    ///
    /// # Errors
    /// If it refuses its settings or its part.
    pub fn application<A: Application>(&self, process: ProcessId) -> Result<Alone<A>, RerunError> {
        let setup = &self.setups[process.index()];
        let alone = match self.parts.get(process.index()) {
            None => Alone::start(setup, &self.limits),
            Some(part) => Alone::restore(setup, &self.limits, part),
        };
        alone.map_err(|refusal| RerunError::Refused(process, refusal))
    }
}

/// Why a job cannot be run again at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RerunError {
    /// The application does not start.
    #[error("the application of {0} does not start: {1}")]
    Refused(ProcessId, Refusal),
}

/// Where doing it again came out differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The process.
    pub process: ProcessId,
    /// Which event of it in this generation, from 1: the line of its file.
    pub event: usize,
    /// What the trace says.
    pub expected: String,
    /// What came out.
    pub got: String,
}

impl Difference {
    /// The difference as a sentence.
    pub fn text(&self, topology: &Topology) -> String {
        let process = process_name(topology, self.process);
        let Self {
            event,
            expected,
            got,
            ..
        } = self;
        format!("{process}, event {event}: expected {expected}, got {got}")
    }
}

/// A job that is run again.
#[derive(Debug)]
pub struct Rerun<A> {
    topology: Arc<Topology>,
    processes: Vec<Alone<A>>,
    channels: BTreeMap<ChannelId, VecDeque<(MessageNumber, Bytes)>>,
    /// How many events each process has done.
    done: Vec<usize>,
}

impl<A: Application> Rerun<A> {
    /// At the beginning of a generation.
    ///
    /// # Errors
    /// If an application does not start.
    pub fn new(origin: &Origin) -> Result<Self, RerunError> {
        let topology = origin.topology();
        let processes = topology.processes();
        let processes: Result<Vec<_>, _> = processes.map(|id| origin.application(id)).collect();
        let channels = topology.channels().iter();
        let mut channels: BTreeMap<_, _> = channels.map(|&c| (c, VecDeque::new())).collect();
        for message in in_channels(&origin.parts) {
            let queue = channels.entry(message.channel).or_default();
            queue.push_back((message.number, message.bytes));
        }
        Ok(Self {
            topology: origin.setups[0].topology.clone(),
            processes: processes?,
            channels,
            done: vec![0; topology.processes().len()],
        })
    }

    /// Does the event again.
    ///
    /// # Errors
    /// If it comes out differently from what the event says.
    pub fn apply(&mut self, event: &Event) -> Result<(), Difference> {
        let index = event.process.index();
        self.done[index] += 1;
        let differs = |expected: String, got: String| Difference {
            process: event.process,
            event: self.done[index],
            expected,
            got,
        };
        if let What::Handle {
            channel,
            number,
            message,
        } = &event.what
        {
            let name = self.topology.channel_name(*channel);
            let logged = format!("{number} on {name} {}", shown(message));
            let queue = self.channels.get_mut(channel);
            match queue.and_then(VecDeque::pop_front) {
                Some((next, bytes)) if next == *number && bytes == *message => {}
                Some((next, bytes)) => {
                    let sent = format!("{next} on {name} {}", shown(&bytes));
                    return Err(differs(logged, sent));
                }
                None => return Err(differs(logged, format!("nothing on {name}"))),
            }
        }
        let sent = self.processes[index].give(&event.what);
        check_sends(&self.topology, &event.sends, &sent)
            .map_err(|(logged, got)| differs(logged, got))?;
        for Message {
            channel,
            number,
            bytes,
        } in sent
        {
            let queue = self.channels.entry(channel).or_default();
            queue.push_back((number, bytes));
        }
        if let What::Record { state, .. } | What::End { state } = event.what {
            check_state(state, &self.processes[index].state())
                .map_err(|(logged, got)| differs(logged, got))?;
        }
        Ok(())
    }

    /// The state of a process now.
    pub fn state(&self, process: ProcessId) -> Vec<u8> {
        self.processes[process.index()].state()
    }

    /// What is in a channel now.
    pub fn in_channel(&self, channel: ChannelId) -> impl ExactSizeIterator<Item = &Bytes> {
        self.channels[&channel].iter().map(|(_, bytes)| bytes)
    }
}

/// What the parts of a snapshot say is in the channels: of each, the receiver's share comes first,
/// then the sender's, which was overtaken and so was sent later.
pub(super) fn in_channels(parts: &[Restored]) -> impl Iterator<Item = Message> + '_ {
    let received = parts.iter().flat_map(|restored| &restored.part.inputs);
    let waiting = parts.iter().flat_map(|restored| &restored.part.outputs);
    let received = received.map(|input| (input.channel, &input.share));
    let waiting = waiting.map(|output| (output.channel, &output.share));
    received.chain(waiting).flat_map(|(channel, share)| {
        let batches = share.iter();
        batches.flat_map(move |batch| messages(channel, batch))
    })
}

/// Holds what was sent against what was logged; what was expected and what came, if they differ.
pub(super) fn check_sends(
    topology: &Topology,
    logged: &[Sent],
    sent: &[Message],
) -> Result<(), (String, String)> {
    let got: Vec<_> = sent
        .iter()
        .map(|message| Sent {
            channel: message.channel,
            number: message.number,
            checksum: checksum(&message.bytes),
        })
        .collect();
    if got == logged {
        return Ok(());
    }
    let place = (0..got.len().max(logged.len())).find(|&at| got.get(at) != logged.get(at));
    let at = place.unwrap_or_default();
    let text = |sent: Option<&Sent>| match sent {
        None => "nothing more sent".to_owned(),
        Some(sent) => {
            let channel = topology.channel_name(sent.channel);
            let (number, checksum) = (sent.number, sent.checksum);
            format!("{number} sent on {channel} with checksum {checksum:08x}")
        }
    };
    Err((text(logged.get(at)), text(got.get(at))))
}

/// The same of a state.
pub(super) fn check_state(logged: u32, state: &[u8]) -> Result<(), (String, String)> {
    let got = checksum(state);
    if got == logged {
        return Ok(());
    }
    let logged = format!("a state with checksum {logged:08x}");
    Err((logged, format!("checksum {got:08x}: {}", shown(state))))
}

/// Bytes as people read them, up to a bound: as text if they are such.
pub(super) fn shown(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 80;
    let (head, more) = match bytes.len() > SHOWN_MAX {
        true => (&bytes[..SHOWN_MAX], "…"),
        false => (bytes, ""),
    };
    match std::str::from_utf8(head) {
        Ok(text) if !text.is_empty() && !text.chars().any(char::is_control) => {
            format!("'{text}{more}'")
        }
        _ => {
            let mut text = "0x".to_owned();
            for byte in head {
                let _ = write!(text, "{byte:02x}");
            }
            text + more
        }
    }
}
