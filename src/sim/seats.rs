//! The programs of a job, as far as the machines know nothing of them: whether one is stopped,
//! what waits until it goes on, and how often it has been started again.

use std::collections::BTreeSet;
use std::time::Duration;

use super::delays::micros;
use super::queue::Deed;
use crate::job::{Restarts, UsedRestarts};
use crate::protocol::events::Holding;
use crate::protocol::ids::{Incarnation, ProcessId};
use crate::scenario::Target;

/// The seats of all programs; the collector's comes last.
#[derive(Debug)]
pub(super) struct Seats {
    seats: Vec<Seat>,
    restarts: Restarts,
}

/// One program.
#[derive(Clone, Debug, Default)]
pub(super) struct Seat {
    pub(super) stopped: Option<Stopped>,
    /// What would have happened to it, or by it, while it was stopped.
    pub(super) parked: Vec<Deed>,
    /// When its application wants its next tick.
    pub(super) tick_us: u64,
    /// How far it was when it was last looked at.
    pub(super) known: Option<(Incarnation, Holding)>,
    /// When it was started last.
    pub(super) since_us: u64,
    /// How often it has been started again.
    restarts: UsedRestarts,
}

/// Why a program does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// A step has paused it.
    Paused,
    /// It is at a point, and will be killed there.
    Held,
}

impl Seat {
    /// Puts off what cannot happen while the program is stopped.
    pub(super) fn park(&mut self, deed: Deed) {
        if !self.parked.contains(&deed) {
            self.parked.push(deed);
        }
    }
}

impl Seats {
    pub(super) fn new(processes: usize, restarts: Restarts) -> Self {
        Self {
            seats: vec![Seat::default(); processes + 1],
            restarts,
        }
    }

    pub(super) fn of(&mut self, target: Target) -> &mut Seat {
        let last = self.seats.len() - 1;
        match target {
            Target::Node(process) => &mut self.seats[process.index()],
            Target::Collector => &mut self.seats[last],
        }
    }

    pub(super) fn node(&mut self, process: ProcessId) -> &mut Seat {
        self.of(Target::Node(process))
    }

    pub(super) fn stopped(&self, target: Target) -> Option<Stopped> {
        match target {
            Target::Node(process) => self.seats[process.index()].stopped,
            Target::Collector => self.seats.last().and_then(|seat| seat.stopped),
        }
    }

    /// Of these, those that are stopped.
    pub(super) fn are_stopped(&self, targets: &BTreeSet<Target>) -> bool {
        targets.iter().any(|target| self.stopped(*target).is_some())
    }

    /// After which pause a program is started again, unless it has died too often.
    pub(super) fn restart(&mut self, target: Target, now_us: u64) -> Option<u64> {
        let restarts = self.restarts;
        let used = &mut self.of(target).restarts;
        let pause = used.next(&restarts, Duration::from_micros(now_us));
        pause.map(micros)
    }
}
