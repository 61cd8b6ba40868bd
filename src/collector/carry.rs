//! Carrying out what the machine decides, in the order it says.

use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use crate::check::process_name;
use crate::hold::Point;
use crate::protocol::collector::{Announcement, CollectorEffect, CollectorInput};
use crate::protocol::events::{Directive, Holding, Order};
use crate::protocol::ids::{Generation, Incarnation, ProcessId};
use crate::protocol::records::Record;
use crate::store::STAGING_AGE;
use crate::wire::control::{Addresses, Place, Progress, directive};
use crate::wire::pb;

use super::asks::{Reply, Untold};
use super::driver::{Driver, End, Stored};
use super::event::JobEvent;
use super::nodes::Key;

/// How long a stop at `notice` waits for the first notice to leave; its node may not be reading.
const NOTICE_BOUND: Duration = Duration::from_secs(1);

/// From a word's leaving the queue to its being in the kernel's hands; only ever waited for when
/// a scenario ordered a stop.
const FLUSH: Duration = Duration::from_millis(50);

impl Driver {
    /// Carries out one step's effects, all of them. Answers how the job ended, if it did.
    pub(super) async fn carry_out(&mut self, effects: Vec<CollectorEffect>) -> Option<End> {
        let mut end = None;
        let mut places = None;
        let mut notices = effects.iter().filter(|effect| is_notice(effect)).count();
        for effect in effects {
            let noticed = is_notice(&effect);
            match effect {
                CollectorEffect::Read => self.read(),
                CollectorEffect::Create(record) => self.create(record),
                CollectorEffect::Lead => {
                    end = self.publisher.publish().err().map(End::Unpublished);
                }
                CollectorEffect::Delete(snapshot) => {
                    self.deletions.add(snapshot, Instant::now());
                    self.delete();
                }
                CollectorEffect::Tell(process, incarnation, word) => {
                    let key = (process, incarnation);
                    let told = if matches!(word.order, Order::Prepare(..)) {
                        let places = places.get_or_insert_with(|| self.places());
                        let receivers = self.receivers(process, places);
                        self.nodes.tell(key, directive(word, receivers))
                    } else {
                        self.nodes.tell(key, directive(word, Addresses::new()))
                    };
                    if noticed && told {
                        if notices > 1 && self.hold.armed(Point::Notice) {
                            self.stop_after_notice(key).await;
                        }
                        notices = 0;
                    }
                }
                CollectorEffect::Dismiss(process, incarnation, word) => {
                    self.dismiss((process, incarnation), word);
                }
                CollectorEffect::Replace(process, incarnation) => {
                    self.replace(process, incarnation);
                }
                CollectorEffect::Absent(process) => {
                    let process = self.topology.name(process).to_owned();
                    self.tell_watchers(&JobEvent::Absent { process });
                }
                CollectorEffect::Answer(request, answer) => self.asks.answer(request, answer),
                CollectorEffect::Announce(announcement) => self.announce(announcement),
                CollectorEffect::Finish => end = Some(End::Finished),
                CollectorEffect::Fail(reason) => end = Some(End::Failed(reason)),
                CollectorEffect::Unread(reason) => end = Some(End::Unread(reason)),
                CollectorEffect::Fenced(term) => end = Some(End::Fenced(term)),
            }
        }
        end
    }

    fn read(&mut self) {
        let store = self.store.clone();
        self.storing.spawn(async move {
            let records = store.read_all().await;
            if let Err(error) = store.sweep_staging(STAGING_AGE).await {
                tracing::warn!("what killed writers have left stays: {error}");
            }
            let records = records.map_err(|error| error.to_string());
            Stored::Answer(CollectorInput::Read(records))
        });
    }

    /// Begins the deletions whose turn has come.
    pub(super) fn delete(&mut self) {
        while let Some(snapshot) = self.deletions.begin(Instant::now()) {
            let store = self.store.clone();
            self.storing.spawn(async move {
                if let Err(error) = store.delete_snapshot(snapshot).await {
                    tracing::warn!(%snapshot, "cannot be deleted: {error}");
                }
                Stored::Deleted
            });
        }
    }

    fn create(&mut self, record: Record) {
        if let Record::Manifest(manifest) = &record
            && manifest.is_complete()
        {
            self.hold.at(Point::PartsIn);
        }
        let store = self.store.clone();
        self.storing.spawn(async move {
            let outcome = store.create(&record).await;
            Stored::Answer(CollectorInput::Created(record, outcome))
        });
    }

    fn dismiss(&mut self, key: Key, word: Directive) {
        if let Order::Refused { reason, .. } = &word.order {
            // It need not be of this topology, and then has no name in it.
            let process = process_name(&self.topology, key.0);
            tracing::warn!(process, "a node is refused: {reason}");
        }
        self.asks.lost(key);
        self.nodes.dismiss(key, directive(word, Addresses::new()));
    }

    fn replace(&self, process: ProcessId, incarnation: Incarnation) {
        let pid = self
            .nodes
            .place((process, incarnation))
            .map(|place| place.pid);
        let process = self.topology.name(process).to_owned();
        self.tell_watchers(&JobEvent::Replace {
            process,
            incarnation,
            pid,
        });
    }

    /// Stops this program between the first of several notices and the second.
    async fn stop_after_notice(&self, key: Key) {
        let left = async {
            while self.nodes.waiting(key) > 0 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = timeout(NOTICE_BOUND, left).await;
        sleep(FLUSH).await;
        self.hold.at(Point::Notice);
    }

    fn announce(&mut self, announcement: Announcement) {
        let name = |process| self.topology.name(process).to_owned();
        let event = match announcement {
            Announcement::Joined(process, incarnation) => {
                let place = self.nodes.place((process, incarnation)).cloned();
                let Place { address, pid } = place.unwrap_or_default();
                let process = name(process);
                JobEvent::Joined {
                    process,
                    incarnation,
                    address,
                    pid,
                }
            }
            Announcement::Lost(process, incarnation) => {
                let process = name(process);
                JobEvent::Lost {
                    process,
                    incarnation,
                }
            }
            Announcement::Begun(snapshot) => JobEvent::Begun { snapshot },
            Announcement::Ended(manifest) => {
                self.asks.ended(&manifest);
                JobEvent::of_end(&manifest)
            }
            Announcement::Failed(reason) => JobEvent::Failed { reason },
            Announcement::Warned(reason) => JobEvent::Warning { reason },
            Announcement::Restoring(generation, snapshot) => JobEvent::Restoring {
                generation,
                snapshot,
            },
            Announcement::Running(generation, snapshot) => JobEvent::Running {
                generation,
                snapshot,
            },
        };
        self.tell_watchers(&event);
    }

    pub(super) fn tell_watchers(&self, event: &JobEvent) {
        event.log();
        // An error only says that nobody watches.
        let _ = self.events.send(event.to_json());
    }

    /// Where every process takes its inputs' streams, in the order of the processes.
    fn places(&self) -> Vec<String> {
        let processes = self.collector.status().processes.into_iter();
        let address = |(process, _, incarnation, _)| {
            let place = self.nodes.place((process, incarnation));
            place.map(|place| place.address.clone()).unwrap_or_default()
        };
        processes.map(address).collect()
    }

    /// The places of those to whom a process has outputs. Of all of them each would be told of
    /// all others, which of many thousands is too much.
    fn receivers(&self, process: ProcessId, places: &[String]) -> Addresses {
        let outputs = self.topology.outputs(process).into_iter();
        let receivers = outputs.map(|channel| channel.to);
        let place = |receiver: ProcessId| (receiver, places[receiver.index()].clone());
        receivers.map(place).collect()
    }

    /// Hands a word to the application of the node that is live for a process.
    pub(super) fn command(
        &mut self,
        process: ProcessId,
        text: String,
        reply: Reply<Option<String>>,
    ) {
        let status = self.collector.status();
        let live = status
            .processes
            .iter()
            .find(|&&(of, live, ..)| of == process && live);
        let attached = live
            .map(|&(_, _, incarnation, _)| (process, incarnation))
            .filter(|&key| self.nodes.is_attached(key));
        let Some(key) = attached else {
            let name = self.topology.name(process);
            let reason = format!("no node is attached for {name}: `cutline status` shows who is");
            let _ = reply.send(Err(Untold::Refused(reason)));
            return;
        };
        if let Some(request) = self.asks.command(key, reply)
            && !self.nodes.command(key, status.term, request, text)
        {
            self.asks.lost(key);
        }
    }

    /// How the job stands.
    pub(super) fn status(&self) -> pb::StatusAnswer {
        let status = self.collector.status();
        let processes = status.processes.iter();
        let processes = processes.map(|&(process, live, incarnation, holding)| {
            let key = (process, incarnation);
            let Place { address, pid } = self.nodes.place(key).cloned().unwrap_or_default();
            let Progress { handled, sent } = self.nodes.progress(key);
            let (holding, generation) = held(holding);
            pb::ProcessStatus {
                name: self.topology.name(process).to_owned(),
                live,
                incarnation: incarnation.get(),
                address,
                pid,
                holding: holding.to_owned(),
                generation: generation.get(),
                handled,
                sent,
            }
        });
        pb::StatusAnswer {
            job: self.job.clone(),
            term: status.term.get(),
            generation: status.generation.get(),
            restored: status.restored.get(),
            phase: status.phase.to_owned(),
            open: status.open.iter().map(|snapshot| snapshot.get()).collect(),
            complete: status.complete.get(),
            complete_count: status.complete_count,
            aborted_count: status.aborted_count,
            failures_in_row: status.failures_in_row.into(),
            processes: processes.collect(),
        }
    }
}

fn is_notice(effect: &CollectorEffect) -> bool {
    let CollectorEffect::Tell(_, _, word) = effect else {
        return false;
    };
    matches!(word.order, Order::Ended { .. })
}

const fn held(holding: Holding) -> (&'static str, Generation) {
    match holding {
        Holding::Nothing => ("nothing", Generation::new(0)),
        Holding::Prepared(generation) => ("prepared", generation),
        Holding::Running(generation) => ("running", generation),
    }
}
