//! Minutes of random kills, pauses and restores, from a seed: whatever dies whenever, the job goes
//! on, and not one complete snapshot is wrong.
//!
//! `CUTLINE_SOAK_MINUTES` and `CUTLINE_SOAK_SEED` make it longer or another; so does
//! `scripts/soak.sh`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use cutline::apps::SplitMix64;
use cutline::control::incarnations::OsProcess;
use cutline::job::Job;
use cutline::protocol::ids::{ProcessId, SnapshotId};
use cutline::store::{Store, StoreError, verify};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::running::Up;
use crate::stage::{Stage, block_on, until};

const NODES: u64 = 8;

/// What all accounts together hold.
const MONEY: i128 = 8000;

/// From one deed to the next.
const PACE: Duration = Duration::from_secs(1);

/// Nodes that are stopped longer than `silence` are replaced; both happens.
const JOB: &str = r#"
processes = 8
topology = "mesh"
silence = "2s"
[application]
name = "bank"
every_ms = 10
[snapshots]
interval = "300ms"
timeout = "10s"
failures_tolerated = 1000000
[store]
retain = 300
[restarts]
max = 1000
window = "2s"
backoff = "10ms"
"#;

fn setting<T: FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is '{text}'")),
        Err(_) => default,
    }
}

/// Says, if the test fails, how to have it again.
struct Again {
    seed: u64,
    minutes: f64,
}

impl Drop for Again {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, minutes } = self;
            println!("again: scripts/soak.sh --minutes {minutes} --seed {seed}");
        }
    }
}

/// Whoever does the deeds.
struct Fate<'u, 's> {
    up: &'u Up<'s>,
    random: SplitMix64,
    done: BTreeMap<&'static str, u32>,
    /// Whoever was stopped, and until when.
    stopped: Vec<(OsProcess, Instant)>,
    /// Restores that have been asked for and not been answered.
    asked: Vec<Child>,
}

impl<'u, 's> Fate<'u, 's> {
    fn new(up: &'u Up<'s>, seed: u64) -> Self {
        Self {
            up,
            random: SplitMix64::new(seed, ProcessId::new(0)),
            done: BTreeMap::new(),
            stopped: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn node(&mut self) -> String {
        format!("p{}", 1 + self.random.below(NODES))
    }

    /// One deed; what it is depends on the seed alone.
    fn strike(&mut self, stage: &Stage, complete: &BTreeSet<SnapshotId>) {
        let deed = match self.random.below(16) {
            0..5 => {
                let victim = self.node();
                self.kill(&[&victim]);
                "a node killed"
            }
            5..7 => {
                let (one, other) = (self.node(), self.node());
                self.kill(&[&one, &other]);
                "two nodes killed"
            }
            7..9 => {
                self.kill(&["collector"]);
                "the collector killed"
            }
            9 => {
                let victim = self.node();
                self.kill(&["collector", &victim]);
                "collector and node killed"
            }
            10..13 => {
                let (victim, span) = (self.node(), 200 + self.random.below(4800));
                self.stop(&victim, span);
                "a node stopped for a while"
            }
            13 => {
                let span = 200 + self.random.below(1300);
                self.stop("collector", span);
                "the collector stopped for a while"
            }
            14 => {
                self.restore(stage, None);
                "back to the newest snapshot"
            }
            _ => {
                let back = self.random.below(20) as usize;
                let older = complete.iter().rev().nth(back).copied();
                self.restore(stage, older);
                "back to an older snapshot"
            }
        };
        *self.done.entry(deed).or_default() += 1;
    }

    fn kill(&self, victims: &[&str]) {
        for victim in victims {
            // Between two incarnations there is nobody to kill, which is soon over.
            self.up.program(victim).signal(Signal::SIGKILL).unwrap();
        }
    }

    fn stop(&mut self, victim: &str, span_ms: u64) {
        let process = self.up.program(victim);
        process.signal(Signal::SIGSTOP).unwrap();
        let until = Instant::now() + Duration::from_millis(span_ms);
        self.stopped.push((process, until));
    }

    /// Asks without waiting: whoever is asked may be killed before it can answer.
    fn restore(&mut self, stage: &Stage, snapshot: Option<SnapshotId>) {
        let mut command = stage.cutline(&["restore", "--dir", self.up.dir()]);
        command.args(snapshot.map(|snapshot| snapshot.to_string()));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.asked.push(command.spawn().unwrap());
    }

    /// Wakes those whose time has come, and forgets who was answered.
    fn attend(&mut self) {
        let now = Instant::now();
        self.stopped.retain(|(process, until)| {
            if *until <= now {
                process.signal(Signal::SIGCONT).unwrap();
            }
            *until > now
        });
        self.asked
            .retain_mut(|child| child.try_wait().unwrap().is_none());
    }

    /// Wakes everybody, and waits for every answer.
    fn cease(&mut self) {
        for (process, _) in self.stopped.drain(..) {
            process.signal(Signal::SIGCONT).unwrap();
        }
        for child in &mut self.asked {
            until("the answer to a restore", || child.try_wait().unwrap());
        }
    }
}

/// Judges every complete snapshot once, soon after it is, from what is on disk.
struct Judge {
    job: Job,
    store: Store,
    ended: BTreeSet<SnapshotId>,
    complete: BTreeSet<SnapshotId>,
    in_transit: u64,
}

impl Judge {
    fn new(up: &Up<'_>) -> Self {
        let job = Job::load(&up.root().join("job.toml")).unwrap();
        let store = block_on(Store::open(job.store_url().as_str())).unwrap();
        Self {
            job,
            store,
            ended: BTreeSet::new(),
            complete: BTreeSet::new(),
            in_transit: 0,
        }
    }

    async fn judge_new(&mut self) {
        for snapshot in self.store.snapshots().await.unwrap() {
            if self.ended.contains(&snapshot) {
                continue;
            }
            let verified = match verify(&self.store, self.job.topology(), snapshot).await {
                Ok(verified) => verified,
                // It is open; or it is being deleted, and then it was judged before.
                Err(StoreError::Missing { .. }) => continue,
                Err(error) => panic!("{snapshot}: {error}"),
            };
            self.ended.insert(snapshot);
            if verified.outcome != "complete" {
                continue;
            }
            assert!(verified.holds, "{verified}");
            let money = verified.quantities["money"];
            let (states, channels) = (money.in_states, money.in_channels);
            assert_eq!(states + channels, MONEY, "{verified}");
            self.in_transit += u64::from(channels > 0);
            self.complete.insert(snapshot);
        }
    }
}

/// Generations that came to run, as the supervisor heard it.
fn generations(events: &[Value]) -> BTreeSet<String> {
    let running = events.iter().filter(|event| event["event"] == "running");
    running
        .map(|event| event["generation"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn soak() {
    let minutes: f64 = setting("CUTLINE_SOAK_MINUTES", 2.0);
    let seed: u64 = setting("CUTLINE_SOAK_SEED", 1985);
    let _again = Again { seed, minutes };
    let stage = Stage::alone();
    let mut up = stage.up("soak", &format!("seed = {seed}\n{JOB}"));
    up.runs();
    let mut judge = Judge::new(&up);
    let mut fate = Fate::new(&up, seed);
    let begin = Instant::now();
    let span = Duration::from_secs_f64(minutes * 60.0);
    let mut due = begin + PACE;
    let wanted = |of_two_minutes: f64| (of_two_minutes * minutes.min(2.0) / 2.0) as usize;
    let is_enough = |judge: &Judge, up: &Up<'_>| {
        judge.complete.len() >= wanted(50.0) && generations(&up.events()).len() > wanted(20.0)
    };
    // A machine that is slow gets longer.
    while begin.elapsed() < span || begin.elapsed() < 4 * span && !is_enough(&judge, &up) {
        block_on(judge.judge_new());
        fate.attend();
        // The deeds have a rhythm of their own, which is the one thing here that waits for time.
        std::thread::sleep(Duration::from_millis(50));
        if Instant::now() >= due {
            due += PACE;
            fate.strike(&stage, &judge.complete);
        }
    }
    fate.cease();
    let done = fate.done;
    // What is left comes to rest, and a last snapshot holds the final state.
    let last = until("a last snapshot", || {
        let answer = up.ask(&["snapshot", "--wait", "--format", "json"]);
        (answer.code == 0).then(|| answer.json()["snapshot"].as_str().unwrap().to_owned())
    });
    block_on(judge.judge_new());
    assert!(
        judge.complete.contains(&last.parse().unwrap()),
        "{last} is complete, and holds"
    );
    assert!(up.is_up(), "{}", up.story());
    let events = up.events();
    let heard = events.iter().filter(|event| event["event"] == "complete");
    let heard: BTreeSet<SnapshotId> = heard
        .map(|event| event["snapshot"].as_str().unwrap().parse().unwrap())
        .collect();
    let unjudged: Vec<_> = heard.difference(&judge.complete).collect();
    assert!(
        unjudged.is_empty(),
        "deleted before they were judged: {unjudged:?}"
    );
    let restores = generations(&events).len() - 1;
    let complete = judge.complete.len();
    println!(
        "seed {seed}, {:.0} s: {done:?}",
        begin.elapsed().as_secs_f64()
    );
    println!(
        "{complete} complete snapshots, {} of them with messages in channels; {} aborted; \
         {restores} restores; {} programs died",
        judge.in_transit,
        judge.ended.len() - complete,
        up.count("died"),
    );
    assert!(complete >= wanted(50.0), "{}", up.story());
    assert!(restores >= wanted(20.0), "{}", up.story());
    assert!(judge.in_transit > 0);
    up.interrupt();
}
