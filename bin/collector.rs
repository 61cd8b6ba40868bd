//! `cutline-collector`: the arguments of a collector, and their wiring.

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use cutline::collector::{self, CollectorError, Config};
use cutline::job::Job;
use cutline::parent;

/// Triggers a job's snapshots, gathers their parts and orders restores.
///
/// Ends with 0 when the job has ended as it should or on SIGTERM, with 1 when the job cannot go
/// on, and with 2 when it cannot start or another collector leads.
#[derive(Parser)]
#[command(name = "cutline-collector", version)]
struct Arguments {
    /// The job file
    #[arg(long, env = "CUTLINE_JOB", value_name = "FILE")]
    job: PathBuf,
    /// Where to listen for nodes and for the command line
    #[arg(
        long,
        env = "CUTLINE_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:0"
    )]
    listen: SocketAddr,
    /// Listen where other hosts can connect, though nothing is encrypted
    #[arg(long, env = "CUTLINE_INSECURE")]
    insecure: bool,
    /// The job's directory, if not the one the job file names
    #[arg(long, env = "CUTLINE_DIR", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How to log, on standard error
    #[arg(
        long,
        env = "CUTLINE_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "human"
    )]
    log_format: LogFormat,
    /// Die with this process, which must be the parent
    #[arg(long, value_name = "PID")]
    parent: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Human,
    Json,
}

fn main() -> ExitCode {
    let ended = run(Arguments::parse());
    let Err(error) = ended else {
        return ExitCode::SUCCESS;
    };
    eprintln!("cutline-collector: {error:#}");
    match error.downcast_ref() {
        Some(CollectorError::Failed(_)) => ExitCode::from(1),
        _ => ExitCode::from(2),
    }
}

/// The loop is one thread, and so is the program: what it does is short or awaited.
#[tokio::main(flavor = "current_thread")]
async fn run(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(parent) = arguments.parent {
        parent::die_with(parent)?;
    }
    log(arguments.log_format)?;
    let mut job = Job::load(&arguments.job)?;
    if let Some(dir) = &arguments.dir {
        job = job.with_directory(dir);
    }
    let listener = collector::listen(arguments.listen, arguments.insecure).await?;
    let config = Config {
        job: job.name().to_owned(),
        application: job.application().to_owned(),
        topology: job.topology().clone(),
        policy: job.policy(),
        store: job.store_url(),
        dir: job.directory().to_owned(),
        insecure: arguments.insecure,
    };
    let mut terminate = signal(SignalKind::terminate()).context("listening for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for signals")?;
    let shutdown = CancellationToken::new();
    let signalled = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        shutdown.cancel();
        std::future::pending::<Infallible>().await
    };
    let ended = tokio::select! {
        ended = collector::run(config, listener, shutdown.clone()) => ended?,
        never = signalled => match never {},
    };
    tracing::info!(?ended, "bye");
    Ok(())
}

fn log(format: LogFormat) -> anyhow::Result<()> {
    let filter = match std::env::var("CUTLINE_LOG") {
        Ok(filter) => EnvFilter::try_new(filter).context("reading CUTLINE_LOG")?,
        Err(_) => EnvFilter::new("info"),
    };
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Human => logs.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => logs.json().init(),
    }
    Ok(())
}
