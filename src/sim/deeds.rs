//! What is planned, when its time has come.

use super::delays::micros;
use super::points::is_of_generation;
use super::queue::{Deed, Planned};
use super::seats::Stopped;
use super::{Simulation, Told};
use crate::hold::Point;
use crate::protocol::application::{Application, Pace};
use crate::protocol::events::{Order, Report};
use crate::protocol::frame::Frame;
use crate::protocol::ids::{ChannelId, Incarnation, ProcessId};
use crate::protocol::records::Record;
use crate::scenario::Target;
use crate::world::{Choice, Fate, Operation};

/// A node gives a sign of life so often within the collector's patience, and at least so often:
/// as real nodes do.
const BEATS: u32 = 5;
const BEAT_MAX_US: u64 = 1_000_000;

impl<A: Application> Simulation<'_, A> {
    pub(super) fn perform(&mut self, deed: Deed) {
        if let Some(target) = self.hindered(&deed) {
            self.seats.of(target).park(deed);
            return;
        }
        self.world.set_time(self.queue.now_us() / 1000);
        match deed {
            Deed::Choice(choice) => self.choose(choice),
            Deed::Planned(planned) => self.do_planned(planned),
        }
    }

    /// A program that is stopped, without which this cannot happen.
    fn hindered(&self, deed: &Deed) -> Option<Target> {
        let (first, second) = match *deed {
            Deed::Choice(choice) => match choice {
                Choice::Tick(process) => (Target::Node(process), None),
                Choice::Send(channel) | Choice::Hear(channel) => (Target::Node(channel.from), None),
                Choice::Take(channel)
                | Choice::Arrive(channel)
                | Choice::Acknowledge(channel)
                | Choice::Open(channel) => (Target::Node(channel.to), None),
                Choice::Report(process, _) => (Target::Collector, Some(Target::Node(process))),
                Choice::Direct(process, _) => (Target::Node(process), Some(Target::Collector)),
                _ => return None,
            },
            Deed::Planned(Planned::Store(number)) => {
                let mut operations = self.operations.iter();
                let operating = operations.find(|operating| operating.number == number)?;
                (operating.of.map_or(Target::Collector, Target::Node), None)
            }
            Deed::Planned(Planned::Connect(process) | Planned::Limit(process)) => {
                (Target::Node(process), None)
            }
            Deed::Planned(_) => return None,
        };
        if self.seats.stopped(first).is_some() {
            return Some(first);
        }
        // What one that is paused has said is on its way. One that is held has not said it yet.
        second.filter(|second| self.seats.stopped(*second) == Some(Stopped::Held))
    }

    fn choose(&mut self, choice: Choice) {
        match choice {
            Choice::Arrive(channel) => return self.arrive(channel),
            Choice::Hear(channel) => {
                let now_us = self.queue.now_us();
                let back = &mut self.lanes.of(channel).back;
                if back.next_us().is_some_and(|due_us| due_us <= now_us) {
                    back.pop();
                    self.world.apply(&choice);
                } else {
                    return self.look_at_channel(channel);
                }
            }
            Choice::Tick(process) => {
                self.world.apply(&choice);
                let pace = self
                    .world
                    .process(process)
                    .and_then(|machine| machine.pace());
                let pause_ms = match pace {
                    Some(Pace::After(pause_ms)) => u64::from(pause_ms),
                    _ => 0,
                };
                self.seats.node(process).tick_us = self.queue.now_us() + 1000 * pause_ms;
            }
            Choice::Send(channel) => {
                // A marker says how much of the limit is used up.
                if self.strikes_ms(channel.from).is_some() {
                    self.world.tell_process_time(channel.from);
                }
                self.world.apply(&choice);
            }
            Choice::Report(process, incarnation) => return self.report(process, incarnation),
            Choice::Direct(process, incarnation) => return self.direct(process, incarnation),
            _ => self.world.apply(&choice),
        }
        self.look();
    }

    /// The frame at the head of the wire arrives, if it is due.
    fn arrive(&mut self, channel: ChannelId) {
        let now_us = self.queue.now_us();
        let wire = &mut self.lanes.of(channel).wire;
        if wire.next_us().is_some_and(|due_us| due_us <= now_us) {
            wire.pop();
            let frame = self.world.wire(channel).next();
            if matches!(frame, Some(Frame::Marker(_))) {
                self.world.tell_process_time(channel.to);
            }
            self.world.apply(&Choice::Arrive(channel));
            self.look();
        } else {
            self.look_at_channel(channel);
        }
    }

    fn report(&mut self, process: ProcessId, incarnation: Incarnation) {
        let report = self.world.next_report(process, incarnation);
        let is_ready = matches!(report, Some(Report::Ready(_)));
        if self.world.collector().is_none() {
            return;
        }
        self.world.apply(&Choice::Report(process, incarnation));
        if is_ready {
            self.reached(Target::Node(process), Point::Ready);
        }
        self.look();
    }

    fn direct(&mut self, process: ProcessId, incarnation: Incarnation) {
        let directive = self.world.next_directive(process, incarnation);
        let order = directive.map(|directive| &directive.order);
        let reached = match order {
            Some(Order::Ended { .. }) => Some((Target::Collector, Point::Notice)),
            Some(Order::Prepare(..)) => Some((Target::Node(process), Point::Prepared)),
            _ => None,
        };
        if matches!(order, Some(Order::Trigger(..))) {
            self.world.tell_process_time(process);
        }
        self.world.apply(&Choice::Direct(process, incarnation));
        if let Some((target, point)) = reached {
            self.reached(target, point);
        }
        self.look();
    }

    fn do_planned(&mut self, planned: Planned) {
        match planned {
            Planned::Store(number) => self.operate(number),
            Planned::Start(process) => {
                self.seats.node(process).since_us = self.queue.now_us();
                self.world.apply(&Choice::Start(process));
                self.say(Told::Restarted(Some(process)));
                self.is_news = true;
            }
            Planned::StartCollector => {
                self.collectors += 1;
                self.world.start_collector_alone();
                for process in self.job.topology().clone().processes() {
                    self.connect(process);
                }
                self.say(Told::Restarted(None));
                self.is_news = true;
            }
            Planned::Connect(process) => self.world.connect(process),
            Planned::Clock => self.tell_time(),
            Planned::Limit(process) => self.world.tell_process_time(process),
            Planned::Beat => self.beat(),
            Planned::Look(_) => self.is_news = true,
            Planned::Strike(group) => self.strike(group),
            Planned::Pass => return self.pass(),
        }
        self.look();
    }

    /// An operation of the store is done. A collector that is to be killed before it says what it
    /// has written is killed before it hears of it.
    fn operate(&mut self, number: u64) {
        let mut operations = self.operations.iter();
        let Some(index) = operations.position(|operating| operating.number == number) else {
            return;
        };
        if self.seats.stopped(Target::Collector).is_none() {
            self.world.tell_collector_time();
        }
        self.operations.remove(index);
        let reached = match &self.world.pending()[index] {
            Operation::Put(process, ..) => Some((Target::Node(*process), Point::Stored)),
            Operation::Create(Record::Manifest(manifest)) if manifest.is_complete() => {
                Some((Target::Collector, Point::Manifest))
            }
            Operation::Create(record) if is_of_generation(record) => {
                Some((Target::Collector, Point::Generation))
            }
            _ => None,
        };
        let is_armed = reached.is_some_and(|(target, point)| self.is_armed(target, point));
        let of_collector = matches!(reached, Some((Target::Collector, _)));
        let fate = match is_armed && of_collector {
            true => Fate::Unknown,
            false => Fate::Done,
        };
        self.world.apply(&Choice::Store(index, fate));
        if let Some((target, point)) = reached {
            self.reached(target, point);
        }
        self.is_news = true;
    }

    /// The node of a process turns to a new collector; one that is stopped, when it goes on.
    fn connect(&mut self, process: ProcessId) {
        if self.seats.stopped(Target::Node(process)).is_some() {
            self.seats
                .node(process)
                .park(Planned::Connect(process).into());
        } else {
            self.world.connect(process);
        }
    }

    fn tell_time(&mut self) {
        for process in self.job.topology().clone().processes() {
            if self.seats.stopped(Target::Node(process)).is_none() {
                self.world.tell_process_time(process);
            }
        }
        if self.seats.stopped(Target::Collector).is_none() {
            self.world.tell_collector_time();
        }
        let clock_us = self.drawing.delays().clock_us;
        self.queue.plan(Planned::Clock, clock_us);
    }

    fn beat(&mut self) {
        if self.seats.stopped(Target::Collector).is_none() {
            for process in self.job.topology().clone().processes() {
                if self.seats.stopped(Target::Node(process)).is_none() {
                    self.world.beat(process);
                }
            }
        }
        self.queue.plan(Planned::Beat, self.beat_us());
    }

    pub(super) fn beat_us(&self) -> u64 {
        (micros(self.job.silence()) / u64::from(BEATS)).min(BEAT_MAX_US)
    }

    /// A tick of the course: each process hands over at most one packet.
    fn pass(&mut self) {
        let now_us = self.queue.now_us();
        let topology = self.job.topology().clone();
        for process in topology.processes() {
            let outputs = topology.outputs(process);
            let due = outputs.into_iter().find(|&channel| {
                let due_us = self.lanes.of(channel).wire.next_us();
                due_us.is_some_and(|due_us| due_us <= now_us)
            });
            if let Some(channel) = due {
                self.perform(Deed::Choice(Choice::Arrive(channel)));
                self.settle();
            }
        }
        let tick_us = self.drawing.tick_us().unwrap_or(1);
        self.queue.plan(Planned::Pass, tick_us);
    }
}
