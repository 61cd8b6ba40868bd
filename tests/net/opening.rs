//! Streams are opened, answered, replaced, broken and opened again.

use std::time::{Duration, Instant};

use cutline::net::{Event, Streams, Timing};
use cutline::protocol::frame::Greeting;
use cutline::protocol::ids::Generation;
use cutline::wire::channel::{frame_word, hello_word, read_feedback};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::foreign;
use crate::foreign::Client;
use crate::node::{
    Node, arrived, channel, connect, connected, feedback, hello, message, quick, welcome,
};

#[tokio::test]
async fn a_broken_stream_is_told_and_opened_again() {
    let (mut sender, mut receiver) = connected(quick()).await;
    sender.write(channel(1), message(1, 10)).await;
    let first = arrived(channel(1), message(1, 10));
    assert_eq!(receiver.next().await, first);

    receiver.streams.shutdown().await;
    assert_eq!(sender.next().await, Event::Broken(channel(1)));
    assert!(!sender.streams.can_write(channel(1)));

    let mut receiver = Node::start(quick()).await;
    connect(&mut sender, &mut receiver, channel(1)).await;
    sender.write(channel(1), message(2, 10)).await;
    let second = arrived(channel(1), message(2, 10));
    assert_eq!(receiver.next().await, second);

    sender.streams.shutdown().await;
    assert_eq!(receiver.next().await, Event::Broken(channel(1)));
}

#[tokio::test]
async fn a_sender_that_is_told_not_yet_tries_again() {
    let mut sender = Node::start(quick()).await;
    let mut receiver = Node::start(quick()).await;
    sender.streams.dial(channel(1), &receiver.address, hello(3));
    for _ in 0..5 {
        receiver.greet(channel(1), Greeting::NotYet).await;
    }
    receiver.greet(channel(1), welcome()).await;
    let greeted = Event::Greeted(channel(1), Generation::new(3), welcome());
    assert_eq!(sender.next().await, greeted);
}

#[tokio::test]
async fn a_sender_that_is_refused_is_told_why_and_does_not_try_again() {
    let mut sender = Node::start(quick()).await;
    let mut receiver = Node::start(quick()).await;
    let refused = Greeting::Refused("generation g3 is over".to_owned());
    sender.streams.dial(channel(1), &receiver.address, hello(3));
    receiver.greet(channel(1), refused.clone()).await;
    let greeted = Event::Greeted(channel(1), Generation::new(3), refused);
    assert_eq!(sender.next().await, greeted);
    receiver.is_silent().await;
    sender.is_silent().await;
}

#[tokio::test]
async fn a_receiver_that_is_not_there_yet_is_found_when_it_comes() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut sender = Node::start(quick()).await;
    sender
        .streams
        .dial(channel(1), address.to_string(), hello(3));
    sender.is_silent().await;
    let listener = TcpListener::bind(address).await.unwrap();
    let streams = Streams::new(listener, 1, &CancellationToken::new());
    let mut receiver = Node {
        streams,
        address: address.to_string(),
    };
    receiver.greet(channel(1), welcome()).await;
    assert!(matches!(sender.next().await, Event::Greeted(..)));
}

#[tokio::test]
async fn a_hello_that_nobody_answers_is_dropped_and_dialled_again() {
    let mut sender = Node::start(quick()).await;
    let mut receiver = Node::start(quick()).await;
    sender.streams.dial(channel(1), &receiver.address, hello(3));
    for _ in 0..2 {
        assert_eq!(receiver.next().await, Event::Dialled(channel(1), hello(3)));
    }
    // An answer that comes too late, and says welcome, is put right.
    let mut client = Client::connect(&receiver.address).await;
    let mut words = client.carry().await;
    client.say(hello_word(channel(2), &hello(3))).await;
    while receiver.next().await != Event::Dialled(channel(2), hello(3)) {}
    drop(client);
    assert!(!matches!(words.message().await, Ok(Some(_))));
    while receiver.streams.try_recv().is_some() {}
    receiver.streams.greet(channel(2), welcome());
    while receiver.next().await != Event::Broken(channel(2)) {}
    assert!(!receiver.streams.can_write(channel(2)));
}

#[tokio::test]
async fn a_second_stream_replaces_the_first_when_it_is_welcomed() {
    let mut receiver = Node::start(quick()).await;
    let mut first = Client::connect(&receiver.address).await;
    let mut first_words = first.open(channel(1), hello(3)).await;
    receiver.greet(channel(1), welcome()).await;
    assert_eq!(foreign::greeting(&mut first_words).await, welcome());

    // A refused one changes nothing for the first.
    let mut zombie = Client::connect(&receiver.address).await;
    let mut zombie_words = zombie.open(channel(1), hello(2)).await;
    let refused = Greeting::Refused("generation g2 is over".to_owned());
    receiver.greet(channel(1), refused.clone()).await;
    assert_eq!(foreign::greeting(&mut zombie_words).await, refused);
    assert!(!matches!(zombie_words.message().await, Ok(Some(_))));
    first.say(frame_word(message(1, 5))).await;
    let event = arrived(channel(1), message(1, 5));
    assert_eq!(receiver.next().await, event);

    // What the first says late is swallowed, and so is its end.
    let mut second = Client::connect(&receiver.address).await;
    let mut second_words = second.open(channel(1), hello(3)).await;
    assert_eq!(receiver.next().await, Event::Dialled(channel(1), hello(3)));
    first.say(frame_word(message(2, 5))).await;
    let late = arrived(channel(1), message(2, 5));
    assert_eq!(receiver.next().await, late);
    first.say(frame_word(message(3, 5))).await;
    // Time for it to be in the queue already; it is to be swallowed wherever it is.
    tokio::time::sleep(Duration::from_millis(50)).await;
    receiver.streams.greet(channel(1), welcome());
    assert_eq!(foreign::greeting(&mut second_words).await, welcome());
    assert!(!matches!(first_words.message().await, Ok(Some(_))));
    drop(first);
    second.say(frame_word(message(3, 9))).await;
    let event = arrived(channel(1), message(3, 9));
    assert_eq!(receiver.next().await, event);
    receiver.streams.feedback(channel(1), feedback(4));
    let word = second_words.message().await.unwrap().unwrap();
    assert_eq!(read_feedback(word), Ok(feedback(4)));
}

#[tokio::test]
async fn dialling_again_swallows_what_the_older_stream_still_says() {
    let mut sender = Node::start(quick()).await;
    let mut receiver = Node::start(quick()).await;
    let address = receiver.address.clone();
    sender.streams.dial(channel(1), &address, hello(2));
    receiver.greet(channel(1), welcome()).await;
    // Time for the answer to the older hello to be in the queue already.
    tokio::time::sleep(Duration::from_millis(50)).await;
    sender.streams.dial(channel(1), &address, hello(3));
    while receiver.next().await != Event::Dialled(channel(1), hello(3)) {}
    receiver.streams.greet(channel(1), welcome());
    let greeted = Event::Greeted(channel(1), Generation::new(3), welcome());
    assert_eq!(sender.next().await, greeted);
    sender.is_silent().await;
}

#[tokio::test]
async fn a_stream_that_breaks_as_soon_as_it_is_open_is_opened_more_and_more_seldom() {
    let timing = Timing {
        pause: Duration::from_millis(20),
        pause_max: Duration::from_millis(80),
        ..quick()
    };
    let mut sender = Node::start(timing).await;
    let mut receiver = Node::start(timing).await;
    let begun = Instant::now();
    for _ in 0..5 {
        connect(&mut sender, &mut receiver, channel(1)).await;
        receiver.streams.hang_up(channel(1));
        assert_eq!(sender.next().await, Event::Broken(channel(1)));
    }
    let paused = Duration::from_millis(20 + 40 + 80 + 80);
    assert!(begun.elapsed() >= paused, "{:?}", begun.elapsed());
}
