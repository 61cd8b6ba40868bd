//! The program that hosts one process.

pub mod attend;
