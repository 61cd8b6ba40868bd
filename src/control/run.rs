//! `cutline run`: takes a scenario to its end, and says how it came out.
//!
//! On real processes the job runs under the same supervisor as under `cutline up`, in a fresh
//! directory. Beside it an engine goes through the steps. When it is through everything is stopped,
//! and every complete snapshot is read back from the store and judged.

mod conditions;
mod home;
mod observed;
mod outcome;
mod schedule;
mod seeds;
mod simulated;
mod steps;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use futures::future::join_all;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::command::{CommandError, Progress, Reply, open, records};
use super::directory::JobDirectory;
use super::gated::Gates;
use super::interrupt::Interrupts;
use super::log::Log;
use super::notice::Notice;
use super::session::{Session, SessionError};
use super::supervisor::Ending;
use super::view::{Format, VerifyView, View as _};
use crate::job::Job;
use crate::scenario::{Scenario, ScenarioError, Scheduled, Step, chains};
use home::Home;
use observed::Observer;
use outcome::{Came, RunView};

pub use schedule::Schedule;
pub use seeds::run as run_seeds;
pub use simulated::run as simulate;

/// How a scenario is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the job is kept afterwards; none: nowhere.
    pub out: Option<PathBuf>,
    /// Instead of the job's own seed.
    pub seed: Option<u64>,
    /// How the answer is written.
    pub format: Format,
}

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its directory is used already.
    #[error("{} is not empty: a scenario begins with a fresh directory", .0.display())]
    NotEmpty(PathBuf),
    /// Its store is used already.
    #[error(
        "the store {0} is not empty: a scenario begins with an empty one; leave out [store] url, \
         and it is in the scenario's own directory"
    )]
    StoreNotEmpty(Url),
    /// Its directory cannot be looked at.
    #[error("cannot use {}", .path.display())]
    Out {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Signals cannot be taken over.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// The job could not be started.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] CommandError),
    /// The schedule makes no sense.
    #[error("{0}")]
    Schedule(String),
    /// Nodes would not reach us.
    #[error("cannot listen in the job's directory")]
    Gate(#[source] io::Error),
    /// What was drawn makes no sense.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It cannot be simulated.
    #[error("{0}")]
    Simulation(String),
    /// Somebody did not want to wait.
    #[error("interrupted; everything is stopped")]
    Interrupted,
}

/// Goes through the steps while the job runs.
struct Engine<'a> {
    scenario: &'a Scenario,
    job: &'a Job,
    directory: &'a JobDirectory,
    log: &'a Log,
    observer: &'a Observer,
    /// When the last step that did something began.
    last_deed: Cell<Instant>,
    /// The programs that a step has killed.
    killed: RefCell<BTreeSet<u32>>,
    /// What did not come out as it should.
    failures: RefCell<Vec<String>>,
    /// The line of the step that is being done.
    line: Cell<u32>,
}

/// Takes a scenario to its end on real processes; with a schedule, deed by deed.
///
/// # Errors
/// If it could not be run.
pub async fn run(
    scenario: &Scenario,
    options: &Options,
    schedule: Option<Schedule>,
    log: &Log,
) -> Result<Reply, RunError> {
    // First of all, so that the corrected command finds the directory as it was.
    if let Some(schedule) = &schedule {
        let checked = schedule.check(scenario.job.topology());
        checked.map_err(RunError::Schedule)?;
    }
    let home = Home::make(options.out.as_deref())?;
    let mut job = scenario.job.clone().with_directory(&home.path);
    if let Some(seed) = options.seed {
        job = job.with_seed(seed);
    }
    let interrupts = Interrupts::listen().map_err(RunError::Signals)?;
    let (shutdown, hurry) = (interrupts.shutdown.clone(), interrupts.hurry.clone());
    let observer = Observer::default();
    let engine = Engine {
        scenario,
        job: &job,
        directory: &JobDirectory::new(job.directory()),
        log,
        observer: &observer,
        last_deed: Cell::new(Instant::now()),
        killed: RefCell::default(),
        failures: RefCell::default(),
        line: Cell::new(0),
    };
    let whole = engine.whole(schedule, &shutdown, &hurry);
    let verified = interrupts.during(whole).await?;
    let kept = options
        .out
        .as_ref()
        .map(|_| engine.directory.root().display().to_string());
    let view = RunView::new(engine.came(), verified, kept);
    Ok(Reply {
        text: view.render(options.format),
        yes: view.ok,
    })
}

/// The work, or word that somebody does not want to wait for it; for work that only reads.
async fn unless<T>(
    interrupted: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, RunError> {
    tokio::select! {
        biased;
        () = interrupted.cancelled() => Err(RunError::Interrupted),
        done = work => Ok(done),
    }
}

impl Engine<'_> {
    /// Everything: from the look at the store to the verdicts.
    async fn whole(
        &self,
        schedule: Option<Schedule>,
        interrupted: &CancellationToken,
        hurry: &CancellationToken,
    ) -> Result<Result<Option<VerifyView>, String>, RunError> {
        unless(interrupted, self.store_is_empty()).await??;
        let session = Session::open(self.job.clone(), self.log.format().name()).await?;
        let (name, seed) = (&self.scenario.name, self.job.seed());
        self.log
            .say("starting", &format!("running {name} with seed {seed}"));
        for note in &self.scenario.notes {
            self.log.say("note", note);
        }
        let mut gated = None;
        if let Some(schedule) = schedule {
            let gates = Gates::listen(self.directory.root()).map_err(|error| {
                let _ = session.unmake();
                RunError::Gate(error)
            })?;
            gated = Some((gates, schedule));
        }
        self.beside(session, interrupted, hurry, gated).await?;
        unless(interrupted, self.verified()).await
    }

    /// A scenario would count, judge and delete what others have in the job's store.
    async fn store_is_empty(&self) -> Result<(), RunError> {
        let tell = |what: &str| self.log.say("progress", what);
        let store = open(self.job).await?;
        let records = records(store.as_ref(), Progress(&tell)).await?;
        let none = records.snapshots.is_empty() && records.unreadable.is_empty();
        match records.log.is_empty() && none {
            true => Ok(()),
            false => Err(RunError::StoreNotEmpty(self.job.store_url())),
        }
    }

    /// Goes through the scenario while the job runs, then stops the job.
    async fn beside(
        &self,
        session: Session,
        interrupted: &CancellationToken,
        hurry: &CancellationToken,
        gated: Option<(Gates, Schedule)>,
    ) -> Result<(), RunError> {
        let stop = CancellationToken::new();
        let tell = |notice: Notice| {
            self.observer.hear(&notice);
            self.log.notice(&notice);
        };
        let (gates, schedule) = gated.unzip();
        let gated = gates.as_ref().zip(schedule);
        // Served or not, gates are kept to the end: a node whose gate is gone ends.
        let serving = async {
            match &gates {
                Some(gates) => gates.serve().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(serving);
        let running = session.run(&stop, hurry, &tell);
        tokio::pin!(running);
        tokio::select! {
            biased;
            ended = &mut running => {
                self.ended_early(ended?);
                return Ok(());
            }
            () = interrupted.cancelled() => {}
            () = self.go(gated) => {}
            () = &mut serving => {}
        }
        stop.cancel();
        let ended = running.await?;
        if let Ending::Failed(reason) = ended {
            self.fail(format!("the job failed: {reason}"));
        }
        match interrupted.is_cancelled() {
            true => Err(RunError::Interrupted),
            false => Ok(()),
        }
    }

    fn came(&self) -> Came {
        let seen = self.observer.seen();
        Came {
            scenario: self.scenario.name.clone(),
            seed: self.job.seed(),
            failures: self.failures.borrow().clone(),
            complete: seen.complete.len() as u64,
            aborted: seen.aborted.len() as u64,
            restores: seen.restores(),
            generation: seen.generations.last().copied(),
        }
    }

    fn ended_early(&self, ended: Ending) {
        let how = match ended {
            Ending::Failed(reason) => reason,
            Ending::Finished | Ending::Stopped => "somebody stopped it".to_owned(),
        };
        let line = self.line.get();
        self.fail(format!(
            "line {line}: the job ended before the scenario did: {how}"
        ));
    }

    fn fail(&self, failure: String) {
        self.log.say("failure", &failure);
        self.failures.borrow_mut().push(failure);
    }

    /// Everything, within the scenario's time; whoever is asked what is done takes his own.
    async fn go(&self, gated: Option<(&Gates, Schedule)>) {
        let is_asked = gated
            .as_ref()
            .is_some_and(|(_, schedule)| schedule.is_asked());
        let steps = async {
            match gated {
                None => self.steps().await,
                Some((gates, mut schedule)) => self.scheduled(gates, &mut schedule).await,
            }
        };
        if is_asked {
            return steps.await;
        }
        let bounded = tokio::time::timeout(self.scenario.timeout, steps);
        if bounded.await.is_err() {
            let line = self.line.get();
            let timeout = humantime::format_duration(self.scenario.timeout);
            self.fail(format!(
                "line {line}: the scenario takes longer than its timeout, {timeout}"
            ));
        }
    }

    /// All steps, up to the first that fails; an expectation that does not hold stops nothing.
    async fn steps(&self) {
        while self.observer.seen().first_run.is_none() {
            self.observer.more().await;
        }
        for group in self.scenario.groups() {
            if group.iter().any(|scheduled| scheduled.step.is_deed()) {
                self.last_deed.set(Instant::now());
            }
            let chains = chains(group, self.job.initiators());
            let done = join_all(chains.iter().map(|chain| self.chain(chain))).await;
            if done.contains(&false) {
                return;
            }
        }
    }

    /// Steps that must keep their order. Answers whether all were done.
    async fn chain(&self, chain: &[&Scheduled]) -> bool {
        for scheduled in chain {
            self.until(scheduled).await;
            self.line.set(scheduled.line);
            let what = scheduled.step.describe(self.job.topology());
            let line = scheduled.line;
            self.log.say("step", &format!("line {line}: {what}"));
            if let Err(reason) = self.perform(&scheduled.step).await {
                self.fail(format!("line {line}: {what}: {reason}"));
                return false;
            }
            if let Step::Expect { expectations } = &scheduled.step {
                for unexpected in self.unexpected(expectations).await {
                    self.fail(format!("line {line}: {unexpected}"));
                }
            }
        }
        true
    }

    async fn until(&self, scheduled: &Scheduled) {
        let first_run = self.observer.seen().first_run;
        if let (Some(at), Some(first_run)) = (scheduled.at, first_run) {
            sleep_until((first_run + at).into()).await;
        }
    }
}
