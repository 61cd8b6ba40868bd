//! Following a job through its collector, across that collector's deaths: what the supervisor
//! must know, and what is worth telling.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::client::{ClientError, JobClient, JobStatus, Watch};
use super::directory::JobDirectory;
use super::notice::{Notice, Programs};
use super::supervisor::News;
use super::who::Who;
use crate::check::{Verdicts, judge_manifest};
use crate::collector::JobEvent;
use crate::job::Job;
use crate::protocol::ids::{Generation, Incarnation, SnapshotId, Term};
use crate::store::Store;

/// From one try to reach the collector to the next. It is started again within milliseconds, and
/// a try costs one look at a file and at most one connection on this host.
const RETRY: Duration = Duration::from_millis(50);

/// A job that does not run yet is spoken of after this, then after twice as long, and so on.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reading one manifest takes milliseconds; where it takes longer the line does without.
const MANIFEST_BOUND: Duration = Duration::from_secs(2);

/// Follows a job for as long as it is polled. Whoever hears of `Finished` or `Failed` stops.
pub async fn follow(
    job: &Job,
    directory: &JobDirectory,
    news: mpsc::Sender<News>,
    tell: &dyn Fn(Notice),
) {
    let mut follower = Follower::new(job, news, tell);
    loop {
        // Whatever goes wrong here: as long as the supervisor wants to know, it is tried again.
        let watch = connect(directory.root(), &mut follower).await;
        if let Ok(watch) = watch {
            follower.listen(watch).await;
        }
        follower.wait(RETRY).await;
    }
}

/// Watches first and asks then, so that nothing happens unseen between the two.
async fn connect(root: &Path, follower: &mut Follower<'_>) -> Result<Watch, ClientError> {
    let mut client = JobClient::connect(root).await?;
    let watch = client.watch().await?;
    let status = client.status().await?;
    follower.connected(&status).await;
    if status.phase == "running" {
        follower.catch_up(status.generation, status.restored).await;
    } else {
        follower.waiting.get_or_insert((Instant::now(), PATIENCE));
    }
    Ok(watch)
}

struct Follower<'a> {
    job: &'a Job,
    store: Option<Store>,
    news: mpsc::Sender<News>,
    tell: &'a dyn Fn(Notice),
    /// The processes that have joined this collector.
    joined: BTreeSet<String>,
    /// The joins that were told, all to the collector of this term.
    joins: BTreeSet<(Term, String, Incarnation)>,
    term: Term,
    /// What was told last to run, and by the collector of which term.
    ran: Option<(Term, Generation)>,
    /// Since when the job does not run, and after how long that is to be spoken of.
    waiting: Option<(Instant, Duration)>,
}

impl<'a> Follower<'a> {
    fn new(job: &'a Job, news: mpsc::Sender<News>, tell: &'a dyn Fn(Notice)) -> Self {
        let now = Instant::now();
        Self {
            job,
            store: None,
            news,
            tell,
            joined: BTreeSet::new(),
            joins: BTreeSet::new(),
            term: Term::default(),
            ran: None,
            waiting: Some((now, PATIENCE)),
        }
    }

    /// Nodes may have joined this collector before we did.
    async fn connected(&mut self, status: &JobStatus) {
        self.joined.clear();
        self.term = status.term;
        self.joins.retain(|(term, ..)| *term == status.term);
        for process in status.processes.iter().filter(|process| process.live) {
            let join = (status.term, process.name.clone(), process.incarnation);
            if self.joins.contains(&join) {
                self.joined.insert(join.1);
                continue;
            }
            let event = JobEvent::Joined {
                process: process.name.clone(),
                incarnation: process.incarnation,
                address: process.address.clone(),
                pid: process.pid,
            };
            self.hear(event).await;
        }
    }

    /// The job came to run while nobody was there to tell it.
    async fn catch_up(&mut self, generation: Generation, snapshot: SnapshotId) {
        if self.ran != Some((self.term, generation)) {
            self.hear(JobEvent::Running {
                generation,
                snapshot,
            })
            .await;
        }
    }

    /// Tells what happens until this collector is gone.
    async fn listen(&mut self, mut watch: Watch) {
        loop {
            let event = match self.waiting {
                None => watch.next().await,
                Some(_) => match timeout(PATIENCE, watch.next()).await {
                    Ok(event) => event,
                    Err(_) => {
                        self.speak_of_waiting();
                        continue;
                    }
                },
            };
            match event {
                Ok(Some(event)) => self.hear(event).await,
                Ok(None) | Err(_) => return,
            }
        }
    }

    async fn wait(&mut self, pause: Duration) {
        sleep(pause).await;
        self.speak_of_waiting();
    }

    fn speak_of_waiting(&mut self) {
        let Some((since, after)) = &mut self.waiting else {
            return;
        };
        if since.elapsed() < *after {
            return;
        }
        *after *= 2;
        let elapsed_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let processes = self.missing();
        let waiting = Programs::Waiting {
            elapsed_ms,
            processes,
        };
        (self.tell)(waiting.into());
    }

    fn missing(&self) -> Vec<String> {
        let topology = self.job.topology();
        let names = topology.processes().map(|process| topology.name(process));
        names
            .filter(|name| !self.joined.contains(*name))
            .map(str::to_owned)
            .collect()
    }

    async fn hear(&mut self, event: JobEvent) {
        let now = Instant::now();
        let mut news = None;
        match &event {
            JobEvent::Joined {
                process,
                incarnation,
                ..
            } => {
                let join = (self.term, process.clone(), *incarnation);
                self.joined.insert(process.clone());
                // It may have been seen when we asked, and be told all the same.
                if !self.joins.insert(join) {
                    return;
                }
            }
            JobEvent::Lost { process, .. } => {
                self.joined.remove(process);
                self.waiting.get_or_insert((now, PATIENCE));
            }
            JobEvent::Restoring { .. } => drop(self.waiting.get_or_insert((now, PATIENCE))),
            JobEvent::Running { generation, .. } => {
                self.waiting = None;
                // As with a join.
                let ran = Some((self.term, *generation));
                if std::mem::replace(&mut self.ran, ran) == ran {
                    return;
                }
                news = Some(News::Running);
            }
            JobEvent::Replace { process, pid, .. } => {
                let who = Who::Process(process.clone());
                news = Some(match *pid {
                    Some(pid) => News::Replace { who, pid },
                    None => News::Absent(who),
                });
            }
            JobEvent::Absent { process } => {
                news = Some(News::Absent(Who::Process(process.clone())));
            }
            JobEvent::Finished => news = Some(News::Finished),
            JobEvent::Ended { reason } => news = Some(News::Failed(reason.clone())),
            JobEvent::Begun { .. }
            | JobEvent::Complete(_)
            | JobEvent::Aborted { .. }
            | JobEvent::Failed { .. }
            | JobEvent::Warning { .. } => {}
        }
        let verdicts = match &event {
            JobEvent::Complete(complete) => self.judge(complete.snapshot).await,
            _ => None,
        };
        (self.tell)(Notice::Job { event, verdicts });
        if let Some(news) = news {
            // Nobody to hear it: then nobody is interested any more.
            let _ = self.news.send(news).await;
        }
    }

    /// What a snapshot's manifest says of it, if it can be had soon.
    async fn judge(&mut self, snapshot: SnapshotId) -> Option<Verdicts> {
        let judging = async {
            if self.store.is_none() {
                self.store = Store::open(self.job.store_url().as_str()).await.ok();
            }
            let manifest = self.store.as_ref()?.manifest(snapshot).await.ok()?;
            Some(judge_manifest(self.job.topology(), &manifest))
        };
        timeout(MANIFEST_BOUND, judging).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn what_was_seen_when_we_asked_is_not_told_again_when_the_event_comes() {
        let text = "processes = 2\ntopology = \"ring\"\n[application]\nname = \"bank\"\n";
        let job = Job::parse(text, Path::new("/jobs/bank.toml")).unwrap();
        let told = RefCell::new(0);
        let tell = |_: Notice| *told.borrow_mut() += 1;
        let (news, _heard) = mpsc::channel(8);
        let mut follower = Follower::new(&job, news, &tell);
        let snapshot = SnapshotId::new(0);
        let running = |generation| JobEvent::Running {
            generation: Generation::new(generation),
            snapshot,
        };
        follower.term = Term::new(1);
        follower.catch_up(Generation::new(1), snapshot).await;
        follower.hear(running(1)).await;
        assert_eq!(told.take(), 1);
        follower.hear(running(2)).await;
        // Another collector says it anew: everyone is with it now.
        follower.term = Term::new(2);
        follower.hear(running(2)).await;
        assert_eq!(told.take(), 2);
        let joined = |incarnation| JobEvent::Joined {
            process: "p1".to_owned(),
            incarnation: Incarnation::new(incarnation),
            address: String::new(),
            pid: 1,
        };
        for incarnation in [1, 1, 2] {
            follower.hear(joined(incarnation)).await;
        }
        assert_eq!(told.take(), 2);
    }
}
