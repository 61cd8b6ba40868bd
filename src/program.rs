//! What every program of cutline does alike: logs, the runtime, room for its sockets, and ending
//! when asked to.

mod descriptors;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

pub use descriptors::{DescriptorsError, allow_sockets};

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people; in colour on a terminal
    #[default]
    Human,
    /// One JSON object a line
    Json,
}

/// Whoever starts a program by hand may put its arguments into these. A supervisor keeps them from
/// its programs: they are not meant for them.
pub const BY_HAND: [&str; 5] = [
    "CUTLINE_ADVERTISE",
    "CUTLINE_COLLECTOR",
    "CUTLINE_INSECURE",
    "CUTLINE_LISTEN",
    "CUTLINE_PROCESS",
];

/// Where collectors and nodes listen if nothing else is said: on this host alone, at any port.
pub const LOOPBACK: &str = "127.0.0.1:0";

/// Other hosts could connect, and nothing is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} can be reached from other hosts, without TLS: allow it with --insecure")]
pub struct Exposed(SocketAddr);

/// Makes sure that only this host can connect to an address, unless `insecure`.
///
/// # Errors
/// If others can.
pub fn guard(address: SocketAddr, insecure: bool) -> Result<(), Exposed> {
    match insecure || address.ip().is_loopback() {
        true => Ok(()),
        false => Err(Exposed(address)),
    }
}

/// A number that no other start of a program has: hash keys are seeded by the system, anew for
/// every program.
pub fn nonce() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// How long a program that ends waits for what it has begun on other threads.
pub const ENDING: Duration = Duration::from_secs(1);

/// Logs to standard error; `CUTLINE_LOG` says what, by default lifecycle and one line a snapshot.
pub fn log_to_stderr(format: LogFormat) {
    let filter = EnvFilter::try_from_env("CUTLINE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false)
        .with_ansi(io::stderr().is_terminal());
    match format {
        LogFormat::Human => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
}

/// One thread for everything that is handled: a second one would only make messages wait for a
/// switch. Encoding and the disk have threads of their own.
///
/// # Errors
/// If the system gives no runtime.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Cancels the token at the first SIGINT or SIGTERM.
pub async fn interrupted(shutdown: CancellationToken) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        tracing::error!("signals cannot be waited for");
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    shutdown.cancel();
}
