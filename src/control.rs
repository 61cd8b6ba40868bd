//! What a user does to a running job.

pub mod client;
