//! A node without an application: it attends to the collector with the real client, prepares at
//! once, contributes to every snapshot it is triggered for, and does to commands what they say.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cutline::node::attend::{self, CollectorAddress, ControlEvent, Progress, Uplink};
use cutline::protocol::Topology;
use cutline::protocol::application::Quantities;
use cutline::protocol::cut::Facts;
use cutline::protocol::events::{Directive, Holding, Join, Order, Report, StoredPart};
use cutline::protocol::ids::{Generation, Incarnation, JobId, ProcessId, SnapshotId};
use cutline::wire::control::{Addresses, Place};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// What each process begins with.
pub(crate) const MONEY: i64 = 100;

/// What the nodes say they run; a built-in one, so that job files may name it.
pub(crate) const APPLICATION: &str = "bank";

/// What a node has been told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Connected,
    Order(Order, Addresses),
    Command(String),
    Disconnected,
}

/// How a node is to behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Good,
    /// Never contributes to a snapshot.
    Lazy,
}

/// A running node, from outside.
pub(crate) struct Node {
    pub(crate) told: mpsc::UnboundedReceiver<Told>,
    pub(crate) shutdown: CancellationToken,
    tasks: [AbortHandle; 2],
}

impl Node {
    /// Starts a node for a process of a job.
    pub(crate) fn start(
        dir: &Path,
        topology: &Arc<Topology>,
        process: u32,
        manner: Manner,
    ) -> Self {
        let (events, inbox) = mpsc::channel(64);
        let (telling, told) = mpsc::unbounded_channel();
        let shutdown = CancellationToken::new();
        let process = ProcessId::new(process);
        let config = attend::Config {
            collector: CollectorAddress::Published(dir.to_owned()),
            place: place(process),
            progress: Arc::new(Progress {
                handled: AtomicU64::new(30 + u64::from(process.get())),
                sent: AtomicU64::new(40),
            }),
            heartbeat: attend::HEARTBEAT_MAX,
        };
        let mut still = Still {
            topology: Arc::clone(topology),
            process,
            incarnation: fresh(),
            holding: Holding::Nothing,
            manner,
            uplink: None,
        };
        let attending = tokio::spawn(attend::run(config, events, shutdown.clone()));
        let node = tokio::spawn(async move { still.run(inbox, telling).await });
        let tasks = [attending.abort_handle(), node.abort_handle()];
        Self {
            told,
            shutdown,
            tasks,
        }
    }

    /// As SIGKILL would: nothing more is said, and the connection breaks.
    pub(crate) fn kill(self) {}

    /// Waits until it has been told something that satisfies a condition.
    pub(crate) async fn hears(&mut self, mut wanted: impl FnMut(&Told) -> bool) -> Told {
        loop {
            let told = super::soon(self.told.recv())
                .await
                .expect("the node is gone");
            if wanted(&told) {
                return told;
            }
        }
    }

    /// What it has been told by now.
    pub(crate) fn heard(&mut self) -> Vec<Told> {
        std::iter::from_fn(|| self.told.try_recv().ok()).collect()
    }

    pub(crate) async fn runs(&mut self) -> Generation {
        let told = self
            .hears(|told| matches!(told, Told::Order(Order::Run(_), _)))
            .await;
        let Told::Order(Order::Run(generation), _) = told else {
            unreachable!("only that was waited for");
        };
        generation
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Where a node says it takes streams; nobody connects there.
pub(crate) fn place(process: ProcessId) -> Place {
    let port = 9000 + u16::try_from(process.get()).expect("few processes");
    Place {
        address: SocketAddr::from(([127, 0, 0, 1], port)).to_string(),
        pid: 70_000 + process.get(),
    }
}

pub(crate) fn fresh() -> Incarnation {
    static LAST: AtomicU64 = AtomicU64::new(500);
    Incarnation::new(LAST.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn money(amount: i64) -> Quantities {
    Quantities::from([("money".to_owned(), amount)])
}

struct Still {
    topology: Arc<Topology>,
    process: ProcessId,
    incarnation: Incarnation,
    holding: Holding,
    manner: Manner,
    uplink: Option<Uplink>,
}

impl Still {
    async fn run(
        &mut self,
        mut inbox: mpsc::Receiver<ControlEvent>,
        telling: mpsc::UnboundedSender<Told>,
    ) {
        while let Some(event) = inbox.recv().await {
            let told = match event {
                ControlEvent::Connected(uplink) => {
                    uplink.report(Report::Join(self.join()));
                    self.uplink = Some(uplink);
                    Told::Connected
                }
                ControlEvent::Order(Directive { order, .. }, addresses) => {
                    let goes_on = self.ordered(&order);
                    let _ = telling.send(Told::Order(order, addresses));
                    if !goes_on {
                        return;
                    }
                    continue;
                }
                ControlEvent::Command { request, text } => {
                    let refusal = (text == "refuse").then(|| "as you wish".to_owned());
                    if text != "ignore" {
                        let uplink = self.uplink.as_ref().expect("a command came on one");
                        uplink.command_done(request, refusal);
                    }
                    Told::Command(text)
                }
                ControlEvent::Disconnected => {
                    self.uplink = None;
                    Told::Disconnected
                }
            };
            let _ = telling.send(told);
        }
    }

    /// Whether it goes on.
    fn ordered(&mut self, order: &Order) -> bool {
        match *order {
            Order::Prepare(generation, _) => {
                self.holding = Holding::Prepared(generation);
                self.report(Report::Ready(generation));
            }
            Order::Run(generation) => self.holding = Holding::Running(generation),
            Order::Trigger(snapshot, _) if self.manner == Manner::Good => self.contribute(snapshot),
            Order::Refused { .. } | Order::Halt => return false,
            Order::Trigger(..) | Order::Welcome(_) | Order::Ended { .. } => {}
        }
        true
    }

    fn contribute(&self, snapshot: SnapshotId) {
        let Holding::Running(generation) = self.holding else {
            return;
        };
        let facts = Facts {
            process: self.process,
            outputs: Vec::new(),
            inputs: Vec::new(),
            in_state: money(MONEY),
            in_channels: Quantities::new(),
            initial: money(MONEY),
            clock: None,
        };
        let part = Box::new(StoredPart {
            bytes: 10,
            checksum: 1,
            facts,
        });
        self.report(Report::Stored {
            snapshot,
            generation,
            part,
        });
    }

    fn report(&self, report: Report) {
        if let Some(uplink) = &self.uplink {
            uplink.report(report);
        }
    }

    fn join(&self) -> Join {
        Join {
            process: self.process,
            incarnation: self.incarnation,
            topology: self.topology.fingerprint(),
            application: APPLICATION.to_owned(),
            job: JobId::default(),
            holding: self.holding,
        }
    }
}
