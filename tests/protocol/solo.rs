//! One process alone on a bench: what comes is written by the test, and what it answers is read.

use std::sync::Arc;

use cutline::protocol::application::{Quantities, Setup};
use cutline::protocol::cut::{Loaded, Part};
use cutline::protocol::events::{Directive, Order, Report, Standing, StoredPart};
use cutline::protocol::frame::{Batch, Credit, Feedback, Frame, Greeting, Hello, Marker};
use cutline::protocol::ids::{
    ChannelId, Generation, Incarnation, JobId, MarkerOrdinal, MessageNumber, ProcessId, SnapshotId,
    Term,
};
use cutline::protocol::link::{Breach, Limits};
use cutline::protocol::mode::{Mode, Taking};
use cutline::protocol::process::Settings;
use cutline::protocol::{Effect, Input, Process, Topology};

use crate::diary::{Diary, message};

/// The bench's process is always this start of its node, and its peers are this one of theirs.
pub(crate) const OWN: Incarnation = Incarnation::new(1);
pub(crate) const PEER: Incarnation = Incarnation::new(2);

pub(crate) const G1: Generation = Generation::new(1);
pub(crate) const G2: Generation = Generation::new(2);
pub(crate) const T1: Term = Term::new(1);
pub(crate) const T2: Term = Term::new(2);
pub(crate) const TIMEOUT_MS: u64 = 10_000;

pub(crate) fn s(number: u64) -> SnapshotId {
    SnapshotId::new(number)
}

pub(crate) fn m(number: u64) -> MessageNumber {
    MessageNumber::new(number)
}

pub(crate) fn k(number: u64) -> MarkerOrdinal {
    MarkerOrdinal::new(number)
}

pub(crate) fn ch(text: &str) -> ChannelId {
    text.parse().expect("a channel such as p1→p2")
}

/// Every test here begins with one: it runs a wrong protocol if the environment names one.
pub(crate) fn topology(processes: u32, channels: &[&str]) -> Arc<Topology> {
    #[cfg(feature = "mutants")]
    cutline::protocol::mutant::choose(std::env::var("CUTLINE_MUTANT").ok().as_deref());
    let names = (1..=processes).map(|number| format!("p{number}")).collect();
    Arc::new(Topology::new(names, channels.iter().map(|text| ch(text))).unwrap())
}

/// Messages as a diary expects them, of these lengths, from this number on.
pub(crate) fn batch(first: u64, lengths: &[usize]) -> Frame {
    let mut packed = Vec::new();
    for (number, &bytes) in (first..).zip(lengths) {
        let message = message(number, 0, bytes);
        packed.extend((message.len() as u32).to_le_bytes());
        packed.extend(message);
    }
    Frame::Messages(Batch::new(m(first), lengths.len() as u32, packed.into()).unwrap())
}

/// A marker behind message `after`, the `ordinal`-th of its channel.
pub(crate) fn marker(snapshot: u64, ordinal: u64, after: u64) -> Frame {
    Frame::Marker(Marker {
        snapshot: s(snapshot),
        taking: Mode::Classic.into(),
        used_ms: 0,
        ordinal: k(ordinal),
        after: m(after),
        sent: m(after),
    })
}

/// The same of a snapshot that is taken some other way, by a sender that has sent up to `sent`.
pub(crate) fn marker_by(
    taking: impl Into<Taking>,
    snapshot: u64,
    ordinal: u64,
    after: u64,
    sent: u64,
) -> Frame {
    Frame::Marker(Marker {
        snapshot: s(snapshot),
        taking: taking.into(),
        used_ms: 0,
        ordinal: k(ordinal),
        after: m(after),
        sent: m(sent),
    })
}

/// The same marker after so much of its limit was used.
pub(crate) fn used(ms: u64, frame: Frame) -> Frame {
    match frame {
        Frame::Marker(marker) => Frame::Marker(Marker {
            used_ms: ms,
            ..marker
        }),
        Frame::Messages(_) => panic!("only a marker has a limit"),
    }
}

/// A receiver's word with credit for anything.
pub(crate) fn expects(next: u64, next_marker: u64) -> Feedback {
    Feedback {
        next: m(next),
        next_marker: k(next_marker),
        credit: Credit {
            number: m(1 << 40),
            bytes: 1 << 40,
        },
    }
}

/// How the job stands, with nothing complete.
pub(crate) fn standing(generation: Generation, low: u64, open: &[u64]) -> Order {
    Order::Welcome(Standing {
        job: JobId::default(),
        generation,
        low: s(low),
        last: s(open.iter().copied().max().unwrap_or(0).max(low)),
        open: open.iter().map(|&number| s(number)).collect(),
        complete: s(0),
    })
}

/// What the driver says when it has written a part.
pub(crate) fn on_disk(part: &Part) -> Box<StoredPart> {
    let (outputs, inputs) = part.channel_facts();
    Box::new(StoredPart {
        bytes: 1,
        checksum: 1,
        facts: cutline::protocol::cut::Facts {
            process: part.process,
            outputs,
            inputs,
            in_state: Default::default(),
            in_channels: Default::default(),
            initial: Default::default(),
            clock: part.clock.as_deref().cloned(),
        },
    })
}

/// The process and what it was told.
pub(crate) struct Solo {
    pub(crate) process: Process<Diary>,
}

impl Solo {
    /// A process of this topology whose node has just started.
    pub(crate) fn new(topology: &Arc<Topology>, process: u32, limits: Limits) -> Self {
        let setup = Setup {
            topology: topology.clone(),
            process: ProcessId::new(process - 1),
            application: "diary".to_owned(),
            settings: serde_json::Value::Null,
            seed: 1,
            message_bytes_max: limits.message_bytes_max,
        };
        let settings = Settings {
            limits,
            snapshot_timeout_ms: TIMEOUT_MS,
            trace: false,
        };
        let process = Process::new(setup, settings, OWN).unwrap();
        Self { process }
    }

    /// The same, running the first generation from the initial state.
    pub(crate) fn running(topology: &Arc<Topology>, process: u32, limits: Limits) -> Self {
        let mut solo = Self::new(topology, process, limits);
        solo.told(T1, Order::Prepare(G1, s(0)));
        solo.told(T1, Order::Run(G1));
        solo
    }

    pub(crate) fn step(&mut self, input: Input<Diary>) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.process.step(input, &mut effects);
        effects
    }

    pub(crate) fn told(&mut self, term: Term, order: Order) -> Vec<Effect> {
        self.step(Input::Directive(Directive { term, order }))
    }

    pub(crate) fn trigger(&mut self, snapshot: u64) -> Vec<Effect> {
        self.told(T1, Order::Trigger(s(snapshot), Mode::Classic.into()))
    }

    pub(crate) fn trigger_by(&mut self, taking: impl Into<Taking>, snapshot: u64) -> Vec<Effect> {
        self.told(T1, Order::Trigger(s(snapshot), taking.into()))
    }

    pub(crate) fn time(&mut self, now_ms: u64) -> Vec<Effect> {
        self.step(Input::Time { now_ms })
    }

    /// The inputs that are held.
    pub(crate) fn held(&self) -> Vec<String> {
        self.process
            .held()
            .map(|channel| channel.to_string())
            .collect()
    }

    pub(crate) fn hello(&self, generation: Generation, incarnation: Incarnation) -> Hello {
        Hello {
            topology: self.process.setup().topology.fingerprint(),
            job: JobId::default(),
            generation,
            incarnation,
        }
    }

    /// A sender says hello.
    pub(crate) fn dialled(
        &mut self,
        on: &str,
        generation: Generation,
        by: Incarnation,
    ) -> Greeting {
        let hello = self.hello(generation, by);
        let effects = self.step(Input::Dialled(ch(on), hello));
        match effects.as_slice() {
            [Effect::Greet(channel, greeting)] if *channel == ch(on) => greeting.clone(),
            other => panic!("a hello is answered, and no more: {other:?}"),
        }
    }

    /// A sender's stream is opened in the first generation.
    pub(crate) fn opened(&mut self, on: &str) -> Feedback {
        match self.dialled(on, G1, PEER) {
            Greeting::Welcome { feedback, .. } => feedback,
            other => panic!("{other:?}"),
        }
    }

    /// The receiver of an output answers the hello.
    pub(crate) fn welcomed(&mut self, on: &str, feedback: Feedback) -> Vec<Effect> {
        let greeting = Greeting::Welcome {
            incarnation: PEER,
            feedback,
        };
        self.step(Input::Greeted(ch(on), G1, greeting))
    }

    pub(crate) fn arrived(&mut self, on: &str, frame: Frame) -> Vec<Effect> {
        self.step(Input::Arrived(ch(on), G1, frame))
    }

    pub(crate) fn heard(&mut self, on: &str, feedback: Feedback) -> Vec<Effect> {
        self.step(Input::Heard(ch(on), G1, feedback))
    }

    /// Handles all it can on every input.
    pub(crate) fn take_all(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        loop {
            let next = self.process.takable().next();
            let Some(channel) = next else {
                return effects;
            };
            effects.extend(self.step(Input::Take(channel, 1)));
        }
    }

    /// Writes all it can on one channel.
    pub(crate) fn write_all(&mut self, on: &str) -> (Vec<Frame>, Vec<Effect>) {
        let (mut frames, mut others) = (Vec::new(), Vec::new());
        while self.process.writable().any(|channel| channel == ch(on)) {
            for effect in self.step(Input::Writable(ch(on))) {
                match effect {
                    Effect::Write(_, frame) => frames.push(frame),
                    other => others.push(other),
                }
            }
        }
        (frames, others)
    }

    /// The application sends a message of this length.
    pub(crate) fn send(&mut self, on: &str, bytes: usize) {
        let effects = self.step(Input::Command(format!("send {on} {bytes}")));
        assert!(matches!(effects.as_slice(), [Effect::Commanded(Ok(()))]));
    }

    /// Whether no step it is given changes what it is.
    pub(crate) fn is_unmoved_by(&mut self, input: Input<Diary>) -> bool {
        let before = format!("{:?}", self.process);
        let effects = self.step(input);
        effects.is_empty() && before == format!("{:?}", self.process)
    }

    pub(crate) fn handled(&self, on: &str) -> u64 {
        self.process
            .application()
            .map_or(0, |diary| diary.handled_of(ch(on)))
    }

    pub(crate) fn open_recordings(&self) -> Vec<SnapshotId> {
        self.process
            .recordings()
            .map(|(snapshot, _)| snapshot)
            .collect()
    }
}

/// The part that was given to the driver, if one was.
pub(crate) fn stored(effects: &[Effect]) -> Option<&Part> {
    effects.iter().find_map(|effect| match effect {
        Effect::Store(part) => Some(&**part),
        _ => None,
    })
}

/// Whether the local state was taken.
pub(crate) fn captured(effects: &[Effect]) -> bool {
    effects
        .iter()
        .any(|effect| matches!(effect, Effect::Capture(..)))
}

/// What a part holds of each channel: its end's count, where the marker stood, the numbers
/// recorded. Inputs first.
pub(crate) fn channels_of(part: &Part) -> Vec<(String, u64, u64, Vec<u64>)> {
    let numbers = |share: &[Batch]| -> Vec<u64> {
        let messages = share.iter().flat_map(|batch| batch.messages());
        messages.map(|(number, _)| number.get()).collect()
    };
    let inputs = part.inputs.iter().map(|end| {
        let (handled, after) = (end.handled.get(), end.after.get());
        (end.channel.to_string(), handled, after, numbers(&end.share))
    });
    let outputs = part.outputs.iter().map(|end| {
        let (sent, after) = (end.sent.get(), end.after.get());
        (end.channel.to_string(), sent, after, numbers(&end.share))
    });
    inputs.chain(outputs).collect()
}

/// Why a snapshot was declined, if one was.
pub(crate) fn declined(effects: &[Effect]) -> Option<(SnapshotId, &str)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Report(Report::Declined {
            snapshot, reason, ..
        }) => Some((*snapshot, reason.as_str())),
        _ => None,
    })
}

/// Why a stream was closed, if one was.
pub(crate) fn breach(effects: &[Effect]) -> Option<(ChannelId, &Breach)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Hangup(channel, Some(breach)) => Some((*channel, breach)),
        _ => None,
    })
}

/// A part of this process with nothing in its channels, as the store gives it back.
pub(crate) fn read_back(topology: &Topology, process: u32, snapshot: u64) -> Box<Loaded<Diary>> {
    use cutline::protocol::cut::{InputPart, OutputPart};
    let process = ProcessId::new(process - 1);
    let outputs = topology
        .outputs(process)
        .into_iter()
        .map(|channel| OutputPart {
            channel,
            sent: m(0),
            after: m(0),
            share: Vec::new(),
        });
    let inputs = topology
        .inputs(process)
        .into_iter()
        .map(|channel| InputPart {
            channel,
            handled: m(0),
            after: m(0),
            share: Vec::new(),
        });
    let part = Part {
        snapshot: s(snapshot),
        generation: G1,
        process,
        mode: Mode::Classic,
        clock: None,
        initial: Quantities::new(),
        outputs: outputs.collect(),
        inputs: inputs.collect(),
    };
    let application = Diary::default();
    Box::new(Loaded { part, application })
}
