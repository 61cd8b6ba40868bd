//! The collector as a program of its own: stopped at each of its points and killed there, ended,
//! and tied to its parent.

use std::fs;
use std::process::{ExitStatus, Stdio};

use cutline::collector;
use cutline::control::client::{ClientError, JobClient, SnapshotEnd};
use cutline::hold::{Point, held_path, order_path};
use cutline::protocol::events::Order;
use cutline::protocol::ids::{Generation, SnapshotId};
use cutline::store::Store;
use cutline::wire::control::Addresses;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::job::{Job, NAMES};
use crate::node::{Node, Told};
use crate::{soon, until};

const S1: SnapshotId = SnapshotId::new(1);

/// A collector's program; killed when it goes out of scope.
struct Program {
    child: Child,
}

impl Program {
    fn spawn(job: &Job, more: &[&str]) -> Self {
        let file = job.dir().join("job.toml");
        if !file.exists() {
            fs::write(&file, job_file(&NAMES)).unwrap();
        }
        let child = Command::new(env!("CARGO_BIN_EXE_cutline-collector"))
            .arg("--job")
            .arg(file)
            .arg("--dir")
            .arg(job.dir())
            .args(more)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let child = child.unwrap();
        Self { child }
    }

    /// Starts it and waits until it answers.
    async fn start(job: &Job) -> Self {
        let program = Self::spawn(job, &[]);
        until(async || {
            JobClient::connect(job.dir())
                .await
                .ok()?
                .status()
                .await
                .ok()
        })
        .await;
        program
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it has not ended")
    }

    fn signal(&self, signal: Signal) {
        kill(pid(self.pid()), signal).unwrap();
    }

    /// Waits until it has stopped at a point.
    async fn stops(&self, job: &Job, point: Point) {
        let held = held_path(job.dir(), "collector");
        let text = until(async || fs::read_to_string(&held).ok()).await;
        assert_eq!(text, format!("{point} {}\n", self.pid()));
        until(async || (state(self.pid()) == Some('T')).then_some(())).await;
        assert!(!order_path(job.dir(), "collector").exists());
        fs::remove_file(held).unwrap();
    }

    async fn kill(mut self) {
        soon(self.child.kill()).await.unwrap();
    }

    /// Waits for its end: how, and what it said.
    async fn ends(self) -> (ExitStatus, String) {
        let output = soon(self.child.wait_with_output()).await.unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    }
}

fn pid(pid: u32) -> Pid {
    Pid::from_raw(pid.try_into().unwrap())
}

fn job_file(names: &[&str]) -> String {
    format!(
        "processes = {names:?}\ntopology = \"ring\"\n[application]\nname = \"bank\"\n\
         [snapshots]\ninterval = \"0s\"\ninitiators = {names:?}\n"
    )
}

/// What the system says of a process: `T` is stopped.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn stop_at(job: &Job, point: Point) {
    let order = order_path(job.dir(), "collector");
    fs::create_dir_all(order.parent().unwrap()).unwrap();
    fs::write(order, point.name()).unwrap();
}

/// A program with its nodes, all running.
async fn up(job: &Job) -> (Program, [Node; 3]) {
    let (program, nodes) = (Program::start(job).await, job.nodes());
    job.status(|status| status.phase == "running").await;
    (program, nodes)
}

/// Has a snapshot stopped at a point, and the collector killed there. Looks at the nodes before.
async fn killed_in_a_snapshot(job: &Job, point: Point) -> [Vec<Told>; 3] {
    let (program, mut nodes) = up(job).await;
    stop_at(job, point);
    let mut client = job.client().await;
    let asked = tokio::spawn(async move { client.snapshot_to_its_end(Vec::new()).await });
    program.stops(job, point).await;
    let triggered = Order::Trigger(S1, job.policy.mode.into());
    for node in &mut nodes {
        node.hears(|told| *told == Told::Order(triggered.clone(), Addresses::new()))
            .await;
    }
    if point == Point::Notice {
        nodes[0].hears(is_notice).await;
    }
    let heard = nodes.each_mut().map(Node::heard);
    program.kill().await;
    let lost = soon(asked).await.unwrap();
    assert!(matches!(lost, Err(ClientError::Lost(_))), "{lost:?}");

    // A new one finds everybody as they were: nobody is taken back.
    let program = Program::start(job).await;
    let status = job.status(|status| status.phase == "running").await;
    assert_eq!(status.generation, Generation::new(1));
    let complete = if point == Point::PartsIn { 0 } else { 1 };
    assert_eq!(status.complete, SnapshotId::new(complete));
    let end = soon(job.client().await.snapshot_to_its_end(Vec::new())).await;
    assert_eq!(end.unwrap(), SnapshotEnd::Complete(SnapshotId::new(2)));
    program.kill().await;
    heard
}

fn is_notice(told: &Told) -> bool {
    matches!(told, Told::Order(Order::Ended { snapshot, .. }, _) if *snapshot == S1)
}

async fn is_complete(job: &Job) -> bool {
    let store = Store::open(job.config().store.as_str()).await.unwrap();
    store.manifest(S1).await.unwrap().is_complete()
}

#[tokio::test]
async fn a_collector_killed_when_all_parts_are_in_completes_nothing() {
    let job = Job::new();
    let heard = killed_in_a_snapshot(&job, Point::PartsIn).await;
    assert!(!heard.iter().flatten().any(is_notice));
    assert!(!is_complete(&job).await);
}

#[tokio::test]
async fn a_collector_killed_behind_the_manifest_has_completed_the_snapshot() {
    let job = Job::new();
    let heard = killed_in_a_snapshot(&job, Point::Manifest).await;
    assert!(!heard.iter().flatten().any(is_notice));
    assert!(is_complete(&job).await);
}

#[tokio::test]
async fn a_collector_killed_among_its_notices_has_told_only_the_first() {
    let job = Job::new();
    let [_, bob, carol] = killed_in_a_snapshot(&job, Point::Notice).await;
    assert!(!bob.iter().chain(&carol).any(is_notice));
    assert!(is_complete(&job).await);
}

#[tokio::test]
async fn a_collector_killed_behind_a_generation_is_followed_by_one_that_begins_the_next() {
    let job = Job::new();
    let (program, mut nodes) = up(&job).await;
    stop_at(&job, Point::Generation);
    let mut client = job.client().await;
    let asked = tokio::spawn(async move { client.restore(None).await });
    program.stops(&job, Point::Generation).await;
    let is_second = |told: &Told| {
        matches!(told, Told::Order(Order::Prepare(generation, _), _)
            if *generation == Generation::new(2))
    };
    for node in &mut nodes {
        assert!(!node.heard().iter().any(is_second));
    }
    program.kill().await;
    assert!(soon(asked).await.unwrap().is_err());
    let program = Program::start(&job).await;
    let status = job.status(|status| status.phase == "running").await;
    assert_eq!(status.generation, Generation::new(3));
    program.kill().await;
}

#[tokio::test]
async fn a_collector_stopped_at_a_point_does_not_go_on_when_it_is_woken() {
    let job = Job::new();
    let (program, _nodes) = up(&job).await;
    stop_at(&job, Point::PartsIn);
    job.client().await.snapshot(Vec::new()).await.unwrap();
    program.stops(&job, Point::PartsIn).await;
    program.signal(Signal::SIGCONT);
    until(async || (state(program.pid()) == Some('T')).then_some(())).await;
    let store = Store::open(job.config().store.as_str()).await.unwrap();
    assert!(store.manifest(S1).await.is_err());
    program.kill().await;
}

#[tokio::test]
async fn a_collector_ends_on_sigterm_and_leaves_the_job_running() {
    let job = Job::new();
    let (program, mut nodes) = up(&job).await;
    program.signal(Signal::SIGTERM);
    let (status, said) = program.ends().await;
    assert_eq!(status.code(), Some(0), "{said}");
    for node in &mut nodes {
        node.hears(|told| *told == Told::Disconnected).await;
    }
    assert!(!collector::address_path(job.dir()).exists());
}

#[tokio::test]
async fn the_exit_code_says_whether_the_job_or_only_the_collector_has_ended() {
    let job = Job::new();
    let (first, _nodes) = up(&job).await;
    let mut through_first = job.client().await;
    let published = collector::read_address(job.dir()).unwrap();
    let second = Program::spawn(&job, &["--log-format", "json"]);
    until(async || (collector::read_address(job.dir()).ok()? != published).then_some(())).await;
    job.status(|status| status.phase == "running").await;
    assert!(through_first.restore(None).await.is_err());
    let (status, said) = first.ends().await;
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("another collector leads"), "{said}");
    second.signal(Signal::SIGTERM);
    let (_, said) = second.ends().await;
    assert!(said.starts_with('{'), "{said}");

    let third = Program::start(&job).await;
    let published = collector::read_address(job.dir()).unwrap();
    fs::write(job.dir().join("job.toml"), job_file(&["alice", "bob"])).unwrap();
    let (status, said) = Program::spawn(&job, &[]).ends().await;
    assert_eq!(status.code(), Some(1), "{said}");
    // It never came to lead, so it has drawn nobody away from the one that does.
    assert_eq!(collector::read_address(job.dir()).unwrap(), published);
    third.kill().await;
    assert!(said.contains("another topology"), "{said}");

    let (status, said) = Program::spawn(&job, &["--listen", "0.0.0.0:0"])
        .ends()
        .await;
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("--insecure"), "{said}");
}

#[tokio::test]
async fn a_collector_dies_with_its_parent() {
    let job = Job::new();
    fs::write(job.dir().join("job.toml"), job_file(&NAMES)).unwrap();
    let mut shell = Command::new("sh")
        .arg("-c")
        .arg("\"$0\" --job \"$1\" --dir \"$2\" --parent $$ & echo $! > \"$2/pid\"; wait")
        .arg(env!("CARGO_BIN_EXE_cutline-collector"))
        .arg(job.dir().join("job.toml"))
        .arg(job.dir())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until(async || JobClient::connect(job.dir()).await.ok()).await;
    let child = fs::read_to_string(job.dir().join("pid")).unwrap();
    let child = child.trim().parse().unwrap();
    assert!(state(child).is_some());
    soon(shell.kill()).await.unwrap();
    // Whoever inherits it may take its time to bury it.
    until(async || matches!(state(child), None | Some('Z')).then_some(())).await;

    let (status, said) = Program::spawn(&job, &["--parent", "1"]).ends().await;
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("is not the parent"), "{said}");
}

/// A program that starts with a limit of this kind on what it may have open at once.
fn limited(limit: &str, program: &str, arguments: &[&str]) -> Child {
    Command::new("sh")
        .args([
            "-c",
            &format!("ulimit {limit}; exec \"$0\" \"$@\""),
            program,
        ])
        .args(arguments)
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_program_that_may_not_have_enough_connections_says_so_with_the_remedy() {
    let job = Job::new();
    let file = job.dir().join("job.toml");
    fs::write(&file, job_file(&NAMES)).unwrap();
    let (file, dir) = (file.to_str().unwrap(), job.dir().to_str().unwrap());
    let of_job = ["--job", file, "--dir", dir];
    let collector = limited("-n 100", env!("CARGO_BIN_EXE_cutline-collector"), &of_job);
    let named = [&of_job[..], &["--process", NAMES[0]]].concat();
    let node = limited("-n 100", env!("CARGO_BIN_EXE_cutline-node"), &named);
    for (child, what) in [
        (
            collector,
            "for the collector's 3 nodes and those who ask, 323 files",
        ),
        (
            node,
            "for the 2 channels of alice and those who dial again, 194 files",
        ),
    ] {
        let (status, said) = Program { child }.ends().await;
        assert_eq!(status.code(), Some(2), "{said}");
        for words in [what, "the system allows 100", "ulimit -Hn"] {
            assert!(said.contains(words), "'{words}' is not in {said}");
        }
    }
}

#[tokio::test]
async fn a_program_raises_what_it_may_have_open_as_far_as_everybody_may() {
    let job = Job::new();
    let file = job.dir().join("job.toml");
    fs::write(&file, job_file(&NAMES)).unwrap();
    let (file, dir) = (file.to_str().unwrap(), job.dir().to_str().unwrap());
    let of_job = ["--job", file, "--dir", dir];
    let child = limited("-Sn 100", env!("CARGO_BIN_EXE_cutline-collector"), &of_job);
    let program = Program { child };
    until(async || JobClient::connect(job.dir()).await.ok()).await;
    let limits = fs::read_to_string(format!("/proc/{}/limits", program.pid())).unwrap();
    let open = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let [.., soft, hard, _] = open.unwrap().split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{limits}");
    };
    assert_eq!(soft, hard);
    program.kill().await;
}
