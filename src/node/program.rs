//! A node as a program: its command line, and the one call that gives it to a user's own program.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Parser;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::attend::CollectorAddress;
use super::{Config, run};
use crate::job::Job;
use crate::parent;
use crate::program::{ENDING, LOOPBACK, LogFormat, guard, interrupted, log_to_stderr, runtime};
use crate::protocol::application::Application;
use crate::protocol::process::Settings;

/// The command line of a node.
#[derive(Debug, Parser)]
#[command(
    about = "Hosts one process of a job: runs its application and takes its part in snapshots",
    after_help = "`cutline up FILE` starts all nodes of a job. By hand, on any host:\n  \
                  cutline-node --job bank.toml --process p1 --listen 127.0.0.1:0 \
                  --collector 127.0.0.1:4000"
)]
pub struct NodeArguments {
    /// The job file, the same for every node and the collector
    #[arg(long, value_name = "FILE", env = "CUTLINE_JOB")]
    job: PathBuf,
    /// The process to host
    #[arg(long, value_name = "P", env = "CUTLINE_PROCESS")]
    process: String,
    /// Where to take the streams of this process's inputs; port 0: any free one
    #[arg(long, value_name = "ADDR", default_value = LOOPBACK, env = "CUTLINE_LISTEN")]
    listen: SocketAddr,
    /// Where the collector is; without it, where the job's directory says
    #[arg(long, value_name = "ADDR", env = "CUTLINE_COLLECTOR")]
    collector: Option<SocketAddr>,
    /// The job's directory, instead of the one the job file names
    #[arg(long, value_name = "DIR", env = "CUTLINE_DIR")]
    dir: Option<PathBuf>,
    /// Where the other nodes reach this one, if not at the address it listens on; port 0: the same
    #[arg(long, value_name = "ADDR", env = "CUTLINE_ADVERTISE")]
    advertise: Option<SocketAddr>,
    /// Listen on an address that other hosts reach, without TLS
    #[arg(long, env = "CUTLINE_INSECURE")]
    insecure: bool,
    /// How log lines are written
    #[arg(long, value_enum, default_value_t, env = "CUTLINE_LOG_FORMAT")]
    log_format: LogFormat,
    /// End when this process ends, which must be the one that started the node
    #[arg(long, value_name = "PID", hide = true)]
    parent: Option<u32>,
}

/// Everything that the `main` of a node program has to do: reads the command line, runs the
/// process with this application, and returns the exit code: 0 when the job has ended, 1 when the
/// node could not go on, 2 when it could not start.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     cutline::node::main::<cutline::apps::BuiltIn>()
/// }
/// ```
pub fn main<A: Application>() -> ExitCode {
    let arguments = NodeArguments::parse();
    log_to_stderr(arguments.log_format);
    // Plainly, as nothing may be logged.
    match start::<A>(arguments) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            let code = match error {
                super::NodeError::Failed(_) => 1,
                _ => 2,
            };
            eprintln!("{}: {:#}", this_program(), anyhow::Error::from(error));
            ExitCode::from(code)
        }
        Err(error) => {
            eprintln!("{}: {error:#}", this_program());
            ExitCode::from(2)
        }
    }
}

/// The name of the program, which is its user's.
fn this_program() -> String {
    let path = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&path).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

type Outcome = Result<(), super::NodeError>;

fn start<A: Application>(arguments: NodeArguments) -> anyhow::Result<Outcome> {
    if let Some(parent) = arguments.parent {
        parent::die_with(parent)?;
    }
    let address = arguments.listen;
    guard(address, arguments.insecure)?;
    if address.ip().is_unspecified() && arguments.advertise.is_none() {
        bail!("nobody can connect to {address}: say where others reach this node, by --advertise");
    }
    let config = config(&arguments)?;
    let runtime = runtime().context("starting the runtime")?;
    let outcome = runtime.block_on(async {
        let listener = TcpListener::bind(address);
        let listener = listener
            .await
            .with_context(|| format!("listening on {address}"))?;
        let shutdown = CancellationToken::new();
        tokio::spawn(interrupted(shutdown.clone()));
        Ok(run::<A>(config, listener, shutdown).await)
    });
    // A disk that hangs must not keep the program.
    runtime.shutdown_timeout(ENDING);
    outcome
}

fn config(arguments: &NodeArguments) -> anyhow::Result<Config> {
    let mut job = Job::load(&arguments.job).context("reading the job file")?;
    if let Some(dir) = &arguments.dir {
        job = job.with_directory(dir);
    }
    let topology = job.topology();
    let Some(process) = topology.process(&arguments.process) else {
        let names: Vec<_> = topology
            .processes()
            .map(|process| topology.name(process))
            .collect();
        bail!(
            "the job has no process '{}': it has {}",
            arguments.process,
            names.join(", ")
        );
    };
    let dir: &Path = job.directory();
    Ok(Config {
        setup: job.setup(process),
        settings: Settings {
            limits: job.limits(),
            snapshot_timeout_ms: job.policy().timeout_ms,
            trace: job.trace(),
        },
        store: job.store_url(),
        collector: match arguments.collector {
            Some(address) => CollectorAddress::Fixed(address),
            None => CollectorAddress::Published(dir.to_owned()),
        },
        silence: job.silence(),
        advertise: arguments.advertise,
        delay: job.delay(),
        dir: Some(dir.to_owned()),
        insecure: arguments.insecure,
    })
}
