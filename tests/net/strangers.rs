//! Peers that speak nonsense, say nothing or vanish.

use std::time::Duration;

use bytes::Bytes;
use cutline::net::{Event, Timing};
use cutline::protocol::frame::Greeting;
use cutline::wire::channel::frame_word;
use cutline::wire::pb;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;

use crate::foreign;
use crate::foreign::{Client, freezing_proxy};
use crate::node::{LIMIT, Node, arrived, channel, connected, hello, message, quick, welcome};

#[tokio::test]
async fn peers_that_speak_nonsense_are_dropped_and_harm_nobody() {
    let (mut sender, mut receiver) = connected(quick()).await;
    let address = receiver.address.clone();
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff; 4096],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0",
    ] {
        let mut raw = TcpStream::connect(&address).await.unwrap();
        raw.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        let end = timeout(LIMIT, raw.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "the connection is closed");
    }
    let torn = pb::Messages {
        first: 1,
        count: 2,
        packed: Bytes::from_static(b"\0\0\0\0"),
        clock: Vec::new(),
    };
    let torn = pb::ToReceiver {
        word: Some(pb::to_receiver::Word::Messages(torn)),
    };
    for first in [frame_word(message(1, 1)), pb::ToReceiver::default()] {
        let mut client = Client::connect(&address).await;
        let mut words = client.carry().await;
        client.say(first).await;
        assert!(!matches!(words.message().await, Ok(Some(_))));
    }
    let mut client = Client::connect(&address).await;
    let mut words = client.open(channel(2), hello(3)).await;
    receiver.greet(channel(2), welcome()).await;
    assert_eq!(foreign::greeting(&mut words).await, welcome());
    client.say(torn).await;
    assert_eq!(receiver.next().await, Event::Broken(channel(2)));
    assert!(!matches!(words.message().await, Ok(Some(_))));

    sender.write(channel(1), message(1, 10)).await;
    let event = arrived(channel(1), message(1, 10));
    assert_eq!(receiver.next().await, event);
}

#[tokio::test]
async fn a_connection_carries_one_channel() {
    let mut receiver = Node::start(quick()).await;
    let mut client = Client::connect(&receiver.address).await;
    let words = client.open(channel(1), hello(3)).await;
    receiver.greet(channel(1), Greeting::NotYet).await;
    drop(words);
    let (_words, second) = mpsc::channel(1);
    let second = client.service.carry(ReceiverStream::new(second)).await;
    assert!(second.is_err());
    receiver.is_silent().await;
}

#[tokio::test]
async fn a_connection_on_which_nobody_calls_is_closed() {
    let receiver = Node::start(quick()).await;
    let mut raw = TcpStream::connect(&receiver.address).await.unwrap();
    let end = timeout(LIMIT, raw.read_to_end(&mut Vec::new())).await;
    assert!(end.is_ok(), "the connection stayed open");
}

#[tokio::test]
async fn a_peer_that_vanishes_without_a_word_is_noticed_and_an_idle_one_is_kept() {
    let timing = Timing {
        keepalive: Duration::from_millis(200),
        ..quick()
    };
    let mut sender = Node::start(timing).await;
    let mut receiver = Node::start(timing).await;
    let (address, freeze) = freezing_proxy(receiver.address.clone()).await;
    sender.streams.dial(channel(1), address, hello(3));
    receiver.greet(channel(1), welcome()).await;
    assert!(matches!(sender.next().await, Event::Greeted(..)));
    // Several times the time after which a peer that does not answer is given up.
    for _ in 0..12 {
        sender.is_silent().await;
    }
    receiver.is_silent().await;
    freeze.cancel();
    assert_eq!(sender.next().await, Event::Broken(channel(1)));
    assert_eq!(receiver.next().await, Event::Broken(channel(1)));
}
