//! A job as a user has one: `cutline up` starts a collector and the nodes, whose program is this
//! one; it is asked and ended through the collector.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use cutline::control::client::{JobClient, JobStatus};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::clock::now_ns;
use crate::report::Report;

/// Thirty-two nodes on a busy machine take some seconds to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// From one look at something that is waited for to the next.
const LOOK: Duration = Duration::from_millis(5);

/// Until windows, buffers and caches are as they will stay.
const WARM_UP: Duration = Duration::from_millis(400);

/// What a job is made of, as far as the measurements differ.
pub(crate) struct Plan {
    pub(crate) processes: usize,
    /// The line of the job file that says how they are connected.
    pub(crate) channels: &'static str,
    pub(crate) role: &'static str,
    pub(crate) bytes: usize,
    /// `0s`: only when asked.
    pub(crate) snapshot_interval: &'static str,
}

impl Plan {
    /// One channel, as busy as it can be.
    pub(crate) const fn channel(bytes: usize) -> Self {
        Self {
            processes: 2,
            channels: "channels = [\"p1 -> p2\"]",
            role: "saturate",
            bytes,
            snapshot_interval: "0s",
        }
    }

    fn job_file(&self) -> anyhow::Result<String> {
        let Self {
            processes,
            channels,
            role,
            bytes,
            snapshot_interval,
        } = self;
        let program = std::env::current_exe().context("where this program is")?;
        Ok(format!(
            "processes = {processes}\n{channels}\nprogram = {program:?}\n\
             [application]\nname = \"meter\"\nrole = \"{role}\"\nbytes = {bytes}\n\
             [snapshots]\ninterval = \"{snapshot_interval}\"\n\
             [restarts]\nmax = 1000\nbackoff = \"1ms\"\n"
        ))
    }
}

/// A job that runs; killed when it is dropped unfinished.
pub(crate) struct Cluster {
    dir: TempDir,
    up: Child,
    pub(crate) client: JobClient,
    processes: usize,
}

impl Cluster {
    /// Starts a job and waits until everyone runs.
    pub(crate) async fn start(plan: &Plan) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).context("a place for a job")?;
        let file = dir.path().join("meter.toml");
        fs::write(&file, plan.job_file()?)?;
        let log = fs::File::create(dir.path().join("up.log"))?;
        let mut up = Command::new(env!("CARGO_BIN_EXE_cutline"));
        up.arg("up").arg(&file).stdin(Stdio::null());
        up.stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        let mut up = up.spawn().context("starting cutline")?;
        let job = dir.path().join("meter.cutline");
        let began = Instant::now();
        let client = loop {
            if let Ok(mut client) = JobClient::connect(&job).await
                && client
                    .status()
                    .await
                    .is_ok_and(|status| status.phase == "running")
            {
                break client;
            }
            if began.elapsed() > PATIENCE || up.try_wait()?.is_some() {
                let log = fs::read_to_string(dir.path().join("up.log"))?;
                bail!("the job does not run; cutline says:\n{log}");
            }
            sleep(LOOK).await;
        };
        Ok(Self {
            dir,
            up,
            client,
            processes: plan.processes,
        })
    }

    /// Waits until it is warm, then so long; answers from when to when.
    pub(crate) async fn window(&self, length: Duration) -> (u64, u64) {
        sleep(WARM_UP).await;
        let from_ns = now_ns();
        sleep(length).await;
        (from_ns, now_ns())
    }

    pub(crate) async fn status(&mut self) -> anyhow::Result<JobStatus> {
        Ok(self.client.status().await?)
    }

    /// Waits until the job runs in a later generation than this.
    pub(crate) async fn runs_after(&mut self, generation: u64) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let status = self.status().await?;
            if status.phase == "running" && status.generation.get() > generation {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        bail!("the job does not run again");
    }

    /// What each process has to say since it was asked last, in their order.
    pub(crate) async fn reports(&mut self) -> anyhow::Result<Vec<Report>> {
        let mut reports = Vec::new();
        for number in 1..=self.processes {
            reports.push(self.report(&format!("p{number}")).await?);
        }
        Ok(reports)
    }

    pub(crate) async fn report(&mut self, process: &str) -> anyhow::Result<Report> {
        let path: PathBuf = self.dir.path().join(format!("{process}.json"));
        let command = format!("report {}", path.display());
        self.client.command(process, &command).await?;
        let report: Report = serde_json::from_slice(&fs::read(path)?)?;
        if report.faults > 0 {
            bail!("{process} has seen {} messages out of order", report.faults);
        }
        Ok(report)
    }

    /// Ends the job as Ctrl-C does, and waits for its end.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.up.id().context("cutline has ended by itself")?;
        kill(Pid::from_raw(pid.try_into()?), Signal::SIGTERM)?;
        timeout(PATIENCE, self.up.wait())
            .await
            .context("the job does not end")??;
        Ok(())
    }
}
