//! What every program of cutline does alike: logs, the runtime, room for its sockets, and ending
//! when asked to.

mod descriptors;

use std::io::{self, IsTerminal};
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
