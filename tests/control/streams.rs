//! Control streams that do not behave, and an end that waits for nobody.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cutline::collector::{self, CollectorError};
use cutline::protocol::events::{Holding, Join, Order, Report};
use cutline::protocol::ids::{JobId, ProcessId, SnapshotId};
use cutline::wire::control::{self as words, CollectorSaid, Progress};
use cutline::wire::pb;
use cutline::wire::pb::collector_client::CollectorClient;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

use crate::job::Job;
use crate::node::{APPLICATION, Manner, Told, fresh, place};
use crate::soon;

/// A control stream by hand.
struct Raw {
    words: mpsc::Sender<pb::NodeWord>,
    inbound: Streaming<pb::CollectorWord>,
}

impl Raw {
    /// Opens a stream and says nothing.
    async fn open(address: SocketAddr) -> Self {
        let client = CollectorClient::connect(format!("http://{address}"));
        let mut client = soon(client).await.unwrap();
        let (words, outbound) = mpsc::channel(8);
        let inbound = soon(client.attend(ReceiverStream::new(outbound)))
            .await
            .unwrap();
        let inbound = inbound.into_inner();
        Self { words, inbound }
    }

    async fn say(&self, word: pb::NodeWord) {
        self.words.send(word).await.unwrap();
    }

    async fn next(&mut self) -> Result<Option<CollectorSaid>, Status> {
        let word = soon(self.inbound.message()).await?;
        Ok(word.map(|word| word.try_into().unwrap()))
    }
}

fn join(job: &Job, process: u32) -> pb::NodeWord {
    let process = ProcessId::new(process);
    let join = Join {
        process,
        incarnation: fresh(),
        topology: job.topology.fingerprint(),
        application: APPLICATION.to_owned(),
        job: JobId::default(),
        holding: Holding::Nothing,
    };
    words::report(Report::Join(join), &place(process))
}

#[tokio::test]
async fn a_stream_is_answered_before_anything_is_said_on_it() {
    let job = Job::new();
    let running = job.collector().await;
    let _silent = Raw::open(running.address).await;
    running.shut_down().await;
}

#[tokio::test]
async fn a_stream_that_does_not_begin_with_a_join_is_closed() {
    let job = Job::new();
    let running = job.collector().await;
    let mut raw = Raw::open(running.address).await;
    raw.say(words::heartbeat(Progress::default())).await;
    let status = raw.next().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);

    let mut raw = Raw::open(running.address).await;
    raw.say(pb::NodeWord { word: None }).await;
    let status = raw.next().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    running.shut_down().await;
}

#[tokio::test]
async fn a_process_that_the_job_does_not_have_is_refused() {
    let job = Job::new();
    let running = job.collector().await;
    let mut raw = Raw::open(running.address).await;
    raw.say(join(&job, 3)).await;
    let said = raw.next().await.unwrap();
    let Some(CollectorSaid::Order(directive, _)) = said else {
        panic!("there are three processes: {said:?}");
    };
    assert!(matches!(directive.order, Order::Refused { reason, .. } if reason.contains("p4")));
    assert_eq!(raw.next().await.unwrap(), None);
    running.shut_down().await;
}

#[tokio::test]
async fn a_second_claimant_is_dismissed_without_disturbing_the_first() {
    let job = Job::new();
    let (running, [mut alice, _bob, _carol]) = job.up().await;
    let mut raw = Raw::open(running.address).await;
    raw.say(join(&job, 0)).await;
    let said = raw.next().await.unwrap();
    let Some(CollectorSaid::Order(directive, _)) = said else {
        panic!("alice is there already: {said:?}");
    };
    assert!(matches!(directive.order, Order::Refused { reason, .. } if reason.contains("alice")));
    assert_eq!(raw.next().await.unwrap(), None);

    // Alice's own stream is the same still, and works.
    let mut client = job.client().await;
    let end = soon(client.snapshot_to_its_end(Vec::new())).await.unwrap();
    assert_eq!(
        end,
        cutline::control::client::SnapshotEnd::Complete(SnapshotId::new(1))
    );
    let mut heard = Vec::new();
    alice
        .hears(|told| {
            heard.push(told.clone());
            matches!(told, Told::Order(Order::Ended { .. }, _))
        })
        .await;
    assert!(!heard.contains(&Told::Disconnected), "{heard:?}");
    running.shut_down().await;
}

#[tokio::test]
async fn a_stream_that_says_nonsense_is_closed_and_its_node_may_come_back() {
    let job = Job::new();
    let running = job.collector().await;
    let mut raw = Raw::open(running.address).await;
    raw.say(join(&job, 0)).await;
    assert!(matches!(
        raw.next().await.unwrap(),
        Some(CollectorSaid::Order(..))
    ));
    let stored = pb::PartStored {
        snapshot: 1,
        generation: 1,
        part: b"no part".as_slice().into(),
    };
    let word = Some(pb::node_word::Word::Stored(stored));
    raw.say(pb::NodeWord { word }).await;
    let status = loop {
        if let Err(status) = raw.next().await {
            break status;
        }
    };
    assert!(status.message().contains("the part of s1"), "{status}");
    let _nodes = job.nodes();
    job.status(|status| status.phase == "running").await;
    running.shut_down().await;
}

#[tokio::test]
async fn a_collector_ends_in_time_whatever_its_clients_do() {
    let job = Job::new();
    let (running, _nodes) = job.up().await;
    // One that says nothing, one that stops in the middle of a call, one that watches.
    let silent = TcpStream::connect(running.address).await.unwrap();
    let mut rude = TcpStream::connect(running.address).await.unwrap();
    rude.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let raw = Raw::open(running.address).await;
    raw.say(join(&job, 0)).await;
    let _watch = job.client().await.watch().await.unwrap();

    let begun = Instant::now();
    running.shut_down().await;
    assert!(
        begun.elapsed() < Duration::from_secs(6),
        "{:?}",
        begun.elapsed()
    );
    // Their connections are really gone, not only abandoned.
    for mut connection in [silent, rude] {
        let mut rest = Vec::new();
        let closed = timeout(Duration::from_secs(1), connection.read_to_end(&mut rest));
        assert!(closed.await.is_ok(), "nobody else would close it that soon");
    }
}

#[tokio::test]
async fn listening_for_other_hosts_needs_to_be_allowed() {
    let job = Job::new();
    let everywhere = SocketAddr::from(([0; 4], 0));
    let refused = collector::listen(everywhere, false).await;
    assert!(
        matches!(refused, Err(CollectorError::Exposed(_))),
        "{refused:?}"
    );
    let listener = collector::listen(everywhere, true).await.unwrap();
    let shutdown = CancellationToken::new();
    let refused = soon(collector::run(job.config(), listener, shutdown)).await;
    assert!(
        matches!(refused, Err(CollectorError::Exposed(_))),
        "{refused:?}"
    );
    assert!(!collector::address_path(job.dir()).exists());
}

#[tokio::test]
async fn a_node_that_finds_no_collector_goes_on_looking() {
    let job = Job::new();
    let mut alice = job.node(0, Manner::Good);
    // A collector that is gone has left its address, and another program may have its port.
    let squatter = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let path = collector::address_path(job.dir());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, squatter.local_addr().unwrap().to_string()).unwrap();
    let (tried, _) = soon(squatter.accept()).await.unwrap();
    drop((tried, squatter));
    let running = job.collector().await;
    alice.hears(|told| *told == Told::Connected).await;
    alice.shutdown.cancel();
    job.status(|status| !status.processes[0].live).await;
    running.shut_down().await;
}
