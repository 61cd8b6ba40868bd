//! Traces as files: what every process of a traced job wrote down, and how it is read back.
//!
//! In the job's directory, `trace/g3/p1.i93.ndjson` has what process `p1` did in generation g3, in
//! the incarnation i93: one event a line, in the order in which it happened. What an event is, the
//! core says ([`protocol::trace`](crate::protocol::trace)); `docs/trace.md` describes the lines.
//! What can be found out from traces is in [`check`](crate::check).

mod again;
mod line;
mod pictures;
mod read;
mod write;

use std::path::{Path, PathBuf};

pub use again::{Replayed, replay, unlike_stored};
pub use line::{LineError, Names};
pub use pictures::{described, dot, lines, mermaid, shiviz};
pub use read::{GenerationTrace, ProcessTrace, TraceError, Traces};
pub use write::Writer;

use crate::name::encode_name;
use crate::protocol::ids::{Generation, Incarnation};

/// What one file may hold. A generation that does more is cut off there, and what asks about it is
/// told; whoever reads a trace holds it in memory.
pub const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Generations of which a process keeps its files; the oldest go when a new one starts.
pub const GENERATIONS_MAX: u64 = 32;

/// The folder of all traces in a job's directory.
pub fn folder(directory: &Path) -> PathBuf {
    directory.join("trace")
}

fn generation_folder(directory: &Path, generation: Generation) -> PathBuf {
    folder(directory).join(generation.to_string())
}

fn file_name(process: &str, incarnation: Incarnation) -> String {
    format!("{}.{incarnation}.ndjson", encode_name(process))
}
