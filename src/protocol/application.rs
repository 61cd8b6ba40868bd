//! The program that runs in a process: what a user of the crate writes.
//!
//! An application is a deterministic state machine. It is given messages, ticks and commands, and
//! answers by sending; it never waits, reads no clock and does no IO. Everything it needs to go on
//! after a restore, its randomness included, is in the state it captures.

pub mod trial;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::ids::{ChannelId, ProcessId};
use super::link::{Outbox, Outboxes};
use super::topology::Topology;

/// Amounts by name, such as `money`: what an application says is neither made nor destroyed.
pub type Quantities = BTreeMap<String, i64>;

/// The local state, taken but not yet turned into bytes. Called once, on another thread.
pub type Capture = Box<dyn FnOnce() -> Vec<u8> + Send>;

/// Why an application does not do what it was asked; printed to the user as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// What an application is started with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The whole topology.
    pub topology: Arc<Topology>,
    /// The process it runs in.
    pub process: ProcessId,
    /// The application's name, as in the job file.
    pub application: String,
    /// The application's settings, as in the job file.
    pub settings: serde_json::Value,
    /// The job's seed, the same for every process.
    pub seed: u64,
    /// The longest message that the job lets pass.
    pub message_bytes_max: u64,
}

impl Setup {
    /// Reads the settings into a type of the application's own.
    ///
    /// # Errors
    /// If they do not have its form.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_value(self.settings.clone())
            .map_err(|error| Refusal(format!("settings of {}: {error}", self.application)))
    }
}

/// When an application wants its next tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pace {
    /// As soon as there is room in the outboxes.
    Now,
    /// So many milliseconds from now.
    After(u32),
    /// Not before a message or a command has been handled.
    Idle,
}

/// A message that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The process has no such output.
    #[error("{0} is no output of this process")]
    NoSuchOutput(ChannelId),
    /// No output of the process leads there.
    #[error("no output of this process leads to {0}")]
    NoNeighbour(ProcessId),
    /// The message is over the job's bound.
    #[error("a message of {bytes} bytes is over message_bytes_max = {bytes_max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
}

/// Where an application sends while it handles something.
pub struct Outputs<'a> {
    outboxes: &'a mut Outboxes,
}

impl<'a> Outputs<'a> {
    pub(super) fn new(outboxes: &'a mut Outboxes) -> Self {
        Self { outboxes }
    }

    /// The outputs of the process, in order.
    pub fn channels(&self) -> impl ExactSizeIterator<Item = ChannelId> + '_ {
        self.outboxes.iter().map(Outbox::channel)
    }

    /// Puts a message at the back of an outbox. Never waits.
    ///
    /// # Errors
    /// If there is no such output or the message is over the job's `message_bytes_max`; nothing
    /// is sent then.
    pub fn send(&mut self, channel: ChannelId, message: &[u8]) -> Result<(), SendError> {
        let place = self.outboxes.place(channel);
        let place = place.ok_or(SendError::NoSuchOutput(channel))?;
        self.outboxes.push(place, message)
    }

    /// The same to a neighbour, over the first channel that leads to it.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_to(&mut self, to: ProcessId, message: &[u8]) -> Result<(), SendError> {
        let before = |outbox: &Outbox| outbox.channel().to < to;
        let place = self.outboxes.partition_point(before);
        let outbox = self.outboxes.get(place);
        if outbox.is_none_or(|outbox| outbox.channel().to != to) {
            return Err(SendError::NoNeighbour(to));
        }
        self.outboxes.push(place, message)
    }
}

/// The one trait a user writes.
///
/// Handlers run one at a time, on one thread. The same inputs in the same order must lead to the
/// same state and the same messages.
pub trait Application: Sized + Send + 'static {
    /// Tells stored states of different forms apart: raise it when the form changes. States of
    /// other versions go to [`migrate`](Self::migrate).
    fn state_version(setup: &Setup) -> u32 {
        let _ = setup;
        1
    }

    /// The initial state, which is also the process's part of `s0`.
    ///
    /// Called at every start of a program, whether the job begins or goes on from a snapshot, so
    /// that settings that make no sense end it at once; and again at each restore of `s0`. So it
    /// must give the same state each time, and must not count on being the first. It is to take
    /// less time than a node may be silent.
    ///
    /// # Errors
    /// If the settings make no sense for this application.
    fn start(setup: &Setup) -> Result<Self, Refusal>;

    /// The state that [`capture`](Self::capture) took. What was before, `start`ed or restored, is
    /// dropped. It may take its time, up to ten minutes: a node calls this off its handling thread,
    /// and is heard of meanwhile.
    ///
    /// # Errors
    /// If the bytes are no state of this application.
    fn restore(setup: &Setup, state: &[u8]) -> Result<Self, Refusal>;

    /// A state that an older form of this application captured, of another
    /// [`state_version`](Self::state_version).
    ///
    /// # Errors
    /// If that form cannot be read, which is the answer unless this is written.
    fn migrate(setup: &Setup, version: u32, state: &[u8]) -> Result<Self, Refusal> {
        let _ = state;
        Err(Refusal(format!(
            "the state is of version {version} of '{}', this program reads version {}",
            setup.application,
            Self::state_version(setup)
        )))
    }

    /// Handles one message.
    fn handle(&mut self, from: ChannelId, message: &[u8], outputs: &mut Outputs<'_>);

    /// Starts new work. Called only while there is room in the outboxes; what is not answered
    /// with [`Pace::Idle`] is called again.
    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        let _ = outputs;
        Pace::Idle
    }

    /// Handles a word from outside, such as a scripted send.
    ///
    /// # Errors
    /// If the application does not know the command; it has then changed nothing.
    fn command(&mut self, command: &str, outputs: &mut Outputs<'_>) -> Result<(), Refusal> {
        let _ = outputs;
        Err(Refusal(format!(
            "this application knows no command '{command}'"
        )))
    }

    /// Takes the local state. Must be cheap, for it runs between two messages: copy what is
    /// mutable, share the rest, and leave the encoding to the returned function.
    fn capture(&self) -> Capture;

    /// What a state holds of each conserved quantity.
    fn in_state(setup: &Setup, state: &[u8]) -> Quantities {
        let _ = (setup, state);
        Quantities::new()
    }

    /// What a message carries of each conserved quantity.
    fn in_message(setup: &Setup, message: &[u8]) -> Quantities {
        let _ = (setup, message);
        Quantities::new()
    }
}
