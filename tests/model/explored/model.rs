//! The model that the checker walks through.

use std::collections::HashSet;

use cutline::protocol::collector::Announcement;
use cutline::world::{Choice, Fate, Fault, Notice};
use stateright::{Model, Property};

use super::case::{Case, LIMIT_MS, Trouble, application, request};
use super::findings::{self, Finding};
use super::rare::{Outcome, Seen};
use super::rules::Rules;
use super::state::{State, Step, describe};
use super::undisturbed;

/// A world with all that can happen in it.
pub(crate) struct Explored {
    pub(crate) case: Case,
    rules: Rules,
    pub(crate) seen: Seen,
    undisturbed: HashSet<u64>,
}

impl Explored {
    pub(crate) fn new(case: Case) -> Self {
        let rules = Rules::new(case);
        Self {
            undisturbed: undisturbed::states(&rules.undisturbed()),
            rules,
            seen: Seen::default(),
            case,
        }
    }

    /// What a step uses up of what may go wrong, or of the time that may pass at rest.
    fn use_up(next: &mut State, choice: &Choice) {
        match *choice {
            Choice::Fault(Fault::Pass(LIMIT_MS)) => next.strikes -= 1,
            Choice::Fault(Fault::Pass(_)) => next.rests -= 1,
            Choice::Fault(_) | Choice::Store(_, Fate::Failed | Fate::Unknown) => next.faults -= 1,
            _ => {}
        }
    }
}

impl Model for Explored {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(&self.rules)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        // What is wrong stays wrong: the shortest way to it is enough.
        if state.findings.is_empty() {
            actions.extend(self.rules.steps(state));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut next = last.clone();
        match step {
            Step::Ask => {
                next.asks -= 1;
                next.world.ask(request());
            }
            Step::Choice(choice) => {
                Self::use_up(&mut next, &choice);
                next.world.apply(&choice);
            }
        }
        let notices = next.world.take_notices();
        for notice in &notices {
            next.findings.extend(findings::of_notice(notice));
            if let Notice::Announced(Announcement::Ended(manifest)) = notice {
                next.findings
                    .extend(findings::of_manifest(&next.world, manifest));
            }
        }
        if let Some(Err(reason)) = &next.world.ended {
            next.findings.push(Finding::Broke(reason.clone()));
        }
        if let Step::Choice(choice) = step {
            let outcome = Outcome {
                world: &next.world,
                notices: &notices,
                is_late: self.case.trouble != Trouble::Nothing && next.faults + next.strikes == 0,
                mode: self.case.mode,
                limited: self.case.trouble.strikes() > 0,
            };
            self.seen.look(&last.world, &choice, &outcome);
        }
        Some(next)
    }

    fn format_action(&self, step: &Step) -> String {
        describe(step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a complete snapshot is exact", |_, state: &State| {
                let inexact = |finding: &Finding| !matches!(finding, Finding::Broke(_));
                !state.findings.iter().any(inexact)
            }),
            Property::always("nobody breaks off", |_, state: &State| {
                let broke = |finding: &Finding| matches!(finding, Finding::Broke(_));
                !state.findings.iter().any(broke)
            }),
            Property::always("messages come once and in order", |_, state: &State| {
                let processes = state.world.job().topology.processes();
                let mut scripts = processes.filter_map(|p| application(&state.world, p));
                !scripts.any(|script| script.confused)
            }),
            Property::always(
                "the states are those of an undisturbed run",
                |model: &Self, state: &State| {
                    let together = state.together();
                    together.is_none_or(|together| model.undisturbed.contains(&together))
                },
            ),
            Property::always(
                "nothing is left open or undelivered",
                |model: &Self, state: &State| {
                    let is_at_rest =
                        || state.is_settled() && state.is_delivered() && state.asks == 0;
                    !state.findings.is_empty() || model.rules.go_on(state) || is_at_rest()
                },
            ),
        ]
    }
}
