//! From what a deed has touched to what can happen next, and when.

use super::queue::{Deed, Planned};
use super::{Operating, Simulation, Told};
use crate::hold::Point;
use crate::protocol::application::Application;
use crate::protocol::collector::Announcement;
use crate::protocol::ids::{ChannelId, Incarnation, ProcessId};
use crate::protocol::records::Record;
use crate::scenario::Target;
use crate::world::{Choice, Notice, Operation, Touched, World};

impl<A: Application> Simulation<'_, A> {
    /// Looks at what has been touched, and plans what has become possible.
    pub(super) fn look(&mut self) {
        let mut touched = Vec::new();
        self.world.take_touched(&mut touched);
        for place in &touched {
            if let Touched::Crashed(process) = place {
                self.has_crashed(*process);
            }
        }
        for place in touched {
            match place {
                Touched::Process(process) => self.look_at_process(process),
                Touched::Link(channel) => self.look_at_channel(channel),
                Touched::Control(process, incarnation) => {
                    self.look_at_control(process, incarnation);
                }
                Touched::Crashed(_) => {}
            }
        }
        self.look_at_store();
        for notice in self.world.take_notices() {
            self.hear(notice);
        }
        if self.ended.is_none() {
            self.ended.clone_from(&self.world.ended);
        }
    }

    pub(super) fn look_at_process(&mut self, process: ProcessId) {
        let mut choices = Vec::new();
        self.world.process_choices(process, &mut choices);
        for choice in choices {
            self.plan(choice);
        }
        if let Some(strikes_ms) = self.strikes_ms(process) {
            let strikes_us = 1000 * strikes_ms;
            let limit = Planned::Limit(process);
            self.queue.forget(&limit.into());
            let after_us = strikes_us.saturating_sub(self.queue.now_us());
            self.queue.plan(limit, after_us);
        }
        // A hello may have waited for the generation that the process holds now.
        let machine = self.world.process(process);
        let known = machine.map(|machine| (machine.incarnation(), machine.holding()));
        let seat = self.seats.node(process);
        if seat.known != known {
            seat.known = known;
            for channel in self.job.topology().clone().inputs(process) {
                self.look_at_channel(channel);
            }
        }
    }

    /// When the limit of a snapshot strikes at a process.
    pub(super) fn strikes_ms(&self, process: ProcessId) -> Option<u64> {
        self.world.process(process)?.strikes_ms()
    }

    fn plan(&mut self, choice: Choice) {
        let deed = Deed::Choice(choice);
        if self.queue.has(&deed) {
            return;
        }
        let after_us = match choice {
            Choice::Tick(process) => {
                let due_us = self.seats.node(process).tick_us;
                let handling_us = self.drawing.of(|delays| delays.handling);
                due_us.saturating_sub(self.queue.now_us()).max(handling_us)
            }
            Choice::Take(_) => self.drawing.of(|delays| delays.handling),
            Choice::Send(_) | Choice::Acknowledge(_) => self.drawing.of(|delays| delays.writing),
            Choice::Report(..) | Choice::Direct(..) => self.drawing.of(|delays| delays.control),
            _ => self.drawing.of(|delays| delays.channel),
        };
        self.queue.plan(deed, after_us);
    }

    /// What is new on the way gets its time; what is next on it is planned.
    pub(super) fn look_at_channel(&mut self, channel: ChannelId) {
        let now_us = self.queue.now_us();
        let wire = self.world.on_the_wire(channel);
        let lane = self.lanes.of(channel);
        lane.wire.shorten(wire);
        for frame in self.world.wire(channel).skip(lane.wire.len()) {
            self.figures.written(frame);
            lane.wire.push(now_us + self.drawing.frame());
        }
        let back = self.world.on_the_way_back(channel);
        lane.back.shorten(back);
        while lane.back.len() < back {
            let after_us = self.drawing.of(|delays| delays.channel);
            lane.back.push(now_us + after_us);
        }
        // In the course, only a tick hands anything over.
        let wire_us = lane.wire.next_us();
        let wire_us = wire_us.filter(|_| self.drawing.tick_us().is_none());
        let due = [
            (Choice::Arrive(channel), wire_us),
            (Choice::Hear(channel), lane.back.next_us()),
        ];
        for (choice, due_us) in due {
            if let Some(due_us) = due_us {
                let after_us = due_us.saturating_sub(now_us);
                self.queue.plan(Deed::Choice(choice), after_us);
            }
        }
        let mut choices = Vec::new();
        self.world.channel_choices(channel, &mut choices);
        if choices.contains(&Choice::Open(channel)) {
            self.plan(Choice::Open(channel));
        }
    }

    pub(super) fn look_at_control_of(&mut self, process: ProcessId) {
        if let Some(machine) = self.world.process(process) {
            let incarnation = machine.incarnation();
            self.look_at_control(process, incarnation);
        }
    }

    fn look_at_control(&mut self, process: ProcessId, incarnation: Incarnation) {
        let (up, down) = self.world.words(process, incarnation);
        if up > 0 {
            self.plan(Choice::Report(process, incarnation));
        }
        if down > 0 {
            self.plan(Choice::Direct(process, incarnation));
        }
    }

    /// New operations get their time, and their number: places in the list of those under way
    /// change.
    fn look_at_store(&mut self) {
        let mut reached = Vec::new();
        let known = self.operations.len();
        for operation in self.world.pending().get(known..).unwrap_or_default() {
            self.operations_count += 1;
            let number = self.operations_count;
            let of = World::<A>::waits_for(operation);
            self.operations.push(Operating { number, of });
            let after_us = self.drawing.of(|delays| delays.store);
            self.queue.plan(Planned::Store(number), after_us);
            reached.extend(match operation {
                Operation::Create(Record::Manifest(manifest)) if manifest.is_complete() => {
                    Some((Target::Collector, Point::PartsIn))
                }
                _ => None,
            });
        }
        for (target, point) in reached {
            self.reached(target, point);
        }
    }

    fn hear(&mut self, notice: Notice) {
        match notice {
            Notice::Recorded(process, _) => {
                self.reached(Target::Node(process), Point::Recorded);
            }
            Notice::Whole(process, _) => self.reached(Target::Node(process), Point::Uploading),
            Notice::Breach(channel, breach) => {
                let channel = self.job.topology().channel_name(channel);
                self.fail(format!("the stream of {channel} broke a rule: {breach}"));
            }
            Notice::Refused(..) => self.figures.refused += 1,
            Notice::Announced(announcement) => self.announced(&announcement),
            Notice::Replace(process) => self.replace(process),
            Notice::Absent(process) => self.give_up(process),
            // Of a node that has ended by itself the crash is heard; a command's is asked for.
            Notice::Failed(_, reason) => self.refusal = Some(reason),
        }
    }

    fn announced(&mut self, announcement: &Announcement) {
        let now_us = self.queue.now_us();
        self.say(Told::Happened(announcement));
        self.is_news = true;
        if let (Announcement::Running(..), None) = (announcement, self.seen.first_run_us)
            && let Some(tick_us) = self.drawing.tick_us()
        {
            self.queue.plan(Planned::Pass, tick_us);
        }
        self.figures.heard(announcement, &self.world, now_us);
        self.seen.hear(announcement, now_us);
    }
}
