//! The application of every world that is explored: it sends what its script says, sends on what
//! it is asked to, and writes down all of it, knowing nothing of the numbers that the core gives.

use cutline::protocol::application::{
    Application, Capture, Outputs, Pace, Quantities, Refusal, Setup,
};
use cutline::protocol::ids::ChannelId;
use serde::{Deserialize, Serialize};

/// What every process holds at first; each message carries one of it away.
const HELD: i64 = 10;

/// One process: what it has still to send, and what it has done, by its own account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Script {
    /// The sends to come, the next one last: on which output, and how often it is sent on.
    to_send: Vec<(usize, u8)>,
    pub(crate) sent: Log,
    pub(crate) handled: Log,
    /// Something came that was not the next.
    pub(crate) confused: bool,
}

/// For each channel the hops of the messages sent on it, or handled from it, in order.
pub(crate) type Log = Vec<(ChannelId, Vec<u8>)>;

/// What a log says of a channel.
pub(crate) fn of(log: &Log, channel: ChannelId) -> &[u8] {
    let entry = log.iter().find(|(of, _)| *of == channel);
    &entry.expect("a channel of this process").1
}

fn write(log: &mut Log, channel: ChannelId, hops: u8) -> usize {
    let entry = log.iter_mut().find(|(of, _)| *of == channel);
    let (_, written) = entry.expect("a channel of this process");
    written.push(hops);
    written.len()
}

/// A message: its number by the sender's own count, and how often it is to be sent on.
pub(crate) fn parse(message: &[u8]) -> (usize, u8) {
    (usize::from(message[0]), message[1])
}

impl Script {
    pub(crate) fn read(state: &[u8]) -> Self {
        serde_json::from_slice(state).expect("a script's state")
    }

    pub(crate) fn is_done(&self) -> bool {
        self.to_send.is_empty()
    }

    fn send(&mut self, channel: ChannelId, hops: u8, outputs: &mut Outputs<'_>) {
        let number = write(&mut self.sent, channel, hops);
        let number = u8::try_from(number).expect("a handful of messages");
        let message = [number, hops];
        outputs.send(channel, &message).expect("an output");
    }

    fn held(&self) -> i64 {
        let count = |log: &Log| log.iter().map(|(_, hops)| hops.len()).sum::<usize>();
        HELD + count(&self.handled) as i64 - count(&self.sent) as i64
    }
}

impl Application for Script {
    /// The settings are the sends of all processes, in order: `p1→p2 p1→p2:1`, the second to be
    /// sent on once.
    fn start(setup: &Setup) -> Result<Self, Refusal> {
        let outputs = setup.topology.outputs(setup.process);
        let sends = setup.settings.as_str().unwrap_or_default();
        let sends = sends.split_whitespace().filter_map(|send| {
            let (channel, hops) = send.split_once(':').unwrap_or((send, "0"));
            let channel: ChannelId = channel.parse().expect("a channel");
            let output = outputs.iter().position(|output| *output == channel)?;
            Some((output, hops.parse().expect("a number of hops")))
        });
        let mut to_send: Vec<_> = sends.collect();
        to_send.reverse();
        let empty = |channels: Vec<ChannelId>| channels.into_iter().map(|of| (of, Vec::new()));
        let inputs = setup.topology.inputs(setup.process);
        Ok(Self {
            to_send,
            sent: empty(outputs).collect(),
            handled: empty(inputs).collect(),
            confused: false,
        })
    }

    fn restore(_: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        serde_json::from_slice(state).map_err(|error| Refusal(error.to_string()))
    }

    /// Sends it on, on the first output that does not lead back.
    fn handle(&mut self, from: ChannelId, message: &[u8], outputs: &mut Outputs<'_>) {
        let (number, hops) = parse(message);
        self.confused |= write(&mut self.handled, from, hops) != number;
        if let Some(hops) = hops.checked_sub(1) {
            let mut onward: Vec<_> = outputs.channels().collect();
            onward.sort_by_key(|output| output.to == from.from);
            if let Some(&output) = onward.first() {
                self.send(output, hops, outputs);
            }
        }
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        if let Some((output, hops)) = self.to_send.pop() {
            let channel = outputs.channels().nth(output).expect("an output");
            self.send(channel, hops, outputs);
        }
        match self.is_done() {
            true => Pace::Idle,
            false => Pace::Now,
        }
    }

    fn capture(&self) -> Capture {
        let script = self.clone();
        Box::new(move || serde_json::to_vec(&script).expect("a script is plain data"))
    }

    fn in_state(_: &Setup, state: &[u8]) -> Quantities {
        Quantities::from([("held".to_owned(), Self::read(state).held())])
    }

    fn in_message(_: &Setup, _: &[u8]) -> Quantities {
        Quantities::from([("held".to_owned(), 1)])
    }
}
