//! Whether recorded messages are precisely those in the channel: after the last one handled, up
//! to the last one sent.

use crate::protocol::cut::{ChannelFacts, Run};
use crate::protocol::ids::MessageNumber;

/// What is wrong with the state of one channel; nothing, if it is exact.
///
/// If more was handled than sent, nothing is in the channel and nothing may be recorded: that the
/// channel is negative is for another verdict to say.
pub(super) fn faults(handled: MessageNumber, sent: MessageNumber, recorded: &[Run]) -> Vec<String> {
    // Wide enough that the number behind the last one always exists.
    let (handled, sent) = (u128::from(handled.get()), u128::from(sent.get()));
    let mut faults = Vec::new();
    let mut runs: Vec<_> = recorded
        .iter()
        .map(|run| (u128::from(run.first.get()), u128::from(run.last.get())))
        .collect();
    if let Some((first, last)) = runs.iter().find(|(first, last)| first > last) {
        return vec![format!(
            "a run from m{first} to m{last} is recorded, which is none"
        )];
    }
    let ascending = runs.windows(2).all(|pair| pair[0].1 < pair[1].0);
    runs.sort_unstable();
    // The first number that is not accounted for.
    let mut next = handled + 1;
    for (mut first, mut last) in runs {
        if first <= handled {
            let both = numbers(first, last.min(handled));
            faults.push(format!("{both} recorded, but already handled"));
            first = handled + 1;
        }
        if last > sent.max(handled) {
            let unsent = numbers(first.max(sent + 1), last);
            faults.push(format!("{unsent} recorded, but not sent before the cut"));
            last = sent;
        }
        if first > last {
            continue;
        }
        if first > next {
            faults.push(format!("{} missing", numbers(next, first - 1)));
        }
        if first < next {
            faults.push(format!(
                "{} recorded twice",
                numbers(first, last.min(next - 1))
            ));
        }
        next = next.max(last + 1);
    }
    if next <= sent {
        faults.push(format!("{} missing", numbers(next, sent)));
    }
    if faults.is_empty() && !ascending {
        faults.push("recorded out of order".to_owned());
    }
    faults
}

/// Whether what marker and shares say of the two ends fits together: the marker came where it was
/// put, the receiver recorded nothing behind it and the sender nothing ahead.
pub(super) fn unmet(sender: &ChannelFacts, receiver: &ChannelFacts) -> Option<String> {
    let (put, came) = (sender.after?, receiver.after?);
    if put != came {
        return Some(format!(
            "its marker was put after {put} and came after {came}"
        ));
    }
    let behind = receiver.share.iter().any(|run| run.last > came);
    let ahead = sender.share.iter().any(|run| run.first <= put);
    (behind || ahead).then(|| format!("the shares of sender and receiver do not meet at {put}"))
}

fn numbers(first: u128, last: u128) -> String {
    if first == last {
        format!("m{first}")
    } else {
        format!("m{first}–m{last}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(handled: u64, sent: u64, runs: &[(u64, u64)]) -> Vec<String> {
        let number = MessageNumber::new;
        let runs: Vec<_> = runs
            .iter()
            .map(|&(first, last)| Run {
                first: number(first),
                last: number(last),
            })
            .collect();
        faults(number(handled), number(sent), &runs)
    }

    #[test]
    fn what_was_sent_and_not_handled_is_exact_in_any_number_of_runs() {
        assert!(found(3, 3, &[]).is_empty());
        assert!(found(3, 7, &[(4, 7)]).is_empty());
        assert!(found(3, 7, &[(4, 4), (5, 6), (7, 7)]).is_empty());
        assert!(found(u64::MAX - 1, u64::MAX, &[(u64::MAX, u64::MAX)]).is_empty());
    }

    #[test]
    fn a_missing_message_is_named() {
        assert_eq!(found(3, 7, &[]), ["m4–m7 missing"]);
        assert_eq!(found(3, 7, &[(4, 6)]), ["m7 missing"]);
        assert_eq!(found(3, 7, &[(5, 5), (7, 7)]), ["m4 missing", "m6 missing"]);
    }

    #[test]
    fn a_doubled_message_is_named() {
        assert_eq!(found(3, 7, &[(4, 6), (5, 7)]), ["m5–m6 recorded twice"]);
        assert_eq!(found(3, 7, &[(4, 7), (4, 7)]), ["m4–m7 recorded twice"]);
    }

    #[test]
    fn a_message_from_outside_the_channel_is_named() {
        assert_eq!(found(3, 4, &[(3, 4)]), ["m3 recorded, but already handled"]);
        assert_eq!(
            found(3, 4, &[(4, 6)]),
            ["m5–m6 recorded, but not sent before the cut"]
        );
        let far = ["m9 recorded, but not sent before the cut", "m4 missing"];
        assert_eq!(found(3, 4, &[(9, 9)]), far);
        assert_eq!(found(0, 1, &[(1, 1), (0, 0)]).len(), 1);
    }

    #[test]
    fn order_counts_even_if_nothing_is_missing() {
        assert_eq!(found(3, 5, &[(5, 5), (4, 4)]), ["recorded out of order"]);
        assert_eq!(
            found(3, 5, &[(5, 4)]),
            ["a run from m5 to m4 is recorded, which is none"]
        );
    }

    #[test]
    fn a_negative_channel_is_exact_if_nothing_is_recorded() {
        assert!(found(5, 3, &[]).is_empty());
        assert_eq!(
            found(5, 3, &[(4, 5)]),
            ["m4–m5 recorded, but already handled"]
        );
        assert_eq!(
            found(5, 3, &[(6, 6)]),
            ["m6 recorded, but not sent before the cut"]
        );
    }

    proptest! {
        /// Against the plainest definition: the numbers, one by one.
        #[test]
        fn it_holds_just_if_the_numbers_recorded_are_those_between(
            handled in 0u64..8,
            sent in 0u64..8,
            runs in prop::collection::vec((0u64..9, 0u64..4), 0..4),
        ) {
            let runs: Vec<_> = runs.iter().map(|&(first, more)| (first, first + more)).collect();
            let recorded: Vec<_> = runs.iter().flat_map(|&(first, last)| first..=last).collect();
            let between: Vec<_> = (handled + 1..=sent).collect();
            prop_assert_eq!(found(handled, sent, &runs).is_empty(), recorded == between);
        }
    }
}
