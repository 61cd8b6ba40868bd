//! When a `wait` ends, and what an `expect` finds.

use std::time::Duration;

use super::delays::micros;
use super::seen::Mark;
use super::{Simulation, judged};
use crate::check::{unless_held, unless_right};
use crate::protocol::application::Application;
use crate::protocol::collector::CollectorStatus;
use crate::protocol::events::Holding;
use crate::scenario::{Condition, Expectation, Target};

/// Nothing may have moved for this long, as on real processes: an application that pauses for
/// less is not idle.
const QUIET_US: u64 = 2_200_000;

/// Conditions that are waited for.
pub(super) struct Waiting<'s> {
    conditions: &'s [Condition],
    begin_us: u64,
    at_most_us: u64,
    stillness: Option<Stillness>,
}

/// How often nothing has changed, and since when.
struct Stillness {
    counts: Vec<(u64, u64)>,
    since_us: u64,
}

impl<'s> Waiting<'s> {
    pub(super) const fn new(conditions: &'s [Condition], begin_us: u64, at_most_us: u64) -> Self {
        Self {
            conditions,
            begin_us,
            at_most_us,
            stillness: None,
        }
    }
}

impl<A: Application> Simulation<'_, A> {
    /// Answers when all conditions hold at once, or it is too late.
    pub(super) fn wait(
        &mut self,
        waiting: &mut Waiting<'_>,
        mark: Mark,
    ) -> Option<Result<(), String>> {
        // Everything that costs little comes first.
        let (costly, cheap): (Vec<_>, Vec<_>) = waiting
            .conditions
            .iter()
            .partition(|condition| matches!(condition, Condition::Running | Condition::Idle));
        let unmet = cheap.into_iter().chain(costly).find(|condition| {
            !self.holds(condition, waiting.begin_us, &mut waiting.stillness, mark)
        });
        let unmet = match unmet {
            None => return Some(Ok(())),
            Some(unmet) => unmet.describe(self.job.topology()),
        };
        let until_us = waiting.begin_us.saturating_add(waiting.at_most_us);
        self.look_at(until_us);
        if self.queue.now_us() < until_us {
            return None;
        }
        let at_most = Duration::from_micros(waiting.at_most_us);
        let at_most = humantime::format_duration(at_most);
        Some(Err(format!("not after {at_most}: {unmet}")))
    }

    fn holds(
        &mut self,
        condition: &Condition,
        begin_us: u64,
        stillness: &mut Option<Stillness>,
        mark: Mark,
    ) -> bool {
        match condition {
            Condition::Snapshots(count) => self.seen.complete.len() as u64 >= *count,
            Condition::Lost(process) => self.seen.is_lost_since(*process, mark),
            Condition::Joined(process) => self.seen.has_joined_since(*process, mark),
            Condition::Time(time) => {
                let at_us = begin_us.saturating_add(micros(*time));
                self.look_at(at_us);
                self.queue.now_us() >= at_us
            }
            Condition::Generation(generation) => self
                .status()
                .is_some_and(|status| status.generation >= *generation),
            Condition::Running => self.is_running(),
            Condition::Idle => self.is_idle(stillness),
        }
    }

    /// What the collector says, if it says anything.
    fn status(&self) -> Option<CollectorStatus> {
        let is_awake = self.seats.stopped(Target::Collector).is_none();
        let collector = self.world.collector().filter(|_| is_awake);
        collector.map(|collector| collector.status())
    }

    /// The collector answers and every process runs its generation, in a program that still
    /// exists.
    fn is_running(&self) -> bool {
        if !self.world.is_running() {
            return false;
        }
        let Some(status) = self.status() else {
            return false;
        };
        let running = Holding::Running(status.generation);
        status
            .processes
            .iter()
            .all(|&(process, is_live, incarnation, _)| {
                let machine = self.world.process(process);
                let runs = machine.is_some_and(|machine| {
                    machine.incarnation() == incarnation && machine.holding() == running
                });
                is_live && runs && !self.is_starting(process)
            })
    }

    /// Nothing is open, all that was sent is handled, and that has not changed for long enough.
    fn is_idle(&self, stillness: &mut Option<Stillness>) -> bool {
        let now_us = self.queue.now_us();
        let processes = self.job.topology().processes();
        let machines = processes.filter_map(|process| self.world.process(process));
        let counts: Vec<_> = machines
            .map(|machine| (machine.handled(), machine.sent()))
            .collect();
        let (handled, sent) = counts.iter().fold((0, 0), |(handled, sent), next| {
            (handled + next.0, sent + next.1)
        });
        let is_open = self.status().is_none_or(|status| !status.open.is_empty());
        let quiet = handled == sent && !is_open && self.is_running();
        match stillness {
            Some(still) if quiet && still.counts == counts => now_us >= still.since_us + QUIET_US,
            _ => {
                let since_us = now_us;
                *stillness = quiet.then_some(Stillness { counts, since_us });
                false
            }
        }
    }

    /// What does not hold of these; each with what was found instead.
    pub(super) fn unexpected(&mut self, expectations: &[Expectation]) -> Vec<String> {
        self.seen.read(&self.world);
        let found = expectations.iter().filter_map(|expectation| {
            let found = self.finding(expectation)?;
            Some(format!(
                "expected {}, found {found}",
                expectation.describe()
            ))
        });
        found.collect()
    }

    /// What was found where something else was expected.
    fn finding(&self, expectation: &Expectation) -> Option<String> {
        let unless = |holds: bool, found: u64| (!holds).then(|| found.to_string());
        let seen = &self.seen;
        let count = |bound: &crate::scenario::Bound, found: u64| unless(bound.holds(found), found);
        match expectation {
            Expectation::Snapshots(bound) => count(bound, seen.complete.len() as u64),
            Expectation::Aborted(bound) => count(bound, seen.aborted.len() as u64),
            Expectation::Restores(bound) => count(bound, seen.restores()),
            Expectation::Generation(bound) => {
                let last = seen.generations.last().copied();
                let asked = self.status().map(|status| status.generation);
                count(bound, asked.or(last).unwrap_or_default().get())
            }
            Expectation::Verdicts => unless_right(&judged::all(&self.world)),
            Expectation::Quantities(wanted) => unless_held(&judged::all(&self.world), wanted),
        }
    }
}
