//! Going through the steps of a scenario.

use super::seen::Mark;
use super::steps::Going;
use super::{Simulation, Told};
use crate::protocol::application::Application;
use crate::scenario::{Scenario, Scheduled, Step, chains};

use super::delays::micros;

/// From one look at what is waited for to the next, at the latest.
const POLL_US: u64 = 10_000;

/// How far a scenario is.
pub(super) struct Conductor<'s> {
    scenario: &'s Scenario,
    groups: Vec<&'s [Scheduled]>,
    /// The group that begins next.
    next: usize,
    chains: Vec<Chain<'s>>,
    /// What had been seen when the last step that did something began.
    mark: Mark,
    /// The line of the step that began last.
    line: u32,
    has_failed: bool,
    is_over: bool,
}

/// Steps that keep their order.
struct Chain<'s> {
    steps: Vec<&'s Scheduled>,
    /// The step that is next, or under way.
    at: usize,
    going: Option<Going<'s>>,
}

impl<'s> Chain<'s> {
    fn current(&self) -> Option<&'s Scheduled> {
        self.steps.get(self.at).copied()
    }
}

impl<'s> Conductor<'s> {
    pub(super) fn new(scenario: &'s Scenario) -> Self {
        Self {
            scenario,
            groups: scenario.groups().collect(),
            next: 0,
            chains: Vec::new(),
            mark: Mark::default(),
            line: 0,
            has_failed: false,
            is_over: false,
        }
    }

    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Does what can be done now, and looks again when there may be more.
    pub(super) fn go<A: Application>(&mut self, simulation: &mut Simulation<'_, A>) {
        if simulation.seen.first_run_us.is_none() {
            return;
        }
        while !self.is_over {
            if self.chains.iter().all(|chain| chain.current().is_none()) {
                self.begin_group(simulation);
            }
            if !self.advance(simulation) {
                break;
            }
        }
        let now_us = simulation.queue.now_us();
        simulation.look_at((now_us / POLL_US + 1) * POLL_US);
    }

    fn begin_group<A: Application>(&mut self, simulation: &Simulation<'_, A>) {
        let Some(&group) = self.groups.get(self.next).filter(|_| !self.has_failed) else {
            self.is_over = true;
            return;
        };
        self.next += 1;
        if group.iter().any(|scheduled| scheduled.step.is_deed()) {
            self.mark = simulation.seen.mark();
        }
        let chains = chains(group, simulation.job.initiators()).into_iter();
        self.chains = chains
            .map(|steps| Chain {
                steps,
                at: 0,
                going: None,
            })
            .collect();
    }

    /// Begins what can begin and ends what has ended, in the order of the lines. Answers whether
    /// there was anything.
    fn advance<A: Application>(&mut self, simulation: &mut Simulation<'_, A>) -> bool {
        let mut order: Vec<usize> = (0..self.chains.len()).collect();
        order.sort_by_key(|&index| self.chains[index].current().map(|step| step.line));
        let mut moved = false;
        for index in order {
            let Some(scheduled) = self.chains[index].current() else {
                continue;
            };
            if self.chains[index].going.is_none() {
                if !may_begin(scheduled, simulation) {
                    continue;
                }
                self.line = scheduled.line;
                let what = scheduled.step.describe(simulation.job.topology());
                simulation.say(Told::Step(scheduled.line, &what));
                let going = simulation.begin_step(&scheduled.step);
                self.chains[index].going = Some(going);
                if simulation.is_timeless() {
                    simulation.settle();
                }
                moved = true;
            }
            let Some(mut going) = self.chains[index].going.take() else {
                continue;
            };
            match simulation.go_on(&mut going, self.mark) {
                None => self.chains[index].going = Some(going),
                Some(outcome) => {
                    self.ended(index, scheduled, outcome, simulation);
                    // What follows it may stand above what others wait for.
                    return true;
                }
            }
        }
        moved
    }

    fn ended<A: Application>(
        &mut self,
        index: usize,
        scheduled: &Scheduled,
        outcome: Result<(), String>,
        simulation: &mut Simulation<'_, A>,
    ) {
        let line = scheduled.line;
        self.chains[index].at += 1;
        if let Err(reason) = outcome {
            let what = scheduled.step.describe(simulation.job.topology());
            simulation.fail(format!("line {line}: {what}: {reason}"));
            self.has_failed = true;
            self.chains[index].at = self.chains[index].steps.len();
        } else if let Step::Expect { expectations } = &scheduled.step {
            for unexpected in simulation.unexpected(expectations) {
                simulation.fail(format!("line {line}: {unexpected}"));
            }
        }
    }

    pub(super) fn ended_early<A: Application>(
        &self,
        simulation: &mut Simulation<'_, A>,
        ended: Result<(), String>,
    ) {
        let line = self.line;
        let how = match ended {
            Ok(()) => "somebody stopped it".to_owned(),
            Err(reason) => reason,
        };
        simulation.fail(format!(
            "line {line}: the job ended before the scenario did: {how}"
        ));
    }

    pub(super) fn too_long<A: Application>(&self, simulation: &mut Simulation<'_, A>) {
        let line = self.line;
        let timeout = humantime::format_duration(self.scenario.timeout);
        simulation.fail(format!(
            "line {line}: the scenario takes longer than its timeout, {timeout}"
        ));
    }
}

/// Whether the time of a step has come.
fn may_begin<A: Application>(scheduled: &Scheduled, simulation: &mut Simulation<'_, A>) -> bool {
    let first_run_us = simulation.seen.first_run_us.unwrap_or_default();
    let Some(at) = scheduled.at else { return true };
    let at_us = first_run_us + micros(at);
    if at_us <= simulation.queue.now_us() {
        return true;
    }
    simulation.look_at(at_us);
    false
}
