//! What busy channels carry, and how long a message takes on idle ones.

use std::time::Duration;

use crate::baseline::Flow;
use crate::cluster::{Cluster, Plan};
use crate::statistics::quantile;

const WINDOW: Duration = Duration::from_millis(1500);

/// One channel between two nodes, as busy as it can be.
pub(crate) async fn channel(bytes: usize) -> anyhow::Result<Flow> {
    let mut cluster = Cluster::start(&Plan::channel(bytes)).await?;
    let (from_ns, to_ns) = cluster.window(WINDOW).await;
    let reports = cluster.reports().await?;
    cluster.stop().await?;
    let sender = reports[0].between(from_ns, to_ns);
    let receiver = reports[1].between(from_ns, to_ns);
    Ok(Flow {
        messages_per_s: receiver.handled * 1e9 / (to_ns - from_ns) as f64,
        sender_ns: sender.cpu_ns / sender.sent,
        receiver_ns: receiver.cpu_ns / receiver.handled,
    })
}

/// Four nodes, each of which sends to all others as fast as it can: messages a second, and CPU
/// time per message of all of them together.
pub(crate) async fn mesh() -> anyhow::Result<(f64, f64)> {
    let mut cluster = Cluster::start(&Plan {
        processes: 4,
        channels: "topology = \"mesh\"",
        ..Plan::channel(32)
    })
    .await?;
    let (from_ns, to_ns) = cluster.window(WINDOW).await;
    let reports = cluster.reports().await?;
    cluster.stop().await?;
    let progress = reports.iter().map(|report| report.between(from_ns, to_ns));
    let (handled, cpu_ns) = progress.fold((0.0, 0.0), |(handled, cpu_ns), one| {
        (handled + one.handled, cpu_ns + one.cpu_ns)
    });
    Ok((handled * 1e9 / (to_ns - from_ns) as f64, cpu_ns / handled))
}

/// A message there and back, one at a time: median and 99th percentile in microseconds.
pub(crate) async fn round_trip(bytes: usize) -> anyhow::Result<(f64, f64)> {
    let mut cluster = Cluster::start(&Plan {
        channels: "channels = [\"p1 <-> p2\"]",
        role: "echo",
        ..Plan::channel(bytes)
    })
    .await?;
    cluster.window(Duration::ZERO).await;
    cluster.reports().await?;
    cluster.window(WINDOW).await;
    let reports = cluster.reports().await?;
    cluster.stop().await?;
    let trips_us = reports[0].trips_ns.iter().map(|&ns| f64::from(ns) / 1e3);
    let trips_us: Vec<_> = trips_us.collect();
    Ok((quantile(&trips_us, 0.5), quantile(&trips_us, 0.99)))
}
