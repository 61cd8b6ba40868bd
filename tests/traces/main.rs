//! What a traced job says of itself, and what follows from it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod again;
mod clocks;
mod course;
mod files;
mod memory;
mod modes;
mod orders;
#[allow(dead_code, reason = "the golden files are for the engines")]
#[path = "../peers/files.rs"]
mod peers;
mod pictures;
mod section4;
mod stage;
mod witnesses;
