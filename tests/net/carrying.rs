//! What one end writes the other end reads, in order, whatever other streams do.

use std::collections::BTreeSet;
use std::time::Duration;

use cutline::net::{Event, Timing};
use cutline::protocol::ids::Generation;
use tokio::time::{Instant, timeout};

use crate::foreign::{Client, ForeignReceiver};
use crate::node::{
    LIMIT, Node, arrived, channel, connected, feedback, hello, marker, message, quick, welcome,
};

#[tokio::test]
async fn messages_and_markers_arrive_in_order_and_feedback_comes_back() {
    const FRAMES: u64 = 600;
    let (mut sender, mut receiver) = connected(Timing::default()).await;
    let frame = |index: u64| match index % 3 {
        2 => marker(index / 3 + 1, index / 3 * 2 + 2),
        rest => message(index / 3 * 2 + rest + 1, (index as usize * 997) % 100_000),
    };
    let (mut written, mut came, mut heard, mut waited) = (0, 0, 1, 0);
    while came < FRAMES || heard < FRAMES {
        while written < FRAMES && sender.streams.can_write(channel(1)) {
            sender.streams.write(channel(1), frame(written));
            written += 1;
        }
        let event = timeout(LIMIT, async {
            tokio::select! {
                event = sender.streams.recv() => event,
                event = receiver.streams.recv() => event,
            }
        });
        match event.await.expect("in time").expect("not shut down") {
            Event::Arrived(_, _, came_now) => {
                assert_eq!(came_now, frame(came));
                came += 1;
                receiver.streams.feedback(channel(1), feedback(came));
            }
            Event::Heard(_, generation, word) => {
                assert_eq!(generation, Generation::new(3));
                assert!(word.next.get() > heard, "feedback does not go back");
                heard = word.next.get();
            }
            Event::Writable(_) => waited += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(waited > 0, "the sender never found the outlet full");
}

#[tokio::test]
async fn a_stream_opens_while_nobody_has_anything_to_send() {
    let (mut sender, mut receiver) = connected(Timing::default()).await;
    sender.is_silent().await;
    receiver.is_silent().await;
    // And the receiver's headers do not wait for the sender's first word either.
    let mut client = Client::connect(&receiver.address).await;
    let opened = timeout(LIMIT, client.carry()).await;
    assert!(opened.is_ok(), "the headers waited for a word");
}

/// See conventions 8.1: on one connection, two streams that are not read starve all others.
#[tokio::test]
async fn streams_that_are_not_read_do_not_starve_another() {
    const PAUSED: u32 = 8;
    const FRAMES: u64 = 5_000;
    let mut receiver = ForeignReceiver::start().await;
    let mut sender = Node::start(Timing::default()).await;
    let mut streams = Vec::new();
    for nth in 1..=PAUSED + 1 {
        sender
            .streams
            .dial(channel(nth), &receiver.address, hello(3));
        streams.push(receiver.welcome(welcome()).await);
        assert!(matches!(sender.next().await, Event::Greeted(..)));
    }
    let peers: BTreeSet<_> = streams.iter().map(|stream| stream.peer).collect();
    assert_eq!(peers.len(), streams.len(), "a connection each");

    for nth in 1..=PAUSED {
        let mut number = 0;
        // Full when nothing moves although every task has had its turn, more than once.
        while timeout(Duration::from_millis(500), async {
            number += 1;
            sender.write(channel(nth), message(number, 60_000)).await;
        })
        .await
        .is_ok()
        {}
        assert!(number > 2, "something went out before the stream was full");
    }
    let mut open = streams.pop().expect("one more than are paused");
    let reading = tokio::spawn(async move {
        for _ in 0..FRAMES {
            open.words.message().await.unwrap().expect("a frame");
        }
    });
    for number in 1..=FRAMES {
        while !sender.streams.can_write(channel(PAUSED + 1)) {
            assert_eq!(sender.next().await, Event::Writable(channel(PAUSED + 1)));
        }
        sender
            .streams
            .write(channel(PAUSED + 1), message(number, 1_000));
    }
    timeout(LIMIT, reading).await.expect("not starved").unwrap();

    // And one that is read again has room again.
    let mut paused = streams.swap_remove(0);
    assert!(!sender.streams.can_write(channel(1)));
    let reading =
        tokio::spawn(async move { while let Ok(Some(_)) = paused.words.message().await {} });
    assert_eq!(sender.next().await, Event::Writable(channel(1)));
    reading.abort();
}

#[tokio::test]
async fn what_is_delayed_comes_later_and_in_order() {
    const DELAY: Duration = Duration::from_millis(150);
    const FRAMES: u64 = 50;
    let timing = Timing {
        delay: DELAY,
        ..quick()
    };
    let (mut sender, mut receiver) = connected(timing).await;
    let begin = Instant::now();
    for number in 1..=FRAMES {
        sender.write(channel(1), message(number, 10)).await;
    }
    let sent = Instant::now();
    for number in 1..=FRAMES {
        let event = receiver.next().await;
        assert_eq!(event, arrived(channel(1), message(number, 10)));
        assert!(begin.elapsed() >= DELAY, "frame {number} came early");
    }
    // Not one after another: each is under way while the others are.
    assert!(sent.elapsed() < FRAMES as u32 * DELAY / 2);
}
