//! What a traced job says of itself, and what follows from it.
#![allow(clippy::unwrap_used)]

mod again;
mod clocks;
mod course;
mod files;
mod orders;
mod pictures;
mod section4;
mod stage;
mod witnesses;
