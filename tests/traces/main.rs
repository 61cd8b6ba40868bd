//! What a traced job says of itself, and what follows from it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod again;
mod clocks;
#[allow(dead_code, reason = "its main is the example's, not this test's")]
#[path = "../../examples/counter.rs"]
pub mod counter;
mod course;
mod files;
mod memory;
mod modes;
mod orders;
mod own;
#[allow(dead_code, reason = "the golden files are for the engines")]
#[path = "../peers/files.rs"]
mod peers;
mod pictures;
mod section4;
mod stage;
mod witnesses;
