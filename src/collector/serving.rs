//! Starting and ending the gRPC server. It ends within a bound, whatever its clients do.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::Server;

use crate::protocol::Topology;
use crate::wire::pb::collector_server::CollectorServer;

use super::connection::{accept, connections_max};
use super::happening::Happenings;
use super::service::Service;

/// How long last words may take to leave: nodes are to hear that the job has ended, but a stopped
/// one never will.
const DRAIN_BOUND: Duration = Duration::from_secs(2);

/// How long connections take to end once they are cut; they only need to be scheduled.
const CUT_BOUND: Duration = Duration::from_secs(2);

/// Looks for peers that vanished without a word: a host that is gone sends no end of stream.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// Calls at once on one connection; nobody has a use for more.
const CALLS_MAX: u32 = 256;

/// A server that runs.
pub(super) struct Serving {
    server: JoinHandle<Result<(), tonic::transport::Error>>,
    readers: TaskTracker,
    /// No new connections; those there end when their calls have.
    graceful: CancellationToken,
    /// Calls end.
    calls: CancellationToken,
    /// Connections end.
    connections: CancellationToken,
}

impl Serving {
    pub(super) fn start(
        listener: TcpListener,
        topology: Arc<Topology>,
        happenings: Happenings,
    ) -> Self {
        let (graceful, calls) = (CancellationToken::new(), CancellationToken::new());
        let connections = CancellationToken::new();
        let readers = TaskTracker::new();
        let connections_max = connections_max(topology.processes().len());
        let service = Service::new(topology, happenings, readers.clone(), calls.clone());
        let incoming = accept(listener, connections_max, connections.clone());
        let server = Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE))
            .max_concurrent_streams(CALLS_MAX)
            .add_service(CollectorServer::new(service))
            .serve_with_incoming_shutdown(incoming, graceful.clone().cancelled_owned());
        let server = tokio::spawn(server);
        Self {
            server,
            readers,
            graceful,
            calls,
            connections,
        }
    }

    /// Lets last words out, then ends like [`abort`](Self::abort).
    pub(super) async fn stop(mut self) {
        self.graceful.cancel();
        if timeout(DRAIN_BOUND, &mut self.server).await.is_err() {
            tracing::debug!("connections are still open: cutting them");
        }
        self.abort().await;
    }

    /// Ends everything at once.
    pub(super) async fn abort(mut self) {
        self.graceful.cancel();
        self.calls.cancel();
        self.connections.cancel();
        if !self.server.is_finished() && timeout(CUT_BOUND, &mut self.server).await.is_err() {
            self.server.abort();
        }
        self.readers.close();
        let _ = timeout(CUT_BOUND, self.readers.wait()).await;
    }
}
