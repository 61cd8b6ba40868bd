//! Accounts that transfer random amounts to one another; money is neither made nor destroyed.

use serde::{Deserialize, Serialize};

use super::form;
use super::random::SplitMix64;
use crate::protocol::application::{Application, Capture, Outputs, Pace, Quantities};
use crate::protocol::application::{Refusal, Setup};
use crate::protocol::ids::ChannelId;

/// The quantity that is conserved.
const MONEY: &str = "money";

/// More padding than this tests nothing new: messages longer than a batch travel alone anyway.
const PADDING_MAX: u32 = 1024 * 1024;

/// One account: every process has one and pays to random neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bank {
    settings: Settings,
    outputs: Vec<ChannelId>,
    state: State,
}

/// What the job file may say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// What each account holds at first.
    balance: u64,
    /// The most that one transfer takes.
    amount_max: u64,
    /// The time between transfers; 0: as fast as there is room.
    every_ms: u32,
    /// Bytes added to every message.
    padding: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            balance: 1000,
            amount_max: 10,
            every_ms: 5,
            padding: 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    balance: u64,
    random: SplitMix64,
    /// Transfers sent and received; for people who look into a part.
    paid: u64,
    received: u64,
    /// Messages that are no transfers. They carry no money, so ignoring them loses none.
    malformed: u64,
    /// Transfers that were refused; the account then pays no more by itself. It does not come to
    /// that: settings whose messages are too long for the job are refused at the start.
    refused: u64,
}

impl Bank {
    /// What the account holds now.
    #[must_use]
    pub fn balance(&self) -> u64 {
        self.state.balance
    }

    fn with_state(setup: &Setup, settings: Settings, state: State) -> Self {
        let outputs = setup.topology.outputs(setup.process);
        Self {
            settings,
            outputs,
            state,
        }
    }

    fn settings(setup: &Setup) -> Result<Settings, Refusal> {
        let settings: Settings = setup.settings()?;
        if settings.amount_max == 0 {
            return Err(Refusal("amount_max of bank must be at least 1".to_owned()));
        }
        if settings.padding > PADDING_MAX {
            let refusal = format!("padding of bank must be at most {PADDING_MAX}");
            return Err(Refusal(refusal));
        }
        form::check_length(setup, settings.message_bytes())?;
        form::check_total(setup.topology.processes().map(|_| settings.balance))?;
        Ok(settings)
    }
}

impl Settings {
    /// The length of every message.
    fn message_bytes(&self) -> usize {
        form::AMOUNT_BYTES + self.padding as usize
    }
}

impl Application for Bank {
    fn start(setup: &Setup) -> Result<Self, Refusal> {
        let settings = Self::settings(setup)?;
        let state = State {
            balance: settings.balance,
            random: SplitMix64::new(setup.seed, setup.process),
            paid: 0,
            received: 0,
            malformed: 0,
            refused: 0,
        };
        Ok(Self::with_state(setup, settings, state))
    }

    fn restore(setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        let settings = Self::settings(setup)?;
        let state = form::restore(setup, state)?;
        Ok(Self::with_state(setup, settings, state))
    }

    fn handle(&mut self, _from: ChannelId, message: &[u8], _outputs: &mut Outputs<'_>) {
        let state = &mut self.state;
        match form::amount(message) {
            Some(amount) => {
                state.balance = state.balance.saturating_add(amount);
                state.received += 1;
            }
            None => state.malformed += 1,
        }
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        let state = &mut self.state;
        if state.balance == 0 || state.refused > 0 || self.outputs.is_empty() {
            return Pace::Idle;
        }
        let most = self.settings.amount_max.min(state.balance);
        let amount = 1 + state.random.below(most);
        let place = state.random.below(self.outputs.len() as u64);
        let output = self.outputs[usize::try_from(place).expect("below a length")];
        let mut message = amount.to_le_bytes().to_vec();
        message.resize(self.settings.message_bytes(), 0);
        if outputs.send(output, &message).is_err() {
            state.refused += 1;
            return Pace::Idle;
        }
        state.balance -= amount;
        state.paid += 1;
        match self.settings.every_ms {
            0 => Pace::Now,
            pause_ms => Pace::After(pause_ms),
        }
    }

    fn capture(&self) -> Capture {
        form::capture(&self.state)
    }

    fn in_state(setup: &Setup, state: &[u8]) -> Quantities {
        let state = form::restore(setup, state);
        state.map_or_else(
            |_| Quantities::new(),
            |state: State| form::quantity(MONEY, state.balance),
        )
    }

    fn in_message(_setup: &Setup, message: &[u8]) -> Quantities {
        let amount = form::amount(message);
        amount.map_or_else(Quantities::new, |amount| form::quantity(MONEY, amount))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::application::trial::{self, Trial};
    use crate::protocol::link::Limits;

    const PAIR: [&str; 3] = ["p1→p2", "p2→p1", "p1→p3"];

    fn setup(settings: Value) -> Setup {
        trial::setup("bank", &PAIR, 0, settings)
    }

    fn bank(settings: Value) -> (Setup, Bank, Trial) {
        let setup = setup(settings);
        let bank = Bank::start(&setup).unwrap();
        let trial = Trial::new(&setup);
        (setup, bank, trial)
    }

    fn p2_to_p1() -> ChannelId {
        "p2→p1".parse().unwrap()
    }

    fn money(quantities: &Quantities) -> u64 {
        u64::try_from(quantities[MONEY]).unwrap()
    }

    #[test]
    fn money_that_leaves_the_account_is_in_the_messages() {
        let (setup, mut bank, mut trial) = bank(json!({ "balance": 50, "padding": 3 }));
        while bank.tick(&mut trial.outputs()) != Pace::Idle {}
        assert_eq!(bank.balance(), 0);
        let sent = trial.sent();
        assert!(sent.iter().all(|(_, message)| message.len() == 8 + 3));
        let amounts = sent
            .iter()
            .map(|(_, message)| Bank::in_message(&setup, message));
        let amounts: Vec<u64> = amounts.map(|quantities| money(&quantities)).collect();
        assert!(amounts.iter().all(|amount| (1..=10).contains(amount)));
        assert_eq!(amounts.iter().sum::<u64>(), 50);
        let mut receivers: Vec<_> = sent.iter().map(|(channel, _)| channel.to.get()).collect();
        receivers.dedup();
        assert_eq!(receivers, [1, 2], "both neighbours are paid");
    }

    #[test]
    fn a_transfer_adds_to_the_account_and_lets_it_pay_again() {
        let (setup, mut bank, mut trial) = bank(json!({ "balance": 0, "every_ms": 0 }));
        assert_eq!(bank.tick(&mut trial.outputs()), Pace::Idle);
        bank.handle(p2_to_p1(), &25u64.to_le_bytes(), &mut trial.outputs());
        let held = Bank::in_state(&setup, &bank.capture()());
        assert_eq!((bank.balance(), money(&held)), (25, 25));
        assert_eq!(bank.tick(&mut trial.outputs()), Pace::Now);
    }

    #[test]
    fn a_malformed_message_is_counted_and_carries_nothing() {
        let (setup, mut bank, mut trial) = bank(json!({}));
        bank.handle(p2_to_p1(), b"seven", &mut trial.outputs());
        assert_eq!((bank.balance(), bank.state.malformed), (1000, 1));
        assert_eq!(Bank::in_message(&setup, b"seven"), Quantities::new());
    }

    #[test]
    fn a_transfer_that_cannot_be_sent_costs_nothing() {
        let setup = setup(json!({ "padding": 100 }));
        let mut bank = Bank::start(&setup).unwrap();
        let limits = Limits {
            message_bytes_max: 64,
            ..Limits::default()
        };
        let mut trial = Trial::with_limits(&setup, &limits);
        assert_eq!(bank.tick(&mut trial.outputs()), Pace::Idle);
        assert_eq!((bank.balance(), bank.state.refused), (1000, 1));
    }

    #[test]
    fn a_restored_account_goes_on_as_the_captured_one() {
        let (setup, mut bank, mut trial) = bank(json!({}));
        for _ in 0..9 {
            assert_eq!(bank.tick(&mut trial.outputs()), Pace::After(5));
        }
        let mut restored = Bank::restore(&setup, &bank.capture()()).unwrap();
        assert_eq!(restored, bank);
        let mut other = Trial::new(&setup);
        trial.sent();
        for _ in 0..9 {
            bank.tick(&mut trial.outputs());
            restored.tick(&mut other.outputs());
        }
        assert_eq!(restored, bank);
        assert_eq!(other.sent(), trial.sent());
    }

    #[test]
    fn foreign_and_torn_states_are_refused() {
        let (setup, bank, _) = bank(json!({}));
        let state = bank.capture()();
        for end in 0..state.len() {
            let refusal = Bank::restore(&setup, &state[..end]).unwrap_err();
            assert!(refusal.0.contains("no state of bank"), "{refusal}");
            assert_eq!(Bank::in_state(&setup, &state[..end]), Quantities::new());
        }
        let foreign = Bank::restore(&setup, br#"{"balance":3,"pending":[]}"#).unwrap_err();
        assert!(foreign.0.contains("pending"), "{foreign}");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        let refusal = |settings| Bank::start(&setup(settings)).unwrap_err().0;
        assert!(refusal(json!({ "amount_max": 0 })).contains("amount_max"));
        assert!(refusal(json!({ "padding": PADDING_MAX + 1 })).contains("padding"));
        assert!(refusal(json!({ "balance": u64::MAX })).contains("balances"));
        assert!(refusal(json!({ "amount": 3 })).contains("amount_max"));
        let words = "1048584 bytes, over limits.message_bytes_max = 1048576: raise that";
        let found = refusal(json!({ "padding": PADDING_MAX }));
        assert!(found.contains(words), "{found}");
        Bank::start(&setup(json!({ "padding": PADDING_MAX - 8 }))).unwrap();
    }
}
