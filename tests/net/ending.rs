//! A stream that ends, from whichever side and however roughly, leaves nothing behind.

use std::time::Duration;

use cutline::net::{Event, Streams, Timing};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::foreign::{Client, ForeignReceiver};
use crate::node::{
    LIMIT, Node, channel, connect, connected, hello, message, quick, until_tasks_are, welcome,
};

#[tokio::test]
async fn only_the_other_end_is_told_of_a_stream_that_was_hung_up() {
    let (mut sender, mut receiver) = connected(quick()).await;
    receiver.streams.hang_up(channel(1));
    assert_eq!(sender.next().await, Event::Broken(channel(1)));
    receiver.is_silent().await;

    connect(&mut sender, &mut receiver, channel(1)).await;
    sender.streams.hang_up_all();
    assert_eq!(receiver.next().await, Event::Broken(channel(1)));
    sender.is_silent().await;
}

#[tokio::test]
async fn a_hundred_receivers_that_go_leave_nothing_behind() {
    let baseline = Handle::current().metrics().num_alive_tasks();
    let mut sender = Node::start(quick()).await;
    let mut one = None;
    for _ in 0..100 {
        let mut receiver = Node::start(quick()).await;
        connect(&mut sender, &mut receiver, channel(1)).await;
        sender.write(channel(1), message(1, 100_000)).await;
        drop(receiver);
        assert_eq!(sender.next().await, Event::Broken(channel(1)));
        let alive = *one.get_or_insert(Handle::current().metrics().num_alive_tasks());
        until_tasks_are(alive).await;
    }
    sender.streams.shutdown().await;
    until_tasks_are(baseline).await;
}

#[tokio::test]
async fn a_hundred_senders_that_go_leave_nothing_behind() {
    let mut receiver = Node::start(quick()).await;
    let baseline = Handle::current().metrics().num_alive_tasks();
    for _ in 0..100 {
        let mut client = Client::connect(&receiver.address).await;
        let words = client.open(channel(1), hello(3)).await;
        receiver.greet(channel(1), welcome()).await;
        drop((words, client));
        assert_eq!(receiver.next().await, Event::Broken(channel(1)));
    }
    until_tasks_are(baseline).await;
}

#[tokio::test]
async fn shutdown_waits_for_no_peer() {
    let baseline = Handle::current().metrics().num_alive_tasks();
    let (mut sender, receiver) = connected(Timing::default()).await;
    // A connection that says nothing, one that stops in its first line, and a caller that says
    // nothing and never reads.
    let silent = TcpStream::connect(&receiver.address).await.unwrap();
    let mut half = TcpStream::connect(&receiver.address).await.unwrap();
    half.write_all(b"PRI * HTTP").await.unwrap();
    let mut client = Client::connect(&receiver.address).await;
    let words = client.carry().await;
    // And a receiver that has stopped to read.
    let mut foreign = ForeignReceiver::start().await;
    sender.streams.dial(channel(2), &foreign.address, hello(3));
    let _unread = foreign.welcome(welcome()).await;
    assert!(matches!(sender.next().await, Event::Greeted(..)));
    let full = async { while sender.next().await != Event::Broken(channel(2)) {} };
    assert!(timeout(Duration::from_millis(50), full).await.is_err());
    for number in 1.. {
        if !sender.streams.can_write(channel(2)) {
            break;
        }
        sender.streams.write(channel(2), message(number, 60_000));
        tokio::task::yield_now().await;
    }

    let begin = Instant::now();
    receiver.streams.shutdown().await;
    sender.streams.shutdown().await;
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(1), "shutdown took {took:?}");
    drop((silent, half, words, client, foreign, _unread));
    until_tasks_are(baseline).await;
}

#[tokio::test]
async fn after_the_shutdown_nothing_more_is_told() {
    let shutdown = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut streams = Streams::new(listener, 1, &shutdown);
    shutdown.cancel();
    assert_eq!(timeout(LIMIT, streams.recv()).await, Ok(None));
    streams.shutdown().await;
}
