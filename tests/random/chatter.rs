//! An application that keeps its own log: it numbers what it sends and checks what it handles,
//! knowing nothing of the numbers that the core gives.

use std::collections::BTreeMap;

use cutline::protocol::application::{
    Application, Capture, Outputs, Pace, Quantities, Refusal, Setup,
};
use cutline::protocol::ids::ChannelId;
use serde::{Deserialize, Serialize};

/// What a process has done, by its own account.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    /// Messages sent on each output.
    pub sent: BTreeMap<String, u64>,
    /// Messages handled of each input.
    pub handled: BTreeMap<String, u64>,
    money: i64,
    random: u64,
}

/// Sends money at random, and sends on some of what it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Chatter {
    log: Log,
    /// Whether it is to fail when something comes twice, late or never. After a restore from a
    /// snapshot that was taken at-least-once it does.
    strict: bool,
}

/// A message: its number by the sender's own account, its hops left, its money.
pub(crate) fn parse(message: &[u8]) -> (u64, u8, i64) {
    let number = u64::from_le_bytes(message[..8].try_into().unwrap());
    let money = i64::from_le_bytes(message[9..17].try_into().unwrap());
    (number, message[8], money)
}

impl Chatter {
    fn random(&mut self) -> u64 {
        let log = &mut self.log;
        log.random = log
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        log.random >> 33
    }

    fn send(&mut self, hops: u8, money: i64, outputs: &mut Outputs<'_>) {
        let channels: Vec<ChannelId> = outputs.channels().collect();
        if channels.is_empty() || self.log.money < money {
            return;
        }
        let channel = channels[self.random() as usize % channels.len()];
        let number = self.log.sent.entry(channel.to_string()).or_default();
        *number += 1;
        let mut message = number.to_le_bytes().to_vec();
        message.push(hops);
        message.extend(money.to_le_bytes());
        message.resize(17 + (money as usize % 7), 0);
        self.log.money -= money;
        outputs.send(channel, &message).unwrap();
    }
}

impl Application for Chatter {
    fn start(setup: &Setup) -> Result<Self, Refusal> {
        let log = Log {
            money: 100,
            random: setup.seed ^ (setup.process.get() as u64) << 32,
            ..Log::default()
        };
        let strict = setup.settings()?;
        Ok(Self { log, strict })
    }

    fn restore(setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        let log = serde_json::from_slice(state).map_err(|error| Refusal(error.to_string()))?;
        let strict = setup.settings()?;
        Ok(Self { log, strict })
    }

    fn handle(&mut self, from: ChannelId, message: &[u8], outputs: &mut Outputs<'_>) {
        let (number, hops, money) = parse(message);
        let handled = self.log.handled.entry(from.to_string()).or_default();
        *handled += 1;
        assert!(
            number == *handled || !self.strict,
            "nothing on {from} is lost, doubled or out of order: {number} came as {handled}"
        );
        self.log.money += money;
        if hops > 0 {
            self.send(hops - 1, money, outputs);
        }
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        let (hops, money) = (self.random() % 4, self.random() % 20);
        self.send(hops as u8, money as i64, outputs);
        Pace::Now
    }

    fn capture(&self) -> Capture {
        let log = self.log.clone();
        Box::new(move || serde_json::to_vec(&log).expect("a log is plain data"))
    }

    fn in_state(_: &Setup, state: &[u8]) -> Quantities {
        let log: Log = serde_json::from_slice(state).unwrap();
        Quantities::from([("money".to_owned(), log.money)])
    }

    fn in_message(_: &Setup, message: &[u8]) -> Quantities {
        Quantities::from([("money".to_owned(), parse(message).2)])
    }
}
