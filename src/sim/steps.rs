//! Doing what a step says: how it begins, and when it has ended.

use std::collections::BTreeSet;

use super::Simulation;
use super::conditions::Waiting;
use super::delays::micros;
use super::queue::Planned;
use super::seen::Mark;
use crate::protocol::application::Application;
use crate::protocol::collector::{Answer, Request, RequestId};
use crate::protocol::events::Holding;
use crate::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use crate::protocol::records::{End, Manifest};
use crate::scenario::{Condition, Step, Target, WAIT_TIMEOUT};

/// Whoever asks the collector waits so long for one that is being started again; as on real
/// processes.
const COLLECTOR_WAIT_US: u64 = 10_000_000;

/// A collector that is stopped does not answer within this.
const ANSWER_US: u64 = 3_000_000;

/// A step that is under way.
pub(super) enum Going<'s> {
    /// It has ended.
    Done,
    /// A command is on its way to a process.
    Sending {
        process: ProcessId,
        text: &'s str,
        due_us: u64,
        until_us: u64,
    },
    /// A word is on its way to the collector.
    Asking {
        request: Request,
        wait: bool,
        due_us: u64,
        until_us: u64,
    },
    /// The collector has been asked.
    Asked {
        asker: RequestId,
        wait: bool,
        collector: u64,
    },
    /// A snapshot is waited for, of a collector.
    Ending(SnapshotId, u64),
    /// Programs are killed where they are.
    Killing {
        left: BTreeSet<Target>,
        until_us: u64,
        /// Whether the step lasts until they are back.
        restart: bool,
    },
    /// Programs of a group are killed at a point.
    Striking(usize),
    /// A stream is to break when there is one.
    Breaking { channel: ChannelId, until_us: u64 },
    /// Conditions are waited for.
    Waiting(Waiting<'s>),
}

type Ended = Option<Result<(), String>>;

impl<'s, A: Application> Simulation<'_, A> {
    pub(super) fn begin_step(&mut self, step: &'s Step) -> Going<'s> {
        let now_us = self.queue.now_us();
        let until_us = now_us + micros(WAIT_TIMEOUT);
        match step {
            Step::Send { process, text } => Going::Sending {
                process: *process,
                text,
                // To the collector, and from there to the node.
                due_us: self.word_us() + self.word_us() - now_us,
                until_us,
            },
            Step::Snapshot {
                from,
                mode,
                alignment_timeout,
                wait,
            } => {
                let request = Request::Snapshot {
                    initiators: from.clone(),
                    mode: *mode,
                    alignment_timeout_ms: alignment_timeout.map(|limit| micros(limit) / 1_000),
                };
                self.asking(request, *wait)
            }
            Step::Restore { snapshot } => self.asking(Request::Restore(*snapshot), false),
            Step::Kill {
                targets,
                at_point: Some(point),
            } => Going::Striking(self.arm(targets, *point)),
            Step::Kill { targets, .. } | Step::Restart { targets } => Going::Killing {
                left: targets.clone(),
                until_us,
                restart: matches!(step, Step::Restart { .. }),
            },
            Step::Pause { targets } => {
                targets.iter().for_each(|target| self.pause(*target));
                Going::Done
            }
            Step::Resume { targets } => {
                targets.iter().for_each(|target| self.resume(*target));
                Going::Done
            }
            Step::Break { channel } => Going::Breaking {
                channel: *channel,
                until_us,
            },
            Step::Wait {
                conditions,
                timeout,
            } => Going::Waiting(Waiting::new(conditions, now_us, micros(*timeout))),
            Step::Expect { .. } => Going::Done,
        }
    }

    /// When a word that is said now is there.
    fn word_us(&mut self) -> u64 {
        let after_us = self.drawing.of(|delays| delays.control);
        let at_us = self.queue.now_us() + after_us;
        self.look_at(at_us);
        at_us
    }

    fn asking(&mut self, request: Request, wait: bool) -> Going<'s> {
        let due_us = self.word_us();
        Going::Asking {
            request,
            wait,
            due_us,
            until_us: due_us + COLLECTOR_WAIT_US,
        }
    }

    /// Looks how a step stands, and answers how it ended, if it has.
    pub(super) fn go_on(&mut self, going: &mut Going<'s>, mark: Mark) -> Ended {
        match going {
            Going::Done => Some(Ok(())),
            Going::Sending {
                process,
                text,
                due_us,
                until_us,
            } => self.send(*process, text, *due_us, *until_us),
            Going::Asking { .. } => self.ask(going),
            Going::Asked {
                asker,
                wait,
                collector,
            } => {
                let (asker, wait, collector) = (*asker, *wait, *collector);
                let (next, ended) = self.asked(asker, wait, collector)?;
                *going = next;
                ended
            }
            Going::Ending(snapshot, collector) => self.ending(*snapshot, *collector),
            Going::Killing {
                left,
                until_us,
                restart,
            } => {
                let (until_us, restart) = (*until_us, *restart);
                for target in left.clone() {
                    if self.kill(target, false) {
                        left.remove(&target);
                    }
                }
                if let Some(target) = left.first() {
                    let name = target.name(self.job.topology()).to_owned();
                    return self.after(until_us, || format!("{name} does not run"));
                }
                if !restart {
                    return Some(Ok(()));
                }
                let now_us = self.queue.now_us();
                let running = &[Condition::Running];
                *going = Going::Waiting(Waiting::new(running, now_us, micros(WAIT_TIMEOUT)));
                None
            }
            Going::Striking(group) => self.is_struck(*group).then_some(Ok(())),
            Going::Breaking { channel, until_us } => {
                if self.break_stream(*channel) {
                    return Some(Ok(()));
                }
                let name = self.job.topology().channel_name(*channel);
                self.after(*until_us, || format!("{name} has no stream"))
            }
            Going::Waiting(waiting) => self.wait(waiting, mark),
        }
    }

    /// A failure, once it is late enough.
    fn after(&self, until_us: u64, failure: impl FnOnce() -> String) -> Ended {
        (self.queue.now_us() >= until_us).then(|| Err(failure()))
    }

    /// Hands a command to a process that is there, and says how that came out.
    fn send(&mut self, process: ProcessId, text: &str, due_us: u64, until_us: u64) -> Ended {
        if self.queue.now_us() < due_us {
            return None;
        }
        let is_up = self.is_up(Target::Collector) && self.is_up(Target::Node(process));
        let about = BTreeSet::from([Target::Collector, Target::Node(process)]);
        if !is_up || self.seats.are_stopped(&about) {
            let name = self.job.topology().name(process);
            let failure = format!("{name} does not take it");
            return self.after(until_us, || failure);
        }
        let holding = self.world.process(process).map(|machine| machine.holding());
        if !matches!(holding, Some(Holding::Running(_))) {
            return Some(Err("the process is not running".to_owned()));
        }
        self.refusal = None;
        self.world.command(process, text);
        self.look();
        Some(self.refusal.take().map_or(Ok(()), Err))
    }

    fn ask(&mut self, going: &mut Going<'s>) -> Ended {
        let Going::Asking {
            request,
            wait,
            due_us,
            until_us,
        } = going
        else {
            return None;
        };
        if self.queue.now_us() < *due_us {
            return None;
        }
        if !self.is_up(Target::Collector) {
            let until_us = *until_us;
            return self.after(until_us, || "no collector is running".to_owned());
        }
        if self.seats.stopped(Target::Collector).is_some() {
            let until_us = *due_us + ANSWER_US;
            return self.after(until_us, || "the collector does not answer".to_owned());
        }
        let asker = self.world.ask(request.clone());
        self.look();
        *going = Going::Asked {
            asker,
            wait: *wait,
            collector: self.collectors,
        };
        if self.is_timeless() {
            self.settle();
        }
        self.go_on(going, Mark::default())
    }

    /// What is next for a step whose question has been answered.
    fn asked(&self, asker: RequestId, wait: bool, collector: u64) -> Option<(Going<'s>, Ended)> {
        let ended = match self.world.answer(asker) {
            Some(Ok(Answer::Begun(snapshot))) if wait => {
                return Some((Going::Ending(*snapshot, collector), None));
            }
            Some(Ok(_)) => Ok(()),
            Some(Err(reason)) => Err(reason.clone()),
            None if self.is_gone_collector(collector) => Err(no_answer()),
            None => return None,
        };
        Some((Going::Done, Some(ended)))
    }

    fn ending(&self, snapshot: SnapshotId, collector: u64) -> Ended {
        if self.seen.complete.contains(&snapshot) {
            return Some(Ok(()));
        }
        if self.seen.aborted.contains(&snapshot) {
            let mut manifests = self.world.manifests();
            let manifest = manifests.find(|manifest| manifest.snapshot == snapshot);
            let reason = manifest.map(reason).unwrap_or_default();
            return Some(Err(format!("{snapshot} was aborted: {reason}")));
        }
        let gone = self.is_gone_collector(collector);
        gone.then(|| Err(no_answer()))
    }

    fn is_gone_collector(&self, collector: u64) -> bool {
        self.collectors != collector || !self.is_up(Target::Collector)
    }

    /// Whether a program is on its way back.
    pub(super) fn is_starting(&self, process: ProcessId) -> bool {
        self.queue.has(&Planned::Start(process).into())
    }
}

fn no_answer() -> String {
    "no answer: the collector has gone".to_owned()
}

fn reason(manifest: &Manifest) -> String {
    match &manifest.end {
        End::Aborted { reason } => reason.clone(),
        End::Complete { .. } => String::new(),
    }
}
