//! Killing programs at a named point: each is held where it next comes by, and killed there.

use std::collections::BTreeSet;

use super::Simulation;
use super::queue::Planned;
use super::seats::Stopped;
use crate::hold::Point;
use crate::protocol::application::Application;
use crate::protocol::records::Record;
use crate::scenario::Target;

/// Programs that are held at the same point are killed together, if they come by it within this:
/// as on real processes.
const TOGETHER_US: u64 = 300_000;

/// An order to hold a program at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Armed {
    /// Those that one step is about.
    group: usize,
    target: Target,
    point: Point,
    is_held: bool,
}

impl<A: Application> Simulation<'_, A> {
    /// Orders programs to be held. Answers with their group.
    pub(super) fn arm(&mut self, targets: &BTreeSet<Target>, point: Point) -> usize {
        self.groups += 1;
        let group = self.groups;
        self.armed.extend(targets.iter().map(|&target| Armed {
            group,
            target,
            point,
            is_held: false,
        }));
        group
    }

    /// Whether all of a group have been killed.
    pub(super) fn is_struck(&self, group: usize) -> bool {
        self.armed.iter().all(|armed| armed.group != group)
    }

    pub(super) fn is_armed(&self, target: Target, point: Point) -> bool {
        self.armed
            .iter()
            .any(|armed| armed.target == target && armed.point == point && !armed.is_held)
    }

    /// A program comes by a point: it is held there, if that was ordered.
    pub(super) fn reached(&mut self, target: Target, point: Point) {
        if self.armed.is_empty() || self.seats.stopped(target).is_some() {
            return;
        }
        let mut armed = self.armed.iter_mut();
        let Some(order) =
            armed.find(|armed| armed.target == target && armed.point == point && !armed.is_held)
        else {
            return;
        };
        order.is_held = true;
        let group = order.group;
        self.seats.of(target).stopped = Some(Stopped::Held);
        let mut of_group = self.armed.iter().filter(|armed| armed.group == group);
        if of_group.all(|armed| armed.is_held) {
            self.queue.forget(&Planned::Strike(group).into());
            self.queue.plan(Planned::Strike(group), 0);
        } else {
            self.queue.plan(Planned::Strike(group), TOGETHER_US);
        }
    }

    /// Kills those of a group that are held.
    pub(super) fn strike(&mut self, group: usize) {
        let (struck, left) = std::mem::take(&mut self.armed)
            .into_iter()
            .partition(|armed: &Armed| armed.group == group && armed.is_held);
        self.armed = left;
        for Armed { target, point, .. } in struck {
            // What it would have said next it has not said.
            let silently = matches!(point, Point::Stored | Point::Prepared);
            self.kill(target, silently);
            self.figures.killed_at(point);
        }
        self.is_news = true;
    }

    /// What was held here is gone, by whatever hand.
    pub(super) fn disarm(&mut self, target: Target) {
        self.armed
            .retain(|armed| armed.target != target || !armed.is_held);
    }
}

/// Whether a record begins a generation.
pub(super) const fn is_of_generation(record: &Record) -> bool {
    matches!(record, Record::Log(entry) if entry.generation.is_some())
}
