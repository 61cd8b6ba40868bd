//! An order of what all processes did.
//!
//! Each process's own order is known, and that a message is handled after it was sent. Beyond
//! that there is no order, so one is chosen: by the wall time at which an event was written down,
//! except where that contradicts the vector clocks, since the clocks of two hosts never agree.

use std::collections::BTreeSet;

use crate::protocol::ids::ProcessId;
use crate::protocol::trace::Event;

/// An event, and when it was written down by the clock of its node: microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The event.
    pub event: Event,
    /// When.
    pub at_us: u64,
}

/// What happened in one generation, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The events.
    pub events: Vec<Event>,
    /// Who has events that cannot be placed, since they know of others that were not written down.
    pub left: Vec<Left>,
}

/// The rest of a process's events, from one on that knows too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The process.
    pub process: ProcessId,
    /// How many of its events are left.
    pub events: usize,
    /// Whose events are missing.
    pub missing: ProcessId,
    /// The event of that process that is known, by its own counter.
    pub known: u64,
    /// The last that was written down.
    pub written: u64,
}

/// Puts the events of one generation in an order that respects what was before what: at every step
/// the earliest, by wall time, of those that know only of events already placed. What remains
/// lies behind the latest consistent cut of the events that were written down.
pub fn linearise(processes: &[Vec<Logged>]) -> Order {
    let mut placing = Placing::new(processes);
    for process in 0..processes.len() {
        placing.look_at(process);
    }
    let mut events = Vec::with_capacity(processes.iter().map(Vec::len).sum());
    while let Some((_, process)) = placing.ready.pop_first() {
        let event = &processes[process][placing.next[process]].event;
        events.push(event.clone());
        placing.next[process] += 1;
        placing.placed[process] = event.clock.of(event.process);
        placing.look_at(process);
        placing.wake(process);
    }
    Order {
        events,
        left: placing.left(),
    }
}

struct Placing<'a> {
    processes: &'a [Vec<Logged>],
    /// For each process: the place of its next event, and the counter of its last one placed.
    next: Vec<usize>,
    placed: Vec<u64>,
    /// Next events that know only of what is placed, by wall time.
    ready: BTreeSet<(u64, usize)>,
    /// For each process, who waits for which of its events.
    waiting: Vec<Vec<(u64, usize)>>,
}

impl<'a> Placing<'a> {
    fn new(processes: &'a [Vec<Logged>]) -> Self {
        let count = processes.len();
        let firsts = processes.iter().map(|process| process.first());
        let starts: Vec<_> = firsts
            .map(|first| first.map(|logged| &logged.event))
            .collect();
        let before = |index: usize| match starts[index] {
            Some(start) => start.clock.of(start.process).saturating_sub(1),
            // Of a process without a trace: what the others know when they start.
            None => {
                let process = ProcessId::new(u32::try_from(index).unwrap_or(u32::MAX));
                let known = starts.iter().flatten();
                known
                    .map(|start| start.clock.of(process))
                    .max()
                    .unwrap_or(0)
            }
        };
        Self {
            processes,
            next: vec![0; count],
            placed: (0..count).map(before).collect(),
            ready: BTreeSet::new(),
            waiting: vec![Vec::new(); count],
        }
    }

    /// Whether the next event of a process is ready; if not, it waits for one of those it needs.
    fn look_at(&mut self, process: usize) {
        let Some(logged) = self.processes[process].get(self.next[process]) else {
            return;
        };
        match self.lacks(process) {
            None => drop(self.ready.insert((logged.at_us, process))),
            Some((other, known)) => self.waiting[other].push((known, process)),
        }
    }

    /// Another process, and an event of it that the next event of this one knows and that is not
    /// placed.
    fn lacks(&self, process: usize) -> Option<(usize, u64)> {
        let logged = self.processes[process].get(self.next[process])?;
        let known = logged.event.clock.counts().iter().enumerate();
        let mut others = known.filter(|(other, _)| *other != process && *other < self.placed.len());
        others.find_map(|(other, &known)| (known > self.placed[other]).then_some((other, known)))
    }

    /// One more event of this process is placed: who waits for it?
    fn wake(&mut self, process: usize) {
        let placed = self.placed[process];
        let (awake, asleep): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting[process])
            .into_iter()
            .partition(|(known, _)| *known <= placed);
        self.waiting[process] = asleep;
        for (_, waiting) in awake {
            self.look_at(waiting);
        }
    }

    fn left(&self) -> Vec<Left> {
        let id = |index: usize| ProcessId::new(u32::try_from(index).unwrap_or(u32::MAX));
        let left = (0..self.processes.len()).filter_map(|process| {
            let (missing, known) = self.lacks(process)?;
            let last = self.processes[missing].last();
            let last = last.map(|logged| logged.event.clock.of(id(missing)));
            Some(Left {
                process: id(process),
                events: self.processes[process].len() - self.next[process],
                missing: id(missing),
                known,
                written: last.unwrap_or(self.placed[missing]),
            })
        });
        left.collect()
    }
}
