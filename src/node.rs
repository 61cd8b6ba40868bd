//! The program that hosts one process: [`run`] drives the machine, [`main`] is all that a user's
//! own program needs.
//!
//! One loop, on one thread, owns the [`Process`]. It turns what happens
//! on streams, on the control stream, in the store and on the clock into inputs, and carries out
//! the effects in order; it decides nothing. Only encoding a state, checksums and the disk are
//! other threads' work, on data that no longer changes.

pub mod attend;
pub mod gate;

mod addresses;
mod driver;
mod gated;
mod parts;
mod program;
mod trace_file;
mod turn;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

pub use program::{NodeArguments, main};

use crate::hold::Hold;
use crate::net::{SPARE_CONNECTIONS, Streams, Timing};
use crate::program::{DescriptorsError, Exposed, allow_sockets, guard, nonce};
use crate::protocol::Process;
use crate::protocol::application::{Application, Refusal, Setup};
use crate::protocol::ids::Incarnation;
use crate::protocol::process::Settings;
use crate::store::{Store, StoreError};
use crate::wire::control::Place;
use attend::CollectorAddress;
use driver::Driver;
use gate::Gate;
use parts::Parts;
use trace_file::TraceFile;

/// Words of the collector that may wait for the loop. It says a few a snapshot, and what waits
/// beyond stays in the stream.
const CONTROL_MAX: usize = 64;

/// Signs of life within the collector's patience: some may come late on a busy machine.
const SIGNS_OF_LIFE: u32 = 5;

/// What a node is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the application is started with.
    pub setup: Setup,
    /// How the process behaves.
    pub settings: Settings,
    /// Where parts are kept.
    pub store: Url,
    /// Where the collector is.
    pub collector: CollectorAddress,
    /// The collector's patience with a node that says nothing.
    pub silence: Duration,
    /// Where peers reach the listener, if not at its own address.
    pub advertise: Option<SocketAddr>,
    /// How long everything that is sent on a channel is under way, at least.
    pub delay: Duration,
    /// The job's directory, where orders to stop at a point are looked for; `None`: nowhere.
    pub dir: Option<PathBuf>,
    /// Whether it may listen where others than this host can connect, without TLS.
    pub insecure: bool,
}

/// Why a node ends before its job does.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The application refuses its settings.
    #[error(transparent)]
    Application(#[from] Refusal),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The listener has no address.
    #[error("cannot use the listener")]
    Listener(#[source] std::io::Error),
    /// Everybody could connect, and nothing is encrypted.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// It may not have as many connections as its process has channels.
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
    /// Whoever releases the deeds of the job cannot be reached.
    #[error("cannot reach the gate in the job's directory")]
    Gate(#[source] std::io::Error),
    /// The machine gives up, or the collector refuses the node.
    #[error("{0}")]
    Failed(String),
}

/// Runs a node until its job ends, it fails, or `shutdown`.
///
/// # Errors
/// If it cannot start, or cannot go on; the job itself may go on with another node in its place.
pub async fn run<A: Application>(
    config: Config,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), NodeError> {
    let address: SocketAddr = listener.local_addr().map_err(NodeError::Listener)?;
    guard(address, config.insecure)?;
    let inputs = allow_channels(&config.setup)?;
    let incarnation = Incarnation::new(nonce());
    let process = Process::<A>::new(config.setup.clone(), config.settings, incarnation)?;
    let store = Store::open(config.store.as_str()).await?;
    let name = config.setup.topology.name(config.setup.process).to_owned();
    tracing::info!(process = name, %incarnation, %address, "the node has started");

    let progress = Arc::new(attend::Progress::default());
    let place = Place {
        address: reachable(config.advertise, address).to_string(),
        pid: std::process::id(),
    };
    let attending = attend::Config {
        collector: config.collector,
        place,
        progress: progress.clone(),
        heartbeat: (config.silence / SIGNS_OF_LIFE).min(attend::HEARTBEAT_MAX),
    };
    // Whatever way this function is left, its tasks end.
    let ending = shutdown.child_token();
    let _end = ending.clone().drop_guard();
    let (control_events, control) = mpsc::channel(CONTROL_MAX);
    let attend = tokio::spawn(attend::run(attending, control_events, ending.clone()));

    let trace = TraceFile::new(config.dir.as_deref(), &config.setup, incarnation);
    let gate = Gate::find(config.dir.as_deref(), &name).await;
    let hold = Hold::new(config.dir, &name);
    let parts = Parts::new(Arc::new(store), config.setup, hold);
    let gate = gate.map_err(NodeError::Gate)?;
    let timing = Timing {
        delay: config.delay,
        ..Timing::default()
    };
    let streams = Streams::with_timing(listener, inputs, &ending, timing);
    let driver = Driver::new(process, streams, gate, parts, trace, progress);
    // A task like those of its streams: each wakeup of the runtime's outermost future costs a
    // system call.
    let outcome = match tokio::spawn(driver.run(control, ending.clone())).await {
        Ok(outcome) => outcome,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    };
    ending.cancel();
    // The stream's last words; bounded by its own attempt's time.
    let _ = attend.await;
    outcome
}

/// Makes sure that every channel of the process can have its connection; the number of inputs.
fn allow_channels(setup: &Setup) -> Result<usize, DescriptorsError> {
    let (topology, process) = (&setup.topology, setup.process);
    let inputs = topology.inputs(process).len();
    let channels = inputs + topology.outputs(process).len();
    allow_sockets(channels + SPARE_CONNECTIONS, || {
        let name = topology.name(process);
        format!("the {channels} channels of {name} and those who dial again")
    })?;
    Ok(inputs)
}

/// Where peers find the listener: port 0 of what is advertised stands for the listener's own.
fn reachable(advertised: Option<SocketAddr>, listening: SocketAddr) -> SocketAddr {
    let mut address = advertised.unwrap_or(listening);
    if address.port() == 0 {
        address.set_port(listening.port());
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advertised_port_0_stands_for_the_port_that_is_listened_on() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let listening = address("0.0.0.0:5000");
        assert_eq!(reachable(None, listening), listening);
        let host = Some(address("10.0.0.2:0"));
        assert_eq!(reachable(host, listening), address("10.0.0.2:5000"));
        let other = Some(address("10.0.0.2:6000"));
        assert_eq!(reachable(other, listening), address("10.0.0.2:6000"));
    }
}
