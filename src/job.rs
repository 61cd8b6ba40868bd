//! One file describes a job: who runs, how they are connected, what they run, and how snapshots
//! are taken and kept. It is read and checked once; whoever holds a [`Job`] need not check again.
//!
//! Every refusal names the file, the line and the remedy, and one reading finds as many as it
//! can. The defaults are in `job/default.toml`; `docs/job-file.md` explains every field.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toml::de::DeTable;
use url::Url;

use crate::protocol::Topology;
use crate::protocol::application::Setup;
use crate::protocol::collector::Policy;
use crate::protocol::ids::ProcessId;
use crate::protocol::link::Limits;

mod check;
mod graph;
mod numbers;
mod parts;
mod read;
mod refusal;
mod restarts;
mod snapshots;
mod summary;
mod table;
mod utd;
mod value;
mod write;

pub use crate::name::{COLLECTOR, NAME_BYTES_MAX, decode_name, encode_name};
pub use graph::{CHANNELS_MAX, Link};
pub use numbers::MESSAGE_BYTES_CEILING;
pub use parts::{Parts, Snapshots, Store};
pub use refusal::{JobError, Refusal, Refusals};
pub use restarts::{Restarts, UsedRestarts};

pub(crate) use crate::name::{imported_refusal, plain};
pub(crate) use check::unreached;
pub(crate) use refusal::list;
pub(crate) use snapshots::{mode, untriggered};
pub(crate) use table::{Document, Placed, Section};
pub(crate) use value::{integer, not, number, unfit};

use read::Places;
use write::millis;

/// The largest file that is read: a job with every channel and name that is allowed needs less.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A job that makes sense.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    parts: Parts,
    topology: Arc<Topology>,
    initiators: BTreeSet<ProcessId>,
}

impl Job {
    /// Reads and checks a job file.
    ///
    /// # Errors
    /// If it cannot be read, or with everything in it that makes no sense.
    pub fn load(path: &Path) -> Result<Self, JobError> {
        let failed = |source| JobError::Read {
            path: path.to_owned(),
            source,
        };
        let text = read_text(path).map_err(failed)?;
        Self::parse(&text, path)
    }

    /// Checks the text of a job file. Paths in it are relative to `origin`, the file, which also
    /// gives the job its name and directory where the text does not.
    ///
    /// # Errors
    /// With everything in it that makes no sense.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, JobError> {
        let document = Document::new(origin.to_string_lossy(), text);
        let table = document.parse(text);
        if !document.is_refused() {
            let own = Placed {
                value: table.get_ref(),
                line: None,
            };
            if let Some(job) = Self::read(&document, "a job file", own, origin) {
                document.verdict().map_err(JobError::Refused)?;
                return Ok(job);
            }
        }
        Err(JobError::Refused(
            document.verdict().expect_err("no job without a reason"),
        ))
    }

    /// Reads a job from a table of a larger file. None if its topology cannot be had; whatever
    /// else is wrong is in the document, too.
    pub(crate) fn read<'d>(
        document: &'d Document,
        title: &str,
        own: Placed<&'d DeTable<'d>>,
        origin: &Path,
    ) -> Option<Self> {
        let file = std::path::absolute(origin).unwrap_or_else(|_| origin.to_owned());
        let root = Section::new(document, title, Some(own), Some(read::default_table()));
        let (parts, places) = read::read(root, &read::normal(&file));
        Self::checked(parts, &places, document)
    }

    /// Checks a job that was put together in code.
    ///
    /// # Errors
    /// With everything in it that makes no sense.
    pub fn new(parts: Parts) -> Result<Self, JobError> {
        let document = Document::new(format!("job '{}'", parts.name), "");
        let job = Self::checked(parts, &Places::default(), &document);
        document.verdict().map_err(JobError::Refused)?;
        Ok(job.expect("a job without a refusal"))
    }

    fn checked(mut parts: Parts, places: &Places, document: &Document) -> Option<Self> {
        let (topology, initiators) = check::check(&parts, places, document)?;
        parts.channels.sort();
        Some(Self {
            parts,
            topology: Arc::new(topology),
            initiators,
        })
    }

    /// The same job with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.parts.seed = seed;
        self
    }

    /// The same job in another directory; its store goes along unless it has a URL.
    #[must_use]
    pub fn with_directory(mut self, directory: &Path) -> Self {
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        self.parts.directory = read::normal(&absolute);
        self
    }

    /// Everything the job file says, defaults included.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The job's name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// The processes and channels.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The processes that are triggered when nobody says otherwise; they reach everyone.
    pub fn initiators(&self) -> &BTreeSet<ProcessId> {
        &self.initiators
    }

    /// The name of the application.
    pub fn application(&self) -> &str {
        &self.parts.application
    }

    /// The user's own node program, if there is one.
    pub fn program(&self) -> Option<&Path> {
        self.parts.program.as_deref()
    }

    /// The seed of all the job's randomness.
    pub fn seed(&self) -> u64 {
        self.parts.seed
    }

    /// How much of a channel may be under way or waiting.
    pub fn limits(&self) -> Limits {
        self.parts.limits
    }

    /// What happens when a node dies.
    pub fn restarts(&self) -> Restarts {
        self.parts.restarts
    }

    /// After this without any word from a node it counts as lost.
    pub fn silence(&self) -> Duration {
        self.parts.silence
    }

    /// How long everything that is sent on a channel is under way, at least.
    pub fn delay(&self) -> Duration {
        self.parts.delay
    }

    /// Whether every process writes down what happens in it.
    pub fn trace(&self) -> bool {
        self.parts.trace
    }

    /// Where the job keeps what belongs to it; absolute.
    pub fn directory(&self) -> &Path {
        &self.parts.directory
    }

    /// Where snapshots are kept.
    pub fn store_url(&self) -> Url {
        let own = || Url::from_directory_path(self.parts.directory.join("store"));
        let url = self.parts.store.url.clone().map_or_else(own, Ok);
        url.expect("the directory was checked to be absolute")
    }

    /// How the collector behaves.
    pub fn policy(&self) -> Policy {
        let Parts {
            snapshots,
            store,
            silence,
            ..
        } = &self.parts;
        Policy {
            mode: snapshots.mode,
            alignment_timeout_ms: snapshots.alignment_timeout.map(millis),
            interval_ms: millis(snapshots.interval),
            pause_min_ms: millis(snapshots.pause),
            timeout_ms: millis(snapshots.timeout),
            open_max: snapshots.open_max,
            failures_tolerated: snapshots.failures_tolerated,
            fall_back: store.fall_back,
            retain: store.retain,
            silence_ms: millis(*silence),
            initiators: self.initiators.clone(),
        }
    }

    /// What the application in this process is started with.
    pub fn setup(&self, process: ProcessId) -> Setup {
        Setup {
            topology: self.topology.clone(),
            process,
            application: self.parts.application.clone(),
            settings: serde_json::Value::Object(self.parts.settings.clone()),
            seed: self.parts.seed,
            message_bytes_max: self.parts.limits.message_bytes_max,
        }
    }

    /// The text of a job file that reads back as this job, wherever it lies.
    pub fn to_toml(&self) -> String {
        write::to_toml(&self.parts)
    }

    /// The job for programs; `docs/job-file.md` promises the shape.
    pub fn to_json(&self) -> serde_json::Value {
        write::to_json(self)
    }
}

/// The text of a file that a user wrote.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let problem = format!("it is over {} MiB", FILE_BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

/// A path beside a file.
pub(crate) fn beside(file: &Path, path: &str) -> PathBuf {
    file.with_file_name("").join(path)
}

#[cfg(test)]
mod refused;
#[cfg(test)]
mod tests;
