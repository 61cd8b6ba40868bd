//! Snapshots that are to be deleted: a few at once, and the others wait in line. A store that
//! hangs keeps nothing waiting but them.

use std::collections::VecDeque;

use crate::protocol::ids::SnapshotId;

/// Snapshots that are deleted at once: enough to keep up with a job that completes many a second.
const AT_ONCE_MAX: usize = 16;

/// Deletions under way, and those whose turn has not come. The line holds an id for each snapshot
/// that this collector has completed and not deleted, and so is far shorter than what these take
/// in the store. What is left of it at the end is deleted under the next collector.
#[derive(Default)]
pub(super) struct Deletions {
    under_way: usize,
    waiting: VecDeque<SnapshotId>,
}

impl Deletions {
    /// This one is to be deleted, too.
    pub(super) fn add(&mut self, snapshot: SnapshotId) {
        self.waiting.push_back(snapshot);
    }

    /// The next one, if its turn has come: it is under way now.
    pub(super) fn begin(&mut self) -> Option<SnapshotId> {
        if self.under_way == AT_ONCE_MAX {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.under_way += 1;
        Some(next)
    }

    /// One that was under way is over.
    pub(super) fn done(&mut self) {
        self.under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_a_few_waits_for_its_turn_in_the_order_it_came() {
        let mut deletions = Deletions::default();
        let all: Vec<_> = (1..=40).map(SnapshotId::new).collect();
        for &snapshot in &all {
            deletions.add(snapshot);
        }
        let mut begun: Vec<_> = std::iter::from_fn(|| deletions.begin()).collect();
        assert_eq!(begun.len(), AT_ONCE_MAX, "of a store that hangs no more");
        while begun.len() < all.len() {
            deletions.done();
            begun.extend(deletions.begin());
            assert_eq!(deletions.begin(), None, "one for one");
        }
        assert_eq!(begun, all);
    }
}
