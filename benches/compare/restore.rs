//! How long a killed node's process does not handle anything.

use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::sleep;

use crate::clock::now_ns;
use crate::cluster::{Cluster, Plan};

/// Snapshots to go back to are complete by then.
const BETWEEN_KILLS: Duration = Duration::from_millis(700);

/// One kill, in milliseconds.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Back {
    /// From SIGKILL to the first message handled that was sent after the restore.
    pub(crate) from_kill_ms: f64,
    /// From the first line of the new program's `main` to the same.
    pub(crate) from_start_ms: f64,
}

/// Kills a node of a mesh of four so often; `cutline up` starts it again each time.
pub(crate) async fn kills(count: usize) -> anyhow::Result<Vec<Back>> {
    let mut cluster = Cluster::start(&Plan {
        processes: 4,
        channels: "topology = \"mesh\"",
        role: "trickle",
        snapshot_interval: "200ms",
        ..Plan::channel(32)
    })
    .await?;
    let mut backs = Vec::new();
    for _ in 0..count {
        sleep(BETWEEN_KILLS).await;
        let status = cluster.status().await?;
        let pid = status.processes[1].pid;
        let killed_ns = now_ns();
        kill(Pid::from_raw(pid.try_into()?), Signal::SIGKILL)?;
        cluster.runs_after(status.generation.get()).await?;
        sleep(BETWEEN_KILLS).await;
        let report = cluster.report("p2").await?;
        let restored = report.restored.context("p2 was not restored")?;
        let handled_ns = restored
            .first_new_ns
            .context("p2 has handled nothing new")?;
        let since = |ns: u64| (handled_ns as f64 - ns as f64) / 1e6;
        backs.push(Back {
            from_kill_ms: since(killed_ns),
            from_start_ms: since(report.program_start_ns),
        });
    }
    cluster.stop().await?;
    Ok(backs)
}
