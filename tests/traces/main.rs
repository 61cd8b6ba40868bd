//! What a traced job says of itself, and what follows from it.
#![allow(clippy::unwrap_used)]

mod clocks;
mod files;
mod stage;
