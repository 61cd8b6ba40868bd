//! A job of three processes in a ring, all of them initiators, with a directory of its own.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use cutline::collector::{self, CollectorError, Config, Ended};
use cutline::control::client::{JobClient, JobStatus};
use cutline::protocol::Topology;
use cutline::protocol::collector::Policy;
use cutline::protocol::mode::Mode;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::node::{APPLICATION, Manner, Node};
use crate::{soon, until};

pub(crate) const NAMES: [&str; 3] = ["alice", "bob", "carol"];

pub(crate) struct Job {
    dir: TempDir,
    pub(crate) topology: Arc<Topology>,
    pub(crate) policy: Policy,
}

/// A collector in a task of this program.
pub(crate) struct Running {
    task: JoinHandle<Result<Ended, CollectorError>>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) address: SocketAddr,
}

impl Job {
    pub(crate) fn new() -> Self {
        let channels = ["p1→p2", "p2→p3", "p3→p1"];
        let channels = channels.map(|text| text.parse().expect("a channel"));
        let topology = Topology::new(NAMES.map(str::to_owned).into(), channels).unwrap();
        let initiators = topology.processes().collect::<BTreeSet<_>>();
        let policy = Policy {
            mode: Mode::Classic,
            alignment_timeout_ms: None,
            interval_ms: 0,
            pause_min_ms: 0,
            timeout_ms: 60_000,
            open_max: 4,
            failures_tolerated: 100,
            fall_back: false,
            retain: 1000,
            silence_ms: 60_000,
            initiators,
        };
        let dir = tempfile::tempdir().unwrap();
        Self {
            dir,
            topology: Arc::new(topology),
            policy,
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            job: "ring".to_owned(),
            application: APPLICATION.to_owned(),
            topology: Arc::clone(&self.topology),
            policy: self.policy.clone(),
            store: Url::from_directory_path(self.dir().join("store")).unwrap(),
            dir: self.dir().to_owned(),
            insecure: false,
        }
    }

    pub(crate) async fn collector(&self) -> Running {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = collector::listen(any, false).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(collector::run(self.config(), listener, shutdown.clone()));
        let published =
            async || (collector::read_address(self.dir()).ok()? == address).then_some(());
        until(published).await;
        Running {
            task,
            shutdown,
            address,
        }
    }

    pub(crate) fn node(&self, process: u32, manner: Manner) -> Node {
        Node::start(self.dir(), &self.topology, process, manner)
    }

    pub(crate) fn nodes(&self) -> [Node; 3] {
        [0, 1, 2].map(|process| self.node(process, Manner::Good))
    }

    pub(crate) async fn client(&self) -> JobClient {
        JobClient::connect(self.dir()).await.unwrap()
    }

    /// Waits until the status satisfies a condition.
    pub(crate) async fn status(&self, wanted: impl Fn(&JobStatus) -> bool) -> JobStatus {
        let mut client = self.client().await;
        until(async || Some(client.status().await.unwrap()).filter(&wanted)).await
    }

    /// Collector and good nodes, all running.
    pub(crate) async fn up(&self) -> (Running, [Node; 3]) {
        let (running, nodes) = (self.collector().await, self.nodes());
        self.status(|status| status.phase == "running").await;
        (running, nodes)
    }
}

impl Running {
    /// Waits for its end.
    pub(crate) async fn ends(self) -> Result<Ended, CollectorError> {
        soon(self.task).await.unwrap()
    }

    pub(crate) async fn shut_down(self) {
        self.shutdown.cancel();
        assert_eq!(self.ends().await.unwrap(), Ended::Shutdown);
    }
}
