//! A job as the text of a job file that reads back as the same job, and as JSON.

use std::time::Duration;

use serde_json::json;
use toml::{Table, Value};

use super::{Job, Parts};

/// The text of a job file. Paths in it are absolute, so that it may lie anywhere.
pub(super) fn to_toml(parts: &Parts) -> String {
    let mut root = Table::new();
    root.insert("name".into(), parts.name.clone().into());
    if parts.imported {
        root.insert("imported".into(), true.into());
    }
    root.insert("directory".into(), path(&parts.directory));
    if let Some(program) = &parts.program {
        root.insert("program".into(), path(program));
    }
    root.insert("silence".into(), duration(parts.silence));
    root.insert("delay".into(), duration(parts.delay));
    root.insert("trace".into(), parts.trace.into());
    root.insert("processes".into(), parts.processes.clone().into());
    let channels: Vec<String> = parts.channels.iter().map(ToString::to_string).collect();
    root.insert("channels".into(), channels.into());

    let settings = Table::try_from(&parts.settings).expect("settings were checked to fit");
    let mut application = Table::from_iter([("name".into(), parts.application.clone().into())]);
    application.extend(settings);
    root.insert("application".into(), application.into());
    root.insert("snapshots".into(), snapshots(parts).into());
    root.insert("store".into(), store(parts).into());
    let restarts = parts.restarts;
    let restarts = [
        ("max".into(), Value::from(restarts.max)),
        ("window".into(), duration(restarts.window)),
        ("backoff".into(), duration(restarts.backoff)),
    ];
    root.insert("restarts".into(), Table::from_iter(restarts).into());
    root.insert("limits".into(), limits(parts).into());

    let rest = toml::to_string_pretty(&root).expect("a table of plain values can be written");
    // By hand, since the seed may be over what TOML promises; it is read back in full.
    format!("seed = {}\n{rest}", parts.seed)
}

fn snapshots(parts: &Parts) -> Table {
    let snapshots = &parts.snapshots;
    let mode = Value::try_from(snapshots.mode).expect("a mode is a word");
    let mut table = Table::from_iter([
        ("mode".into(), mode),
        ("interval".into(), duration(snapshots.interval)),
        ("pause".into(), duration(snapshots.pause)),
        ("timeout".into(), duration(snapshots.timeout)),
        ("open_max".into(), number(snapshots.open_max)),
        (
            "failures_tolerated".into(),
            snapshots.failures_tolerated.into(),
        ),
    ]);
    if let Some(limit) = snapshots.alignment_timeout {
        table.insert("alignment_timeout".into(), duration(limit));
    }
    if !snapshots.back_edges.is_empty() {
        let back_edges = snapshots.back_edges.iter().map(ToString::to_string);
        table.insert("back_edges".into(), back_edges.collect::<Vec<_>>().into());
    }
    if !snapshots.initiators.is_empty() {
        table.insert("initiators".into(), snapshots.initiators.clone().into());
    }
    table
}

fn store(parts: &Parts) -> Table {
    let store = &parts.store;
    let mut table = Table::from_iter([
        ("retain".into(), number(store.retain)),
        ("fall_back".into(), store.fall_back.into()),
    ]);
    if let Some(url) = &store.url {
        table.insert("url".into(), url.as_str().into());
    }
    table
}

fn limits(parts: &Parts) -> Table {
    let limits = &parts.limits;
    Table::from_iter([
        ("window_messages".into(), number(limits.window_messages)),
        ("window_bytes".into(), number(limits.window_bytes)),
        ("message_bytes_max".into(), number(limits.message_bytes_max)),
        ("outbox_bytes".into(), number(limits.outbox_bytes)),
        ("outbox_bytes_max".into(), number(limits.outbox_bytes_max)),
        (
            "recording_bytes_max".into(),
            number(limits.recording_bytes_max),
        ),
    ])
}

fn path(path: &std::path::Path) -> Value {
    path.to_string_lossy().into_owned().into()
}

fn duration(duration: Duration) -> Value {
    humantime::format_duration(duration).to_string().into()
}

/// Numbers from 2^63 on mean "no bound", and so does the highest that TOML has.
fn number(number: u64) -> Value {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}

/// The shape that `docs/job-file.md` promises.
pub(super) fn to_json(job: &Job) -> serde_json::Value {
    let Parts {
        snapshots,
        store,
        restarts,
        limits,
        ..
    } = job.parts();
    let topology = job.topology();
    let processes: Vec<_> = topology
        .processes()
        .map(|process| topology.name(process))
        .collect();
    let channels = topology
        .channels()
        .iter()
        .map(|&channel| topology.channel_name(channel));
    let initiators = job
        .initiators()
        .iter()
        .map(|&process| topology.name(process));
    let back_edges = topology.back_edges().iter();
    let back_edges = back_edges.map(|&channel| topology.channel_name(channel));
    json!({
        "job": job.name(),
        "imported": job.parts().imported,
        "processes": processes,
        "channels": channels.collect::<Vec<_>>(),
        "delay_ms": millis(job.delay()),
        "initiators": initiators.collect::<Vec<_>>(),
        "application": { "name": job.application(), "settings": job.parts().settings },
        "program": job.program(),
        "seed": job.seed(),
        "snapshots": {
            "mode": snapshots.mode,
            "alignment_timeout_ms": snapshots.alignment_timeout.map(millis),
            "back_edges": back_edges.collect::<Vec<_>>(),
            "interval_ms": millis(snapshots.interval),
            "pause_ms": millis(snapshots.pause),
            "timeout_ms": millis(snapshots.timeout),
            "open_max": snapshots.open_max,
            "failures_tolerated": snapshots.failures_tolerated,
        },
        "store": {
            "url": job.store_url().as_str(),
            "retain": store.retain,
            "fall_back": store.fall_back,
        },
        "restarts": {
            "max": restarts.max,
            "window_ms": millis(restarts.window),
            "backoff_ms": millis(restarts.backoff),
        },
        "limits": {
            "window_messages": limits.window_messages,
            "window_bytes": limits.window_bytes,
            "message_bytes_max": limits.message_bytes_max,
            "outbox_bytes": limits.outbox_bytes,
            "outbox_bytes_max": limits.outbox_bytes_max,
            "recording_bytes_max": limits.recording_bytes_max,
        },
        "silence_ms": millis(job.silence()),
        "trace": job.trace(),
        "directory": job.directory(),
    })
}

/// Whole milliseconds, as everything that is sent or stored counts.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
