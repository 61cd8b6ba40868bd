//! What a job consists of, before anybody has checked that it makes sense.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use url::Url;

use super::graph::Link;
use super::read;
use super::restarts::Restarts;
use crate::protocol::link::Limits;
use crate::protocol::mode::Mode;

/// Everything a job file says; [`Job::new`](super::Job::new) checks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// The job's name.
    pub name: String,
    /// Whether the processes' names come from somebody else's file and keep their case.
    pub imported: bool,
    /// The processes, in order.
    pub processes: Vec<String>,
    /// The channels, in any order.
    pub channels: Vec<Link>,
    /// The name of the application.
    pub application: String,
    /// The application's settings.
    pub settings: Map<String, Value>,
    /// The user's own node program; none for an application that is built in.
    pub program: Option<PathBuf>,
    /// The seed of all the job's randomness.
    pub seed: u64,
    /// How snapshots are taken.
    pub snapshots: Snapshots,
    /// Where they are kept.
    pub store: Store,
    /// What happens when a node dies.
    pub restarts: Restarts,
    /// How much of a channel may be under way or waiting.
    pub limits: Limits,
    /// After this without any word from a node it counts as lost.
    pub silence: Duration,
    /// How long everything that is sent on a channel is under way, at least.
    pub delay: Duration,
    /// Whether every process writes down what happens in it.
    pub trace: bool,
    /// Where the job keeps what belongs to it.
    pub directory: PathBuf,
}

impl Parts {
    /// A job with all defaults, and as yet without processes, channels and application.
    pub fn new(name: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            directory: directory.into(),
            ..read::defaults()
        }
    }
}

/// How snapshots are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshots {
    /// The mode.
    pub mode: Mode,
    /// How long an aligned snapshot may align before it goes on as an unaligned one; none: for as
    /// long as it takes.
    pub alignment_timeout: Option<Duration>,
    /// The channels that an alignment does not wait for; empty: those that are found.
    pub back_edges: Vec<Link>,
    /// From the begin of one periodic snapshot to the next; zero: none but on demand.
    pub interval: Duration,
    /// From the end of one periodic snapshot to the begin of the next, at least.
    pub pause: Duration,
    /// After this an open snapshot is aborted.
    pub timeout: Duration,
    /// Snapshots that may be open at once.
    pub open_max: u64,
    /// Failures in a row that are tolerated; one more ends the job.
    pub failures_tolerated: u32,
    /// Who is triggered; empty: one process in each root component.
    pub initiators: Vec<String>,
}

/// Where snapshots are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The store; none for the directory `store` in the job's own.
    pub url: Option<Url>,
    /// Complete snapshots that are kept.
    pub retain: u64,
    /// Whether an older snapshot may be restored when the newest cannot be read.
    pub fall_back: bool,
}
