//! How long everything takes in virtual time: ranges from which each duration is drawn.

use std::collections::VecDeque;
use std::time::Duration;

use crate::apps::SplitMix64;
use crate::job::Job;
use crate::protocol::ids::ProcessId;

/// Durations in microseconds, both ends included; all are as likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The shortest.
    pub least_us: u64,
    /// The longest.
    pub most_us: u64,
}

impl Range {
    /// From this to that.
    pub const fn new(least_us: u64, most_us: u64) -> Self {
        Self { least_us, most_us }
    }

    fn draw(self, random: &mut SplitMix64) -> u64 {
        self.least_us + random.below(1 + self.most_us.saturating_sub(self.least_us))
    }
}

/// How long what takes. The defaults are those of one machine that is not very busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays {
    /// A frame from one end of a channel to the other, and what is said back. The job's `delay`
    /// comes on top, for frames.
    pub channel: Range,
    /// A word between a node and the collector, or between a user and the collector.
    pub control: Range,
    /// An operation of the store.
    pub store: Range,
    /// The handling of one message, and a tick.
    pub handling: Range,
    /// From a frame that can be written to its being on the wire.
    pub writing: Range,
    /// The start of a program in place of one that has died.
    pub starting: Range,
    /// From one word of the time to the next.
    pub clock_us: u64,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            channel: Range::new(100, 2_000),
            control: Range::new(100, 1_000),
            store: Range::new(1_000, 10_000),
            handling: Range::new(5, 50),
            writing: Range::new(1, 20),
            starting: Range::new(20_000, 60_000),
            clock_us: 20_000,
        }
    }
}

impl Delays {
    /// Nothing takes any time.
    pub const fn none() -> Self {
        let none = Range::new(0, 0);
        Self {
            channel: none,
            control: none,
            store: none,
            handling: none,
            writing: none,
            starting: none,
            clock_us: 20_000,
        }
    }
}

/// Where the delays of frames come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// Each is drawn from [`Delays::channel`], and a frame arrives when its time has come.
    #[default]
    Drawn,
    /// As in the simulator of COS 418: see [`Course`].
    Course(Course),
}

/// The discipline of COS 418. Time goes in ticks. What is put onto a link at tick t is due at
/// t + 1 + d, where d is the next number drawn. At each tick each server, in the order of their
/// ids, hands over at most one packet: the first of the first of its links, in the order of the
/// receivers, whose first packet is due. Everything else takes no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// How long a tick lasts.
    pub tick: Duration,
    /// The numbers drawn, in order; when they are used up, or there are none, from 0 to 4 by the
    /// job's seed.
    pub drawn: VecDeque<u64>,
}

/// The longest delay that the course's simulator draws, less one.
const COURSE_MOST: u64 = 4;

/// Draws durations, by a seed.
#[derive(Debug)]
pub(super) struct Drawing {
    delays: Delays,
    discipline: Discipline,
    frame_us: u64,
    random: SplitMix64,
}

impl Drawing {
    pub(super) fn new(job: &Job, delays: Delays, discipline: Discipline) -> Self {
        // No process has this number, so nobody draws the same.
        let nobody = ProcessId::new(u32::MAX);
        Self {
            frame_us: micros(job.delay()),
            random: SplitMix64::new(job.seed(), nobody),
            delays,
            discipline,
        }
    }

    pub(super) fn delays(&self) -> &Delays {
        &self.delays
    }

    /// The length of a tick of the course, if that is the discipline.
    pub(super) fn tick_us(&self) -> Option<u64> {
        match &self.discipline {
            Discipline::Drawn => None,
            Discipline::Course(course) => Some(micros(course.tick)),
        }
    }

    /// How long a frame is under way.
    pub(super) fn frame(&mut self) -> u64 {
        match &mut self.discipline {
            Discipline::Drawn => self.frame_us + self.delays.channel.draw(&mut self.random),
            Discipline::Course(course) => {
                let drawn = course.drawn.pop_front();
                let drawn = drawn.unwrap_or_else(|| self.random.below(1 + COURSE_MOST));
                micros(course.tick).saturating_mul(1 + drawn)
            }
        }
    }

    pub(super) fn of(&mut self, range: impl FnOnce(&Delays) -> Range) -> u64 {
        range(&self.delays).draw(&mut self.random)
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
