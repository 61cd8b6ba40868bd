//! What others have published for the same algorithm: courses, exercises, runs. Their files are
//! read as they are, what they ask for is done by the real machines in a world, and what they
//! expect must come out.
//!
//! The files are no part of this repository; without them these tests are skipped, and say so.

// Clippy takes only the tests themselves for tests; what is skipped must be said.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod delivered;
#[allow(dead_code, reason = "the tests of COS 418 run elsewhere")]
mod files;
mod raf;
mod stage;
mod ticked;
mod utd;

use std::path::Path;

use files::peers;

/// One file of a folder; none, with a word about it, where this copy of the folder lacks it.
fn file(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name);
    if path.is_file() {
        return Some(std::fs::read_to_string(&path).unwrap());
    }
    println!("skipped: there is no file {}", path.display());
    None
}
