//! The applications that come with the crate: enough to try a snapshot, to measure one, and to
//! see it proved. Each is an [`Application`] as a user would write it.

/// Compiles the examples of the page on applications.
#[cfg(doctest)]
#[doc = include_str!("../docs/applications.md")]
mod page {}

mod bank;
mod count;
mod form;
mod random;
mod token;
mod token_ring;

pub use bank::Bank;
pub use count::Count;
pub use random::SplitMix64;
pub use token::Token;
pub use token_ring::TokenRing;

use crate::protocol::application::{Application, Capture, Outputs, Pace, Quantities};
use crate::protocol::application::{Refusal, Setup};
use crate::protocol::ids::ChannelId;

/// Any of the applications that come with the crate; which one, the job file says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BuiltIn {
    /// Accounts that transfer random amounts.
    Bank(Bank),
    /// Tokens that move when they are told to.
    Token(Token),
    /// One token that goes round.
    TokenRing(TokenRing),
    /// Numbered messages, for measuring.
    Count(Count),
}

/// Which one a setup names.
#[derive(Clone, Copy)]
enum Kind {
    Bank,
    Token,
    TokenRing,
    Count,
}

impl Kind {
    fn of(setup: &Setup) -> Result<Self, Refusal> {
        match setup.application.as_str() {
            "bank" => Ok(Self::Bank),
            "token" => Ok(Self::Token),
            "token-ring" => Ok(Self::TokenRing),
            "count" => Ok(Self::Count),
            unknown => Err(Refusal(format!(
                "unknown application '{unknown}': the built-in ones are {}; \
                 for one of your own, name its program",
                BuiltIn::NAMES.join(", ")
            ))),
        }
    }
}

impl BuiltIn {
    /// The names that a job file may give.
    pub const NAMES: [&'static str; 4] = ["bank", "token", "token-ring", "count"];
}

impl Application for BuiltIn {
    fn state_version(setup: &Setup) -> u32 {
        match Kind::of(setup) {
            Ok(Kind::Bank) => Bank::state_version(setup),
            Ok(Kind::Token) => Token::state_version(setup),
            Ok(Kind::TokenRing) => TokenRing::state_version(setup),
            Ok(Kind::Count) => Count::state_version(setup),
            Err(_) => 0,
        }
    }

    fn start(setup: &Setup) -> Result<Self, Refusal> {
        match Kind::of(setup)? {
            Kind::Bank => Bank::start(setup).map(Self::Bank),
            Kind::Token => Token::start(setup).map(Self::Token),
            Kind::TokenRing => TokenRing::start(setup).map(Self::TokenRing),
            Kind::Count => Count::start(setup).map(Self::Count),
        }
    }

    fn restore(setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        match Kind::of(setup)? {
            Kind::Bank => Bank::restore(setup, state).map(Self::Bank),
            Kind::Token => Token::restore(setup, state).map(Self::Token),
            Kind::TokenRing => TokenRing::restore(setup, state).map(Self::TokenRing),
            Kind::Count => Count::restore(setup, state).map(Self::Count),
        }
    }

    fn handle(&mut self, from: ChannelId, message: &[u8], outputs: &mut Outputs<'_>) {
        match self {
            Self::Bank(bank) => bank.handle(from, message, outputs),
            Self::Token(token) => token.handle(from, message, outputs),
            Self::TokenRing(ring) => ring.handle(from, message, outputs),
            Self::Count(count) => count.handle(from, message, outputs),
        }
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        match self {
            Self::Bank(bank) => bank.tick(outputs),
            Self::Token(token) => token.tick(outputs),
            Self::TokenRing(ring) => ring.tick(outputs),
            Self::Count(count) => count.tick(outputs),
        }
    }

    fn command(&mut self, command: &str, outputs: &mut Outputs<'_>) -> Result<(), Refusal> {
        match self {
            Self::Bank(bank) => bank.command(command, outputs),
            Self::Token(token) => token.command(command, outputs),
            Self::TokenRing(ring) => ring.command(command, outputs),
            Self::Count(count) => count.command(command, outputs),
        }
    }

    fn capture(&self) -> Capture {
        match self {
            Self::Bank(bank) => bank.capture(),
            Self::Token(token) => token.capture(),
            Self::TokenRing(ring) => ring.capture(),
            Self::Count(count) => count.capture(),
        }
    }

    fn in_state(setup: &Setup, state: &[u8]) -> Quantities {
        match Kind::of(setup) {
            Ok(Kind::Bank) => Bank::in_state(setup, state),
            Ok(Kind::Token) => Token::in_state(setup, state),
            Ok(Kind::TokenRing) => TokenRing::in_state(setup, state),
            Ok(Kind::Count) => Count::in_state(setup, state),
            Err(_) => Quantities::new(),
        }
    }

    fn in_message(setup: &Setup, message: &[u8]) -> Quantities {
        match Kind::of(setup) {
            Ok(Kind::Bank) => Bank::in_message(setup, message),
            Ok(Kind::Token) => Token::in_message(setup, message),
            Ok(Kind::TokenRing) => TokenRing::in_message(setup, message),
            Ok(Kind::Count) => Count::in_message(setup, message),
            Err(_) => Quantities::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::application::trial::{self, Trial};

    fn setup(name: &str) -> Setup {
        trial::setup(name, &["p1→p2", "p2→p1", "p1→p3", "p3→p1"], 0, json!({}))
    }

    #[test]
    fn every_name_starts_an_application_that_its_own_state_restores() {
        for name in BuiltIn::NAMES {
            let setup = setup(name);
            let mut started = BuiltIn::start(&setup).expect(name);
            let mut trial = Trial::new(&setup);
            started.tick(&mut trial.outputs());
            let restored = BuiltIn::restore(&setup, &started.capture()());
            assert_eq!(restored.as_ref(), Ok(&started), "{name}");
        }
    }

    #[test]
    fn no_application_restores_the_state_of_another() {
        for name in BuiltIn::NAMES {
            let state = BuiltIn::start(&setup(name)).unwrap().capture()();
            for other in BuiltIn::NAMES.into_iter().filter(|&other| other != name) {
                let refused = BuiltIn::restore(&setup(other), &state).unwrap_err();
                assert!(refused.0.contains(other), "{name} as {other}: {refused}");
            }
        }
    }

    #[test]
    fn the_same_inputs_lead_to_the_same_states_and_messages() {
        for name in BuiltIn::NAMES {
            let run = || {
                let setup = setup(name);
                let (mut one, mut trial) = (BuiltIn::start(&setup).unwrap(), Trial::new(&setup));
                for number in 1u64..20 {
                    one.tick(&mut trial.outputs());
                    let from = ["p2→p1", "p3→p1"][usize::from(number % 3 == 0)];
                    let from = from.parse().unwrap();
                    one.handle(from, &number.to_le_bytes(), &mut trial.outputs());
                    let _ = one.command("send p3 2", &mut trial.outputs());
                }
                (one.capture()(), trial.sent())
            };
            assert_eq!(run(), run(), "{name}");
        }
    }

    #[test]
    fn quantities_are_those_of_the_named_application() {
        let held = |name: &str| {
            let setup = setup(name);
            let one = BuiltIn::start(&setup).unwrap();
            BuiltIn::in_state(&setup, &one.capture()())
        };
        assert_eq!(held("bank"), Quantities::from([("money".to_owned(), 1000)]));
        assert_eq!(held("token"), Quantities::from([("tokens".to_owned(), 0)]));
        assert_eq!(
            held("token-ring"),
            Quantities::from([("tokens".to_owned(), 1)])
        );
        assert_eq!(held("count"), Quantities::new());
        let message = 3u64.to_le_bytes();
        let carried = |name| BuiltIn::in_message(&setup(name), &message);
        assert_eq!(carried("bank"), Quantities::from([("money".to_owned(), 3)]));
        assert_eq!(
            carried("token"),
            Quantities::from([("tokens".to_owned(), 3)])
        );
        assert_eq!(carried("count"), Quantities::new());
    }

    #[test]
    fn messages_that_the_job_lets_not_pass_are_refused_at_the_start() {
        for (name, bytes) in [("bank", 8), ("token", 8), ("token-ring", 5), ("count", 32)] {
            let with = |message_bytes_max: u64| Setup {
                message_bytes_max,
                ..setup(name)
            };
            let state = BuiltIn::start(&with(bytes)).expect(name).capture()();
            let short = with(bytes - 1);
            let started = BuiltIn::start(&short);
            for refused in [started, BuiltIn::restore(&short, &state)] {
                let refusal = refused.expect_err(name).0;
                let words = format!("a message of {name} has {bytes} bytes, over limits.message");
                assert!(refusal.starts_with(&words), "{refusal}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let refusal = BuiltIn::start(&setup("blank")).unwrap_err().to_string();
        assert!(refusal.contains("'blank'"), "{refusal}");
        assert!(
            refusal.contains("bank, token, token-ring, count"),
            "{refusal}"
        );
    }
}
