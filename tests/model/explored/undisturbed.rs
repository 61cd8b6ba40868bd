//! The same world without snapshots and faults: every state that its processes can be in
//! together. Whatever a job is taken back to, it must be one of these.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::rules::Rules;
use super::state::{State, Step};

/// All of them, each as one number, by the rules of the world without snapshots and faults.
pub(crate) fn states(alone: &Rules) -> HashSet<u64> {
    let (mut together, mut known) = (HashSet::new(), HashSet::new());
    let mut pending = vec![State::first(alone)];
    while let Some(state) = pending.pop() {
        together.extend(state.together());
        for step in alone.steps(&state) {
            let mut next = state.clone();
            if let Step::Choice(choice) = step {
                next.world.apply(&choice);
                next.world.take_notices();
            }
            let mut hasher = DefaultHasher::new();
            next.hash(&mut hasher);
            if known.insert(hasher.finish()) {
                pending.push(next);
            }
        }
    }
    together
}
