//! The life of a job, as its nodes and users see it.

use std::collections::BTreeMap;

use cutline::collector::{self, CollectorError, Ended, JobEvent, Total};
use cutline::control::client::{ClientError, JobClient, SnapshotEnd, Watch};
use cutline::protocol::events::Order;
use cutline::protocol::ids::{Generation, ProcessId, SnapshotId};
use cutline::wire::control::Addresses;

use crate::job::{Job, NAMES};
use crate::node::{MONEY, Manner, Told, place};
use crate::soon;

async fn next(watch: &mut Watch) -> Option<JobEvent> {
    soon(watch.next()).await.unwrap()
}

/// Skips events up to one that is wanted.
async fn event(watch: &mut Watch, wanted: impl Fn(&JobEvent) -> bool) -> JobEvent {
    loop {
        let event = next(watch).await.expect("the collector has ended");
        if wanted(&event) {
            return event;
        }
    }
}

#[tokio::test]
async fn a_job_comes_up_and_says_how_it_stands() {
    let job = Job::new();
    let running = job.collector().await;
    let mut nodes = job.nodes();
    for (number, node) in (0..).zip(&mut nodes) {
        let told = node
            .hears(|told| matches!(told, Told::Order(Order::Prepare(..), _)))
            .await;
        // It is a ring: each has one receiver, and need not know of more.
        let receiver = ProcessId::new((number + 1) % 3);
        let addresses = [(receiver, place(receiver).address)];
        let s0 = SnapshotId::new(0);
        let prepare = Order::Prepare(Generation::new(1), s0);
        assert_eq!(told, Told::Order(prepare, addresses.into()));
        assert_eq!(node.runs().await, Generation::new(1));
    }
    // The counters come with the first heartbeat.
    let status = job
        .status(|status| status.processes.iter().all(|node| node.sent == 40))
        .await;
    assert_eq!(
        (status.job.as_str(), status.phase.as_str()),
        ("ring", "running")
    );
    assert_eq!(status.generation, Generation::new(1));
    for (process, node) in (0..).zip(&status.processes) {
        let expected = place(ProcessId::new(process));
        assert_eq!(node.name, NAMES[process as usize]);
        assert_eq!((&node.address, node.pid), (&expected.address, expected.pid));
        assert_eq!((node.live, node.holding.as_str()), (true, "running"));
        assert_eq!(node.handled, 30 + u64::from(process));
    }
    running.shut_down().await;
    assert!(matches!(
        JobClient::connect(job.dir()).await,
        Err(ClientError::NotRunning { .. })
    ));
}

#[tokio::test]
async fn a_snapshot_is_waited_for_and_watched() {
    let job = Job::new();
    let (running, _nodes) = job.up().await;
    let mut client = job.client().await;
    let mut watch = client.watch().await.unwrap();
    let s1 = SnapshotId::new(1);
    let end = soon(client.snapshot_to_its_end(Vec::new())).await.unwrap();
    assert_eq!(end, SnapshotEnd::Complete(s1));
    assert_eq!(
        next(&mut watch).await,
        Some(JobEvent::Begun { snapshot: s1 })
    );
    let Some(JobEvent::Complete(complete)) = next(&mut watch).await else {
        panic!("the snapshot is complete");
    };
    let total = Total {
        in_states: 3 * MONEY,
        in_channels: 0,
        expected: 3 * MONEY,
    };
    assert_eq!(
        (complete.snapshot, complete.generation),
        (s1, Generation::new(1))
    );
    assert_eq!(
        complete.quantities,
        BTreeMap::from([("money".to_owned(), total)])
    );

    let refused = client.snapshot(vec!["dave".to_owned()]).await.unwrap_err();
    let message = refused.to_string();
    assert_eq!(
        message,
        "no process is called 'dave': there are alice, bob, carol"
    );
    running.shut_down().await;
    assert_eq!(next(&mut watch).await, None);
}

#[tokio::test]
async fn a_snapshot_that_takes_too_long_is_aborted_and_says_for_whom() {
    let mut job = Job::new();
    job.policy.timeout_ms = 1_000;
    let running = job.collector().await;
    let manners = [Manner::Good, Manner::Lazy, Manner::Good];
    let _nodes = [0, 1, 2].map(|process| job.node(process, manners[process as usize]));
    job.status(|status| status.phase == "running").await;
    let mut client = job.client().await;
    let mut watch = client.watch().await.unwrap();
    let end = soon(client.snapshot_to_its_end(Vec::new())).await.unwrap();
    let SnapshotEnd::Aborted(snapshot, reason) = end else {
        panic!("bob never contributes");
    };
    assert!(
        reason.contains("bob") && !reason.contains("alice"),
        "{reason}"
    );
    let aborted = event(&mut watch, |event| {
        matches!(event, JobEvent::Aborted { .. })
    })
    .await;
    let generation = Generation::new(1);
    assert_eq!(
        aborted,
        JobEvent::Aborted {
            snapshot,
            generation,
            reason
        }
    );
    running.shut_down().await;
}

#[tokio::test]
async fn a_command_reaches_the_application_and_its_answer_comes_back() {
    let job = Job::new();
    let (running, [_alice, mut bob, carol]) = job.up().await;
    let mut client = job.client().await;
    soon(client.command("bob", "send 10 carol")).await.unwrap();
    let told = bob.hears(|told| matches!(told, Told::Command(_))).await;
    assert_eq!(told, Told::Command("send 10 carol".to_owned()));
    let refused = soon(client.command("bob", "refuse")).await.unwrap_err();
    assert_eq!(refused.to_string(), "as you wish");
    assert!(refused.is_refusal());

    // A node that goes away takes the answer along; afterwards there is nobody to ask.
    let mut other = job.client().await;
    let asked = tokio::spawn(async move { other.command("bob", "ignore").await });
    bob.hears(|told| *told == Told::Command("ignore".to_owned()))
        .await;
    bob.kill();
    let lost = soon(asked).await.unwrap().unwrap_err().to_string();
    assert!(lost.contains("the node's control stream broke"), "{lost}");
    carol.kill();
    job.status(|status| !status.processes[2].live).await;
    let absent = client.command("carol", "x").await.unwrap_err().to_string();
    assert!(absent.contains("no node is attached for carol"), "{absent}");
    running.shut_down().await;
}

#[tokio::test]
async fn a_collector_that_does_not_answer_is_told_from_one_that_is_not_there() {
    let job = Job::new();
    let squatter = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let path = collector::address_path(job.dir());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, squatter.local_addr().unwrap().to_string()).unwrap();
    // The system takes the connection, as it does for a program that is stopped.
    let mut client = job.client().await;
    let silent = soon(client.status()).await.unwrap_err();
    assert!(matches!(silent, ClientError::Silent { .. }), "{silent:?}");
    drop(squatter);
    let broken = soon(client.status()).await.unwrap_err();
    assert!(matches!(broken, ClientError::Lost(_)), "{broken:?}");
    let gone = soon(client.status()).await.unwrap_err();
    assert!(matches!(gone, ClientError::NotRunning { .. }), "{gone:?}");
    let absent = JobClient::connect(job.dir()).await.unwrap_err();
    assert!(
        absent.to_string().contains("start it with `cutline up"),
        "{absent}"
    );
    std::fs::write(&path, "nowhere").unwrap();
    let garbled = JobClient::connect(job.dir()).await.unwrap_err();
    assert!(matches!(garbled, ClientError::Address(_)), "{garbled:?}");
}

#[tokio::test]
async fn a_lost_node_is_replaced_and_the_job_taken_back() {
    let job = Job::new();
    let (running, [mut alice, bob, _carol]) = job.up().await;
    let mut client = job.client().await;
    soon(client.snapshot_to_its_end(Vec::new())).await.unwrap();
    let mut watch = client.watch().await.unwrap();
    bob.kill();
    let replace = event(&mut watch, |event| {
        matches!(event, JobEvent::Replace { .. })
    })
    .await;
    let JobEvent::Replace { process, pid, .. } = replace else {
        unreachable!("only that was waited for");
    };
    assert_eq!((process.as_str(), pid), ("bob", Some(70_001)));
    let _bob = job.node(1, Manner::Good);
    let (generation, snapshot) = (Generation::new(2), SnapshotId::new(1));
    event(&mut watch, |event| {
        *event
            == JobEvent::Restoring {
                generation,
                snapshot,
            }
    })
    .await;
    event(&mut watch, |event| {
        *event
            == JobEvent::Running {
                generation,
                snapshot,
            }
    })
    .await;
    alice
        .hears(|told| matches!(told, Told::Order(Order::Run(g), _) if *g == generation))
        .await;
    running.shut_down().await;
}

#[tokio::test]
async fn a_restore_is_answered_when_everyone_runs() {
    let job = Job::new();
    let (running, _nodes) = job.up().await;
    let mut client = job.client().await;
    for _ in 0..2 {
        soon(client.snapshot_to_its_end(Vec::new())).await.unwrap();
    }
    let (s1, s2) = (SnapshotId::new(1), SnapshotId::new(2));
    let restored = soon(client.restore(Some(s1))).await.unwrap();
    assert_eq!(restored, (Generation::new(2), s1));
    // The newest is what counts on the line that is now current, not the abandoned s2.
    let restored = soon(client.restore(None)).await.unwrap();
    assert_eq!(restored, (Generation::new(3), s1));
    let restored = soon(client.restore(Some(s2))).await.unwrap();
    assert_eq!(restored, (Generation::new(4), s2));
    let refused = client.restore(Some(SnapshotId::new(77))).await.unwrap_err();
    assert!(
        refused.is_refusal() && refused.to_string().contains("s77"),
        "{refused}"
    );
    running.shut_down().await;
}

#[tokio::test]
async fn a_new_collector_on_another_port_is_found_and_nobody_is_taken_back() {
    let job = Job::new();
    let (first, mut nodes) = job.up().await;
    let gone = first.address;
    first.shut_down().await;
    for node in &mut nodes {
        node.hears(|told| *told == Told::Disconnected).await;
    }
    let second = job.collector().await;
    assert_ne!(second.address, gone);
    let status = job.status(|status| status.phase == "running").await;
    assert_eq!(
        (status.term.get(), status.generation),
        (2, Generation::new(1))
    );
    second.shut_down().await;
}

#[tokio::test]
async fn a_stopped_job_ends_for_everyone() {
    let job = Job::new();
    let (running, mut nodes) = job.up().await;
    let mut client = job.client().await;
    let mut watch = client.watch().await.unwrap();
    assert_eq!(soon(client.stop()).await.unwrap(), SnapshotId::new(1));
    assert_eq!(running.ends().await.unwrap(), Ended::Finished);
    for node in &mut nodes {
        node.hears(|told| *told == Told::Order(Order::Halt, Addresses::new()))
            .await;
    }
    event(&mut watch, |event| *event == JobEvent::Finished).await;
    assert_eq!(next(&mut watch).await, None);
    assert!(!collector::address_path(job.dir()).exists());
}

#[tokio::test]
async fn a_job_that_cannot_go_on_ends_for_everyone_with_the_reason() {
    let mut job = Job::new();
    job.policy.timeout_ms = 50;
    job.policy.failures_tolerated = 0;
    let running = job.collector().await;
    let mut nodes = [0, 1, 2].map(|process| job.node(process, Manner::Lazy));
    job.status(|status| status.phase == "running").await;
    let mut client = job.client().await;
    let mut watch = client.watch().await.unwrap();
    let lost = soon(client.snapshot_to_its_end(Vec::new()))
        .await
        .unwrap_err();
    let Err(CollectorError::Failed(reason)) = running.ends().await else {
        panic!("no failure is tolerated");
    };
    assert!(lost.to_string().contains(&reason), "{lost}");
    event(&mut watch, |event| {
        *event
            == JobEvent::Ended {
                reason: reason.clone(),
            }
    })
    .await;
    for node in &mut nodes {
        node.hears(|told| *told == Told::Order(Order::Halt, Addresses::new()))
            .await;
    }
}

#[tokio::test]
async fn a_collector_that_is_superseded_ends_and_touches_nothing() {
    let job = Job::new();
    let (first, _nodes) = job.up().await;
    let mut through_first = job.client().await;
    let second = job.collector().await;
    // The nodes move to the second, for its address is the one published now.
    job.status(|status| status.phase == "running").await;
    // The first does not know yet; what it wants to store next tells it.
    let lost = soon(through_first.restore(None))
        .await
        .unwrap_err()
        .to_string();
    let ended = first.ends().await;
    assert!(
        matches!(ended, Err(CollectorError::Fenced(_))),
        "{ended:?}, {lost}"
    );
    assert_eq!(collector::read_address(job.dir()).unwrap(), second.address);
    let status = job.status(|status| status.phase == "running").await;
    assert_eq!(status.generation, Generation::new(1));
    second.shut_down().await;
}
