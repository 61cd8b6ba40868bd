//! The engine `sim`: takes a scenario to its end in virtual time, on a [`World`].
//!
//! Nothing here decides about cuts, channels or generations: that is the machines' work, as on
//! real nodes. This engine only picks which of the possible [`Choice`](crate::world::Choice)s
//! comes next, and when. Everything that becomes possible is planned: how long it takes is drawn
//! by the job's seed, and the next deed is always the earliest. So a run depends on its scenario
//! and its seed alone, and on no clock.
//!
//! After each deed only the places it has touched are looked at again, so that a job of thousands
//! of processes is not slower, deed by deed, than one of three.

mod conditions;
mod conduct;
mod deeds;
mod delays;
mod faults;
mod figures;
mod judged;
mod lanes;
mod planning;
mod points;
mod queue;
mod seats;
mod seen;
mod sizes;
mod steps;

use std::collections::BTreeMap;

pub use delays::{Course, Delays, Discipline, Range};
pub use figures::{Figures, Taken};
pub use seen::Seen;
pub use sizes::part_bytes;

use conduct::Conductor;
use delays::{Drawing, micros};
use lanes::Lanes;
use points::Armed;
use queue::{Planned, Queue};
use seats::Seats;

use crate::check::Verified;
use crate::job::Job;
use crate::protocol::application::{Application, Refusal};
use crate::protocol::collector::Announcement;
use crate::protocol::ids::{ChannelId, ProcessId};
use crate::protocol::process::Settings as ProcessSettings;
use crate::scenario::Scenario;
use crate::world::{self, World};

/// Deeds at one moment; more means that some of them bring about one another for ever, and that
/// time would never go on.
const DEEDS_AT_ONCE_MAX: u64 = 10_000_000;

/// How a scenario is simulated.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How long what takes.
    pub delays: Delays,
    /// Where the delays of frames come from.
    pub discipline: Discipline,
}

/// Something to tell while a simulation goes on.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// A step begins: its line, and what is done.
    Step(u32, &'a str),
    /// Something did not come out as it should.
    Failure(&'a str),
    /// Something happened in the job.
    Happened(&'a Announcement),
    /// The node of a process, or the collector, is started again.
    Restarted(Option<ProcessId>),
}

/// How a simulation came out.
pub struct Outcome<A> {
    /// What did not come out as it should, in the order it was found.
    pub failures: Vec<String>,
    /// What was seen.
    pub seen: Seen,
    /// The verdicts on every complete snapshot that is still kept.
    pub verified: Vec<Verified>,
    /// What happened how often.
    pub figures: Figures,
    /// How long it took, in virtual microseconds.
    pub elapsed_us: u64,
    /// The job as it was left.
    pub world: World<A>,
}

/// Takes a scenario to its end, and tells what happens, with the time in microseconds.
///
/// # Errors
/// If the application refuses its settings.
pub fn run<A: Application>(
    scenario: &Scenario,
    settings: &Settings,
    tell: &mut dyn FnMut(u64, Told<'_>),
) -> Result<Outcome<A>, Refusal> {
    let mut simulation = Simulation::<A>::new(&scenario.job, settings, tell)?;
    let mut conductor = Conductor::new(scenario);
    simulation.run(&mut conductor, micros(scenario.timeout));
    Ok(simulation.outcome())
}

/// The job as a world takes it.
#[must_use]
pub fn world_job(job: &Job) -> world::Job {
    let any = job.setup(ProcessId::new(0));
    let policy = job.policy();
    world::Job {
        topology: job.topology().clone(),
        application: any.application,
        settings: any.settings,
        seed: any.seed,
        process: ProcessSettings {
            limits: job.limits(),
            snapshot_timeout_ms: policy.timeout_ms,
            trace: job.trace(),
        },
        policy,
    }
}

/// An operation of the store that is under way.
#[derive(Clone, Copy, Debug)]
struct Operating {
    number: u64,
    /// The process that waits for it; none: the collector does.
    of: Option<ProcessId>,
}

/// A job, and what is to happen in it.
struct Simulation<'t, A> {
    job: Job,
    world: World<A>,
    queue: Queue,
    drawing: Drawing,
    lanes: Lanes,
    seats: Seats,
    operations: Vec<Operating>,
    operations_count: u64,
    armed: Vec<Armed>,
    /// Steps that have killed something at a point so far.
    groups: usize,
    seen: Seen,
    figures: Figures,
    failures: Vec<String>,
    /// Why a process did not do what it was told last, if it did not.
    refusal: Option<String>,
    /// The conductor is to look how it stands.
    is_news: bool,
    /// The collectors so far; an answer of one that is gone never comes.
    collectors: u64,
    /// How the job ended, if it has.
    ended: Option<Result<(), String>>,
    tell: &'t mut dyn FnMut(u64, Told<'_>),
}

impl<'t, A: Application> Simulation<'t, A> {
    fn new(
        job: &Job,
        settings: &Settings,
        tell: &'t mut dyn FnMut(u64, Told<'_>),
    ) -> Result<Self, Refusal> {
        let mut world = World::new(world_job(job))?;
        world.keep_touched();
        let Settings { delays, discipline } = settings.clone();
        let mut simulation = Self {
            drawing: Drawing::new(job, delays, discipline),
            lanes: Lanes::new(job.topology()),
            seats: Seats::new(job.topology().processes().len(), job.restarts()),
            job: job.clone(),
            world,
            queue: Queue::default(),
            operations: Vec::new(),
            operations_count: 0,
            armed: Vec::new(),
            groups: 0,
            refusal: None,
            seen: Seen::default(),
            figures: Figures::default(),
            failures: Vec::new(),
            is_news: true,
            collectors: 1,
            ended: None,
            tell,
        };
        simulation.begin();
        Ok(simulation)
    }

    /// Everything that can happen first is planned, and the clocks begin.
    fn begin(&mut self) {
        for process in self.job.topology().clone().processes() {
            self.look_at_process(process);
            self.look_at_control_of(process);
        }
        self.look();
        self.queue
            .plan(Planned::Clock, self.drawing.delays().clock_us);
        self.queue.plan(Planned::Beat, self.beat_us());
    }

    /// Deed by deed, until the conductor is through or the job has ended.
    fn run(&mut self, conductor: &mut Conductor<'_>, timeout_us: u64) {
        let mut moment = (0, 0_u64);
        loop {
            if std::mem::take(&mut self.is_news) {
                // In the course a tick is over before anybody does anything.
                if self.is_timeless() {
                    self.settle();
                }
                conductor.go(self);
            }
            if conductor.is_over() {
                return;
            }
            if let Some(ended) = self.ended.clone() {
                return conductor.ended_early(self, ended);
            }
            let Some(deed) = self.queue.next() else {
                return self.fail("nothing can happen any more".to_owned());
            };
            let now_us = self.queue.now_us();
            if now_us > timeout_us {
                return conductor.too_long(self);
            }
            moment = if moment.0 == now_us {
                (now_us, moment.1 + 1)
            } else {
                (now_us, 0)
            };
            if moment.1 > DEEDS_AT_ONCE_MAX {
                return self.fail(format!("time does not go on after {now_us} µs"));
            }
            self.perform(deed);
        }
    }

    /// What is planned for this very moment is done.
    fn settle(&mut self) {
        let mut left = DEEDS_AT_ONCE_MAX;
        while left > 0 && self.queue.next_us() == Some(self.queue.now_us()) {
            left -= 1;
            if let Some(deed) = self.queue.next() {
                self.perform(deed);
            }
        }
    }

    fn say(&mut self, told: Told<'_>) {
        (self.tell)(self.queue.now_us(), told);
    }

    fn fail(&mut self, failure: String) {
        self.say(Told::Failure(&failure));
        self.failures.push(failure);
    }

    fn outcome(mut self) -> Outcome<A> {
        self.seen.read(&self.world);
        let verified = judged::all(&self.world);
        self.figures.finish(&self.seen, &self.world, &verified);
        Outcome {
            failures: self.failures,
            seen: self.seen,
            verified,
            figures: self.figures,
            elapsed_us: self.queue.now_us(),
            world: self.world,
        }
    }
}

/// For each channel something.
type ByChannel<T> = BTreeMap<ChannelId, T>;
