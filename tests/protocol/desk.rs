//! A collector on a desk: nodes and store are played by the test, one word and one record at a
//! time. Several collectors may share one store, as they do when one was paused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cutline::protocol::Topology;
use cutline::protocol::collector::{
    Announcement, Answer, Collector, CollectorEffect, CollectorInput, Policy, Request, RequestId,
};
use cutline::protocol::cut::Facts;
use cutline::protocol::events::{Holding, Join, Order, Report, StoredPart};
use cutline::protocol::ids::{Generation, Incarnation, JobId, ProcessId, SnapshotId, Term};
use cutline::protocol::records::End;
use cutline::world::Fate;

use crate::solo::{s, topology};
use crate::store::Store;
use crate::worlds::p;

/// How often a driver says the time.
const TICK_MS: u64 = 50;

/// How a collector's part came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Finished,
    Failed(String),
    Unread(String),
    Fenced(Term),
}

/// One collector and everything it has decided.
pub(crate) struct Desk {
    pub(crate) collector: Collector,
    topology: Arc<Topology>,
    now_ms: u64,
    /// What it has asked of the store and not been answered.
    pub(crate) pending: VecDeque<CollectorEffect>,
    pub(crate) told: Vec<(ProcessId, Incarnation, Order)>,
    pub(crate) dismissed: Vec<(ProcessId, Incarnation, String)>,
    pub(crate) replaced: Vec<(ProcessId, Incarnation)>,
    pub(crate) absent: Vec<ProcessId>,
    pub(crate) announced: Vec<Announcement>,
    pub(crate) deleted: Vec<SnapshotId>,
    pub(crate) answers: BTreeMap<RequestId, Vec<Result<Answer, String>>>,
    pub(crate) over: Option<Over>,
    pub(crate) leads: bool,
    requests: u64,
}

impl Desk {
    /// A collector of a job of so many processes in a ring, just started.
    pub(crate) fn new(processes: u32, policy: Policy, nonce: u64) -> Self {
        let next = |number: u32| number % processes + 1;
        let channels = (1..=processes).filter(|_| processes > 1);
        let channels: Vec<_> = channels
            .map(|from| format!("p{from}→p{}", next(from)))
            .collect();
        let channels: Vec<_> = channels.iter().map(String::as_str).collect();
        let topology = topology(processes, &channels);
        let collector = Collector::new(topology.clone(), "diary".to_owned(), policy, nonce);
        let mut effects = Vec::new();
        collector.start(&mut effects);
        let mut desk = Self {
            collector,
            topology,
            now_ms: 0,
            pending: VecDeque::new(),
            told: Vec::new(),
            dismissed: Vec::new(),
            replaced: Vec::new(),
            absent: Vec::new(),
            announced: Vec::new(),
            deleted: Vec::new(),
            answers: BTreeMap::new(),
            over: None,
            leads: false,
            requests: 0,
        };
        desk.note(effects);
        desk
    }

    /// The same, leading, with every process there (as incarnation 1) and running.
    pub(crate) fn running(processes: u32, policy: Policy, store: &mut Store) -> Self {
        let mut desk = Self::new(processes, policy, 1);
        desk.settle(store);
        for number in 1..=processes {
            desk.join(number, 1, Holding::Nothing);
        }
        desk.obey(store);
        assert_eq!(desk.phase(), "running");
        desk.told.clear();
        desk
    }

    pub(crate) fn step(&mut self, input: CollectorInput) {
        let mut effects = Vec::new();
        self.collector.step(input, &mut effects);
        self.note(effects);
    }

    fn note(&mut self, effects: Vec<CollectorEffect>) {
        for effect in effects {
            match effect {
                CollectorEffect::Read | CollectorEffect::Create(_) => {
                    self.pending.push_back(effect);
                }
                CollectorEffect::Tell(process, incarnation, directive) => {
                    self.told.push((process, incarnation, directive.order));
                }
                CollectorEffect::Dismiss(process, incarnation, directive) => {
                    let Order::Refused { reason, .. } = directive.order else {
                        panic!("a node is dismissed with a reason");
                    };
                    self.dismissed.push((process, incarnation, reason));
                }
                CollectorEffect::Lead => self.leads = true,
                CollectorEffect::Replace(process, incarnation) => {
                    self.replaced.push((process, incarnation));
                }
                CollectorEffect::Absent(process) => self.absent.push(process),
                CollectorEffect::Delete(snapshot) => {
                    self.deleted.push(snapshot);
                    self.pending.push_back(effect);
                }
                CollectorEffect::Answer(asker, answer) => {
                    self.answers.entry(asker).or_default().push(answer);
                }
                CollectorEffect::Announce(announcement) => self.announced.push(announcement),
                CollectorEffect::Finish => self.over = Some(Over::Finished),
                CollectorEffect::Fail(reason) => self.over = Some(Over::Failed(reason)),
                CollectorEffect::Unread(reason) => self.over = Some(Over::Unread(reason)),
                CollectorEffect::Fenced(term) => self.over = Some(Over::Fenced(term)),
            }
        }
    }

    /// The store carries out the first thing it was asked for.
    pub(crate) fn serve(&mut self, store: &mut Store, fate: Fate) {
        match self
            .pending
            .pop_front()
            .expect("the store was asked for something")
        {
            CollectorEffect::Read => {
                let records = match fate {
                    Fate::Done => Ok(store.read()),
                    _ => Err("cannot be read".to_owned()),
                };
                self.step(CollectorInput::Read(records));
            }
            CollectorEffect::Create(record) => {
                let outcome = store.create(&record, fate);
                self.step(CollectorInput::Created(record, outcome));
            }
            CollectorEffect::Delete(snapshot) => store.delete(snapshot),
            other => panic!("{other:?} is nothing for a store"),
        }
    }

    /// The store carries out everything it is asked for.
    pub(crate) fn settle(&mut self, store: &mut Store) {
        while !self.pending.is_empty() {
            self.serve(store, Fate::Done);
        }
    }

    /// The store does, and every node prepares what it is told to prepare.
    pub(crate) fn obey(&mut self, store: &mut Store) {
        let mut told = 0;
        loop {
            self.settle(store);
            let Some((process, incarnation, order)) = self.told.get(told).cloned() else {
                return;
            };
            told += 1;
            if let Order::Prepare(generation, _) = order {
                self.say(process, incarnation, Report::Ready(generation));
            }
        }
    }

    pub(crate) fn joining(&self, process: u32, incarnation: u64, holding: Holding) -> Join {
        Join {
            process: p(process),
            incarnation: Incarnation::new(incarnation),
            topology: self.topology.fingerprint(),
            application: "diary".to_owned(),
            job: JobId::default(),
            holding,
        }
    }

    pub(crate) fn join(&mut self, process: u32, incarnation: u64, holding: Holding) {
        let join = self.joining(process, incarnation, holding);
        self.say(
            p(process),
            Incarnation::new(incarnation),
            Report::Join(join),
        );
    }

    pub(crate) fn say(&mut self, process: ProcessId, incarnation: Incarnation, report: Report) {
        self.step(CollectorInput::Said(process, incarnation, report));
    }

    pub(crate) fn gone(&mut self, process: u32, incarnation: u64) {
        self.step(CollectorInput::Gone(
            p(process),
            Incarnation::new(incarnation),
        ));
    }

    /// The part of a process is on disk, in this generation.
    pub(crate) fn part(&mut self, process: u32, incarnation: u64, snapshot: u64, of: Generation) {
        let facts = Facts {
            process: p(process),
            outputs: Vec::new(),
            inputs: Vec::new(),
            in_state: Default::default(),
            in_channels: Default::default(),
            initial: Default::default(),
            clock: None,
        };
        let part = StoredPart {
            bytes: 1,
            checksum: 1,
            facts,
        };
        let report = Report::Stored {
            snapshot: s(snapshot),
            generation: of,
            part: Box::new(part),
        };
        self.say(p(process), Incarnation::new(incarnation), report);
    }

    /// Every process, as the incarnation that is there, has its part on disk.
    pub(crate) fn parts(&mut self, snapshot: u64) {
        let status = self.collector.status();
        for (process, _, incarnation, _) in status.processes {
            self.part(
                process.get() + 1,
                incarnation.get(),
                snapshot,
                status.generation,
            );
        }
    }

    /// A snapshot is asked for, taken and complete; its id.
    pub(crate) fn complete_one(&mut self, store: &mut Store) -> u64 {
        let before = self.collector.status().open;
        self.ask(crate::worlds::snapshot());
        self.settle(store);
        let mut open = self.collector.status().open.into_iter();
        let id = open
            .find(|id| !before.contains(id))
            .expect("it has begun")
            .get();
        self.parts(id);
        self.settle(store);
        assert_eq!(store.complete(id), Some(true), "s{id}");
        id
    }

    pub(crate) fn decline(&mut self, process: u32, snapshot: u64, reason: &str) {
        let report = Report::Declined {
            snapshot: s(snapshot),
            generation: self.collector.status().generation,
            reason: reason.to_owned(),
        };
        let incarnation = self.collector.status().processes[process as usize - 1].2;
        self.say(p(process), incarnation, report);
    }

    /// So much time passes, in which every node that is there is heard.
    pub(crate) fn pass(&mut self, passed_ms: u64) {
        let until_ms = self.now_ms + passed_ms;
        while self.now_ms < until_ms {
            self.now_ms = until_ms.min(self.now_ms + TICK_MS);
            for (process, present, incarnation, _) in self.collector.status().processes {
                if present {
                    self.step(CollectorInput::Heartbeat(process, incarnation));
                }
            }
            self.step(CollectorInput::Time {
                now_ms: self.now_ms,
            });
        }
    }

    /// So much time passes, in which nobody is heard.
    pub(crate) fn pass_in_silence(&mut self, passed_ms: u64) {
        let until_ms = self.now_ms + passed_ms;
        while self.now_ms < until_ms {
            self.now_ms = until_ms.min(self.now_ms + TICK_MS);
            self.step(CollectorInput::Time {
                now_ms: self.now_ms,
            });
        }
    }

    /// So much time passes while this collector does not run at all.
    pub(crate) fn sleep(&mut self, passed_ms: u64) {
        self.now_ms += passed_ms;
        self.step(CollectorInput::Time {
            now_ms: self.now_ms,
        });
    }

    pub(crate) fn ask(&mut self, request: Request) -> RequestId {
        self.requests += 1;
        let asker = RequestId(self.requests);
        self.step(CollectorInput::Asked(asker, request));
        asker
    }

    /// The one answer to a request, if it has been given; never two.
    pub(crate) fn answer(&self, asker: RequestId) -> Option<&Result<Answer, String>> {
        let answers = self.answers.get(&asker)?;
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.first()
    }

    /// Why a request was refused.
    pub(crate) fn refusal(&self, asker: RequestId) -> &str {
        match self.answer(asker) {
            Some(Err(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn phase(&self) -> &'static str {
        self.collector.status().phase
    }

    pub(crate) fn generation(&self) -> Generation {
        self.collector.status().generation
    }

    pub(crate) fn open(&self) -> Vec<SnapshotId> {
        self.collector.status().open
    }

    /// The orders of this kind that were told, and to whom, since the desk was last cleared.
    pub(crate) fn orders(&self, kind: impl Fn(&Order) -> bool) -> Vec<(ProcessId, Order)> {
        let told = self.told.iter().filter(|(_, _, order)| kind(order));
        told.map(|(process, _, order)| (*process, order.clone()))
            .collect()
    }

    pub(crate) fn triggered(&self) -> Vec<ProcessId> {
        let triggers = self.orders(|order| matches!(order, Order::Trigger(..)));
        triggers.into_iter().map(|(process, _)| process).collect()
    }

    pub(crate) fn lost(&self) -> Vec<ProcessId> {
        let lost = self
            .announced
            .iter()
            .filter_map(|announcement| match announcement {
                Announcement::Lost(process, _) => Some(*process),
                _ => None,
            });
        lost.collect()
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        let warnings = self
            .announced
            .iter()
            .filter_map(|announcement| match announcement {
                Announcement::Warned(reason) => Some(reason.as_str()),
                _ => None,
            });
        warnings.collect()
    }

    pub(crate) fn failures(&self) -> Vec<&str> {
        let failures = self
            .announced
            .iter()
            .filter_map(|announcement| match announcement {
                Announcement::Failed(reason) => Some(reason.as_str()),
                _ => None,
            });
        failures.collect()
    }
}

/// Why a snapshot was aborted, by its manifest.
pub(crate) fn abort_reason(store: &Store, snapshot: u64) -> &str {
    match &store.manifests[&s(snapshot)].end {
        End::Aborted { reason } => reason,
        End::Complete { .. } => panic!("s{snapshot} is complete"),
    }
}

pub(crate) fn g(number: u64) -> Generation {
    Generation::new(number)
}

pub(crate) fn holds(number: u64) -> Holding {
    Holding::Running(g(number))
}
