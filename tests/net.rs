//! Streams on loopback: what one end is told to move, the other end tells, in order, and nothing
//! that a peer does to a stream harms another one or leaves anything behind.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use cutline::net::{Event, Streams, Timing};
use cutline::protocol::frame::{Batch, Credit, Feedback, Frame, Greeting, Hello, Marker};
use cutline::protocol::ids::{
    ChannelId, Generation, Incarnation, MarkerOrdinal, MessageNumber, ProcessId, SnapshotId,
};
use cutline::protocol::mode::Mode;
use cutline::wire::channel::{frame_word, hello_word, read_feedback};
use cutline::wire::pb;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

mod foreign;

use foreign::{Client, ForeignReceiver, freezing_proxy};

/// Far more than anything here takes: a test that gets here has failed.
const LIMIT: Duration = Duration::from_secs(20);

/// One end, and where it takes streams.
struct Node {
    streams: Streams,
    address: String,
}

impl Node {
    async fn start(timing: Timing) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let streams = Streams::with_timing(listener, &CancellationToken::new(), timing);
        Self { streams, address }
    }

    async fn next(&mut self) -> Event {
        let event = timeout(LIMIT, self.streams.recv()).await;
        event.expect("an event in time").expect("not shut down")
    }

    /// Nothing is told in a while. Only ever fails when something is.
    async fn is_silent(&mut self) {
        let event = timeout(Duration::from_millis(100), self.streams.recv()).await;
        assert!(event.is_err(), "{event:?} was told");
    }

    /// Takes the next event, which is a hello, and answers it.
    async fn greet(&mut self, channel: ChannelId, greeting: Greeting) -> Hello {
        let event = self.next().await;
        let Event::Dialled(dialled, hello) = event else {
            panic!("{event:?} instead of a hello");
        };
        assert_eq!(dialled, channel);
        self.streams.greet(channel, greeting);
        hello
    }

    /// Puts a frame on the wire as soon as there is room.
    async fn write(&mut self, channel: ChannelId, frame: Frame) {
        while !self.streams.can_write(channel) {
            assert_eq!(self.next().await, Event::Writable(channel));
        }
        self.streams.write(channel, frame);
    }
}

fn quick() -> Timing {
    Timing {
        opening: Duration::from_millis(200),
        pause: Duration::from_millis(1),
        pause_max: Duration::from_millis(8),
        ..Timing::default()
    }
}

fn channel(nth: u32) -> ChannelId {
    ChannelId {
        from: ProcessId::new(0),
        to: ProcessId::new(1),
        nth,
    }
}

fn hello(generation: u64) -> Hello {
    Hello {
        topology: 7,
        generation: Generation::new(generation),
        incarnation: Incarnation::new(11),
    }
}

fn feedback(next: u64) -> Feedback {
    Feedback {
        next: MessageNumber::new(next),
        next_marker: MarkerOrdinal::new(1),
        credit: Credit {
            number: MessageNumber::new(next + 100),
            bytes: 1 << 30,
        },
    }
}

fn welcome() -> Greeting {
    Greeting::Welcome {
        incarnation: Incarnation::new(22),
        feedback: feedback(1),
    }
}

/// One message of so many bytes.
fn message(number: u64, bytes: usize) -> Frame {
    let mut packed = u32::try_from(bytes).unwrap().to_le_bytes().to_vec();
    packed.resize(4 + bytes, 0x5a);
    Frame::Messages(Batch::new(MessageNumber::new(number), 1, Bytes::from(packed)).unwrap())
}

fn marker(ordinal: u64, after: u64) -> Frame {
    Frame::Marker(Marker {
        snapshot: SnapshotId::new(ordinal),
        mode: Mode::Classic,
        ordinal: MarkerOrdinal::new(ordinal),
        after: MessageNumber::new(after),
        sent: MessageNumber::new(after),
    })
}

/// A sender and a receiver with a stream between them.
async fn connected(timing: Timing) -> (Node, Node) {
    let mut sender = Node::start(timing).await;
    let mut receiver = Node::start(timing).await;
    connect(&mut sender, &mut receiver, channel(1)).await;
    (sender, receiver)
}

async fn connect(sender: &mut Node, receiver: &mut Node, channel: ChannelId) {
    sender.streams.dial(channel, &receiver.address, hello(3));
    assert_eq!(receiver.greet(channel, welcome()).await, hello(3));
    let greeted = Event::Greeted(channel, Generation::new(3), welcome());
    assert_eq!(sender.next().await, greeted);
}

fn arrived(channel: ChannelId, frame: Frame) -> Event {
    Event::Arrived(channel, Generation::new(3), frame)
}

async fn until_tasks_are(baseline: usize) {
    let alive = || Handle::current().metrics().num_alive_tasks();
    let deadline = Instant::now() + LIMIT;
    while alive() > baseline {
        assert!(Instant::now() < deadline, "{} tasks remain", alive());
        tokio::task::yield_now().await;
    }
}

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
    let streams = Streams::new(listener, &CancellationToken::new());
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
    // The answer to the older hello may be under way already.
    sender.streams.dial(channel(1), &address, hello(3));
    while receiver.next().await != Event::Dialled(channel(1), hello(3)) {}
    receiver.streams.greet(channel(1), welcome());
    let greeted = Event::Greeted(channel(1), Generation::new(3), welcome());
    assert_eq!(sender.next().await, greeted);
    sender.is_silent().await;
}

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
        while timeout(Duration::from_millis(20), async {
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
    let mut streams = Streams::new(listener, &shutdown);
    shutdown.cancel();
    assert_eq!(timeout(LIMIT, streams.recv()).await, Ok(None));
    streams.shutdown().await;
}

#[tokio::test]
async fn a_peer_that_vanishes_without_a_word_is_noticed_and_an_idle_one_is_kept() {
    let timing = Timing {
        keepalive: Duration::from_millis(50),
        ..quick()
    };
    let mut sender = Node::start(timing).await;
    let mut receiver = Node::start(timing).await;
    let (address, freeze) = freezing_proxy(receiver.address.clone()).await;
    sender.streams.dial(channel(1), address, hello(3));
    receiver.greet(channel(1), welcome()).await;
    assert!(matches!(sender.next().await, Event::Greeted(..)));
    // Several times the time after which a peer that does not answer is given up.
    for _ in 0..4 {
        sender.is_silent().await;
    }
    receiver.is_silent().await;
    freeze.cancel();
    assert_eq!(sender.next().await, Event::Broken(channel(1)));
    assert_eq!(receiver.next().await, Event::Broken(channel(1)));
}
