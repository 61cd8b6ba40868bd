//! What goes wrong: programs killed, stopped and replaced, streams broken.

use super::Simulation;
use super::delays::micros;
use super::queue::{Deed, Planned};
use super::seats::Stopped;
use crate::protocol::application::Application;
use crate::protocol::ids::{ChannelId, ProcessId};
use crate::scenario::Target;
use crate::world::{Choice, Fault};

impl<A: Application> Simulation<'_, A> {
    /// Whether a program is there.
    pub(super) fn is_up(&self, target: Target) -> bool {
        match target {
            Target::Node(process) => self.world.process(process).is_some(),
            Target::Collector => self.world.collector().is_some(),
        }
    }

    /// Kills a program; `silently`, before what it has said leaves it. Answers whether there was
    /// one to kill.
    pub(super) fn kill(&mut self, target: Target, silently: bool) -> bool {
        if !self.is_up(target) {
            return false;
        }
        match target {
            Target::Node(process) => {
                self.figures.killed_nodes += 1;
                if silently {
                    self.world.crash_silently(process);
                } else {
                    self.world.apply(&Choice::Fault(Fault::Crash(process)));
                }
            }
            Target::Collector => {
                self.figures.killed_collectors += 1;
                self.operations.retain(|operating| operating.of.is_some());
                self.world.apply(&Choice::Fault(Fault::CrashCollector));
                self.is_gone(Target::Collector);
            }
        }
        self.look();
        true
    }

    /// The node of a process is gone, and all that it was writing.
    pub(super) fn has_crashed(&mut self, process: ProcessId) {
        self.operations
            .retain(|operating| operating.of != Some(process));
        self.is_gone(Target::Node(process));
    }

    /// A program is gone: whoever runs the job starts it again, unless it has died too often.
    fn is_gone(&mut self, target: Target) {
        self.disarm(target);
        let seat = self.seats.of(target);
        seat.stopped = None;
        seat.known = None;
        seat.tick_us = 0;
        for deed in std::mem::take(&mut seat.parked) {
            self.queue.forget(&deed);
        }
        let starting_us = self.drawing.of(|delays| delays.starting);
        match self.seats.restart(target, self.queue.now_us()) {
            Some(pause_us) => {
                let start = match target {
                    Target::Node(process) => Planned::Start(process),
                    Target::Collector => Planned::StartCollector,
                };
                self.queue.plan(start, pause_us + starting_us);
            }
            None => {
                let name = target.name(self.job.topology());
                let reason = format!("{name} has died more often than [restarts] allows");
                self.ended.get_or_insert(Err(reason));
            }
        }
    }

    /// The collector wants another node in the place of one that does not answer, or no longer
    /// has to. The old program ends when it is replaced.
    pub(super) fn replace(&mut self, process: ProcessId) {
        if self.is_up(Target::Node(process)) {
            self.figures.replaced += 1;
            self.world.apply(&Choice::Fault(Fault::Crash(process)));
            self.look();
        }
    }

    /// The collector has waited long for a node of this process. One that has just been started
    /// may still come: whoever runs the job leaves it, as on real processes.
    pub(super) fn give_up(&mut self, process: ProcessId) {
        let up_us = self.queue.now_us() - self.seats.node(process).since_us;
        if up_us >= micros(self.job.silence()) {
            self.replace(process);
        }
    }

    pub(super) fn pause(&mut self, target: Target) {
        if self.is_up(target) {
            self.figures.paused += 1;
            self.seats.of(target).stopped.get_or_insert(Stopped::Paused);
        }
    }

    /// What it has missed happens now.
    pub(super) fn resume(&mut self, target: Target) {
        let seat = self.seats.of(target);
        if seat.stopped == Some(Stopped::Paused) {
            seat.stopped = None;
            for deed in std::mem::take(&mut seat.parked) {
                self.queue.plan(deed, 0);
            }
        }
    }

    /// The stream of a channel breaks, with what is on it. Answers whether there was one.
    pub(super) fn break_stream(&mut self, channel: ChannelId) -> bool {
        let is_open = self.world.has_stream(channel);
        if is_open {
            self.figures.broken(self.world.wire(channel));
            self.world.apply(&Choice::Fault(Fault::Break(channel)));
            self.look();
        }
        is_open
    }

    /// What waits to happen at once after a step, in a discipline in which nothing takes time.
    pub(super) fn is_timeless(&self) -> bool {
        self.drawing.tick_us().is_some()
    }

    /// When somebody is to look again.
    pub(super) fn look_at(&mut self, at_us: u64) {
        let after_us = at_us.saturating_sub(self.queue.now_us());
        self.queue.plan(Deed::from(Planned::Look(at_us)), after_us);
    }
}
