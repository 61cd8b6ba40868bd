//! Whole jobs on real processes, with real kills: what the job promises when programs die, are
//! paused, find their disk full or a part damaged. What a scenario file can say is said in one;
//! the rest uses the programs as a user does.
//!
//! Each test has a folder of its own, and ends by looking that no process is left of it.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod asked;
mod branch;
mod broken;
mod cos418;
mod disk;
mod flat;
mod gated;
mod life;
mod losses;
mod many;
mod overtaking;
mod own;
mod parts;
mod paused;
#[path = "../peers/files.rs"]
mod peers;
mod points;
mod ran;
mod running;
mod soak;
mod stage;
mod starts;
mod traced;
