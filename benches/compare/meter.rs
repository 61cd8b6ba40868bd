//! The application that is measured: sends numbered messages, checks the numbers of those it gets,
//! and notes how far it was and what that cost.
//!
//! It reads clocks, which an application otherwise must not: what it reads goes into its report
//! and never into what it sends next, so a restored run still does the same.

use std::cell::RefCell;
use std::fs;

use cutline::protocol::application::{Application, Capture, Outputs, Pace, Refusal, Setup};
use cutline::protocol::frame::{BATCH_BYTES, LENGTH_BYTES};
use cutline::protocol::ids::ChannelId;
use serde::Deserialize;

use crate::clock::{cpu_ns, now_ns, program_start_ns};
use crate::report::{Captured, Report, Restored, Sample};

/// Messages sent and handled between two samples: some milliseconds when it is busy, and too many
/// for reading two clocks to be felt.
const SAMPLE_MESSAGES: u64 = 16_384;

/// Round trips that are kept: a minute's worth.
const TRIPS_MAX: usize = 2_000_000;

/// A number, and when the sender's instance came into being.
const HEAD_BYTES: usize = 16;

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    bytes: usize,
    role: Role,
}

/// What a process does besides counting what it gets.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Role {
    /// Sends on all outputs in turn, as fast as there is room; a process without inputs does it
    /// alone, in a mesh all do.
    Saturate,
    /// The first process sends one message, and the next when it is back.
    Echo,
    /// Sends a message on one output every few milliseconds.
    Trickle,
}

const TRICKLE_MS: u32 = 2;

/// A process that is measured.
pub(crate) struct Meter {
    settings: Settings,
    name: String,
    is_first: bool,
    inputs: Vec<ChannelId>,
    outputs: Vec<ChannelId>,
    message: Vec<u8>,
    sent: Vec<u64>,
    received: Vec<u64>,
    turn: usize,
    sent_all: u64,
    handled_all: u64,
    faults: u64,
    /// When so many have been sent and handled, the next sample is taken.
    sample_at: u64,
    samples: Vec<Sample>,
    captured: RefCell<Vec<Captured>>,
    trips_ns: Vec<u32>,
    left_ns: u64,
    restored: Option<Restored>,
    /// Until a message comes from an instance younger than this.
    awaits_younger_than_ns: Option<u64>,
}

impl Meter {
    fn new(setup: &Setup) -> Result<Self, Refusal> {
        let settings: Settings = setup.settings()?;
        if settings.bytes < HEAD_BYTES {
            return Err(Refusal(format!("bytes must be at least {HEAD_BYTES}")));
        }
        let inputs = setup.topology.inputs(setup.process);
        let outputs = setup.topology.outputs(setup.process);
        let mut message = vec![0; settings.bytes];
        message[8..16].copy_from_slice(&now_ns().to_le_bytes());
        Ok(Self {
            settings,
            name: setup.topology.name(setup.process).to_owned(),
            is_first: setup.process.index() == 0,
            message,
            sent: vec![0; outputs.len()],
            received: vec![0; inputs.len()],
            inputs,
            outputs,
            turn: 0,
            sent_all: 0,
            handled_all: 0,
            faults: 0,
            sample_at: 1,
            samples: Vec::new(),
            captured: RefCell::default(),
            trips_ns: Vec::new(),
            left_ns: 0,
            restored: None,
            awaits_younger_than_ns: None,
        })
    }

    fn send(&mut self, place: usize, outputs: &mut Outputs<'_>) {
        self.sent[place] += 1;
        self.message[..8].copy_from_slice(&self.sent[place].to_le_bytes());
        if outputs.send(self.outputs[place], &self.message).is_err() {
            self.faults += 1;
        }
        self.sent_all += 1;
    }

    /// Sends a batch's worth, on the outputs in turn.
    fn saturate(&mut self, outputs: &mut Outputs<'_>) {
        for _ in 0..BATCH_BYTES / (LENGTH_BYTES + self.settings.bytes) {
            self.send(self.turn, outputs);
            self.turn += 1;
            if self.turn == self.outputs.len() {
                self.turn = 0;
            }
        }
        self.sample_if_due();
    }

    /// Whether the message is the next on its channel.
    fn check(&mut self, from: ChannelId, message: &[u8]) -> bool {
        let place = match self.inputs.as_slice() {
            [only] if *only == from => 0,
            inputs => inputs
                .binary_search(&from)
                .expect("an input of this process"),
        };
        self.received[place] += 1;
        message.len() == self.settings.bytes && message[..8] == self.received[place].to_le_bytes()
    }

    fn sample_if_due(&mut self) {
        if self.sent_all + self.handled_all >= self.sample_at {
            self.sample();
        }
    }

    #[cold]
    fn sample(&mut self) {
        self.sample_at = self.sent_all + self.handled_all + SAMPLE_MESSAGES;
        self.samples.push(Sample {
            at_ns: now_ns(),
            cpu_ns: cpu_ns(),
            sent: self.sent_all,
            handled: self.handled_all,
        });
    }

    /// The echo is back.
    fn trip(&mut self, outputs: &mut Outputs<'_>) {
        let now_ns = now_ns();
        if self.left_ns > 0 && self.trips_ns.len() < TRIPS_MAX {
            let trip_ns = u32::try_from(now_ns - self.left_ns).unwrap_or(u32::MAX);
            self.trips_ns.push(trip_ns);
        }
        self.send(0, outputs);
        self.left_ns = now_ns;
    }

    /// Notes the first message that was sent after the restore.
    #[cold]
    fn look_for_new(&mut self, message: &[u8], than_ns: u64) {
        let born_ns = message[8..]
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes));
        if born_ns > Some(than_ns) {
            self.awaits_younger_than_ns = None;
            if let Some(restored) = &mut self.restored {
                restored.first_new_ns = Some(now_ns());
            }
        }
    }

    fn report(&mut self, path: &str) -> Result<(), Refusal> {
        self.sample();
        let report = Report {
            process: self.name.clone(),
            program_start_ns: program_start_ns(),
            restored: self.restored,
            faults: self.faults,
            samples: std::mem::take(&mut self.samples),
            captured: self.captured.take(),
            trips_ns: std::mem::take(&mut self.trips_ns),
        };
        let text = serde_json::to_vec(&report).map_err(|error| Refusal(error.to_string()))?;
        fs::write(path, text).map_err(|error| Refusal(format!("{path}: {error}")))
    }
}

impl Application for Meter {
    fn start(setup: &Setup) -> Result<Self, Refusal> {
        Self::new(setup)
    }

    fn restore(setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        let mut meter = Self::new(setup)?;
        let mut numbers = state.chunks_exact(8).map(|chunk| {
            let chunk = chunk.first_chunk().expect("a chunk of eight");
            u64::from_le_bytes(*chunk)
        });
        let short = || Refusal("a state of another form".to_owned());
        for number in meter.sent.iter_mut().chain(&mut meter.received) {
            *number = numbers.next().ok_or_else(short)?;
        }
        meter.awaits_younger_than_ns = Some(numbers.next().ok_or_else(short)?);
        meter.restored = Some(Restored {
            at_ns: now_ns(),
            first_new_ns: None,
        });
        Ok(meter)
    }

    #[inline]
    fn handle(&mut self, from: ChannelId, message: &[u8], outputs: &mut Outputs<'_>) {
        if !self.check(from, message) {
            self.faults += 1;
        }
        self.handled_all += 1;
        self.sample_if_due();
        if let Some(than_ns) = self.awaits_younger_than_ns {
            self.look_for_new(message, than_ns);
        }
        match (self.settings.role, self.is_first) {
            (Role::Echo, true) => self.trip(outputs),
            (Role::Echo, false) => self.send(0, outputs),
            _ => {}
        }
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        match self.settings.role {
            _ if self.outputs.is_empty() => Pace::Idle,
            Role::Saturate => {
                self.saturate(outputs);
                Pace::Now
            }
            Role::Echo => {
                if self.is_first && self.sent_all == 0 {
                    self.send(0, outputs);
                }
                Pace::Idle
            }
            Role::Trickle => {
                self.send(self.turn, outputs);
                self.turn = (self.turn + 1) % self.outputs.len();
                Pace::After(TRICKLE_MS)
            }
        }
    }

    fn command(&mut self, command: &str, _: &mut Outputs<'_>) -> Result<(), Refusal> {
        match command.split_once(' ') {
            Some(("report", path)) => self.report(path),
            _ => Err(Refusal(format!("no command '{command}': report PATH"))),
        }
    }

    /// The moment of recording: at the sender the marker goes out now, at the receiver it is in.
    fn capture(&self) -> Capture {
        let at_ns = now_ns();
        self.captured.borrow_mut().push(Captured {
            at_ns,
            sent: self.sent_all,
            handled: self.handled_all,
        });
        let numbers: Vec<u64> = [&self.sent[..], &self.received[..], &[at_ns]].concat();
        Box::new(move || {
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect()
        })
    }
}
