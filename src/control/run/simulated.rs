//! The engine `sim` behind the command line: the same answer as for real processes.

use std::time::Duration;

use super::outcome::{Came, RunView};
use super::{Options, RunError};
use crate::apps::BuiltIn;
use crate::collector::JobEvent;
use crate::control::command::Reply;
use crate::control::log::Log;
use crate::control::notice::Notice;
use crate::control::view::{VerifyView, View as _};
use crate::job::COLLECTOR;
use crate::protocol::Topology;
use crate::protocol::collector::Announcement;
use crate::scenario::Scenario;
use crate::sim::{self, Outcome, Settings, Told};

/// Takes a scenario to its end in virtual time.
///
/// # Errors
/// If it could not be run.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    settings: &Settings,
    log: &Log,
) -> Result<Reply, RunError> {
    let scenario = prepared(scenario, options)?;
    let (name, seed) = (&scenario.name, scenario.job.seed());
    log.say("starting", &format!("simulating {name} with seed {seed}"));
    for note in &scenario.notes {
        log.say("note", note);
    }
    let topology = scenario.job.topology().clone();
    let mut tell = |at_us: u64, told: Told<'_>| say(log, &topology, at_us, told);
    let outcome = simulate(&scenario, settings, &mut tell)?;
    let view = view(&scenario, outcome);
    Ok(Reply {
        text: view.render(options.format),
        yes: view.ok,
    })
}

/// The scenario with the seed that was asked for.
pub(super) fn prepared(scenario: &Scenario, options: &Options) -> Result<Scenario, RunError> {
    if options.out.is_some() {
        let reason = "sim keeps no job in a directory: leave out --out, or take the engine free";
        return Err(RunError::Simulation(reason.to_owned()));
    }
    if scenario.job.program().is_some() {
        let reason = "sim has only the built-in applications, and the job has its own program: \
                      take the engine free, or call cutline::sim::run in a test of the program";
        return Err(RunError::Simulation(reason.to_owned()));
    }
    let mut scenario = scenario.clone();
    if let Some(seed) = options.seed {
        scenario.job = scenario.job.with_seed(seed);
    }
    Ok(scenario)
}

pub(super) fn simulate(
    scenario: &Scenario,
    settings: &Settings,
    tell: &mut dyn FnMut(u64, Told<'_>),
) -> Result<Outcome<BuiltIn>, RunError> {
    sim::run(scenario, settings, tell).map_err(|refusal| {
        let reason = format!("{refusal}; correct [application]");
        RunError::Simulation(reason)
    })
}

pub(super) fn view(scenario: &Scenario, outcome: Outcome<BuiltIn>) -> RunView {
    let came = Came {
        scenario: scenario.name.clone(),
        seed: scenario.job.seed(),
        complete: outcome.seen.complete.len() as u64,
        aborted: outcome.seen.aborted.len() as u64,
        restores: outcome.seen.restores(),
        generation: outcome.seen.generations.last().copied(),
        failures: outcome.failures,
    };
    let verified = VerifyView::new(scenario.job.name(), outcome.verified);
    RunView::new(came, Ok(Some(verified)), None)
}

/// Tells what happens, with the virtual time.
fn say(log: &Log, topology: &Topology, at_us: u64, told: Told<'_>) {
    let at = humantime::format_duration(Duration::from_micros(at_us));
    match told {
        Told::Step(line, what) => log.say("step", &format!("{at}: line {line}: {what}")),
        Told::Failure(failure) => log.say("failure", failure),
        Told::Happened(announcement) => {
            let event = event(topology, announcement);
            let verdicts = None;
            log.notice(&Notice::Job { event, verdicts });
        }
        Told::Restarted(process) => {
            let who = process.map_or(COLLECTOR, |process| topology.name(process));
            log.say("restarted", &format!("{at}: {who} started again"));
        }
    }
}

/// What those who watch a real job would be told. Nodes in memory have neither address nor pid.
fn event(topology: &Topology, announcement: &Announcement) -> JobEvent {
    let name = |process| topology.name(process).to_owned();
    match announcement {
        Announcement::Joined(process, incarnation) => JobEvent::Joined {
            process: name(*process),
            incarnation: *incarnation,
            address: String::new(),
            pid: 0,
        },
        Announcement::Lost(process, incarnation) => JobEvent::Lost {
            process: name(*process),
            incarnation: *incarnation,
        },
        Announcement::Begun(snapshot) => JobEvent::Begun {
            snapshot: *snapshot,
        },
        Announcement::Ended(manifest) => JobEvent::of_end(manifest),
        Announcement::Failed(reason) => JobEvent::Failed {
            reason: reason.clone(),
        },
        Announcement::Warned(reason) => JobEvent::Warning {
            reason: reason.clone(),
        },
        Announcement::Restoring(generation, snapshot) => JobEvent::Restoring {
            generation: *generation,
            snapshot: *snapshot,
        },
        Announcement::Running(generation, snapshot) => JobEvent::Running {
            generation: *generation,
            snapshot: *snapshot,
        },
    }
}
