//! Keeps a job's programs running: starts them, starts again what dies, replaces what the
//! collector has given up, and ends them all.
//!
//! It knows nothing of snapshots. What happens inside the job it hears from the collector as
//! [`News`]s; what it does itself it tells as [`Notice`]s.
//!
//! Children end with the thread that started them (`--parent`), so everything here happens on
//! the thread that runs the future of [`supervise`]: it must be the main one.

mod plan;
mod seat;

use std::collections::BTreeMap;
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::incarnations::{self, OsProcess};
use super::lock::Lock;
use super::logs;
use super::notice::{Notice, Programs, how};
use super::stop;
use super::who::Who;

pub use plan::{Ending, Member, News, Plan, StartError};
use seat::{Current, Seat, spawn};

/// How many of a dead program's last lines are shown: enough for a panic with its place.
pub const LAST_LINES: usize = 10;

/// A program that ends with success was told to, mostly because the job ends: it is not started
/// again before the collector has had this time to say so.
const HALT_GRACE: Duration = Duration::from_secs(1);

/// A program that could not even begin ends with this status; before the job has run for the
/// first time it is not tried again, as it would only say the same.
const COULD_NOT_START: i32 = 2;

/// The collector ends with this status when the job cannot go on.
const JOB_HAS_FAILED: i32 = 1;

/// From one look at the job's directory to the next.
const LOOK: Duration = Duration::from_secs(1);

/// Runs a job until it ends, cannot go on, or `shutdown` is cancelled; nothing of it runs
/// afterwards. Whoever calls has the job's directory locked; `hurry` makes ending it quick.
///
/// # Errors
/// If the job cannot even be started.
pub async fn supervise(
    plan: &Plan,
    _lock: &Lock,
    events: &mut mpsc::Receiver<News>,
    shutdown: &CancellationToken,
    hurry: &CancellationToken,
    tell: &dyn Fn(Notice),
) -> Result<Ending, StartError> {
    let mut supervisor = Supervisor::new(plan, tell);
    let ending = supervisor.run(events, shutdown).await;
    supervisor.end(hurry).await;
    ending
}

struct Supervisor<'a> {
    plan: &'a Plan,
    seats: BTreeMap<Who, Seat<'a>>,
    children: JoinSet<(u32, io::Result<ExitStatus>)>,
    /// Everything that has not been waited for, with its record.
    incarnations: BTreeMap<u32, (Who, OsProcess)>,
    /// When it began, from which restarts are timed.
    since: Instant,
    started: u64,
    has_run: bool,
    tell: &'a dyn Fn(Notice),
}

/// Whether to go on.
type Step = Result<Option<Ending>, StartError>;

impl<'a> Supervisor<'a> {
    fn new(plan: &'a Plan, tell: &'a dyn Fn(Notice)) -> Self {
        let members = plan.members.iter();
        Self {
            plan,
            seats: members
                .map(|member| (member.who.clone(), Seat::of(member)))
                .collect(),
            children: JoinSet::new(),
            incarnations: BTreeMap::new(),
            since: Instant::now(),
            started: 0,
            has_run: false,
            tell,
        }
    }

    fn tell(&self, notice: Programs) {
        (self.tell)(notice.into());
    }

    async fn run(
        &mut self,
        events: &mut mpsc::Receiver<News>,
        shutdown: &CancellationToken,
    ) -> Result<Ending, StartError> {
        for member in &self.plan.members {
            self.start(&member.who)?;
        }
        let mut look = tokio::time::interval(LOOK);
        let mut listening = true;
        loop {
            let due = self.seats.values().filter_map(|seat| seat.due).min();
            let step = tokio::select! {
                biased;
                () = shutdown.cancelled() => Ok(Some(Ending::Stopped)),
                event = events.recv(), if listening => match event {
                    Some(event) => self.hear(event),
                    None => { listening = false; Ok(None) }
                },
                Some(exit) = self.children.join_next() => {
                    let (pid, status) = exit.expect("waiting for a child does not panic");
                    self.died(pid, status)
                }
                () = until(due) => Ok(self.start_due()),
                _ = look.tick() => Ok(self.look()),
            };
            if let Some(ending) = step? {
                return Ok(ending);
            }
        }
    }

    fn hear(&mut self, event: News) -> Step {
        match event {
            News::Running => self.has_run = true,
            News::Replace { who, pid } => {
                return Ok(self.replace(&who, |current| current.process.pid == pid));
            }
            News::Absent(who) => {
                // One that has just been started may still come.
                let silence = self.plan.silence;
                return Ok(self.replace(&who, |current| current.since.elapsed() >= silence));
            }
            News::Finished => return Ok(Some(Ending::Finished)),
            News::Failed(reason) => return self.failed(reason),
        }
        Ok(None)
    }

    /// The collector says that the job cannot go on.
    fn failed(&self, reason: String) -> Step {
        if self.has_run {
            Ok(Some(Ending::Failed(reason)))
        } else {
            Err(StartError::Job(reason))
        }
    }

    fn start(&mut self, who: &Who) -> Result<OsProcess, StartError> {
        let seat = self.seats.get_mut(who).expect("only members are started");
        self.started += 1;
        let (mut child, current) = spawn(&self.plan.directory, seat.member, self.started)?;
        let process = current.process;
        self.incarnations
            .insert(process.pid, (who.clone(), process));
        seat.taken_by(current);
        self.children
            .spawn(async move { (process.pid, child.wait().await) });
        Ok(process)
    }

    /// An incarnation has ended and has been waited for.
    fn died(&mut self, pid: u32, status: io::Result<ExitStatus>) -> Step {
        let Some(who) = self.forget(pid) else {
            return Ok(None);
        };
        let status = status.ok();
        let how = status.map_or_else(|| "ended".to_owned(), how);
        let seat = self.seats.get_mut(&who).expect("only members are started");
        let Some(current) = seat.current.take_if(|current| current.process.pid == pid) else {
            self.tell(Programs::GivenUpEnded { who, pid, how });
            return Ok(None);
        };
        let lines = logs::tail(&self.plan.directory.log(&who), current.log_from, LAST_LINES);
        let code = status.and_then(|status| status.code());
        if code == Some(COULD_NOT_START) && !self.has_run {
            return Err(StartError::Program { who, lines });
        }
        let died = Programs::Died {
            who: who.clone(),
            pid,
            how: how.clone(),
            lines: lines.clone(),
        };
        if code == Some(0) {
            seat.untold = Some(died);
        } else {
            self.tell(died);
        }
        if let Some(ending) = self.told_by_exit(&who, code, &lines)? {
            return Ok(Some(ending));
        }
        if code == Some(0) {
            // If it was for the job's end, that will be heard of before it is due.
            let seat = self.seats.get_mut(&who).expect("only members are started");
            seat.due = Some(Instant::now() + HALT_GRACE);
            return Ok(None);
        }
        Ok(self.start_again(&who, Duration::ZERO, &how, &lines))
    }

    /// The job's end, where the word of it was lost: the collector ends with a failure of its own
    /// only if the job has failed, and everything ends with success only if the job has.
    fn told_by_exit(&mut self, who: &Who, code: Option<i32>, lines: &[String]) -> Step {
        if *who == Who::Collector && code == Some(JOB_HAS_FAILED) {
            let last = lines
                .last()
                .map_or("the collector does not say why", String::as_str);
            return self.failed(last.to_owned());
        }
        let seat = self.seats.get_mut(who).expect("only members are started");
        seat.has_ended = code == Some(0);
        let have_all = self.seats.values().all(|seat| seat.has_ended);
        Ok(have_all.then_some(Ending::Finished))
    }

    /// Plans the next start of a program, unless it has used up its restarts.
    fn start_again(
        &mut self,
        who: &Who,
        grace: Duration,
        how: &str,
        lines: &[String],
    ) -> Option<Ending> {
        let now = Instant::now();
        let policy = &self.plan.restarts;
        let seat = self.seats.get_mut(who).expect("only members are started");
        let Some(pause) = seat.restarts.next(policy, now - self.since) else {
            let mut reason = format!(
                "{who} {how}, and has used its {} restarts in {}",
                policy.max,
                humantime::format_duration(policy.window)
            );
            for line in lines {
                reason.push_str("\n  | ");
                reason.push_str(line);
            }
            return Some(Ending::Failed(reason));
        };
        seat.due = Some(now + pause + grace);
        if pause + grace == Duration::ZERO {
            return self.start_due();
        }
        None
    }

    fn start_due(&mut self) -> Option<Ending> {
        let now = Instant::now();
        let is_due = |seat: &Seat<'_>| seat.due.is_some_and(|due| due <= now);
        let due = self.seats.iter().filter(|(_, seat)| is_due(seat));
        let due: Vec<_> = due.map(|(who, _)| who.clone()).collect();
        for who in due {
            let seat = self.seats.get_mut(&who).expect("only members are started");
            if let Some(untold) = seat.untold.take() {
                seat.due = None;
                self.tell(untold);
                // At the next look: to start what is due is what goes on here.
                let soon = Duration::from_millis(1);
                let ending = self.start_again(&who, soon, "ended of itself", &[]);
                if ending.is_some() {
                    return ending;
                }
                continue;
            }
            match self.start(&who) {
                Ok(process) => self.tell(Programs::Restarted {
                    who,
                    pid: process.pid,
                }),
                Err(error) => {
                    // Not the end yet: memory or process slots may be short for a moment.
                    let how = error.to_string();
                    self.seats
                        .get_mut(&who)
                        .expect("only members are started")
                        .due = None;
                    let ending = self.start_again(&who, Duration::from_millis(1), &how, &[]);
                    if ending.is_some() {
                        return ending;
                    }
                }
            }
        }
        None
    }

    /// A node does not answer. If the incarnation that counts is the one that is meant and still
    /// exists, another takes its place; if not, it has been or is just being replaced already.
    fn replace(&mut self, who: &Who, is_meant: impl Fn(&Current) -> bool) -> Option<Ending> {
        let seat = self.seats.get_mut(who)?;
        let given_up = seat
            .current
            .take_if(|current| is_meant(current) && current.process.exists())?;
        self.tell(Programs::GivenUp {
            who: who.clone(),
            pid: given_up.process.pid,
        });
        self.start_again(who, Duration::ZERO, "does not answer", &[])
    }

    /// Forgets an incarnation that is gone; answers whose it was.
    fn forget(&mut self, pid: u32) -> Option<Who> {
        let (who, _) = self.incarnations.remove(&pid)?;
        let record = incarnations::record_path(&self.plan.directory, &who, pid);
        // Should it stay: it names a process that does not exist, and is passed over.
        let _ = std::fs::remove_file(record);
        Some(who)
    }

    /// What is looked at now and then: the logs' sizes, and whether the job's directory is still
    /// there. Without it nobody could find this job any more to end it.
    fn look(&self) -> Option<Ending> {
        let directory = &self.plan.directory;
        let of_seats = self.seats.keys().map(|who| directory.log(who));
        for log in of_seats.chain([directory.supervisor_log()]) {
            // A log that cannot be cut is no reason to end the job.
            let _ = logs::trim(&log, logs::LOG_BYTES_MAX);
        }
        let pids = self.plan.directory.pids();
        let gone = !pids.exists();
        gone.then(|| Ending::Failed(format!("somebody has removed {}", pids.display())))
    }

    /// Ends everything that still exists, given up or not.
    async fn end(&mut self, hurry: &CancellationToken) {
        self.tell(Programs::Stopping);
        let there: Vec<_> = self
            .incarnations
            .values()
            .map(|(_, process)| *process)
            .collect();
        let ended = stop::end(&there, stop::TERM_GRACE, hurry.cancelled()).await;
        if !ended.left.is_empty() {
            self.tell(Programs::Left { pids: ended.left });
        }
        let reaping = async {
            while let Some(exit) = self.children.join_next().await {
                if let Ok((pid, _)) = exit {
                    let gone = self.incarnations.remove(&pid);
                    if let Some((who, _)) = gone {
                        let record = incarnations::record_path(&self.plan.directory, &who, pid);
                        let _ = std::fs::remove_file(record);
                    }
                }
            }
        };
        // What could not be killed in its time is not waited for either.
        let _ = tokio::time::timeout(stop::KILL_GRACE, reaping).await;
    }
}

/// Waits until then; without a time, for ever.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
