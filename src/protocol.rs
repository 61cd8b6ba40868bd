//! The machines that decide: a process and the collector. No IO, no clock, no randomness.

pub mod application;
pub mod collector;
pub mod cut;
pub mod events;
pub mod frame;
pub mod ids;
pub mod link;
pub mod mode;
pub mod process;
mod recording;
pub mod records;
pub mod topology;

pub use events::{Effect, Input};
pub use process::Process;
pub use topology::Topology;
