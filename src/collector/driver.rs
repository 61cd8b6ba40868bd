//! The collector's loop: it owns the machine, feeds it what happens and carries out what the
//! machine decides. It decides nothing itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::hold::{Hold, Point};
use crate::protocol::collector::{Collector, CollectorInput};
use crate::protocol::events::Report;
use crate::protocol::ids::Term;
use crate::protocol::records::{Outcome, Record};
use crate::protocol::topology::Topology;
use crate::store::Store;

use super::address::{AddressError, Publisher};
use super::asks::Asks;
use super::deletions::Deletions;
use super::event::JobEvent;
use super::happening::Happening;
use super::nodes::Nodes;

/// Between two looks of the machine at the clock. Deadlines are tenths of seconds at the least.
const TICK: Duration = Duration::from_millis(50);

/// Events that a watcher may lag behind. A busy job has some tens a second.
const EVENTS_MAX: usize = 1024;

/// How long deletions that are under way may take when the collector ends. What is left is
/// deleted under the next one.
const STORE_BOUND: Duration = Duration::from_secs(1);

/// What the store was asked is done.
pub(super) enum Stored {
    /// It has an answer for the machine.
    Answer(CollectorInput),
    /// A snapshot is deleted, or cannot be.
    Deleted,
}

/// How the loop ended.
pub(super) enum End {
    /// The job has ended as it should.
    Finished,
    /// The job cannot go on.
    Failed(String),
    /// The store cannot be read; nothing has been done.
    Unread(String),
    /// Another collector leads.
    Fenced(Term),
    /// This program was told to end; the job goes on.
    Shutdown,
    /// It cannot say where it listens, so nobody would find it.
    Unpublished(AddressError),
}

/// Everything the loop owns.
pub(super) struct Driver {
    pub(super) job: String,
    pub(super) topology: Arc<Topology>,
    pub(super) store: Store,
    pub(super) hold: Hold,
    pub(super) collector: Collector,
    pub(super) nodes: Nodes,
    pub(super) asks: Asks,
    started: Instant,
    pub(super) events: broadcast::Sender<String>,
    /// What the store is asked.
    pub(super) storing: JoinSet<Stored>,
    pub(super) deletions: Deletions,
    pub(super) publisher: Publisher,
}

impl Driver {
    pub(super) fn new(
        job: String,
        topology: Arc<Topology>,
        store: Store,
        hold: Hold,
        collector: Collector,
        publisher: Publisher,
    ) -> Self {
        Self {
            job,
            topology,
            store,
            hold,
            collector,
            nodes: Nodes::default(),
            asks: Asks::default(),
            started: Instant::now(),
            events: broadcast::channel(EVENTS_MAX).0,
            storing: JoinSet::new(),
            deletions: Deletions::default(),
            publisher,
        }
    }

    /// Runs until the machine says that it is over, or `shutdown`.
    pub(super) async fn run(
        &mut self,
        mut happenings: mpsc::Receiver<Happening>,
        shutdown: CancellationToken,
    ) -> End {
        let mut effects = Vec::new();
        self.collector.start(&mut effects);
        let mut ended = self.carry_out(effects).await;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while ended.is_none() {
            ended = tokio::select! {
                biased;
                () = shutdown.cancelled() => Some(End::Shutdown),
                Some(done) = self.storing.join_next() => match done {
                    Ok(Stored::Answer(input)) => self.stored(input).await,
                    Ok(Stored::Deleted) => {
                        self.deletions.done();
                        self.delete();
                        None
                    }
                    Err(error) => Some(End::Failed(format!("a task of the store broke: {error}"))),
                },
                _ = ticks.tick() => self.tick().await,
                Some(happening) = happenings.recv() => self.handle(happening).await,
            };
        }
        ended.expect("the loop above ends with it")
    }

    /// Tells everyone how it ended. Every stream closes behind its last word, for the loop's half
    /// of it is dropped here.
    pub(super) async fn close(mut self, end: &End) -> Publisher {
        let reason = match end {
            End::Finished => {
                self.tell_watchers(&JobEvent::Finished);
                "the job has finished".to_owned()
            }
            End::Failed(reason) => {
                self.tell_watchers(&JobEvent::Ended {
                    reason: reason.clone(),
                });
                format!("the job has ended: {reason}")
            }
            End::Unread(reason) => format!("the store cannot be read: {reason}"),
            End::Fenced(term) => format!("another collector leads, in term {term}"),
            End::Shutdown | End::Unpublished(_) => "the collector is ending".to_owned(),
        };
        self.asks.end(&reason);
        drop((self.events, self.nodes));
        if !matches!(end, End::Fenced(_)) {
            let rest = async { while self.storing.join_next().await.is_some() {} };
            let _ = timeout(STORE_BOUND, rest).await;
        }
        self.publisher
    }

    /// Gives the machine an input, with the time before it, and carries out what follows.
    async fn step(&mut self, input: CollectorInput) -> Option<End> {
        let mut effects = Vec::new();
        let now_ms = self.now_ms();
        self.collector
            .step(CollectorInput::Time { now_ms }, &mut effects);
        self.collector.step(input, &mut effects);
        self.carry_out(effects).await
    }

    /// Since the start. What a stop of this program makes of it is the machine's to judge.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn tick(&mut self) -> Option<End> {
        self.asks.forget_departed();
        let now_ms = self.now_ms();
        let mut effects = Vec::new();
        self.collector
            .step(CollectorInput::Time { now_ms }, &mut effects);
        self.carry_out(effects).await
    }

    /// The store has answered.
    async fn stored(&mut self, input: CollectorInput) -> Option<End> {
        if let CollectorInput::Created(record, Outcome::Created) = &input {
            match record {
                Record::Manifest(manifest) if manifest.is_complete() => {
                    self.hold.at(Point::Manifest);
                }
                Record::Log(entry) if entry.generation.is_some() => {
                    self.hold.at(Point::Generation);
                }
                Record::Log(_) | Record::Begun(_) | Record::Manifest(_) => {}
            }
        }
        self.step(input).await
    }

    async fn handle(&mut self, happening: Happening) -> Option<End> {
        let input = match happening {
            Happening::Joined(join, place, outgoing) => {
                let (process, incarnation) = (join.process, join.incarnation);
                self.nodes.attach((process, incarnation), place, outgoing);
                CollectorInput::Said(process, incarnation, Report::Join(join))
            }
            Happening::Said(stream, report) => {
                let (process, incarnation) = self.nodes.on(stream)?;
                CollectorInput::Said(process, incarnation, report)
            }
            Happening::Heartbeat(stream, progress) => {
                let (process, incarnation) = self.nodes.on(stream)?;
                self.nodes.progressed((process, incarnation), progress);
                CollectorInput::Heartbeat(process, incarnation)
            }
            Happening::Closed(stream) => {
                let (process, incarnation) = self.nodes.detach(stream)?;
                self.asks.lost((process, incarnation));
                CollectorInput::Gone(process, incarnation)
            }
            Happening::CommandDone(stream, request, refusal) => {
                let key = self.nodes.on(stream)?;
                self.asks.command_done(key, request, refusal);
                return None;
            }
            Happening::Asked {
                request,
                wait,
                reply,
            } => CollectorInput::Asked(self.asks.ask(wait, reply)?, request),
            Happening::Command {
                process,
                text,
                reply,
            } => {
                self.command(process, text, reply);
                return None;
            }
            Happening::Status(reply) => {
                let _ = reply.send(self.status());
                return None;
            }
            Happening::Watch(reply) => {
                let _ = reply.send(self.events.subscribe());
                return None;
            }
        };
        self.step(input).await
    }
}
