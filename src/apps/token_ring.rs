//! One token that goes round: whoever has it holds it for a while and passes it on.

use serde::{Deserialize, Serialize};

use super::form;
use crate::protocol::application::{Application, Capture, Outputs, Pace, Quantities};
use crate::protocol::application::{Refusal, Setup};
use crate::protocol::ids::ChannelId;

/// The quantity that is conserved: there is exactly one.
const TOKENS: &str = "tokens";

/// The whole message: there is only one thing to say.
const MESSAGE: &[u8] = b"token";

/// A process that the token visits. It starts at the first process of the topology, and each
/// process passes it to its first output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenRing {
    settings: Settings,
    output: ChannelId,
    state: State,
}

/// What the job file may say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// How long a process keeps the token.
    hold_ms: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { hold_ms: 20 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// 0 or 1. That it could count further is what lets a doubled token be seen.
    tokens: u64,
    /// Whether the hold has begun: the next tick passes the token on.
    holding: bool,
    /// How often the token has been here, the start included.
    visits: u64,
    /// Messages that are no token. They carry none, so ignoring them loses none.
    malformed: u64,
}

impl TokenRing {
    /// How often the token has been here.
    #[must_use]
    pub fn visits(&self) -> u64 {
        self.state.visits
    }

    fn with_state(setup: &Setup, state: State) -> Result<Self, Refusal> {
        let settings = setup.settings()?;
        form::check_length(setup, MESSAGE.len())?;
        let outputs = setup.topology.outputs(setup.process);
        let Some(&output) = outputs.first() else {
            return Err(Refusal(format!(
                "{} has no output to pass the token to: token-ring needs one at every process",
                setup.topology.name(setup.process)
            )));
        };
        Ok(Self {
            settings,
            output,
            state,
        })
    }
}

impl Application for TokenRing {
    fn start(setup: &Setup) -> Result<Self, Refusal> {
        let tokens = u64::from(setup.process.index() == 0);
        let state = State {
            tokens,
            holding: false,
            visits: tokens,
            malformed: 0,
        };
        Self::with_state(setup, state)
    }

    fn restore(setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        Self::with_state(setup, form::restore(setup, state)?)
    }

    fn handle(&mut self, _from: ChannelId, message: &[u8], _outputs: &mut Outputs<'_>) {
        if message == MESSAGE {
            self.state.tokens += 1;
            self.state.visits += 1;
        } else {
            self.state.malformed += 1;
        }
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        let state = &mut self.state;
        if state.tokens == 0 {
            return Pace::Idle;
        }
        if !state.holding && self.settings.hold_ms > 0 {
            state.holding = true;
            return Pace::After(self.settings.hold_ms);
        }
        state.holding = false;
        if outputs.send(self.output, MESSAGE).is_ok() {
            state.tokens -= 1;
        }
        Pace::Idle
    }

    fn capture(&self) -> Capture {
        form::capture(&self.state)
    }

    fn in_state(setup: &Setup, state: &[u8]) -> Quantities {
        let state = form::restore(setup, state);
        state.map_or_else(
            |_| Quantities::new(),
            |state: State| form::quantity(TOKENS, state.tokens),
        )
    }

    fn in_message(_setup: &Setup, message: &[u8]) -> Quantities {
        match message == MESSAGE {
            true => form::quantity(TOKENS, 1),
            false => Quantities::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::application::trial::{self, Trial};

    const RING: [&str; 3] = ["p1→p2", "p2→p3", "p3→p1"];

    fn ring(index: u32, settings: Value) -> (Setup, TokenRing, Trial) {
        let setup = trial::setup("token-ring", &RING, index, settings);
        let ring = TokenRing::start(&setup).unwrap();
        let trial = Trial::new(&setup);
        (setup, ring, trial)
    }

    fn tokens(setup: &Setup, ring: &TokenRing) -> i64 {
        TokenRing::in_state(setup, &ring.capture()())[TOKENS]
    }

    #[test]
    fn the_first_process_alone_starts_with_the_token() {
        let held = (0..3).map(|index| {
            let (setup, ring, _) = ring(index, json!({}));
            tokens(&setup, &ring)
        });
        assert_eq!(held.collect::<Vec<_>>(), [1, 0, 0]);
    }

    #[test]
    fn the_token_is_held_and_then_passed_on() {
        let (setup, mut ring, mut trial) = ring(0, json!({ "hold_ms": 30 }));
        assert_eq!(ring.tick(&mut trial.outputs()), Pace::After(30));
        assert_eq!(trial.sent(), []);
        assert_eq!(ring.tick(&mut trial.outputs()), Pace::Idle);
        let sent = trial.sent();
        assert_eq!(sent, [("p1→p2".parse().unwrap(), MESSAGE.to_vec())]);
        assert_eq!(TokenRing::in_message(&setup, &sent[0].1)[TOKENS], 1);
        assert_eq!(tokens(&setup, &ring), 0);
        assert_eq!(ring.tick(&mut trial.outputs()), Pace::Idle);
        assert_eq!(trial.sent(), []);
    }

    #[test]
    fn every_arrival_is_a_visit_that_begins_a_new_hold() {
        let (_, mut ring, mut trial) = ring(1, json!({}));
        for _ in 0..2 {
            ring.handle("p1→p2".parse().unwrap(), MESSAGE, &mut trial.outputs());
            assert_eq!(ring.tick(&mut trial.outputs()), Pace::After(20));
            assert_eq!(ring.tick(&mut trial.outputs()), Pace::Idle);
        }
        assert_eq!((ring.visits(), trial.sent().len()), (2, 2));
    }

    #[test]
    fn a_doubled_token_shows() {
        let (setup, mut ring, mut trial) = ring(0, json!({ "hold_ms": 0 }));
        ring.handle("p3→p1".parse().unwrap(), MESSAGE, &mut trial.outputs());
        assert_eq!(tokens(&setup, &ring), 2);
        ring.handle("p3→p1".parse().unwrap(), b"tokens", &mut trial.outputs());
        assert_eq!((tokens(&setup, &ring), ring.state.malformed), (2, 1));
        assert_eq!(TokenRing::in_message(&setup, b"tokens"), Quantities::new());
    }

    #[test]
    fn a_process_restored_while_it_holds_the_token_passes_it_on() {
        let (setup, mut ring, mut trial) = ring(0, json!({}));
        ring.tick(&mut trial.outputs());
        let state = ring.capture()();
        let mut restored = TokenRing::restore(&setup, &state).unwrap();
        assert_eq!(restored, ring);
        assert_eq!(restored.tick(&mut trial.outputs()), Pace::Idle);
        assert_eq!(trial.sent().len(), 1);
        for end in 0..state.len() {
            let refusal = TokenRing::restore(&setup, &state[..end]).unwrap_err();
            assert!(refusal.0.contains("no state of token-ring"), "{refusal}");
        }
    }

    #[test]
    fn a_process_without_an_output_is_refused_by_name() {
        let setup = trial::setup("token-ring", &["p1→p2"], 1, json!({}));
        let refusal = TokenRing::start(&setup).unwrap_err();
        assert!(refusal.0.starts_with("p2 has no output"), "{refusal}");
    }
}
