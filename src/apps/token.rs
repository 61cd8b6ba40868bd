//! Tokens that move when they are told to: scripted sends, each waiting for its funds.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::form;
use crate::protocol::application::{Application, Capture, Outputs, Quantities, Refusal, Setup};
use crate::protocol::ids::{ChannelId, ProcessId};
use crate::protocol::topology::Topology;

/// The quantity that is conserved.
const TOKENS: &str = "tokens";

/// Sends that may wait for funds. They are part of the state, which must stay cheap to copy.
const PENDING_MAX: usize = 4096;

/// What a command must look like.
const USAGE: &str = "a command is 'send TO TOKENS' or 'send TO TOKENS via NTH'";

/// One holder of tokens. It sends what commands say, in their order; while the first one lacks
/// its funds, everything behind it waits as well.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// The process's own name and, with their names, those its outputs lead to.
    name: String,
    outputs: Vec<(ChannelId, String)>,
    state: State,
}

/// What the job file may say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// What every process holds at first.
    balance: u64,
    /// What the processes named here hold instead.
    balances: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    balance: u64,
    pending: VecDeque<Transfer>,
    /// Messages that are no tokens. They carry none, so ignoring them loses none.
    malformed: u64,
}

/// A send that waits for its funds, or for those ahead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Transfer {
    channel: ChannelId,
    tokens: u64,
}

impl Token {
    /// What the process holds now.
    #[must_use]
    pub fn balance(&self) -> u64 {
        self.state.balance
    }

    /// How many sends wait.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.state.pending.len()
    }

    fn with_state(setup: &Setup, state: State) -> Self {
        let topology = &setup.topology;
        let outputs = topology.outputs(setup.process).into_iter();
        Self {
            name: topology.name(setup.process).to_owned(),
            outputs: outputs
                .map(|channel| (channel, topology.name(channel.to).to_owned()))
                .collect(),
            state,
        }
    }

    /// Sends what is pending as far as the funds go.
    fn send_pending(&mut self, outputs: &mut Outputs<'_>) {
        let state = &mut self.state;
        while let Some(&Transfer { channel, tokens }) = state.pending.front() {
            // Nothing but the funds can stand in the way: the channel was looked up, and a job
            // that lets no amount pass is refused at the start. If it does, the send stays at the
            // head.
            let Some(rest) = state.balance.checked_sub(tokens) else {
                return;
            };
            if outputs.send(channel, &tokens.to_le_bytes()).is_err() {
                return;
            }
            state.balance = rest;
            state.pending.pop_front();
        }
    }

    fn read_command(&self, command: &str) -> Result<Transfer, Refusal> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let (to, tokens, nth) = match words[..] {
            ["send", to, tokens] => (to, tokens, "1"),
            ["send", to, tokens, "via", nth] => (to, tokens, nth),
            _ => return Err(Refusal(format!("unknown command '{command}': {USAGE}"))),
        };
        let tokens = match tokens.parse() {
            Ok(tokens) if tokens <= form::TOTAL_MAX => tokens,
            _ => {
                return Err(Refusal(format!(
                    "'{tokens}' is no number of tokens: {USAGE}"
                )));
            }
        };
        let Ok(nth) = nth.parse::<u32>() else {
            return Err(Refusal(format!(
                "'{nth}' is no number of a channel: {USAGE}"
            )));
        };
        let mut outputs = self.outputs.iter();
        match outputs.find(|(channel, name)| name == to && channel.nth == nth) {
            Some(&(channel, _)) => Ok(Transfer { channel, tokens }),
            None => Err(self.no_such_output(to, nth)),
        }
    }

    fn no_such_output(&self, to: &str, nth: u32) -> Refusal {
        let name = &self.name;
        let nowhere = ProcessId::new(0);
        let meant = ChannelId {
            nth,
            ..ChannelId::new(nowhere, nowhere)
        }
        .named(name, to);
        let outputs = self.outputs.iter();
        let known: Vec<String> = outputs
            .map(|(channel, to)| channel.named(name, to))
            .collect();
        let known = match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        };
        Refusal(format!(
            "there is no channel {meant}; the outputs of {name} are: {known}"
        ))
    }
}

impl Settings {
    fn read(setup: &Setup) -> Result<Self, Refusal> {
        let settings: Self = setup.settings()?;
        let unknown = settings.balances.keys();
        if let Some(name) = unknown
            .into_iter()
            .find(|name| setup.topology.process(name).is_none())
        {
            let refusal = format!("balances of token name '{name}', which is no process");
            return Err(Refusal(refusal));
        }
        form::check_length(setup, form::AMOUNT_BYTES)?;
        let topology = &setup.topology;
        form::check_total(
            topology
                .processes()
                .map(|process| settings.of(topology, process)),
        )?;
        Ok(settings)
    }

    fn of(&self, topology: &Topology, process: ProcessId) -> u64 {
        let own = self.balances.get(topology.name(process));
        own.copied().unwrap_or(self.balance)
    }
}

impl Application for Token {
    fn start(setup: &Setup) -> Result<Self, Refusal> {
        let settings = Settings::read(setup)?;
        let state = State {
            balance: settings.of(&setup.topology, setup.process),
            pending: VecDeque::new(),
            malformed: 0,
        };
        Ok(Self::with_state(setup, state))
    }

    fn restore(setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        Settings::read(setup)?;
        let state: State = form::restore(setup, state)?;
        let is_output = |send: &Transfer| {
            send.channel.from == setup.process && setup.topology.contains(send.channel)
        };
        if let Some(send) = state.pending.iter().find(|send| !is_output(send)) {
            return Err(Refusal(format!(
                "this state of token has a send on {}, which is no output of {}",
                send.channel,
                setup.topology.name(setup.process),
            )));
        }
        Ok(Self::with_state(setup, state))
    }

    fn handle(&mut self, _from: ChannelId, message: &[u8], outputs: &mut Outputs<'_>) {
        match form::amount(message) {
            Some(tokens) => {
                self.state.balance = self.state.balance.saturating_add(tokens);
                self.send_pending(outputs);
            }
            None => self.state.malformed += 1,
        }
    }

    fn command(&mut self, command: &str, outputs: &mut Outputs<'_>) -> Result<(), Refusal> {
        let send = self.read_command(command)?;
        if self.state.pending.len() >= PENDING_MAX {
            return Err(Refusal(format!(
                "{PENDING_MAX} sends wait for their funds already: wait until tokens arrive"
            )));
        }
        self.state.pending.push_back(send);
        self.send_pending(outputs);
        Ok(())
    }

    fn capture(&self) -> Capture {
        form::capture(&self.state)
    }

    fn in_state(setup: &Setup, state: &[u8]) -> Quantities {
        let state = form::restore(setup, state);
        state.map_or_else(
            |_| Quantities::new(),
            |state: State| form::quantity(TOKENS, state.balance),
        )
    }

    fn in_message(_setup: &Setup, message: &[u8]) -> Quantities {
        let tokens = form::amount(message);
        tokens.map_or_else(Quantities::new, |tokens| form::quantity(TOKENS, tokens))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::application::trial::{self, Trial};

    fn setup(settings: Value) -> Setup {
        trial::setup(
            "token",
            &["p1→p2", "p1→p2#2", "p2→p1", "p3→p1"],
            0,
            settings,
        )
    }

    fn token(balance: u64) -> (Setup, Token, Trial) {
        let setup = setup(json!({ "balances": { "p1": balance } }));
        let token = Token::start(&setup).unwrap();
        let trial = Trial::new(&setup);
        (setup, token, trial)
    }

    fn sent(trial: &mut Trial) -> Vec<(String, u64)> {
        let sent = trial.sent().into_iter();
        sent.map(|(channel, message)| (channel.to_string(), form::amount(&message).unwrap()))
            .collect()
    }

    #[test]
    fn a_send_waits_for_its_funds_and_holds_up_those_behind_it() {
        let (_, mut token, mut trial) = token(5);
        for command in ["send p2 3", "send p2 4", "send p2 1"] {
            token.command(command, &mut trial.outputs()).unwrap();
        }
        assert_eq!(sent(&mut trial), [("p1→p2".to_owned(), 3)]);
        assert_eq!((token.balance(), token.pending()), (2, 2));
        let from = "p2→p1".parse().unwrap();
        token.handle(from, &3u64.to_le_bytes(), &mut trial.outputs());
        let both = [("p1→p2".to_owned(), 4), ("p1→p2".to_owned(), 1)];
        assert_eq!(sent(&mut trial), both);
        assert_eq!((token.balance(), token.pending()), (0, 0));
    }

    #[test]
    fn via_chooses_among_parallel_channels() {
        let (_, mut token, mut trial) = token(5);
        token
            .command("send p2 3 via 2", &mut trial.outputs())
            .unwrap();
        assert_eq!(sent(&mut trial), [("p1→p2#2".to_owned(), 3)]);
    }

    #[test]
    fn a_command_that_cannot_be_meant_is_refused_and_changes_nothing() {
        let (_, mut token, mut trial) = token(5);
        let before = token.clone();
        let mut refusal = |command| {
            let refused = token.command(command, &mut trial.outputs());
            refused.unwrap_err().to_string()
        };
        assert_eq!(
            refusal("send p3 1"),
            "there is no channel p1→p3; the outputs of p1 are: p1→p2, p1→p2#2"
        );
        assert!(refusal("send p2 1 via 3").contains("p1→p2#3"));
        assert!(refusal("send p2 many").contains("'many' is no number of tokens"));
        assert!(refusal("send p2 -1").contains("'-1' is no number of tokens"));
        assert!(refusal("send p2 1 via x").contains("'x' is no number of a channel"));
        assert!(refusal("give p2 1").contains("send TO TOKENS"));
        assert!(refusal("send p2 1 now").contains("send TO TOKENS"));
        assert_eq!(token, before);
        assert_eq!(sent(&mut trial), []);
    }

    #[test]
    fn sends_that_wait_are_bounded() {
        let (_, mut token, mut trial) = token(0);
        for _ in 0..PENDING_MAX {
            token.command("send p2 1", &mut trial.outputs()).unwrap();
        }
        let refusal = token
            .command("send p2 1", &mut trial.outputs())
            .unwrap_err();
        assert!(refusal.0.contains("4096 sends wait"), "{refusal}");
    }

    #[test]
    fn a_restored_process_still_has_its_pending_sends() {
        let (setup, mut token, mut trial) = token(5);
        for command in ["send p2 9 via 2", "send p2 1"] {
            token.command(command, &mut trial.outputs()).unwrap();
        }
        let state = token.capture()();
        let mut restored = Token::restore(&setup, &state).unwrap();
        assert_eq!(restored, token);
        assert_eq!(Token::in_state(&setup, &state)[TOKENS], 5);
        let from = "p3→p1".parse().unwrap();
        restored.handle(from, &5u64.to_le_bytes(), &mut trial.outputs());
        let both = [("p1→p2".to_owned(), 1), ("p1→p2#2".to_owned(), 9)];
        assert_eq!(sent(&mut trial), both);
    }

    #[test]
    fn foreign_and_torn_states_are_refused() {
        let (setup, mut token, mut trial) = token(5);
        token.command("send p2 9", &mut trial.outputs()).unwrap();
        let state = token.capture()();
        for end in 0..state.len() {
            let refusal = Token::restore(&setup, &state[..end]).unwrap_err();
            assert!(refusal.0.contains("no state of token"), "{refusal}");
        }
        let elsewhere = trial::setup("token", &["p1→p3", "p3→p2"], 0, json!({}));
        let refusal = Token::restore(&elsewhere, &state).unwrap_err();
        assert!(refusal.0.contains("no output of p1"), "{refusal}");
    }

    #[test]
    fn balances_go_by_name_and_must_name_processes() {
        let balance = |settings| Token::start(&setup(settings)).map(|token| token.balance());
        assert_eq!(balance(json!({})), Ok(0));
        assert_eq!(balance(json!({ "balance": 2 })), Ok(2));
        assert_eq!(
            balance(json!({ "balance": 2, "balances": { "p1": 7 } })),
            Ok(7)
        );
        let refusal = balance(json!({ "balances": { "p9": 7 } })).unwrap_err();
        assert!(refusal.0.contains("'p9', which is no process"), "{refusal}");
        let too_much = json!({ "balances": { "p2": u64::MAX, "p3": 1 } });
        assert!(
            balance(too_much)
                .unwrap_err()
                .0
                .contains("give smaller ones")
        );
    }

    #[test]
    fn a_malformed_message_is_counted_and_carries_nothing() {
        let (setup, mut token, mut trial) = token(5);
        token.handle("p2→p1".parse().unwrap(), b"", &mut trial.outputs());
        assert_eq!((token.balance(), token.state.malformed), (5, 1));
        assert_eq!(Token::in_message(&setup, b""), Quantities::new());
        assert_eq!(Token::in_message(&setup, &4u64.to_le_bytes())[TOKENS], 4);
    }
}
