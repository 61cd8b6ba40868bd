//! Reading traces back: every file of a generation, up to where each breaks off.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::line::{LineError, Names};
use super::{file_name, folder, generation_folder};
use crate::check::Logged;
use crate::name::decode_name;
use crate::protocol::ids::{Generation, Incarnation, ProcessId};
use crate::protocol::topology::Topology;
use crate::protocol::trace::{Event, What};

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Nothing was written down.
    #[error(
        "there is no trace in {}: a job with 'trace = true' in its file writes one", .0.display()
    )]
    None(PathBuf),
    /// Not of this generation.
    #[error("there is no trace of {generation}; there are traces of {}", list(.known))]
    NoGeneration {
        /// The generation.
        generation: Generation,
        /// Those that have one.
        known: Vec<Generation>,
    },
    /// The file system says no.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A line is not what a process writes.
    #[error("{}:{line}: {source}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: LineError,
    },
    /// The lines of a file do not follow one another.
    #[error("{}:{line}: {what}", .path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// Two incarnations of a process in one generation.
    #[error(
        "{} and {} are of one process and generation: remove the one that is none of this job's",
        .0.display(), .1.display()
    )]
    Twice(PathBuf, PathBuf),
}

fn list(generations: &[Generation]) -> String {
    let texts: Vec<_> = generations.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// What one process did in one generation, as far as it was written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessTrace {
    /// The file; none if there is none.
    pub path: Option<PathBuf>,
    /// The events, from the start on.
    pub events: Vec<Logged>,
}

impl ProcessTrace {
    /// Whether it goes on to the end: a kill, and a full file, lose the tail.
    pub fn is_whole(&self) -> bool {
        let last = self.events.last();
        last.is_some_and(|logged| matches!(logged.event.what, What::End { .. }))
    }
}

/// What all processes did in one generation, in the order of the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationTrace {
    /// The generation.
    pub generation: Generation,
    /// Its processes.
    pub processes: Vec<ProcessTrace>,
}

/// The traces of a job.
#[derive(Debug)]
pub struct Traces {
    directory: PathBuf,
    names: Names,
    generations: Vec<Generation>,
}

impl Traces {
    /// The traces in a job's directory.
    ///
    /// # Errors
    /// If there is none or the folder cannot be read.
    pub fn open(directory: &Path, topology: Arc<Topology>) -> Result<Self, TraceError> {
        let folder = folder(directory);
        let none = || TraceError::None(folder.clone());
        if !folder.is_dir() {
            return Err(none());
        }
        let names = entries(&folder)?;
        let generations = names.iter().filter_map(|name| name.parse().ok());
        let mut generations: Vec<Generation> = generations.collect();
        generations.sort_unstable();
        if generations.is_empty() {
            return Err(none());
        }
        Ok(Self {
            directory: directory.to_owned(),
            names: Names::new(topology),
            generations,
        })
    }

    /// The generations that have a trace, in order.
    pub fn generations(&self) -> &[Generation] {
        &self.generations
    }

    /// The names that lines are written with.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What was written down in one generation.
    ///
    /// # Errors
    /// If there is nothing, a file cannot be read, or has a line that nobody writes. A last line
    /// without its end is none: its node was killed while it wrote.
    pub fn read(&self, generation: Generation) -> Result<GenerationTrace, TraceError> {
        if !self.generations.contains(&generation) {
            return Err(TraceError::NoGeneration {
                generation,
                known: self.generations.clone(),
            });
        }
        let folder = generation_folder(&self.directory, generation);
        let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
        for name in entries(&folder)? {
            let Some((process, incarnation)) = name
                .strip_suffix(".ndjson")
                .and_then(|stem| stem.split_once('.'))
            else {
                continue;
            };
            let incarnation = incarnation.parse::<Incarnation>();
            if let (Some(process), Ok(incarnation)) = (decode_name(process), incarnation) {
                let path = folder.join(file_name(&process, incarnation));
                if let Some(other) = files.insert(process, path.clone()) {
                    return Err(TraceError::Twice(other, path));
                }
            }
        }
        let topology = self.names.topology();
        let processes = topology.processes().map(|process| {
            let path = files.remove(topology.name(process));
            path.map_or_else(
                || Ok(ProcessTrace::default()),
                |path| self.read_file(process, generation, path),
            )
        });
        Ok(GenerationTrace {
            generation,
            processes: processes.collect::<Result<_, _>>()?,
        })
    }

    fn read_file(
        &self,
        process: ProcessId,
        generation: Generation,
        path: PathBuf,
    ) -> Result<ProcessTrace, TraceError> {
        let text = fs::read(&path).map_err(|source| TraceError::Io {
            path: path.clone(),
            source,
        })?;
        let end = text.iter().rposition(|&byte| byte == b'\n');
        let whole = String::from_utf8_lossy(&text[..end.map_or(0, |end| end + 1)]);
        let mut events: Vec<Logged> = Vec::new();
        for (line, text) in (1..).zip(whole.lines()) {
            let (event, at_us) = self.names.read(text).map_err(|source| TraceError::Line {
                path: path.clone(),
                line,
                source,
            })?;
            if let Some(what) = out_of_order(&event, events.last(), process, generation) {
                let path = path.clone();
                return Err(TraceError::Order { path, line, what });
            }
            events.push(Logged { event, at_us });
        }
        let path = Some(path);
        Ok(ProcessTrace { path, events })
    }
}

/// What is wrong with an event that follows another in a file.
fn out_of_order(
    event: &Event,
    before: Option<&Logged>,
    process: ProcessId,
    generation: Generation,
) -> Option<String> {
    if event.process != process || event.generation != generation {
        let (of, at) = (event.process, event.generation);
        return Some(format!(
            "an event of {of} in {at}, in a file of {process} in {generation}"
        ));
    }
    let starts = matches!(event.what, What::Start { .. });
    if starts != before.is_none() {
        return Some("a trace begins with its only 'start'".to_owned());
    }
    let before = before?.event.clock.of(process);
    let own = event.clock.of(process);
    (own != before + 1).then(|| format!("event {own} of the process follows event {before}"))
}

fn entries(folder: &Path) -> Result<Vec<String>, TraceError> {
    let failed = |source| TraceError::Io {
        path: folder.to_owned(),
        source,
    };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let names = entries.map(|entry| Ok(entry?.file_name().into_string().unwrap_or_default()));
    names.collect::<io::Result<_>>().map_err(failed)
}
