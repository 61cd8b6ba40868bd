//! What `cutline run` takes to its end: a job, the steps to go through, and what must then hold.
//!
//! This is the parsed form only, with every name looked up in the job's topology; whoever runs it
//! need not check again. `docs/scenario.md` explains the file, and how long each step takes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::hold::Point;
use crate::job::{Document, Job, Placed, Refusals, Section, read_text};
use crate::protocol::ids::{ChannelId, Generation, ProcessId, SnapshotId};
use crate::protocol::mode::Mode;

mod conditions;
mod cos418;
mod describe;
mod drawn;
mod golden;
mod order;
mod random;
mod read;
mod snapshot;
mod top;

pub use cos418::Text;
pub use golden::{GoldenMessage, GoldenSnapshot};
pub use order::chains;
pub use random::{Random, Source};

/// How long a whole scenario may take, where it does not say.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// How long one `wait` may take, where it does not say.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Steps a scenario may have: what is longer is a test program, and better written as one.
pub const STEPS_MAX: usize = 10_000;

/// Why a scenario cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It makes no sense.
    #[error("{0}")]
    Refused(Refusals),
}

/// A scenario that makes sense.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name: the file's, without the ending.
    pub name: String,
    /// The job it runs.
    pub job: Job,
    /// How long all of it may take.
    pub timeout: Duration,
    /// The steps, in order.
    pub steps: Vec<Scheduled>,
    /// What the reader of an imported file should know, such as what was left out.
    pub notes: Vec<String>,
}

/// A step and when it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// The line it stands on.
    pub line: u32,
    /// Not before so long after the job first ran; none: as soon as the step before has ended.
    pub at: Option<Duration>,
    /// It begins along with the step before, not after it.
    pub together: bool,
    /// What is done.
    pub step: Step,
}

/// One thing a scenario does.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Hands a command to the application of one process.
    Send {
        /// The process.
        process: ProcessId,
        /// The command.
        text: String,
    },
    /// Begins a snapshot.
    Snapshot {
        /// The initiators; empty: the job's.
        from: BTreeSet<ProcessId>,
        /// Another mode than the job's.
        mode: Option<Mode>,
        /// Another limit T than the job's, for an aligned snapshot.
        alignment_timeout: Option<Duration>,
        /// Whether the step lasts until the snapshot has ended, and fails if it was aborted.
        wait: bool,
    },
    /// SIGKILL.
    Kill {
        /// The victims.
        targets: BTreeSet<Target>,
        /// Where they are held until they are killed; none: wherever they happen to be.
        at_point: Option<Point>,
    },
    /// SIGSTOP.
    Pause {
        /// The victims.
        targets: BTreeSet<Target>,
    },
    /// SIGCONT.
    Resume {
        /// The victims.
        targets: BTreeSet<Target>,
    },
    /// SIGKILL, and the step lasts until they are back.
    Restart {
        /// The victims.
        targets: BTreeSet<Target>,
    },
    /// The stream that carries a channel breaks, with what is on it.
    Break {
        /// The channel.
        channel: ChannelId,
    },
    /// Takes the job back; lasts until everyone runs again.
    Restore {
        /// The snapshot; none: the newest complete one.
        snapshot: Option<SnapshotId>,
    },
    /// Lasts until all of these hold at once; fails if that takes longer than the timeout.
    Wait {
        /// What must hold.
        conditions: Vec<Condition>,
        /// How long it may take.
        timeout: Duration,
    },
    /// Fails if one of these does not hold now.
    Expect {
        /// What must hold.
        expectations: Vec<Expectation>,
    },
}

/// An OS process of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The node that hosts this process.
    Node(ProcessId),
    /// The collector.
    Collector,
}

/// What a `wait` waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// At least so many snapshots of the scenario are complete.
    Snapshots(u64),
    /// The job is in this generation or a later one.
    Generation(Generation),
    /// The collector answers and every process runs, and none of them is still in a program that
    /// a step has killed.
    Running,
    /// The collector has counted this process as lost since the last step that did something.
    Lost(ProcessId),
    /// A node of this process has joined since the last step that did something.
    Joined(ProcessId),
    /// So long since the step began.
    Time(Duration),
    /// Nothing moves: all that was sent is handled, and no snapshot is open.
    Idle,
}

/// What an `expect` checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// How many snapshots of the scenario are complete.
    Snapshots(Bound),
    /// How many were aborted.
    Aborted(Bound),
    /// How often the job was taken back to a snapshot.
    Restores(Bound),
    /// The generation the job is in.
    Generation(Bound),
    /// Every verdict holds on every complete snapshot, of which there is one.
    Verdicts,
    /// Every complete snapshot holds so much of each of these, in states and channels together.
    /// There is one, and each of these is known to one.
    Quantities(BTreeMap<String, i64>),
}

/// What a number is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Exactly so many.
    Exactly(u64),
    /// So many or more.
    AtLeast(u64),
    /// So many or fewer.
    AtMost(u64),
}

impl Bound {
    /// Whether a number is within it.
    pub const fn holds(self, number: u64) -> bool {
        match self {
            Self::Exactly(bound) => number == bound,
            Self::AtLeast(bound) => number >= bound,
            Self::AtMost(bound) => number <= bound,
        }
    }
}

/// The text of a file.
fn read_file(path: &Path) -> Result<String, ScenarioError> {
    read_text(path).map_err(|source| ScenarioError::Read {
        path: path.to_owned(),
        source,
    })
}

impl Scenario {
    /// Reads and checks a scenario file, and the job file it names.
    ///
    /// # Errors
    /// If a file cannot be read, or with everything that makes no sense.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&read_file(path)?, path)
    }

    /// Checks the text of a scenario file, and the job file it names, relative to `origin`.
    ///
    /// # Errors
    /// With everything that makes no sense, in either.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, ScenarioError> {
        let document = Document::new(origin.to_string_lossy(), text);
        let table = document.parse(text);
        let mut scenario = None;
        if !document.is_refused() {
            let own = Placed {
                value: table.get_ref(),
                line: None,
            };
            let root = Section::new(&document, "a scenario", Some(own), None);
            scenario = read::read(root, origin);
        }
        document.verdict().map_err(ScenarioError::Refused)?;
        Ok(scenario.expect("no scenario without a reason"))
    }

    /// The steps in groups: those of one group begin together, each group after the one before.
    pub fn groups(&self) -> impl Iterator<Item = &[Scheduled]> {
        self.steps.chunk_by(|_, next| next.together)
    }
}

#[cfg(test)]
mod cos418_tests;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod tests;
