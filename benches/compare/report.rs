//! What a measured process reports, and what can be read out of it.

use serde::{Deserialize, Serialize};

/// How far a process was at a time, and what it had used of the CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) at_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) sent: u64,
    pub(crate) handled: u64,
}

/// A local state that was taken.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Captured {
    pub(crate) at_ns: u64,
    pub(crate) sent: u64,
    pub(crate) handled: u64,
}

/// A local state that was restored.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Restored {
    pub(crate) at_ns: u64,
    /// When the first message was handled that was sent after the restore.
    pub(crate) first_new_ns: Option<u64>,
}

/// All that a process has to say.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) process: String,
    pub(crate) program_start_ns: u64,
    pub(crate) restored: Option<Restored>,
    /// Messages that were not the next on their channel, or could not be sent.
    pub(crate) faults: u64,
    pub(crate) samples: Vec<Sample>,
    pub(crate) captured: Vec<Captured>,
    pub(crate) trips_ns: Vec<u32>,
}

/// What happened between two points in time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) cpu_ns: f64,
    pub(crate) sent: f64,
    pub(crate) handled: f64,
}

impl Report {
    /// What happened in this window.
    pub(crate) fn between(&self, from_ns: u64, to_ns: u64) -> Progress {
        let (from, to) = (self.at(from_ns), self.at(to_ns));
        Progress {
            cpu_ns: to.cpu_ns - from.cpu_ns,
            sent: to.sent - from.sent,
            handled: to.handled - from.handled,
        }
    }

    /// How far it was at this time: on the straight line between the samples around it.
    fn at(&self, time_ns: u64) -> Progress {
        let after = self
            .samples
            .partition_point(|sample| sample.at_ns < time_ns);
        let after = after.clamp(1, self.samples.len() - 1);
        let (before, after) = (self.samples[after - 1], self.samples[after]);
        let span = (after.at_ns - before.at_ns).max(1) as f64;
        let share = (time_ns as f64 - before.at_ns as f64) / span;
        let between = |before: u64, after: u64| before as f64 + (after - before) as f64 * share;
        Progress {
            cpu_ns: between(before.cpu_ns, after.cpu_ns),
            sent: between(before.sent, after.sent),
            handled: between(before.handled, after.handled),
        }
    }
}
