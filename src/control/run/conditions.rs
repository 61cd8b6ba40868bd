//! When a `wait` ends, and what an `expect` finds.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Engine;
use crate::check::{Verified, unless_held, unless_right};
use crate::control::client::{JobClient, JobStatus};
use crate::control::command::{CommandError, Progress, open, records, verify_all};
use crate::control::incarnations;
use crate::control::who::Who;
use crate::protocol::ids::ProcessId;
use crate::scenario::{Condition, Expectation};

/// From one look at the collector's answers to the next.
const POLL: Duration = Duration::from_millis(20);

/// From one look at the store to the next: what it adds is rare, and reading it all takes longer.
const STORE_POLL: Duration = Duration::from_secs(1);

/// Nothing may have moved for this long. Nodes tell how far they are every second: two of each
/// one's words lie within, the second of them said after everyone's first.
const QUIET: Duration = Duration::from_millis(2200);

/// How often nothing has changed, and since when.
struct Stillness {
    counts: Vec<(u64, u64)>,
    since: Instant,
}

impl Engine<'_> {
    /// Lasts until all conditions hold at once.
    pub(super) async fn wait(
        &self,
        conditions: &[Condition],
        at_most: Duration,
    ) -> Result<(), String> {
        let begin = Instant::now();
        let mut looked = begin;
        let mut stillness = None;
        loop {
            let Some(unmet) = self.unmet(conditions, begin, &mut stillness).await else {
                return Ok(());
            };
            if begin.elapsed() >= at_most {
                let unmet = unmet.describe(self.job.topology());
                let at_most = humantime::format_duration(at_most);
                return Err(format!("not after {at_most}: {unmet}"));
            }
            if looked.elapsed() >= STORE_POLL {
                looked = Instant::now();
                self.read_store().await;
            }
            tokio::select! {
                () = self.observer.more() => {}
                () = sleep(POLL) => {}
            }
        }
    }

    /// The first of these that does not hold now.
    async fn unmet<'c>(
        &self,
        conditions: &'c [Condition],
        begin: Instant,
        stillness: &mut Option<Stillness>,
    ) -> Option<&'c Condition> {
        let asks = |condition: &&Condition| {
            matches!(
                condition,
                Condition::Generation(_) | Condition::Running | Condition::Idle
            )
        };
        // What has been seen costs nothing; the collector is asked only if all of that holds.
        let mut seen = conditions.iter().filter(|condition| !asks(condition));
        if let Some(unmet) = seen.find(|condition| !self.has_been_seen(condition, begin)) {
            return Some(unmet);
        }
        let first = conditions.iter().find(asks)?;
        let Some(status) = self.status().await else {
            return Some(first);
        };
        conditions
            .iter()
            .filter(asks)
            .find(|condition| match condition {
                Condition::Generation(generation) => status.generation < *generation,
                Condition::Running => !self.is_seen_running(&status),
                _ => !self.is_idle(&status, stillness),
            })
    }

    fn has_been_seen(&self, condition: &Condition, begin: Instant) -> bool {
        let seen = self.observer.seen();
        let name = |process: ProcessId| self.job.topology().name(process);
        let since = self.last_deed.get();
        match condition {
            Condition::Snapshots(count) => seen.complete.len() as u64 >= *count,
            Condition::Lost(process) => seen.lost_since(name(*process), since),
            Condition::Joined(process) => seen.joined_since(name(*process), since),
            Condition::Time(time) => begin.elapsed() >= *time,
            Condition::Generation(_) | Condition::Running | Condition::Idle => true,
        }
    }

    /// What the collector says, if it says anything.
    pub(super) async fn status(&self) -> Option<JobStatus> {
        let mut client = JobClient::connect(self.directory.root()).await.ok()?;
        client.status().await.ok()
    }

    /// Whether the job runs. If so, that counts as seen: a collector that is killed right after may
    /// have told nobody.
    fn is_seen_running(&self, status: &JobStatus) -> bool {
        let is_running = self.is_running(status);
        if is_running {
            self.observer.has_run(status.generation);
        }
        is_running
    }

    /// Every process runs this generation, in a program that still exists and that no step has
    /// killed: the collector may not have noticed yet.
    pub(super) fn is_running(&self, status: &JobStatus) -> bool {
        let killed = self.killed.borrow();
        status.phase == "running"
            && status.processes.iter().all(|process| {
                let who = Who::Process(process.name.clone());
                let newest = incarnations::newest(self.directory, &who);
                process.live
                    && process.holding == "running"
                    && process.generation == status.generation
                    && !killed.contains(&process.pid)
                    && newest.is_some_and(|newest| newest.pid == process.pid)
            })
    }

    /// Nothing is open, all that was sent is handled, and nobody's counts have changed for long
    /// enough: they come with signs of life, and so late.
    fn is_idle(&self, status: &JobStatus, stillness: &mut Option<Stillness>) -> bool {
        let counts: Vec<_> = status
            .processes
            .iter()
            .map(|process| (process.handled, process.sent))
            .collect();
        let (handled, sent) = counts.iter().fold((0, 0), |(handled, sent), next| {
            (handled + next.0, sent + next.1)
        });
        let quiet = self.is_running(status) && status.open.is_empty() && handled == sent;
        match stillness {
            Some(still) if quiet && still.counts == counts => still.since.elapsed() >= QUIET,
            _ => {
                let since = Instant::now();
                *stillness = quiet.then_some(Stillness { counts, since });
                false
            }
        }
    }

    /// Looks for what was not heard. What cannot be read now is read the next time.
    pub(super) async fn read_store(&self) {
        let none = |_: &str| {};
        if let Ok(store) = open(self.job).await
            && let Ok(records) = records(store.as_ref(), Progress(&none)).await
        {
            self.observer.read(&records);
        }
    }

    /// What does not hold of these; each with what was found instead.
    pub(super) async fn unexpected(&self, expectations: &[Expectation]) -> Vec<String> {
        self.read_store().await;
        let mut unexpected = Vec::new();
        for expectation in expectations {
            if let Some(found) = self.finding(expectation).await {
                unexpected.push(format!(
                    "expected {}, found {found}",
                    expectation.describe()
                ));
            }
        }
        unexpected
    }

    /// What was found where something else was expected.
    async fn finding(&self, expectation: &Expectation) -> Option<String> {
        let (complete, aborted, restores) = {
            let seen = self.observer.seen();
            (
                seen.complete.len() as u64,
                seen.aborted.len() as u64,
                seen.restores(),
            )
        };
        let unless = |holds: bool, found: u64| (!holds).then(|| found.to_string());
        match expectation {
            Expectation::Snapshots(bound) => unless(bound.holds(complete), complete),
            Expectation::Aborted(bound) => unless(bound.holds(aborted), aborted),
            Expectation::Restores(bound) => unless(bound.holds(restores), restores),
            Expectation::Generation(bound) => {
                let last = self.observer.seen().generations.last().copied();
                let asked = self.status().await.map(|status| status.generation);
                let generation = asked.or(last).unwrap_or_default().get();
                unless(bound.holds(generation), generation)
            }
            Expectation::Verdicts => self.judged(unless_right).await,
            Expectation::Quantities(wanted) => {
                let held = |snapshots: &[Verified]| unless_held(snapshots, wanted);
                self.judged(held).await
            }
        }
    }

    /// What is found in the snapshots that are complete and still kept.
    async fn judged(&self, found: impl Fn(&[Verified]) -> Option<String>) -> Option<String> {
        match self.verified().await {
            Ok(view) => found(&view.map_or_else(Vec::new, |view| view.snapshots)),
            Err(error) => Some(error),
        }
    }

    /// The verdicts on every snapshot of the scenario that is complete and still kept.
    pub(super) async fn verified(
        &self,
    ) -> Result<Option<crate::control::view::VerifyView>, String> {
        let none = |_: &str| {};
        let judging = async {
            let Some(store) = open(self.job).await? else {
                return Ok(None);
            };
            let records = records(Some(&store), Progress(&none)).await?;
            self.observer.read(&records);
            if let Some((snapshot, unreadable)) = records.unreadable.first_key_value() {
                let reason = format!("{snapshot} cannot be read: {}", unreadable.why);
                return Err(CommandError::No(reason));
            }
            let complete = self.observer.seen().complete.clone();
            let kept = records.snapshots.iter().map(|(begun, _)| begun.snapshot);
            let kept: Vec<_> = kept
                .filter(|snapshot| complete.contains(snapshot))
                .collect();
            verify_all(self.job, &store, &kept, Progress(&none))
                .await
                .map(Some)
        };
        let judged: Result<_, CommandError> = judging.await;
        judged.map_err(|error| crate::control::up::chain(&error))
    }
}
