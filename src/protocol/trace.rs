//! What a process says of itself where its job is traced: its events, in their order.
//!
//! An *event* is what the paper calls one: something is given to the application, and with all
//! that it sends meanwhile this is one step, which nothing can come between. Recording is an event
//! too, and so are the start of a generation and its end. What is given to the application is
//! written down completely, so that doing it again leads to the same states and messages.
//!
//! The `Tracer` keeps the process's vector clock. It ticks with every event; messages carry the
//! clock of the event that sent them. Without a tracer nothing of this exists.

use std::sync::Arc;

use bytes::Bytes;

use super::clock::Clock;
use super::cut::Part;
use super::ids::{ChannelId, Generation, MessageNumber, ProcessId, SnapshotId};
use super::link::Outbox;
use super::mode::Mode;

/// Something that a process did.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// The process.
    pub process: ProcessId,
    /// The generation it did it in.
    pub generation: Generation,
    /// Its vector clock, this event included. Its own counter goes up by one from event to event.
    pub clock: Arc<Clock>,
    /// What it did.
    pub what: What,
    /// What it sent meanwhile: by channel, and on each channel in the order it was sent.
    pub sends: Vec<Sent>,
}

/// What a process can do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// It began to run, from its part of this snapshot; `s0` is the initial state.
    Start {
        /// The snapshot.
        restored: SnapshotId,
    },
    /// The application was asked for new work.
    Tick,
    /// The application was given a word from outside; it may have refused it.
    Command(String),
    /// The application handled a message.
    Handle {
        /// The channel it came on.
        channel: ChannelId,
        /// Its number.
        number: MessageNumber,
        /// The message.
        message: Bytes,
    },
    /// The process took its local state.
    Record {
        /// The snapshot.
        snapshot: SnapshotId,
        /// How it is taken.
        mode: Mode,
        /// The checksum (CRC-32C) of the state.
        state: u32,
    },
    /// The process was told to stop, or to go back to a snapshot.
    End {
        /// The checksum (CRC-32C) of its last state.
        state: u32,
    },
}

impl What {
    /// Whether it is something that was given to the application.
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::Tick | Self::Command(_) | Self::Handle { .. })
    }

    /// Whether it is the recording of this snapshot.
    pub fn records(&self, id: SnapshotId) -> bool {
        matches!(self, Self::Record { snapshot, .. } if *snapshot == id)
    }
}

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    /// The channel.
    pub channel: ChannelId,
    /// Its number.
    pub number: MessageNumber,
    /// Its checksum (CRC-32C).
    pub checksum: u32,
}

/// What an outbox notes while its process is traced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    /// The clock of the event that sends.
    pub(super) clock: Arc<Clock>,
    /// What it has sent.
    pub(super) sent: Vec<Sent>,
}

/// Makes the events of one process.
#[derive(Clone, Debug)]
pub(super) struct Tracer {
    process: ProcessId,
    generation: Generation,
    restored: SnapshotId,
    clock: Clock,
    /// Whether the end of the generation has been said.
    ended: bool,
}

impl Tracer {
    pub(super) fn new(process: ProcessId, processes: usize) -> Self {
        Self {
            process,
            generation: Generation::default(),
            restored: SnapshotId::default(),
            clock: Clock::new(processes),
            ended: false,
        }
    }

    /// A generation is about to start, from a part whose counters go on. In a cut that is not
    /// consistent a process may know of what another has yet to do, perhaps otherwise: there only
    /// its own goes on.
    pub(super) fn resume(&mut self, generation: Generation, part: &Part) {
        self.generation = generation;
        self.restored = part.snapshot;
        self.ended = false;
        let known = match &part.clock {
            Some(clock) if part.mode.is_consistent() => Clock::clone(clock),
            Some(clock) => clock.alone(self.process),
            None => Clock::new(self.clock.counts().len()),
        };
        self.clock.resume(&known);
    }

    /// The next event begins; with a message it learns what the message's sender knew. What is
    /// sent from here on carries its clock.
    pub(super) fn begin(&mut self, seen: Option<&Arc<Clock>>, outboxes: &mut [Outbox]) {
        if let Some(seen) = seen {
            self.clock.learn(seen);
        }
        self.clock.tick(self.process);
        let clock = Arc::new(self.clock.clone());
        for outbox in outboxes {
            outbox.stamp(&clock);
        }
    }

    /// The event is over.
    pub(super) fn end(&self, what: What, outboxes: &mut [Outbox]) -> Box<Event> {
        let sends = outboxes.iter_mut().flat_map(Outbox::take_sent).collect();
        Box::new(Event {
            process: self.process,
            generation: self.generation,
            clock: self.clock(),
            what,
            sends,
        })
    }

    /// The process has begun to run.
    pub(super) fn start(&mut self, outboxes: &mut [Outbox]) -> Box<Event> {
        self.begin(None, outboxes);
        let restored = self.restored;
        self.end(What::Start { restored }, outboxes)
    }

    /// Whether this is the first call since the generation began.
    pub(super) fn ends_now(&mut self) -> bool {
        !std::mem::replace(&mut self.ended, true)
    }

    pub(super) fn clock(&self) -> Arc<Clock> {
        Arc::new(self.clock.clone())
    }
}

/// The checksum that events have of states and messages.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}
