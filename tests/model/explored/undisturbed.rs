//! The same world without snapshots and faults: every state that its processes can be in
//! together. Whatever a job is taken back to, it must be one of these.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::case::{Case, Trouble};
use super::state::{State, Step};

/// All of them, each as one number.
pub(crate) fn states(case: &Case) -> HashSet<u64> {
    let alone = Case {
        snapshots: 0,
        trouble: Trouble::Nothing,
        ..*case
    };
    let (mut together, mut known) = (HashSet::new(), HashSet::new());
    let mut pending = vec![State::first(&alone)];
    while let Some(state) = pending.pop() {
        together.extend(state.together());
        for step in state.steps(&alone) {
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
