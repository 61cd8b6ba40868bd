//! Numbered messages as fast as they go, or one to and fro: for measuring. Receivers check the
//! numbers, so that a measurement that loses or doubles a message does not pass for one.

use serde::{Deserialize, Serialize};

use super::form;
use crate::protocol::application::{Application, Capture, Outputs, Pace, Refusal, Setup};
use crate::protocol::ids::ChannelId;

/// Messages sent in one tick: enough to make the tick itself cost nothing per message, and few
/// enough that arrivals wait microseconds behind it.
const BURST_MESSAGES: u32 = 512;

/// The same in bytes, for long messages: two batches. More would only fill the outboxes up.
const BURST_BYTES: u32 = 128 * 1024;

/// The number at the start of every message.
const NUMBER_BYTES: usize = 8;

/// Longer than any job's `message_bytes_max` can be.
const BYTES_MAX: u32 = 4 * 1024 * 1024;

/// A process that produces numbered messages, checks and counts those it gets, or both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Count {
    settings: Settings,
    role: Role,
    inputs: Vec<ChannelId>,
    outputs: Vec<ChannelId>,
    state: State,
}

/// What the job file may say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// The length of each message.
    bytes: u32,
    /// How many messages a process produces in all; 0: no end.
    messages_max: u64,
    /// Which processes produce.
    producers: Producers,
    /// One message goes to and fro instead.
    echo: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Producers {
    /// Those that have outputs and no inputs.
    Sources,
    /// All that have outputs, as in a mesh, where nobody is without inputs.
    All,
}

/// What a process does besides counting what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// Sends as fast as there is room.
    Produce,
    /// Sends one message, and the next when it is back.
    Serve,
    /// Sends every message back where it came from.
    Return,
    /// Nothing.
    Receive,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bytes: 32,
            messages_max: 0,
            producers: Producers::Sources,
            echo: false,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// The last number given on each output.
    sent: Vec<u64>,
    /// The last number that came on each input.
    received: Vec<u64>,
    /// All messages that came with the right number.
    counted: u64,
    /// Messages whose number was not the next, or that have none.
    faults: u64,
    /// Messages produced so far; those sent back are not among them.
    produced: u64,
    /// The output that is next.
    turn: u32,
    /// A message was refused, as none is that the job lets pass: nothing more is sent.
    refused: bool,
}

impl Count {
    /// How many messages came with the right number.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.state.counted
    }

    /// How many came with a wrong one, or none.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.state.faults
    }

    fn new(setup: &Setup) -> Result<Self, Refusal> {
        let settings: Settings = setup.settings()?;
        let bytes = settings.bytes;
        if !(NUMBER_BYTES as u32..=BYTES_MAX).contains(&bytes) {
            let refusal = format!("bytes of count must be from {NUMBER_BYTES} to {BYTES_MAX}");
            return Err(Refusal(refusal));
        }
        form::check_length(setup, bytes as usize)?;
        let inputs = setup.topology.inputs(setup.process);
        let outputs = setup.topology.outputs(setup.process);
        let produces = inputs.is_empty() || settings.producers == Producers::All;
        let role = match settings.echo {
            _ if outputs.is_empty() => Role::Receive,
            true if setup.process.index() == 0 => Role::Serve,
            true => Role::Return,
            false if produces => Role::Produce,
            false => Role::Receive,
        };
        Ok(Self {
            state: State {
                sent: vec![0; outputs.len()],
                received: vec![0; inputs.len()],
                ..State::default()
            },
            settings,
            role,
            inputs,
            outputs,
        })
    }

    /// What may still be produced.
    fn left(&self) -> u64 {
        match self.settings.messages_max {
            _ if self.state.refused => 0,
            0 => u64::MAX,
            most => most.saturating_sub(self.state.produced),
        }
    }

    /// Sends the next number on the output at this place, in a buffer of the right length.
    fn send(&mut self, place: usize, message: &mut [u8], outputs: &mut Outputs<'_>) -> bool {
        let number = self.state.sent[place] + 1;
        message[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
        let is_sent = outputs.send(self.outputs[place], message).is_ok();
        if is_sent {
            self.state.sent[place] = number;
        } else {
            self.state.refused = true;
        }
        is_sent
    }

    /// Sends up to so many messages, on the outputs in turn.
    fn produce(&mut self, count: u64, outputs: &mut Outputs<'_>) {
        let mut message = vec![0; self.settings.bytes as usize];
        for _ in 0..count {
            let place = self.state.turn as usize;
            if !self.send(place, &mut message, outputs) {
                return;
            }
            self.state.produced += 1;
            self.state.turn = match place + 1 == self.outputs.len() {
                true => 0,
                false => self.state.turn + 1,
            };
        }
    }

    /// Checks the number of a message; whether it is right.
    fn check(&mut self, from: ChannelId, message: &[u8]) -> bool {
        let number = message.first_chunk::<NUMBER_BYTES>();
        let number = number.map(|bytes| u64::from_le_bytes(*bytes));
        let state = &mut self.state;
        let (Ok(place), Some(number)) = (self.inputs.binary_search(&from), number) else {
            state.faults += 1;
            return false;
        };
        let is_next = Some(number) == state.received[place].checked_add(1);
        match is_next {
            true => state.counted += 1,
            false => state.faults += 1,
        }
        state.received[place] = number;
        is_next
    }
}

impl Application for Count {
    fn start(setup: &Setup) -> Result<Self, Refusal> {
        Self::new(setup)
    }

    fn restore(setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        let mut count = Self::new(setup)?;
        let state: State = form::restore(setup, state)?;
        let fits = state.sent.len() == count.outputs.len()
            && state.received.len() == count.inputs.len()
            && state.turn as usize <= count.outputs.len().saturating_sub(1);
        if !fits {
            return Err(Refusal(format!(
                "this state of count is of a process with other channels than {} has",
                setup.topology.name(setup.process)
            )));
        }
        count.state = state;
        Ok(count)
    }

    fn handle(&mut self, from: ChannelId, message: &[u8], outputs: &mut Outputs<'_>) {
        let is_next = self.check(from, message);
        match self.role {
            Role::Return if is_next => {
                let mut to = self.outputs.iter().map(|channel| channel.to);
                if let Some(place) = to.position(|to| to == from.from) {
                    self.send(place, &mut message.to_vec(), outputs);
                }
            }
            Role::Serve if is_next && self.left() > 0 => self.produce(1, outputs),
            _ => {}
        }
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        let left = self.left();
        match self.role {
            Role::Produce if left > 0 => {
                let burst = (BURST_BYTES / self.settings.bytes).clamp(1, BURST_MESSAGES);
                self.produce(left.min(u64::from(burst)), outputs);
                Pace::Now
            }
            Role::Serve if left > 0 && self.state.produced == 0 => {
                self.produce(1, outputs);
                Pace::Idle
            }
            _ => Pace::Idle,
        }
    }

    fn capture(&self) -> Capture {
        form::capture(&self.state)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::application::trial::{self, Trial};
    use crate::protocol::link::Limits;

    fn count(channels: &[&str], index: u32, settings: Value) -> (Setup, Count, Trial) {
        let setup = trial::setup("count", channels, index, settings);
        let count = Count::start(&setup).unwrap();
        let trial = Trial::new(&setup);
        (setup, count, trial)
    }

    /// Hands what one has sent to the other, as far as it is meant for it.
    fn carry(from: &mut Trial, to: &mut Count, outputs: &mut Trial) -> usize {
        let sent = from.sent();
        for (channel, message) in &sent {
            to.handle(*channel, message, &mut outputs.outputs());
        }
        sent.len()
    }

    #[test]
    fn a_source_produces_in_bursts_up_to_its_end() {
        let settings = json!({ "messages_max": 1000, "bytes": 40 });
        let (_, mut source, mut trial) = count(&["p1→p2", "p1→p2#2"], 0, settings.clone());
        let (_, mut sink, mut none) = count(&["p1→p2", "p1→p2#2"], 1, settings);
        assert_eq!(source.tick(&mut trial.outputs()), Pace::Now);
        assert_eq!(carry(&mut trial, &mut sink, &mut none), 512);
        assert_eq!(source.tick(&mut trial.outputs()), Pace::Now);
        let sent = trial.sent();
        assert!(sent.iter().all(|(_, message)| message.len() == 40));
        assert_eq!(sent.len(), 1000 - 512);
        assert_eq!(source.tick(&mut trial.outputs()), Pace::Idle);
        assert_eq!(source.state.sent, [500, 500]);
        assert_eq!((sink.counted(), sink.faults()), (512, 0));
        assert_eq!(sink.tick(&mut none.outputs()), Pace::Idle);
    }

    #[test]
    fn a_burst_of_long_messages_is_short() {
        let (_, mut source, mut trial) = count(&["p1→p2"], 0, json!({ "bytes": 60_000 }));
        source.tick(&mut trial.outputs());
        assert_eq!(trial.sent().len(), 2);
    }

    #[test]
    fn lost_doubled_and_malformed_messages_are_faults() {
        let (_, mut sink, mut trial) = count(&["p1→p2"], 1, json!({}));
        let mut faults = |message: &[u8]| {
            sink.handle("p1→p2".parse().unwrap(), message, &mut trial.outputs());
            (sink.counted(), sink.faults())
        };
        assert_eq!(faults(&1u64.to_le_bytes()), (1, 0));
        assert_eq!(faults(&3u64.to_le_bytes()), (1, 1));
        assert_eq!(faults(&3u64.to_le_bytes()), (1, 2));
        assert_eq!(faults(&4u64.to_le_bytes()), (2, 2));
        assert_eq!(faults(b"four"), (2, 3));
        assert_eq!(faults(&u64::MAX.to_le_bytes()), (2, 4));
        assert_eq!(faults(&0u64.to_le_bytes()), (2, 5));
    }

    #[test]
    fn an_echo_goes_to_and_fro_up_to_its_end() {
        let channels = ["p1→p2", "p2→p1"];
        let settings = json!({ "echo": true, "messages_max": 3 });
        let (_, mut first, mut there) = count(&channels, 0, settings.clone());
        let (_, mut second, mut back) = count(&channels, 1, settings);
        assert_eq!(second.tick(&mut back.outputs()), Pace::Idle);
        assert_eq!(first.tick(&mut there.outputs()), Pace::Idle);
        assert_eq!(first.tick(&mut there.outputs()), Pace::Idle);
        for _ in 0..3 {
            assert_eq!(carry(&mut there, &mut second, &mut back), 1);
            assert_eq!(carry(&mut back, &mut first, &mut there), 1);
        }
        assert_eq!(carry(&mut there, &mut second, &mut back), 0);
        assert_eq!((first.counted(), second.counted()), (3, 3));
        assert_eq!((first.faults(), second.faults()), (0, 0));
    }

    #[test]
    fn in_a_mesh_all_produce_if_told_to() {
        let channels = ["p1→p2", "p2→p1"];
        let (_, mut quiet, mut trial) = count(&channels, 0, json!({}));
        assert_eq!(quiet.tick(&mut trial.outputs()), Pace::Idle);
        let (_, mut busy, mut trial) = count(&channels, 0, json!({ "producers": "all" }));
        assert_eq!(busy.tick(&mut trial.outputs()), Pace::Now);
        assert_eq!(trial.sent().len(), 512);
    }

    #[test]
    fn a_message_over_the_bound_ends_production() {
        let (setup, mut source, _) = count(&["p1→p2"], 0, json!({ "bytes": 100 }));
        let limits = Limits {
            message_bytes_max: 64,
            ..Limits::default()
        };
        let mut trial = Trial::with_limits(&setup, &limits);
        source.tick(&mut trial.outputs());
        assert_eq!(source.tick(&mut trial.outputs()), Pace::Idle);
        assert_eq!(source.state.sent, [0]);
    }

    #[test]
    fn a_restored_source_goes_on_with_the_next_number() {
        let (setup, mut source, mut trial) = count(&["p1→p2", "p1→p3"], 0, json!({}));
        source.tick(&mut trial.outputs());
        let state = source.capture()();
        let mut restored = Count::restore(&setup, &state).unwrap();
        assert_eq!(restored, source);
        let mut other = Trial::new(&setup);
        trial.sent();
        source.tick(&mut trial.outputs());
        restored.tick(&mut other.outputs());
        assert_eq!(other.sent(), trial.sent());
        assert_eq!(restored, source);
    }

    #[test]
    fn foreign_and_torn_states_are_refused() {
        let (setup, source, _) = count(&["p1→p2"], 0, json!({}));
        let state = source.capture()();
        for end in 0..state.len() {
            let refusal = Count::restore(&setup, &state[..end]).unwrap_err();
            assert!(refusal.0.contains("no state of count"), "{refusal}");
        }
        let (other, ..) = count(&["p1→p2", "p1→p3"], 0, json!({}));
        let refusal = Count::restore(&other, &state).unwrap_err();
        assert!(
            refusal.0.contains("other channels than p1 has"),
            "{refusal}"
        );
    }

    #[test]
    fn a_message_must_have_room_for_its_number() {
        let setup = trial::setup("count", &["p1→p2"], 0, json!({ "bytes": 7 }));
        let refusal = Count::start(&setup).unwrap_err();
        assert!(refusal.0.contains("from 8 to"), "{refusal}");
    }
}
