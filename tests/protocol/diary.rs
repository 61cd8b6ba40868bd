//! An application that writes down what it sends and handles, knowing nothing of the numbers that
//! the core gives.

use std::collections::BTreeMap;

use cutline::protocol::application::{Application, Capture, Outputs, Pace, Refusal, Setup};
use cutline::protocol::ids::ChannelId;
use serde::{Deserialize, Serialize};

/// The shortest message: its number and its hops.
pub(crate) const MESSAGE_BYTES_MIN: usize = 9;

/// What it does of itself; from the settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Conduct {
    /// Messages that ticks put on every output, in all, and at once.
    pub(crate) budget: u64,
    pub(crate) burst: u64,
    /// How often a message is sent on, and how many times over, on every output.
    pub(crate) hops: u8,
    pub(crate) copies: u64,
    /// The length of its messages.
    pub(crate) bytes: usize,
}

/// What it has done, by its own account.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Diary {
    conduct: Conduct,
    pub(crate) sent: BTreeMap<String, u64>,
    pub(crate) handled: BTreeMap<String, u64>,
}

/// A message as it is written: its number by the sender's own count, and its hops.
pub(crate) fn message(number: u64, hops: u8, bytes: usize) -> Vec<u8> {
    let mut message = number.to_le_bytes().to_vec();
    message.push(hops);
    message.resize(bytes.max(MESSAGE_BYTES_MIN), 0);
    message
}

impl Diary {
    pub(crate) fn read(state: &[u8]) -> Self {
        serde_json::from_slice(state).expect("a diary's state")
    }

    pub(crate) fn sent_on(&self, channel: ChannelId) -> u64 {
        self.sent.get(&channel.to_string()).copied().unwrap_or(0)
    }

    pub(crate) fn handled_of(&self, channel: ChannelId) -> u64 {
        self.handled.get(&channel.to_string()).copied().unwrap_or(0)
    }

    fn send(&mut self, channel: ChannelId, hops: u8, bytes: usize, outputs: &mut Outputs<'_>) {
        let number = self.sent.entry(channel.to_string()).or_default();
        *number += 1;
        outputs
            .send(channel, &message(*number, hops, bytes))
            .unwrap();
    }

    fn send_everywhere(&mut self, hops: u8, copies: u64, outputs: &mut Outputs<'_>) {
        for channel in outputs.channels().collect::<Vec<_>>() {
            for _ in 0..copies {
                self.send(channel, hops, self.conduct.bytes, outputs);
            }
        }
    }
}

impl Application for Diary {
    fn start(setup: &Setup) -> Result<Self, Refusal> {
        let conduct = match setup.settings.is_null() {
            true => Conduct::default(),
            false => setup.settings()?,
        };
        Ok(Self {
            conduct,
            ..Self::default()
        })
    }

    fn restore(_: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        serde_json::from_slice(state).map_err(|error| Refusal(error.to_string()))
    }

    fn handle(&mut self, from: ChannelId, message: &[u8], outputs: &mut Outputs<'_>) {
        let number = u64::from_le_bytes(message[..8].try_into().unwrap());
        let handled = self.handled.entry(from.to_string()).or_default();
        *handled += 1;
        let why = "nothing is lost, doubled or out of order";
        assert_eq!(number, *handled, "on {from}: {why}");
        if let Some(hops) = message[8].checked_sub(1) {
            self.send_everywhere(hops, self.conduct.copies, outputs);
        }
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        let burst = self.conduct.burst.min(self.conduct.budget);
        self.conduct.budget -= burst;
        self.send_everywhere(self.conduct.hops, burst, outputs);
        match self.conduct.budget {
            0 => Pace::Idle,
            _ => Pace::Now,
        }
    }

    /// `send p1→p2 20`: a message of 20 bytes.
    fn command(&mut self, command: &str, outputs: &mut Outputs<'_>) -> Result<(), Refusal> {
        let words: Vec<_> = command.split(' ').collect();
        let ["send", channel, bytes] = words.as_slice() else {
            return Err(Refusal(format!("no such command: {command}")));
        };
        self.send(channel.parse().unwrap(), 0, bytes.parse().unwrap(), outputs);
        Ok(())
    }

    fn capture(&self) -> Capture {
        let diary = self.clone();
        Box::new(move || serde_json::to_vec(&diary).expect("a diary is plain data"))
    }
}
