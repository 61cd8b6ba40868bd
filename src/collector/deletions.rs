//! Snapshots that are to be deleted: a few at once, and the others wait in line. A store that
//! hangs keeps nothing waiting but them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::protocol::ids::SnapshotId;

/// Snapshots that are deleted at once: enough to keep up with a job that completes many a second.
const AT_ONCE_MAX: usize = 16;

/// How long a snapshot waits in line, and how many may. What waits longer, or is one more, is left
/// to the next collector: a store that hangs for longer than this would do so for them, too; and a
/// program that was stopped meanwhile may have a successor, to which a snapshot is worth something.
const WAIT_MAX: Duration = Duration::from_secs(10);
const WAITING_MAX: usize = 1024;

/// Deletions under way, and those whose turn has not come.
#[derive(Default)]
pub(super) struct Deletions {
    under_way: usize,
    waiting: VecDeque<(SnapshotId, Instant)>,
}

impl Deletions {
    /// This one is to be deleted, too.
    pub(super) fn add(&mut self, snapshot: SnapshotId, now: Instant) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back((snapshot, now));
        }
    }

    /// The next one, if its turn has come: it is under way now.
    pub(super) fn begin(&mut self, now: Instant) -> Option<SnapshotId> {
        if self.under_way == AT_ONCE_MAX {
            return None;
        }
        let is_late = |&mut (_, since): &mut (SnapshotId, Instant)| now - since > WAIT_MAX;
        while self.waiting.pop_front_if(is_late).is_some() {}
        let (next, _) = self.waiting.pop_front()?;
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
        let now = Instant::now();
        for &snapshot in &all {
            deletions.add(snapshot, now);
        }
        let mut begun: Vec<_> = std::iter::from_fn(|| deletions.begin(now)).collect();
        assert_eq!(begun.len(), AT_ONCE_MAX, "of a store that hangs no more");
        while begun.len() < all.len() {
            deletions.done();
            begun.extend(deletions.begin(now));
            assert_eq!(deletions.begin(now), None, "one for one");
        }
        assert_eq!(begun, all);
    }

    #[test]
    fn what_has_waited_too_long_or_is_too_many_is_left_alone() {
        let mut deletions = Deletions::default();
        let (now, id) = (Instant::now(), SnapshotId::new);
        deletions.add(id(1), now);
        let later = now + WAIT_MAX + Duration::from_millis(1);
        deletions.add(id(2), later);
        assert_eq!(deletions.begin(later), Some(id(2)));
        for number in 3..3 + 2 * WAITING_MAX as u64 {
            deletions.add(id(number), later);
        }
        assert_eq!(deletions.waiting.len(), WAITING_MAX);
    }
}
