//! How the built-in applications store their states (JSON, so that a stored part can be read) and
//! write amounts into messages.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::protocol::application::{Capture, Quantities, Refusal, Setup};

/// The length of an amount at the start of a message.
pub(super) const AMOUNT_BYTES: usize = 8;

/// What all balances of a job together may be, and so the most that one message can carry. Far
/// under `i64::MAX`: summing up what a faulty snapshot claims to hold must not overflow.
pub(super) const TOTAL_MAX: u64 = 1 << 48;

/// Copies a state now and encodes the copy later.
pub(super) fn capture<S>(state: &S) -> Capture
where
    S: Serialize + Clone + Send + 'static,
{
    let state = state.clone();
    Box::new(move || serde_json::to_vec(&state).expect("no map keys but strings, no floats"))
}

/// Reads a state that [`capture`] has encoded.
pub(super) fn restore<S: DeserializeOwned>(setup: &Setup, state: &[u8]) -> Result<S, Refusal> {
    serde_json::from_slice(state).map_err(|error| {
        let application = &setup.application;
        Refusal(format!(
            "these bytes are no state of {application}: {error}"
        ))
    })
}

/// The amount at the start of a message; what follows is padding.
pub(super) fn amount(message: &[u8]) -> Option<u64> {
    let (amount, _) = message.split_first_chunk::<AMOUNT_BYTES>()?;
    let amount = u64::from_le_bytes(*amount);
    (amount <= TOTAL_MAX).then_some(amount)
}

/// One quantity by its name.
pub(super) fn quantity(name: &str, amount: u64) -> Quantities {
    let amount = i64::try_from(amount).unwrap_or(i64::MAX);
    Quantities::from([(name.to_owned(), amount)])
}

/// Refuses balances whose sum over all processes is over [`TOTAL_MAX`].
pub(super) fn check_total(balances: impl IntoIterator<Item = u64>) -> Result<(), Refusal> {
    let total = balances.into_iter().try_fold(0u64, u64::checked_add);
    if total.is_some_and(|total| total <= TOTAL_MAX) {
        return Ok(());
    }
    Err(Refusal(format!(
        "the balances of all processes add up to more than {TOTAL_MAX}: give smaller ones"
    )))
}

/// Refuses settings by which messages of so many bytes are sent, where the job lets none so long
/// pass: whoever only finds out when it sends has nothing left to do.
pub(super) fn check_length(setup: &Setup, bytes: usize) -> Result<(), Refusal> {
    let (application, bytes_max) = (&setup.application, setup.message_bytes_max);
    if bytes as u64 <= bytes_max {
        return Ok(());
    }
    Err(Refusal(format!(
        "a message of {application} has {bytes} bytes, over limits.message_bytes_max = \
         {bytes_max}: raise that, or make it shorter"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_too_short_or_over_the_total_carries_no_amount() {
        assert_eq!(amount(&7u64.to_le_bytes()), Some(7));
        assert_eq!(amount(b"\x07\0\0\0\0\0\0\0padding"), Some(7));
        assert_eq!(amount(b"seven"), None);
        assert_eq!(amount(&(TOTAL_MAX + 1).to_le_bytes()), None);
    }

    #[test]
    fn balances_over_the_total_are_refused() {
        assert_eq!(check_total([TOTAL_MAX - 1, 1]), Ok(()));
        assert!(check_total([TOTAL_MAX, 1]).is_err());
        assert!(check_total([u64::MAX, 1]).is_err());
    }
}
