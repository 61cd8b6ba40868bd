//! Takes a consistent cut of a running distributed program without stopping it, proves the cut
//! right, and restarts from it.

pub mod apps;
pub mod control;
pub mod protocol;
pub mod world;
