//! Takes a consistent cut of a running distributed program without stopping it, proves the cut
//! right, and restarts from it.

pub mod apps;
pub mod check;
pub mod collector;
pub mod control;
pub mod hold;
pub mod job;
pub mod net;
pub mod node;
pub mod parent;
pub mod program;
pub mod protocol;
pub mod scenario;
pub mod store;
pub mod wire;
pub mod world;
