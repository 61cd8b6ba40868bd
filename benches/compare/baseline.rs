//! The program `baseline`: the same messages without cutline.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// What one channel carried, and what a message cost.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Flow {
    pub(crate) messages_per_s: f64,
    pub(crate) sender_ns: f64,
    pub(crate) receiver_ns: f64,
}

impl Flow {
    pub(crate) fn cpu_ns(&self) -> f64 {
        self.sender_ns + self.receiver_ns
    }
}

/// The program.
pub(crate) struct Baseline(pub(crate) PathBuf);

impl Baseline {
    pub(crate) fn flow(&self, case: &str, bytes: usize) -> anyhow::Result<Flow> {
        let answer = self.run(case, bytes)?;
        let number = |field: &str| {
            answer[field]
                .as_f64()
                .with_context(|| format!("no {field}"))
        };
        Ok(Flow {
            messages_per_s: number("messages")? / number("wall_s")?,
            sender_ns: number("sender_ns")?,
            receiver_ns: number("receiver_ns")?,
        })
    }

    /// The median of the case's round trips.
    pub(crate) fn trip_us(&self, case: &str, bytes: usize) -> anyhow::Result<f64> {
        self.run(case, bytes)?["p50_us"]
            .as_f64()
            .context("no p50_us")
    }

    fn run(&self, case: &str, bytes: usize) -> anyhow::Result<Value> {
        let mut program = Command::new(&self.0);
        program.args(["--case", case, "--bytes", &bytes.to_string()]);
        let output = program.output();
        let output = output.with_context(|| format!("starting {}", self.0.display()))?;
        ensure!(
            output.status.success(),
            "{} failed on {case}: {}",
            self.0.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
