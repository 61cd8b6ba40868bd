//! What snapshots take: a marker's way through a busy channel, the price of one a second, and the
//! time until one is complete.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use cutline::control::client::SnapshotEnd;
use tokio::time::sleep;

use crate::clock::now_ns;
use crate::cluster::{Cluster, Plan};

/// Between the end of one snapshot and the begin of the next.
const PAUSE: Duration = Duration::from_millis(13);

const PRICE_WINDOW: Duration = Duration::from_secs(1);

async fn snapshot(cluster: &mut Cluster) -> anyhow::Result<()> {
    match cluster.client.snapshot_to_its_end(Vec::new()).await? {
        SnapshotEnd::Complete(_) => Ok(()),
        SnapshotEnd::Aborted(snapshot, reason) => bail!("{snapshot} was aborted: {reason}"),
    }
}

/// How long each of so many markers took through a channel that is as busy as it can be, from the
/// moment the sender recorded its state to the moment the receiver did; in milliseconds.
pub(crate) async fn markers_ms(bytes: usize, count: usize) -> anyhow::Result<Vec<f64>> {
    let mut cluster = Cluster::start(&Plan::channel(bytes)).await?;
    cluster.window(Duration::ZERO).await;
    for _ in 0..count {
        snapshot(&mut cluster).await?;
        sleep(PAUSE).await;
    }
    let reports = cluster.reports().await?;
    cluster.stop().await?;
    let (sender, receiver) = (&reports[0].captured, &reports[1].captured);
    ensure!(
        sender.len() == count && receiver.len() == count,
        "captures are missing"
    );
    let pairs = sender.iter().zip(receiver);
    // A cut of one channel whose receiver records at the marker is exact without channel state.
    ensure!(
        pairs.clone().all(|(sent, came)| sent.sent == came.handled),
        "a cut is not exact"
    );
    Ok(pairs
        .map(|(sent, came)| (came.at_ns as f64 - sent.at_ns as f64) / 1e6)
        .collect())
}

/// Pairs of seconds next to each other in one run, one with a snapshot and one without: the
/// ratios, with to without, of messages a second and of CPU time per message.
pub(crate) async fn price(pairs: usize) -> anyhow::Result<Vec<(f64, f64)>> {
    let mut cluster = Cluster::start(&Plan::channel(32)).await?;
    cluster.window(Duration::ZERO).await;
    let mut windows = Vec::new();
    for pair in 0..pairs {
        // Which of the two comes first alternates, so that a drift favours neither.
        for with in [pair % 2 == 0, pair % 2 == 1] {
            let from_ns = now_ns();
            let window = sleep(PRICE_WINDOW);
            if with {
                snapshot(&mut cluster).await?;
            }
            window.await;
            windows.push((with, from_ns, now_ns()));
        }
    }
    let reports = cluster.reports().await?;
    cluster.stop().await?;
    let figures = windows.into_iter().map(|(with, from_ns, to_ns)| {
        let sender = reports[0].between(from_ns, to_ns);
        let receiver = reports[1].between(from_ns, to_ns);
        let rate = receiver.handled / (to_ns - from_ns) as f64;
        let cpu_ns = sender.cpu_ns / sender.sent + receiver.cpu_ns / receiver.handled;
        (with, rate, cpu_ns)
    });
    let figures: Vec<_> = figures.collect();
    let ratios = figures.chunks_exact(2).map(|pair| {
        let (with, without) = if pair[0].0 {
            (pair[0], pair[1])
        } else {
            (pair[1], pair[0])
        };
        (with.1 / without.1, with.2 / without.2)
    });
    Ok(ratios.collect())
}

/// How long so many snapshots of a mesh with a little traffic took, from asking the collector
/// to its answer that the snapshot is complete, on disk; in milliseconds.
pub(crate) async fn latencies_ms(processes: usize, count: usize) -> anyhow::Result<Vec<f64>> {
    let mut cluster = Cluster::start(&Plan {
        processes,
        channels: "topology = \"mesh\"",
        role: "trickle",
        ..Plan::channel(32)
    })
    .await?;
    cluster.window(Duration::ZERO).await;
    let mut latencies_ms = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        snapshot(&mut cluster).await?;
        latencies_ms.push(began.elapsed().as_secs_f64() * 1e3);
        sleep(PAUSE).await;
    }
    cluster.stop().await?;
    Ok(latencies_ms)
}
