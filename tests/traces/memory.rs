//! A job in memory whose snapshots are taken only when somebody asks, for every test that makes
//! its own choices and has no bounds of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use cutline::protocol::Topology;
use cutline::protocol::collector::Policy;
use cutline::protocol::link::Limits;
use cutline::protocol::mode::Mode;
use cutline::protocol::process::Settings;
use cutline::world::Job;
use serde_json::Value;

/// The job, traced or not.
pub(crate) fn job(topology: Topology, application: (&str, Value), seed: u64, trace: bool) -> Job {
    let (application, settings) = application;
    Job {
        topology: Arc::new(topology),
        application: application.to_owned(),
        settings,
        seed,
        process: Settings {
            limits: Limits::default(),
            snapshot_timeout_ms: 60_000,
            trace,
        },
        policy: Policy {
            mode: Mode::Classic,
            alignment_timeout_ms: None,
            interval_ms: 0,
            pause_min_ms: 0,
            timeout_ms: 60_000,
            open_max: 4,
            failures_tolerated: 3,
            fall_back: false,
            retain: 100,
            silence_ms: 10_000,
            initiators: BTreeSet::new(),
        },
    }
}
