//! What is to happen when: deeds in the order of virtual time, each planned at most once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::protocol::ids::ProcessId;
use crate::world::Choice;

/// Something that is to happen at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Planned {
    /// The store is done with the operation of this number.
    Store(u64),
    /// The node of a process is started again.
    Start(ProcessId),
    /// The collector is started again.
    StartCollector,
    /// The node of a process opens a control stream to the collector.
    Connect(ProcessId),
    /// Machines are told the time.
    Clock,
    /// The limit of a snapshot strikes at a process.
    Limit(ProcessId),
    /// Nodes give signs of life.
    Beat,
    /// Whoever conducts the scenario looks how it stands.
    Look(u64),
    /// What is held at a point is killed, in the order of this number.
    Strike(usize),
    /// The links hand over what is due, by the discipline of the course.
    Pass,
}

/// Something that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Deed {
    /// A choice of the world.
    Choice(Choice),
    /// Anything else.
    Planned(Planned),
}

impl From<Planned> for Deed {
    fn from(planned: Planned) -> Self {
        Self::Planned(planned)
    }
}

/// Deeds by time. Of those at one moment, what was planned first comes first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    deeds: HashMap<u64, Deed>,
    numbers: HashMap<Deed, u64>,
    last: u64,
    now_us: u64,
}

impl Queue {
    /// The time, in microseconds since the job began.
    pub(super) const fn now_us(&self) -> u64 {
        self.now_us
    }

    pub(super) fn has(&self, deed: &Deed) -> bool {
        self.numbers.contains_key(deed)
    }

    /// Plans a deed after so many microseconds, unless it is planned already.
    pub(super) fn plan(&mut self, deed: impl Into<Deed>, after_us: u64) {
        let deed = deed.into();
        if !self.has(&deed) {
            self.last += 1;
            self.numbers.insert(deed, self.last);
            self.deeds.insert(self.last, deed);
            let at_us = self.now_us.saturating_add(after_us);
            self.heap.push(Reverse((at_us, self.last)));
        }
    }

    pub(super) fn forget(&mut self, deed: &Deed) {
        if let Some(number) = self.numbers.remove(deed) {
            self.deeds.remove(&number);
        }
    }

    /// When the next deed is due.
    pub(super) fn next_us(&mut self) -> Option<u64> {
        while let Some(Reverse((at_us, number))) = self.heap.peek() {
            if self.deeds.contains_key(number) {
                return Some(*at_us);
            }
            self.heap.pop();
        }
        None
    }

    /// The next deed; its moment is now.
    pub(super) fn next(&mut self) -> Option<Deed> {
        self.next_us()?;
        let Reverse((at_us, number)) = self.heap.pop()?;
        let deed = self.deeds.remove(&number)?;
        self.numbers.remove(&deed);
        self.now_us = at_us;
        Some(deed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeds_come_by_time_and_those_of_one_moment_as_they_were_planned() {
        let mut queue = Queue::default();
        queue.plan(Planned::Clock, 20);
        queue.plan(Planned::Beat, 10);
        queue.plan(Planned::Pass, 20);
        queue.plan(Planned::Beat, 5);
        let mut order = Vec::new();
        while let Some(deed) = queue.next() {
            order.push((queue.now_us(), deed));
        }
        let expected = [
            (10, Planned::Beat),
            (20, Planned::Clock),
            (20, Planned::Pass),
        ];
        assert_eq!(order, expected.map(|(at, deed)| (at, deed.into())));
    }

    #[test]
    fn what_is_forgotten_does_not_happen() {
        let mut queue = Queue::default();
        queue.plan(Planned::Clock, 1);
        queue.plan(Planned::Beat, 2);
        queue.forget(&Planned::Clock.into());
        assert_eq!(queue.next_us(), Some(2));
        queue.plan(Planned::Clock, 3);
        assert_eq!(queue.next(), Some(Planned::Beat.into()));
        assert_eq!(queue.next(), Some(Planned::Clock.into()));
        assert_eq!(queue.next(), None);
    }
}
