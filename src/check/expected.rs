//! What is found where a scenario expects its snapshots to be right: the same on every engine.
//!
//! Of nothing everything is true. So where no complete snapshot is there to be judged, and where
//! no snapshot knows the quantity that is asked for, what is expected does not hold.

use std::collections::{BTreeMap, BTreeSet};

use super::verified::Verified;

/// What is found where nothing is there to be judged.
const NONE: &str = "no complete snapshot";

/// What is found instead, unless every verdict holds on every one of these.
pub fn unless_right(snapshots: &[Verified]) -> Option<String> {
    if snapshots.is_empty() {
        return Some(NONE.to_owned());
    }
    let failing = snapshots.iter().filter(|verified| !verified.holds);
    joined(failing.map(|verified| {
        let failing = verified.verdicts.failing().join(", ");
        format!("{} is not {failing}", verified.snapshot)
    }))
}

/// What is found instead, unless every one of these holds so much of each quantity, in states and
/// channels together.
pub fn unless_held(snapshots: &[Verified], wanted: &BTreeMap<String, i64>) -> Option<String> {
    if snapshots.is_empty() {
        return Some(NONE.to_owned());
    }
    let names = snapshots.iter().flat_map(|each| each.quantities.keys());
    let known: BTreeSet<&str> = names.map(String::as_str).collect();
    let mut others = Vec::new();
    for name in wanted.keys().filter(|name| !known.contains(name.as_str())) {
        let known: Vec<_> = known.iter().copied().collect();
        others.push(match known.is_empty() {
            true => format!("no quantity '{name}', nor any other"),
            false => format!("no quantity '{name}', only {}", known.join(", ")),
        });
    }
    for verified in snapshots {
        let wanted = wanted.iter();
        for (name, amount) in wanted.filter(|(name, _)| known.contains(name.as_str())) {
            let totals = verified.quantities.get(name).copied().unwrap_or_default();
            let found = totals.in_states.saturating_add(totals.in_channels);
            if found != i128::from(*amount) {
                others.push(format!("{name} = {found} in {}", verified.snapshot));
            }
        }
    }
    joined(others)
}

fn joined(found: impl IntoIterator<Item = String>) -> Option<String> {
    let found: Vec<_> = found.into_iter().collect();
    (!found.is_empty()).then(|| found.join("; "))
}
