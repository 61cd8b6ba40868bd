//! The commands about what a traced job wrote down: `witness`, `replay`, `trace`, `topology`.
//!
//! The commands do events again with the applications that come with the crate. For one of the
//! user's own, whose code the program `cutline` has not, [`witness`], [`replay`] and [`verdict`]
//! can be called with it.

mod export;
mod generation;
mod replay;
mod verdict;
mod witness;

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::command::{CommandError, Progress, Reply};
use super::place::Place;
use super::view::Format;
use crate::apps::BuiltIn;

use generation::own_code;

pub use export::{topology, trace};
pub use replay::replay;
pub use verdict::verdict;
pub(in crate::control) use verdict::verdict_of_built_in;
pub use witness::witness;

/// A command about traces, as it is written on the command line.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// A legal run that passes through what a snapshot recorded; 1 if there is none.
    ///
    /// From the trace of the snapshot's generation, every event before the cut is done ahead of
    /// every event behind it, with the real application: the run begins and ends as the real one
    /// did, and passes through the recorded state, which itself need never have been there.
    Witness {
        /// The snapshot, such as s42.
        id: String,
        /// For people, or as JSON of a stable shape.
        #[arg(long, value_enum, default_value = "table", env = "CUTLINE_FORMAT")]
        format: Shape,
    },
    /// Run a traced job again in memory, event for event; 1 at the first difference.
    ///
    /// The same machines as on real nodes are told what the trace says happened. Every event has
    /// to come out as it was written down, and every snapshot as it is stored.
    Replay {
        /// The job's directory.
        directory: Option<PathBuf>,
        /// Only this generation, such as g3.
        #[arg(long, value_name = "G")]
        generation: Option<String>,
        /// For people, or as JSON of a stable shape.
        #[arg(long, value_enum, default_value = "table", env = "CUTLINE_FORMAT")]
        format: Shape,
    },
    /// Write a trace for another program.
    Trace {
        /// The job's directory.
        directory: Option<PathBuf>,
        /// Which program.
        #[arg(long, value_enum, default_value = "ndjson")]
        format: Picture,
        /// Only this generation, such as g3.
        #[arg(long, value_name = "G")]
        generation: Option<String>,
    },
    /// Write the processes and channels of a job file as a graph.
    Topology {
        /// The job file.
        file: PathBuf,
        /// As what: dot is for Graphviz.
        #[arg(long, value_enum, default_value = "dot")]
        format: Graph,
    },
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// For people
    Table,
    /// For programs
    Json,
}

/// For which program a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// A log for ShiViz: an execution for each generation
    Shiviz,
    /// A sequence diagram for Mermaid, of the newest generation unless one is named
    Mermaid,
    /// The lines as they were written, of all processes in one order
    Ndjson,
}

/// As what a topology is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Graph {
    /// For Graphviz
    Dot,
}

impl TraceCommand {
    /// Does it; `table` is how a table is written.
    ///
    /// # Errors
    /// If there is no such job, trace or snapshot, or something cannot be read.
    pub async fn answer(
        self,
        place: &Place,
        table: Format,
        progress: Progress<'_>,
    ) -> Result<Reply, CommandError> {
        let format = |shape| match shape {
            Shape::Table => table,
            Shape::Json => Format::Json,
        };
        match self {
            Self::Witness { id, format: shape } => {
                own_code(&place.job()?.0).map_err(CommandError::No)?;
                let waiting = || "for the run to be done twice".to_owned();
                let working = witness::<BuiltIn>(place, &id, format(shape));
                progress.during(waiting, working).await
            }
            Self::Replay {
                directory,
                generation,
                format: shape,
            } => {
                let place = place.at(directory);
                own_code(&place.job()?.0).map_err(CommandError::No)?;
                let working = replay::<BuiltIn>(&place, generation.as_deref(), format(shape));
                let waiting = || "for the run to be done again".to_owned();
                progress.during(waiting, working).await
            }
            Self::Trace {
                directory,
                format: picture,
                generation,
            } => trace(&place.at(directory), picture, generation.as_deref()),
            Self::Topology { file, .. } => topology(&file),
        }
    }
}
