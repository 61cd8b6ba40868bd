//! The collector as a program: a gRPC server around the machine
//! [`Collector`].
//!
//! One loop owns the machine. Streams and calls put what happens into one bounded queue, the
//! store answers through tasks, and the loop carries out the machine's effects. Nothing here
//! decides anything, and nothing is kept that a new collector could not learn from the store and
//! from the nodes that join it.

mod address;
mod asks;
mod attending;
mod carry;
mod connection;
mod deletions;
mod driver;
mod event;
mod happening;
mod nodes;
mod service;
mod serving;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

pub use address::{AddressError, address_path, read_address};
pub(crate) use event::text;
pub use event::{Complete, JobEvent, Total};

use crate::hold::Hold;
use crate::program::{DescriptorsError, Exposed, allow_sockets, guard, nonce};
use crate::protocol::Topology;
use crate::protocol::collector::{Collector, Policy};
use crate::protocol::ids::Term;
use crate::store::{Store, StoreError};

use address::Publisher;
use connection::connections_max;
use driver::{Driver, End};
use happening::HAPPENINGS_MAX;
use serving::Serving;

/// What a collector is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The job's name, for those who ask.
    pub job: String,
    /// The application's name; nodes of another are refused.
    pub application: String,
    /// The job's topology; nodes of another are refused.
    pub topology: Arc<Topology>,
    /// How to behave.
    pub policy: Policy,
    /// Where everything is kept.
    pub store: Url,
    /// The job's directory, in which the collector says where it listens.
    pub dir: PathBuf,
    /// Whether it may listen where others than this host can connect, without TLS.
    pub insecure: bool,
}

/// How a collector ends when nothing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The job has ended as it should.
    Finished,
    /// The collector was told to end; the job goes on without one.
    Shutdown,
}

/// Why a collector cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The job cannot go on.
    #[error("the job has ended: {0}")]
    Failed(String),
    /// Nothing is known of the job, which may well run: another collector may do better.
    #[error("the store cannot be read: {0}")]
    Unread(String),
    /// Another collector leads; this one has touched nothing since.
    #[error("another collector leads this job, in term {0}")]
    Fenced(Term),
    /// Everybody could connect, and nothing is encrypted.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// No socket.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It may not have as many connections as its job has nodes.
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
    /// Nobody would find it.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The store is of no kind it knows, or cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Binds a collector's socket: on loopback, or anywhere if `insecure`.
///
/// # Errors
/// If the address is one that other hosts can reach and that is not allowed, or is taken.
pub async fn listen(address: SocketAddr, insecure: bool) -> Result<TcpListener, CollectorError> {
    guard(address, insecure)?;
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| CollectorError::Listen { address, source })
}

/// Runs a collector until the job ends or `shutdown`.
///
/// # Errors
/// If it cannot start, the job cannot go on, or another collector leads.
pub async fn run(
    config: Config,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<Ended, CollectorError> {
    let unbound = SocketAddr::from(([0; 4], 0));
    let no_socket = |source| CollectorError::Listen {
        address: unbound,
        source,
    };
    let address = listener.local_addr().map_err(no_socket)?;
    guard(address, config.insecure)?;
    let processes = config.topology.processes().len();
    let connections = connections_max(processes);
    allow_sockets(connections, || {
        format!("the collector's {processes} nodes and those who ask")
    })?;
    let store = Store::open(config.store.as_str()).await?;
    let (happenings, inbox) = mpsc::channel(HAPPENINGS_MAX);
    let serving = Serving::start(listener, Arc::clone(&config.topology), happenings);
    tracing::info!(%address, "listening");

    let Config {
        job,
        application,
        topology,
        policy,
        dir,
        ..
    } = config;
    let collector = Collector::new(Arc::clone(&topology), application, policy, nonce());
    let publisher = Publisher::new(&dir, address);
    let hold = Hold::new(Some(dir), "collector");
    let mut driver = Driver::new(job, topology, store, hold, collector, publisher);
    let end = driver.run(inbox, shutdown).await;
    let publisher = driver.close(&end).await;
    if matches!(end, End::Fenced(_)) {
        // The one that leads has published its own address; this one's peers are to leave now.
        serving.abort().await;
    } else {
        serving.stop().await;
        publisher.withdraw();
    }
    match end {
        End::Finished => Ok(Ended::Finished),
        End::Shutdown => Ok(Ended::Shutdown),
        End::Failed(reason) => Err(CollectorError::Failed(reason)),
        End::Unread(reason) => Err(CollectorError::Unread(reason)),
        End::Fenced(term) => Err(CollectorError::Fenced(term)),
        End::Unpublished(error) => Err(error.into()),
    }
}
