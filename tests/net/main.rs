//! Streams on loopback: what one end is told to move, the other end tells, in order, and nothing
//! that a peer does to a stream harms another one or leaves anything behind.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod carrying;
mod ending;
mod foreign;
mod node;
mod opening;
mod strangers;
