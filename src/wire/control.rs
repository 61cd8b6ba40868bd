//! What nodes and the collector say on a control stream, as protobuf and back.
//!
//! Addresses, process ids of the operating system, progress and commands travel here but mean
//! nothing to the machines that decide, so they have their words in this module only.

use std::collections::BTreeMap;

use crate::protocol::events::{Directive, Holding, Join, Order, Report, Standing, StoredPart};
use crate::protocol::ids::{Generation, Incarnation, JobId, ProcessId, SnapshotId, Term};
use crate::protocol::mode::{Mode, Taking};

use super::pb::collector_word::Word as CollectorWord;
use super::pb::node_word::Word as NodeWord;
use super::{mode, pb};

/// Bytes that are no word of this protocol: the other side is of another version, or broken.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A field that must be there is not.
    #[error("{0} is missing on the wire")]
    Missing(&'static str),
    /// A number that stands for nothing.
    #[error("{number} is no {what} this version knows")]
    Unknown {
        /// What it was to be.
        what: &'static str,
        /// The number.
        number: i64,
    },
    /// The description of a stored part cannot be read.
    #[error("the description of the part of {snapshot} cannot be read")]
    Part {
        /// The snapshot.
        snapshot: SnapshotId,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// Where a node can be found; it says so when it joins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Where it takes its inputs' streams.
    pub address: String,
    /// Its process id on its host.
    pub pid: u32,
}

/// Where processes take their inputs' streams.
pub type Addresses = BTreeMap<ProcessId, String>;

/// How much a process has done since the job began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Messages handled.
    pub handled: u64,
    /// Messages sent.
    pub sent: u64,
}

/// What a node says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSaid {
    /// The first word.
    Join(Join, Place),
    /// Any report but a join.
    Report(Report),
    /// It is alive.
    Heartbeat(Progress),
    /// A command has been handled.
    CommandDone {
        /// Which.
        request: u64,
        /// Why it was not done, if it was not.
        refusal: Option<String>,
    },
}

/// What the collector says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectorSaid {
    /// A word for the process machine; with `Prepare`, where its receivers take their streams.
    Order(Directive, Addresses),
    /// A word for the application.
    Command {
        /// Told again in the answer.
        request: u64,
        /// The word.
        text: String,
    },
}

/// A report as a node sends it; `place` goes along with a join.
pub fn report(report: Report, place: &Place) -> pb::NodeWord {
    let word = match report {
        Report::Join(join) => NodeWord::Join(join_out(join, place)),
        Report::Ready(generation) => NodeWord::Ready(pb::Ready {
            generation: generation.get(),
        }),
        Report::Unready(generation, reason) => NodeWord::Unready(pb::Unready {
            generation: generation.get(),
            reason,
        }),
        Report::Stored {
            snapshot,
            generation,
            part,
        } => NodeWord::Stored(pb::PartStored {
            snapshot: snapshot.get(),
            generation: generation.get(),
            part: part_bytes(&part).into(),
        }),
        Report::Declined {
            snapshot,
            generation,
            reason,
        } => NodeWord::Declined(pb::Declined {
            snapshot: snapshot.get(),
            generation: generation.get(),
            reason,
        }),
    };
    node_word(word)
}

/// A sign of life.
pub fn heartbeat(progress: Progress) -> pb::NodeWord {
    let Progress { handled, sent } = progress;
    node_word(NodeWord::Heartbeat(pb::Heartbeat { handled, sent }))
}

/// The answer to a command.
pub fn command_done(request: u64, refusal: Option<String>) -> pb::NodeWord {
    let refusal = refusal.map(not_empty).unwrap_or_default();
    node_word(NodeWord::CommandDone(pb::CommandDone { request, refusal }))
}

/// An order as the collector sends it; the addresses of a node's receivers go along with `Prepare`.
pub fn directive(directive: Directive, addresses: Addresses) -> pb::CollectorWord {
    let receiver = |(process, address): (ProcessId, String)| pb::Receiver {
        process: process.get(),
        address,
    };
    let word = match directive.order {
        Order::Welcome(standing) => CollectorWord::Welcome(pb::Standing {
            job: standing.job.get(),
            generation: standing.generation.get(),
            low: standing.low.get(),
            last: standing.last.get(),
            open: standing.open.into_iter().map(SnapshotId::get).collect(),
            complete: standing.complete.get(),
        }),
        Order::Trigger(snapshot, taking) => CollectorWord::Trigger(pb::Trigger {
            snapshot: snapshot.get(),
            mode: mode::number(taking.mode),
            limit_ms: taking.limit_ms,
        }),
        Order::Ended {
            snapshot,
            complete,
            low,
        } => CollectorWord::Ended(pb::Ended {
            snapshot: snapshot.get(),
            complete,
            low: low.get(),
        }),
        Order::Prepare(generation, snapshot) => CollectorWord::Prepare(pb::Prepare {
            generation: generation.get(),
            snapshot: snapshot.get(),
            receivers: addresses.into_iter().map(receiver).collect(),
        }),
        Order::Run(generation) => CollectorWord::Run(pb::Run {
            generation: generation.get(),
        }),
        Order::Refused { job, reason } => {
            let job = job.get();
            CollectorWord::Refused(pb::JoinRefused { reason, job })
        }
        Order::Halt => CollectorWord::Halt(pb::Halt {}),
    };
    pb::CollectorWord {
        term: directive.term.get(),
        word: Some(word),
    }
}

/// A command as the collector sends it.
pub fn command(term: Term, request: u64, text: String) -> pb::CollectorWord {
    pb::CollectorWord {
        term: term.get(),
        word: Some(CollectorWord::Command(pb::NodeCommand { request, text })),
    }
}

impl TryFrom<pb::NodeWord> for NodeSaid {
    type Error = WireError;

    fn try_from(word: pb::NodeWord) -> Result<Self, WireError> {
        Ok(
            match word.word.ok_or(WireError::Missing("the node's word"))? {
                NodeWord::Join(join) => join_in(join)?,
                NodeWord::Heartbeat(pb::Heartbeat { handled, sent }) => {
                    Self::Heartbeat(Progress { handled, sent })
                }
                NodeWord::Ready(ready) => {
                    Self::Report(Report::Ready(Generation::new(ready.generation)))
                }
                NodeWord::Unready(unready) => {
                    let generation = Generation::new(unready.generation);
                    Self::Report(Report::Unready(generation, unready.reason))
                }
                NodeWord::Stored(stored) => Self::Report(stored_in(&stored)?),
                NodeWord::Declined(declined) => Self::Report(Report::Declined {
                    snapshot: SnapshotId::new(declined.snapshot),
                    generation: Generation::new(declined.generation),
                    reason: declined.reason,
                }),
                NodeWord::CommandDone(done) => Self::CommandDone {
                    request: done.request,
                    refusal: Some(done.refusal).filter(|refusal| !refusal.is_empty()),
                },
            },
        )
    }
}

impl TryFrom<pb::CollectorWord> for CollectorSaid {
    type Error = WireError;

    fn try_from(word: pb::CollectorWord) -> Result<Self, WireError> {
        let mut addresses = Addresses::new();
        let order = match word
            .word
            .ok_or(WireError::Missing("the collector's word"))?
        {
            CollectorWord::Welcome(standing) => Order::Welcome(Standing {
                job: JobId::new(standing.job),
                generation: Generation::new(standing.generation),
                low: SnapshotId::new(standing.low),
                last: SnapshotId::new(standing.last),
                open: standing.open.into_iter().map(SnapshotId::new).collect(),
                complete: SnapshotId::new(standing.complete),
            }),
            CollectorWord::Trigger(trigger) => {
                let taking = Taking::new(read_mode(trigger.mode)?, trigger.limit_ms);
                Order::Trigger(SnapshotId::new(trigger.snapshot), taking)
            }
            CollectorWord::Ended(ended) => Order::Ended {
                snapshot: SnapshotId::new(ended.snapshot),
                complete: ended.complete,
                low: SnapshotId::new(ended.low),
            },
            CollectorWord::Prepare(prepare) => {
                let receivers = prepare.receivers.into_iter();
                addresses = receivers
                    .map(|receiver| (ProcessId::new(receiver.process), receiver.address))
                    .collect();
                let generation = Generation::new(prepare.generation);
                Order::Prepare(generation, SnapshotId::new(prepare.snapshot))
            }
            CollectorWord::Run(run) => Order::Run(Generation::new(run.generation)),
            CollectorWord::Refused(pb::JoinRefused { reason, job }) => Order::Refused {
                job: JobId::new(job),
                reason,
            },
            CollectorWord::Halt(pb::Halt {}) => Order::Halt,
            CollectorWord::Command(pb::NodeCommand { request, text }) => {
                return Ok(Self::Command { request, text });
            }
        };
        let term = Term::new(word.term);
        Ok(Self::Order(Directive { term, order }, addresses))
    }
}

fn node_word(word: NodeWord) -> pb::NodeWord {
    pb::NodeWord { word: Some(word) }
}

/// On the wire an empty refusal means that there is none.
fn not_empty(refusal: String) -> String {
    if refusal.is_empty() {
        "refused without a reason".to_owned()
    } else {
        refusal
    }
}

fn join_out(join: Join, place: &Place) -> pb::Join {
    let (holding, generation) = match join.holding {
        Holding::Nothing => (pb::Holding::Nothing, Generation::default()),
        Holding::Prepared(generation) => (pb::Holding::Prepared, generation),
        Holding::Running(generation) => (pb::Holding::Running, generation),
    };
    pb::Join {
        process: join.process.get(),
        incarnation: join.incarnation.get(),
        topology: join.topology,
        application: join.application,
        job: join.job.get(),
        holding: holding.into(),
        generation: generation.get(),
        address: place.address.clone(),
        pid: place.pid,
    }
}

fn join_in(join: pb::Join) -> Result<NodeSaid, WireError> {
    let generation = Generation::new(join.generation);
    let unknown = |_| WireError::Unknown {
        what: "way of holding a generation",
        number: join.holding.into(),
    };
    let holding = match pb::Holding::try_from(join.holding).map_err(unknown)? {
        pb::Holding::Nothing => Holding::Nothing,
        pb::Holding::Prepared => Holding::Prepared(generation),
        pb::Holding::Running => Holding::Running(generation),
    };
    let place = Place {
        address: join.address,
        pid: join.pid,
    };
    let join = Join {
        process: ProcessId::new(join.process),
        incarnation: Incarnation::new(join.incarnation),
        topology: join.topology,
        application: join.application,
        job: JobId::new(join.job),
        holding,
    };
    Ok(NodeSaid::Join(join, place))
}

fn stored_in(stored: &pb::PartStored) -> Result<Report, WireError> {
    let snapshot = SnapshotId::new(stored.snapshot);
    let part = serde_json::from_slice(&stored.part);
    let part = part.map_err(|source| WireError::Part { snapshot, source })?;
    Ok(Report::Stored {
        snapshot,
        generation: Generation::new(stored.generation),
        part,
    })
}

fn part_bytes(part: &StoredPart) -> Vec<u8> {
    serde_json::to_vec(part).expect("numbers, names and lists of them are always JSON")
}

fn read_mode(number: u32) -> Result<Mode, WireError> {
    mode::of(number).ok_or(WireError::Unknown {
        what: "mode",
        number: number.into(),
    })
}

#[cfg(test)]
mod tests;
