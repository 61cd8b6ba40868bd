//! `cutline-collector`: the arguments of a collector, and their wiring.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use tokio_util::sync::CancellationToken;

use cutline::collector::{self, CollectorError, Config};
use cutline::job::Job;
use cutline::parent;
use cutline::program::{ENDING, LOOPBACK, LogFormat, interrupted, log_to_stderr, runtime};

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
        default_value = LOOPBACK
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
        value_enum,
        default_value_t,
        env = "CUTLINE_LOG_FORMAT",
        value_name = "FORMAT"
    )]
    log_format: LogFormat,
    /// Die with this process, which must be the parent
    #[arg(long, value_name = "PID")]
    parent: Option<u32>,
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

fn run(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(parent) = arguments.parent {
        parent::die_with(parent)?;
    }
    log_to_stderr(arguments.log_format);
    let mut job = Job::load(&arguments.job).context("reading the job file")?;
    if let Some(dir) = &arguments.dir {
        job = job.with_directory(dir);
    }
    let config = Config {
        job: job.name().to_owned(),
        application: job.application().to_owned(),
        topology: job.topology().clone(),
        policy: job.policy(),
        store: job.store_url(),
        dir: job.directory().to_owned(),
        insecure: arguments.insecure,
    };
    let runtime = runtime().context("starting the runtime")?;
    let ended = runtime.block_on(async {
        let listener = collector::listen(arguments.listen, arguments.insecure).await?;
        let shutdown = CancellationToken::new();
        tokio::spawn(interrupted(shutdown.clone()));
        collector::run(config, listener, shutdown).await
    });
    // A disk that hangs must not keep the program.
    runtime.shutdown_timeout(ENDING);
    tracing::info!(ended = ?ended?, "bye");
    Ok(())
}
