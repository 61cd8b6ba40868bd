//! Outboxes without a process around them, to try an application in: what it sends is taken out
//! and looked at. For the tests of applications, one's own too.
//!
//! ```
//! use cutline::apps::BuiltIn;
//! use cutline::protocol::application::Application as _;
//! use cutline::protocol::application::trial::{self, Trial};
//!
//! let setup = trial::setup("token-ring", &["p1→p2", "p2→p1"], 0, Default::default());
//! let mut first = BuiltIn::start(&setup)?;
//! let mut trial = Trial::new(&setup);
//! first.tick(&mut trial.outputs());
//! first.tick(&mut trial.outputs());
//! assert_eq!(trial.sent().len(), 1);
//! # Ok::<_, cutline::protocol::application::Refusal>(())
//! ```

use std::sync::Arc;

use super::{Outputs, Setup};
use crate::protocol::Topology;
use crate::protocol::frame::{Credit, Feedback, Frame};
use crate::protocol::ids::{ChannelId, Incarnation, MarkerOrdinal, MessageNumber, ProcessId};
use crate::protocol::link::{Limits, Outbox, Outboxes};

/// The outboxes of one process, on streams that take everything.
#[derive(Debug)]
pub struct Trial {
    outboxes: Outboxes,
}

impl Trial {
    /// Those of the process that the setup is of, all empty.
    pub fn new(setup: &Setup) -> Self {
        Self::with_limits(setup, &Limits::default())
    }

    /// The same, with bounds of one's own.
    pub fn with_limits(setup: &Setup, limits: &Limits) -> Self {
        let everything = Feedback {
            next: MessageNumber::new(1),
            next_marker: MarkerOrdinal::new(1),
            credit: Credit {
                number: MessageNumber::new(u64::MAX),
                bytes: u64::MAX,
            },
        };
        let outputs = setup.topology.outputs(setup.process);
        let open = |channel| {
            let mut outbox = Outbox::new(channel, MessageNumber::default(), &[], limits);
            let resumed = outbox.resume(Incarnation::new(1), everything);
            resumed.expect("a new outbox is at its start");
            outbox
        };
        Self {
            outboxes: Outboxes::new(outputs.into_iter().map(open).collect(), |_| false, limits),
        }
    }

    /// What a handler is given to send on.
    pub fn outputs(&mut self) -> Outputs<'_> {
        Outputs::new(&mut self.outboxes)
    }

    /// What was sent since the last call: by channel, in the order it was sent.
    pub fn sent(&mut self) -> Vec<(ChannelId, Vec<u8>)> {
        let mut sent = Vec::new();
        for place in 0..self.outboxes.len() {
            let channel = self.outboxes[place].channel();
            while let Some(frame) = self.outboxes.change(place, Outbox::next_frame) {
                let Frame::Messages(batch) = frame else {
                    unreachable!("applications send no markers");
                };
                let messages = batch.messages();
                sent.extend(messages.map(|(_, message)| (channel, message.to_vec())));
            }
        }
        sent
    }
}

/// A setup for the process at place `index`, from 0, of a graph of `p1`, `p2`, … with these
/// channels, such as `p1→p2`; `Default::default()` stands for no settings.
///
/// # Panics
/// If one is no channel, or they make no graph.
pub fn setup(
    application: &str,
    channels: &[&str],
    index: u32,
    settings: serde_json::Value,
) -> Setup {
    let channels: Vec<ChannelId> = channels
        .iter()
        .map(|text| text.parse().expect("a channel"))
        .collect();
    let ends = channels
        .iter()
        .flat_map(|channel| [channel.from, channel.to]);
    let last = ends.map(ProcessId::get).max().unwrap_or(index).max(index);
    let names = (0..=last).map(|place| ProcessId::new(place).to_string());
    Setup {
        topology: Arc::new(Topology::new(names.collect(), channels).expect("a topology")),
        process: ProcessId::new(index),
        application: application.to_owned(),
        // As from a job file, which has a table where it says nothing.
        settings: match settings {
            serde_json::Value::Null => serde_json::Value::Object(Default::default()),
            settings => settings,
        },
        seed: 7,
        message_bytes_max: Limits::default().message_bytes_max,
    }
}
