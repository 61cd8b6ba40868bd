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

/// Snapshots in such a window. Ten have room in it: one takes some milliseconds.
pub(crate) const SNAPSHOTS: [u32; 3] = [0, 1, 10];

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

/// Seconds next to each other in one run, one for each of [`SNAPSHOTS`].
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Turn {
    pub(crate) messages_per_ns: [f64; SNAPSHOTS.len()],
    /// CPU time per message, of sender and receiver together.
    pub(crate) cpu_ns: [f64; SNAPSHOTS.len()],
}

/// What a busy channel carries in seconds with and without snapshots.
pub(crate) async fn price(turns: usize) -> anyhow::Result<Vec<Turn>> {
    let mut cluster = Cluster::start(&Plan::channel(32)).await?;
    cluster.window(Duration::ZERO).await;
    let mut windows = Vec::new();
    for turn in 0..turns {
        // Which of them comes first changes, so that a drift favours none.
        for place in (0..SNAPSHOTS.len()).map(|place| (turn + place) % SNAPSHOTS.len()) {
            let from_ns = now_ns();
            let whole = sleep(PRICE_WINDOW);
            for _ in 0..SNAPSHOTS[place] {
                let share = sleep(PRICE_WINDOW / SNAPSHOTS[place]);
                snapshot(&mut cluster).await?;
                share.await;
            }
            whole.await;
            windows.push((turn, place, from_ns, now_ns()));
        }
    }
    let reports = cluster.reports().await?;
    cluster.stop().await?;
    let mut measured = vec![Turn::default(); turns];
    for (turn, place, from_ns, to_ns) in windows {
        let sender = reports[0].between(from_ns, to_ns);
        let receiver = reports[1].between(from_ns, to_ns);
        measured[turn].messages_per_ns[place] = receiver.handled / (to_ns - from_ns) as f64;
        measured[turn].cpu_ns[place] =
            sender.cpu_ns / sender.sent + receiver.cpu_ns / receiver.handled;
    }
    Ok(measured)
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
