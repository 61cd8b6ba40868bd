//! One run of a job by a supervisor: what is made before, and what is cleared away after.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::command::application_refusal;
use super::directory::{DirectoryError, JobDirectory};
use super::held_store::HeldStore;
use super::lock::Lock;
use super::notice::{self, Notice};
use super::supervisor::{Ending, Member, Plan, StartError, supervise};
use super::who::Who;
use super::{incarnations, stop, watch};
use crate::job::Job;
use crate::program::{DescriptorsError, LOOPBACK, allow_sockets};
use crate::protocol::application::Refusal;

/// Events that wait for the supervisor: it handles each in microseconds, and the watcher may wait.
const EVENTS_MAX: usize = 64;

/// Why a job cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Its directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Its programs run already, and nobody has written them down.
    #[error(
        "{dir}: a collector answers that no 'cutline up' has started: the job was started by \
         hand; end its programs first, or with 'cutline stop --snapshot --dir {dir}' (if something \
         else has got its port, remove {dir}/run/collector.addr)",
        dir = .0.display()
    )]
    ByHand(PathBuf),
    /// A program is not where it should be.
    #[error(
        "{} is missing: it belongs beside cutline ('cargo build --bins' builds them all)",
        .0.display()
    )]
    MissingProgram(PathBuf),
    /// The user's own program is not there.
    #[error("the job's program {} is missing: build it, or correct 'program'", .0.display())]
    MissingOwnProgram(PathBuf),
    /// The application refuses its settings.
    #[error("{0}; correct [application]")]
    Application(Refusal),
    /// The system does not say where this program is.
    #[error("cannot tell where cutline's programs are")]
    Whereabouts(#[source] io::Error),
    /// So many programs cannot be watched from one.
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A job's directory, made ready and locked.
#[derive(Debug)]
pub struct Session {
    job: Job,
    plan: Plan,
    lock: Lock,
    found: Found,
    store: Option<HeldStore>,
}

/// What there was of a job's directory when it was locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing: this session has made it.
    Nothing,
    /// The directory, with nothing in it.
    Empty,
    /// Something.
    Filled,
}

impl Session {
    /// Makes the job's directory ready for this process to run the job.
    ///
    /// # Errors
    /// If somebody runs it already, or another job on its store, the directory is no job's, a
    /// program is missing, or the file system says no. Nothing is left behind then.
    pub async fn open(job: Job, log_format: &str) -> Result<Self, SessionError> {
        if let Some(refusal) = application_refusal(&job) {
            return Err(SessionError::Application(refusal));
        }
        let programs = Programs::find(&job)?;
        // Each is watched by a descriptor of its own.
        let processes = job.topology().processes().len();
        allow_sockets(processes + 1, || format!("{processes} nodes"))?;
        let directory = JobDirectory::new(job.directory());
        let (lock, found) = claim(&directory).await?;
        refuse_by_hand(&directory, &job).await?;
        let mut session = Self {
            plan: plan(&job, &directory, &programs, log_format),
            job,
            lock,
            found,
            store: None,
        };
        match session.make().await {
            Ok(()) => Ok(session),
            Err(error) => {
                // Of a directory that had something in it nothing is removed: a job that was
                // started by hand may run there.
                if session.found != Found::Filled {
                    // The first error is the one that matters.
                    let _ = session.unmake();
                }
                Err(error.into())
            }
        }
    }

    async fn make(&mut self) -> Result<(), DirectoryError> {
        self.store = HeldStore::take(&self.job, &self.lock).await?;
        let directory = &self.plan.directory;
        directory.create()?;
        let file = directory.running_job_file();
        fs::write(&file, self.job.to_toml()).map_err(at(&file))?;
        let this = directory.supervisor_file();
        incarnations::write(&this, std::process::id(), 0).map_err(at(&this))?;
        Ok(())
    }

    /// Removes everything that was made for a job that never ran. What others have made stays,
    /// and nobody else makes anything here while this has the lock.
    pub(super) fn unmake(&self) -> Result<(), DirectoryError> {
        match self.found {
            Found::Filled => self.plan.directory.clear_run(),
            found => self.plan.directory.unmake(found == Found::Nothing),
        }
    }

    /// The job runs: from now on this is the job that the directory is of.
    fn has_run(&self) {
        let file = self.plan.directory.job_file();
        let beside = file.with_extension("toml.new");
        // Where this fails, later commands need --job; the job itself does not.
        let _ = fs::copy(self.plan.directory.running_job_file(), &beside)
            .and_then(|_| fs::rename(&beside, &file));
    }

    /// The job's directory.
    pub fn directory(&self) -> &JobDirectory {
        &self.plan.directory
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Runs the job until it ends, cannot go on, or `shutdown` is cancelled; `hurry` makes ending
    /// it quick. Afterwards nothing runs, and nothing is left that is true only while it does;
    /// of a job that could not be started for the first time, nothing at all.
    ///
    /// # Errors
    /// If it cannot be started.
    pub async fn run(
        self,
        shutdown: &CancellationToken,
        hurry: &CancellationToken,
        tell: &dyn Fn(Notice),
    ) -> Result<Ending, SessionError> {
        let swept = stop::sweep(&self.plan.directory).await;
        if swept.count() > 0 {
            let pids = [swept.ended, swept.killed].concat();
            tell(notice::Programs::Swept { pids }.into());
        }
        self.plan.directory.clear_leftovers()?;
        let first = Cell::new(true);
        let tell = |notice: Notice| {
            if notice.is_running() && first.replace(false) {
                self.has_run();
            }
            tell(notice);
        };
        let (news, mut heard) = mpsc::channel(EVENTS_MAX);
        let supervising = supervise(&self.plan, &self.lock, &mut heard, shutdown, hurry, &tell);
        let ending = tokio::select! {
            biased;
            // First, so that a collector's last words are heard before it is seen to have ended.
            () = watch::follow(&self.job, &self.plan.directory, news, &tell) => {
                unreachable!("watching goes on for as long as it is polled")
            }
            ending = supervising => ending,
        };
        if let Some(store) = &self.store
            && stop::is_over(&self.plan.directory)
        {
            store.sweep().await;
        }
        let cleared = match &ending {
            Err(_) => self.unmake(),
            Ok(_) => self.plan.directory.clear_run(),
        };
        let ending = ending?;
        cleared?;
        Ok(ending)
    }
}

/// Makes the directory, if need be, and takes it; only a job's, or one that is empty.
async fn claim(directory: &JobDirectory) -> Result<(Lock, Found), DirectoryError> {
    let made = directory.make()?;
    let lock = directory.lock_to_run().await?;
    directory.look()?;
    let found = match (made, directory.is_empty()?) {
        (true, true) => Found::Nothing,
        (false, true) => Found::Empty,
        // Also where another has come between the making and the locking.
        (_, false) => Found::Filled,
    };
    Ok((lock, found))
}

/// Leaves a job alone that runs here without a supervisor: its programs could neither be ended nor
/// told from this one's, and nobody would find its collector again. What is found holds for as long
/// as one has the lock.
pub(super) async fn refuse_by_hand(
    directory: &JobDirectory,
    job: &Job,
) -> Result<(), SessionError> {
    // What a supervisor that was killed has left is swept later, and does answer until then.
    match stop::is_over(directory) && stop::answers(directory, Some(job)).await {
        true => Err(SessionError::ByHand(directory.root().to_owned())),
        false => Ok(()),
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError + '_ {
    |source| DirectoryError::Io {
        path: path.to_owned(),
        source,
    }
}

/// The files to execute.
#[derive(Debug)]
struct Programs {
    collector: PathBuf,
    node: PathBuf,
}

impl Programs {
    fn find(job: &Job) -> Result<Self, SessionError> {
        let this = std::env::current_exe().map_err(SessionError::Whereabouts)?;
        let node = match job.program() {
            Some(own) if own.is_file() => own.to_owned(),
            Some(own) => return Err(SessionError::MissingOwnProgram(own.to_owned())),
            None => beside(&this, "cutline-node")?,
        };
        Ok(Self {
            collector: beside(&this, "cutline-collector")?,
            node,
        })
    }
}

/// A program of ours: beside this one; or, where this one is a test, one folder up.
fn beside(this: &Path, name: &str) -> Result<PathBuf, SessionError> {
    let folder = this.parent().unwrap_or(this);
    let beside = folder.join(name);
    let above = folder.parent().map(|above| above.join(name));
    let places = [Some(beside.clone()), above];
    let found = places.into_iter().flatten().find(|path| path.is_file());
    found.ok_or(SessionError::MissingProgram(beside))
}

fn plan(job: &Job, directory: &JobDirectory, programs: &Programs, log_format: &str) -> Plan {
    let common = |more: &[&str]| -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            "--job".into(),
            directory.running_job_file().into(),
            "--dir".into(),
            directory.root().into(),
            "--parent".into(),
            std::process::id().to_string().into(),
            "--log-format".into(),
            log_format.into(),
            "--listen".into(),
            LOOPBACK.into(),
        ];
        arguments.extend(more.iter().map(Into::into));
        arguments
    };
    let collector = Member {
        who: Who::Collector,
        program: programs.collector.clone(),
        arguments: common(&[]),
    };
    let topology = job.topology();
    let nodes = topology.processes().map(|process| {
        let name = topology.name(process);
        Member {
            who: Who::Process(name.to_owned()),
            program: programs.node.clone(),
            arguments: common(&["--process", name]),
        }
    });
    Plan {
        directory: directory.clone(),
        members: std::iter::once(collector).chain(nodes).collect(),
        restarts: job.restarts(),
        silence: job.silence(),
    }
}
