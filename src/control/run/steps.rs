//! Doing what a step says.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::time::sleep;

use super::Engine;
use crate::control::client::SnapshotEnd;
use crate::control::command::{CommandError, Progress, connect};
use crate::control::incarnations::{self, Condition as State, OsProcess};
use crate::control::stop;
use crate::control::up::chain;
use crate::control::wanted::WantedSnapshot;
use crate::control::who::Who;
use crate::hold::{break_path, held_path, order_path};
use crate::protocol::ids::{ChannelId, ProcessId};
use crate::scenario::{Condition, Point, Step, Target, WAIT_TIMEOUT};

/// From one look at the file system to the next.
const POLL: Duration = Duration::from_millis(5);

/// Programs that are held at the same point are killed together, if they come by it within this:
/// one that is held may be what another needs to come by at all.
const TOGETHER: Duration = Duration::from_millis(300);

impl Engine<'_> {
    /// Does what the step says; lasts until it is done.
    pub(super) async fn perform(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Send { process, text } => {
                let name = self.job.topology().name(*process);
                let sending = async { self.client().await?.command(name, text).await };
                sending
                    .await
                    .map_err(|error| chain(&CommandError::from(error)))
            }
            Step::Snapshot {
                from,
                mode,
                alignment_timeout,
                wait,
            } => {
                let limit_ms = alignment_timeout.map(|limit| limit.as_millis());
                let wanted = WantedSnapshot {
                    from: self.names(from),
                    mode: *mode,
                    alignment_timeout_ms: limit_ms.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)),
                };
                self.snapshot(wanted, *wait).await
            }
            Step::Kill { targets, at_point } => match at_point {
                None => self.kill(targets).await,
                Some(point) => self.kill_at(targets, *point).await,
            },
            Step::Pause { targets } => self.pause(targets).await,
            Step::Resume { targets } => self.resume(targets),
            Step::Restart { targets } => {
                self.kill(targets).await?;
                self.wait(&[Condition::Running], WAIT_TIMEOUT).await
            }
            Step::Break { channel } => self.break_stream(*channel).await,
            Step::Restore { snapshot } => {
                let restoring = async { self.client().await?.restore(*snapshot).await };
                let restored = restoring
                    .await
                    .map_err(|error| chain(&CommandError::from(error)));
                restored.map(|_| ())
            }
            Step::Wait {
                conditions,
                timeout,
            } => self.wait(conditions, *timeout).await,
            // Whoever goes on in spite of these keeps them.
            Step::Expect { .. } => Ok(()),
        }
    }

    async fn client(
        &self,
    ) -> Result<crate::control::client::JobClient, crate::control::client::ClientError> {
        let tell = |what: &str| self.log.say("progress", what);
        connect(self.directory, Progress(&tell)).await
    }

    fn names(&self, processes: &BTreeSet<ProcessId>) -> Vec<String> {
        let topology = self.job.topology();
        let names = processes
            .iter()
            .map(|process| topology.name(*process).to_owned());
        names.collect()
    }

    async fn snapshot(&self, wanted: WantedSnapshot, wait: bool) -> Result<(), String> {
        let ended = async {
            let mut client = self.client().await?;
            if wait {
                client.snapshot_to_its_end(wanted).await.map(Some)
            } else {
                client.snapshot(wanted).await.map(|_| None)
            }
        };
        match ended
            .await
            .map_err(|error| chain(&CommandError::from(error)))?
        {
            Some(SnapshotEnd::Aborted(snapshot, reason)) => {
                Err(format!("{snapshot} was aborted: {reason}"))
            }
            Some(SnapshotEnd::Complete(_)) | None => Ok(()),
        }
    }

    fn who(&self, target: Target) -> Who {
        match target {
            Target::Collector => Who::Collector,
            Target::Node(process) => Who::Process(self.job.topology().name(process).to_owned()),
        }
    }

    /// The newest incarnation of each; one that has just died is on its way back.
    async fn newest(&self, targets: &BTreeSet<Target>) -> Result<Vec<OsProcess>, String> {
        let mut processes = Vec::new();
        for target in targets {
            let who = self.who(*target);
            let begin = Instant::now();
            loop {
                if let Some(process) = incarnations::newest(self.directory, &who) {
                    processes.push(process);
                    break;
                }
                if begin.elapsed() >= WAIT_TIMEOUT {
                    return Err(format!("{who} does not run"));
                }
                sleep(POLL).await;
            }
        }
        Ok(processes)
    }

    async fn kill(&self, targets: &BTreeSet<Target>) -> Result<(), String> {
        let victims = self.newest(targets).await?;
        self.kill_all(&victims).await
    }

    async fn kill_all(&self, victims: &[OsProcess]) -> Result<(), String> {
        // Before they die: nobody must see one of them as running in between.
        self.killed
            .borrow_mut()
            .extend(victims.iter().map(|victim| victim.pid));
        for victim in victims {
            signal(*victim, Signal::SIGKILL)?;
        }
        let left = stop::gone(victims, stop::KILL_GRACE).await;
        match left.first() {
            None => Ok(()),
            Some(one) => Err(format!("pid {} was killed and is still there", one.pid)),
        }
    }

    /// Holds each where it next comes by the point, and kills it there.
    async fn kill_at(&self, targets: &BTreeSet<Target>, point: Point) -> Result<(), String> {
        let root = self.directory.root();
        let names: Vec<_> = targets
            .iter()
            .map(|target| self.who(*target).to_string())
            .collect();
        for name in &names {
            let _ = fs::remove_file(held_path(root, name));
            let order = order_path(root, name);
            fs::write(&order, point.name())
                .map_err(|error| format!("cannot write {}: {error}", order.display()))?;
        }
        let mut awaited: BTreeSet<_> = names.iter().cloned().collect();
        let mut held: Vec<OsProcess> = Vec::new();
        let mut first = None;
        while !awaited.is_empty() || !held.is_empty() {
            for name in awaited.clone() {
                if let Some(process) = self.held(&name) {
                    awaited.remove(&name);
                    held.push(process);
                    first.get_or_insert_with(Instant::now);
                }
            }
            let waited = first.is_some_and(|first: Instant| first.elapsed() >= TOGETHER);
            if !held.is_empty() && (awaited.is_empty() || waited) {
                self.kill_all(&held).await?;
                held.clear();
                first = None;
            }
            if !awaited.is_empty() {
                sleep(POLL).await;
            }
        }
        for name in &names {
            let _ = fs::remove_file(held_path(root, name));
        }
        self.log
            .say("held", &format!("{} killed at {point}", names.join(", ")));
        Ok(())
    }

    /// The program that says it is held, if it is stopped by now.
    fn held(&self, name: &str) -> Option<OsProcess> {
        let text = fs::read_to_string(held_path(self.directory.root(), name)).ok()?;
        let pid = text.split_whitespace().nth(1)?.parse().ok()?;
        let process = incarnations::of(pid)?;
        (process.condition() == State::Stopped).then_some(process)
    }

    /// Orders the sender of a channel to drop its stream, and waits until it has.
    async fn break_stream(&self, channel: ChannelId) -> Result<(), String> {
        let who = self.who(Target::Node(channel.from)).to_string();
        let order = break_path(self.directory.root(), &who);
        let unfinished = order.with_extension("new");
        let folder = order.parent().unwrap_or(&order);
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&unfinished, channel.to_string()))
            .and_then(|()| fs::rename(&unfinished, &order));
        written.map_err(|error| format!("cannot write {}: {error}", order.display()))?;
        let begin = Instant::now();
        while order.exists() {
            if begin.elapsed() >= WAIT_TIMEOUT {
                let _ = fs::remove_file(&order);
                let name = self.job.topology().channel_name(channel);
                return Err(format!("{name} has no stream"));
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    async fn pause(&self, targets: &BTreeSet<Target>) -> Result<(), String> {
        let processes = self.newest(targets).await?;
        for process in &processes {
            signal(*process, Signal::SIGSTOP)?;
        }
        let running = || {
            processes
                .iter()
                .any(|each| each.condition() == State::Alive)
        };
        let begin = Instant::now();
        while running() && begin.elapsed() < stop::KILL_GRACE {
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Lets every stopped incarnation go on, also those that have been replaced.
    fn resume(&self, targets: &BTreeSet<Target>) -> Result<(), String> {
        for target in targets {
            let name = self.who(*target).file_name();
            for record in incarnations::all(self.directory) {
                if record.file_name == name && record.process.condition() == State::Stopped {
                    signal(record.process, Signal::SIGCONT)?;
                }
            }
        }
        Ok(())
    }
}

fn signal(process: OsProcess, signal: Signal) -> Result<(), String> {
    let sent = process.signal(signal);
    sent.map(|_| ())
        .map_err(|error| format!("cannot signal pid {}: {error}", process.pid))
}
