//! Vector clocks (Fidge, Mattern): how much of every process an event can know of.
//!
//! They decide nothing. Where a job is traced, they travel with its messages, so that what is
//! written down can be put in an order, and a cut be judged (`causal`) without a look at numbers.

use serde::{Deserialize, Serialize};

use super::ids::ProcessId;

/// For every process, how many of its events happened before, this one included.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Clock(Vec<u64>);

impl Clock {
    /// The clock of a process that has done nothing, among so many.
    pub fn new(processes: usize) -> Self {
        Self(vec![0; processes])
    }

    /// A clock as it was stored or sent; none, if it has no counters.
    pub fn of_counts(counts: Vec<u64>) -> Option<Self> {
        (!counts.is_empty()).then_some(Self(counts))
    }

    /// The counters, in the order of the processes.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// How many events of a process it knows; 0 of one that it has never heard of.
    pub fn of(&self, process: ProcessId) -> u64 {
        self.0.get(process.index()).copied().unwrap_or_default()
    }

    /// One more event of this process.
    pub fn tick(&mut self, process: ProcessId) {
        self.0[process.index()] += 1;
    }

    /// What another clock knows is known here too.
    pub fn learn(&mut self, other: &Self) {
        for (own, &others) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(others);
        }
    }

    /// What a process knows of itself, and of no other.
    pub(super) fn alone(&self, process: ProcessId) -> Self {
        let mut alone = Self::new(self.0.len());
        if let Some(own) = alone.0.get_mut(process.index()) {
            *own = self.of(process);
        }
        alone
    }

    /// Sets every counter, as far as both clocks have one.
    pub(super) fn resume(&mut self, from: &Self) {
        self.0.fill(0);
        self.learn(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_counts_its_own_events_and_learns_of_the_others() {
        let (one, other) = (ProcessId::new(0), ProcessId::new(1));
        let mut clock = Clock::new(2);
        clock.tick(one);
        let mut heard = Clock::new(2);
        heard.tick(other);
        heard.tick(other);
        clock.learn(&heard);
        clock.tick(one);
        assert_eq!(clock.counts(), [2, 2]);
        assert_eq!(clock.of(ProcessId::new(7)), 0);
        heard.resume(&Clock::new(1));
        assert_eq!(heard.counts(), [0, 0]);
    }
}
