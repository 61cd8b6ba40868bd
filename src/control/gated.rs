//! The other end of the nodes' gates: knows what each node can do, and releases it.
//!
//! `node::gate` has the words that are said.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::node::gate::{Deed, gate_path};

/// What is released must become possible within this: a frame needs some time on its way.
const POSSIBLE_BOUND: Duration = Duration::from_secs(10);

/// Releases that wait for a node; each is waited for before the next is given.
const RELEASES_MAX: usize = 4;

/// The gates of all nodes of a job.
pub(super) struct Gates {
    listener: UnixListener,
    nodes: RefCell<BTreeMap<String, Node>>,
    is_open: Cell<bool>,
    news: Notify,
}

/// The gate of one node.
struct Node {
    can: BTreeSet<Deed>,
    done: u64,
    releases: mpsc::Sender<Deed>,
}

impl Gates {
    /// Listens in a job's directory; nodes that start from now on have gates.
    pub(super) fn listen(dir: &Path) -> io::Result<Self> {
        Ok(Self {
            listener: UnixListener::bind(gate_path(dir))?,
            nodes: RefCell::default(),
            is_open: Cell::new(false),
            news: Notify::new(),
        })
    }

    /// Attends to the nodes, for as long as it is polled.
    pub(super) async fn serve(&self) {
        let mut attended = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    if let Ok((stream, _)) = accepted {
                        attended.push(self.attend(stream));
                    }
                }
                Some(()) = attended.next(), if !attended.is_empty() => {}
            }
        }
    }

    /// One node, until it is gone.
    async fn attend(&self, stream: UnixStream) {
        let (from, mut words) = stream.into_split();
        let mut lines = BufReader::new(from).lines();
        let Ok(Some(line)) = lines.next_line().await else {
            return;
        };
        let Some(name) = line.strip_prefix("process ") else {
            return;
        };
        let (releases, mut released) = mpsc::channel(RELEASES_MAX);
        if self.is_open.get() {
            let _ = releases.try_send(Deed::Open);
        }
        let node = Node {
            can: BTreeSet::new(),
            done: 0,
            releases,
        };
        self.nodes.borrow_mut().insert(name.to_owned(), node);
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => self.hear(name, &line),
                    _ => break,
                },
                deed = released.recv() => match deed {
                    Some(deed) => {
                        let line = format!("{}\n", deed.line());
                        if words.write_all(line.as_bytes()).await.is_err() {
                            break;
                        }
                    }
                    // Another incarnation has taken the place.
                    None => return,
                },
            }
        }
        if released.is_closed() {
            return;
        }
        self.nodes.borrow_mut().remove(name);
        self.news.notify_waiters();
    }

    fn hear(&self, name: &str, line: &str) {
        if let Some(node) = self.nodes.borrow_mut().get_mut(name) {
            if line == "done" {
                node.done += 1;
            } else if let Some(can) = line.strip_prefix("can") {
                node.can = can.split(',').filter_map(Deed::read).collect();
            }
        }
        self.news.notify_waiters();
    }

    /// What every node can do now, in order.
    pub(super) fn possible(&self) -> Vec<(String, Deed)> {
        let nodes = self.nodes.borrow();
        let each = nodes.iter().flat_map(|(name, node)| {
            let deeds = node.can.iter();
            deeds.map(|&deed| (name.clone(), deed))
        });
        each.collect()
    }

    /// Releases one deed of a node, once it is possible; lasts until it is done.
    pub(super) async fn release(&self, name: &str, deed: Deed) -> Result<(), String> {
        let releasing = async {
            let done = self.until(|| self.give(name, deed)).await;
            self.until(|| self.is_done(name, done).then_some(())).await;
        };
        let bounded = timeout(POSSIBLE_BOUND, releasing).await;
        bounded.map_err(|_| "it does not become possible".to_owned())
    }

    /// Lasts until there is an answer; it is looked for whenever a node says something.
    async fn until<T>(&self, answer: impl Fn() -> Option<T>) -> T {
        loop {
            let more = self.news.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            if let Some(answer) = answer() {
                return answer;
            }
            more.await;
        }
    }

    /// Gives a release to a node that can do it. Answers with what it had done before.
    fn give(&self, name: &str, deed: Deed) -> Option<u64> {
        let nodes = self.nodes.borrow();
        let node = nodes.get(name)?;
        let always = matches!(deed, Deed::Time(_) | Deed::Open);
        if !always && !node.can.contains(&deed) {
            return None;
        }
        node.releases.try_send(deed).ok().map(|()| node.done)
    }

    fn is_done(&self, name: &str, done: u64) -> bool {
        let nodes = self.nodes.borrow();
        nodes.get(name).is_none_or(|node| node.done != done)
    }

    /// Nothing waits any more, of no node that is there or comes.
    pub(super) fn open(&self) {
        self.is_open.set(true);
        for node in self.nodes.borrow().values() {
            let _ = node.releases.try_send(Deed::Open);
        }
    }
}
