//! One end of streams in a test, and the words it says.

use std::time::Duration;

use bytes::Bytes;
use cutline::net::{Event, Streams, Timing};
use cutline::protocol::frame::{Batch, Credit, Feedback, Frame, Greeting, Hello, Marker};
use cutline::protocol::ids::{
    ChannelId, Generation, Incarnation, JobId, MarkerOrdinal, MessageNumber, ProcessId, SnapshotId,
};
use cutline::protocol::mode::Mode;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Far more than anything here takes: a test that gets here has failed.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// One end, and where it takes streams.
pub(crate) struct Node {
    pub(crate) streams: Streams,
    pub(crate) address: String,
}

impl Node {
    pub(crate) async fn start(timing: Timing) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let streams = Streams::with_timing(listener, 1, &CancellationToken::new(), timing);
        Self { streams, address }
    }

    pub(crate) async fn next(&mut self) -> Event {
        let event = timeout(LIMIT, self.streams.recv()).await;
        event.expect("an event in time").expect("not shut down")
    }

    /// Nothing is told in a while. Only ever fails when something is.
    pub(crate) async fn is_silent(&mut self) {
        let event = timeout(Duration::from_millis(100), self.streams.recv()).await;
        assert!(event.is_err(), "{event:?} was told");
    }

    /// Takes the next event, which is a hello, and answers it.
    pub(crate) async fn greet(&mut self, channel: ChannelId, greeting: Greeting) -> Hello {
        let event = self.next().await;
        let Event::Dialled(dialled, hello) = event else {
            panic!("{event:?} instead of a hello");
        };
        assert_eq!(dialled, channel);
        self.streams.greet(channel, greeting);
        hello
    }

    /// Puts a frame on the wire as soon as there is room.
    pub(crate) async fn write(&mut self, channel: ChannelId, frame: Frame) {
        while !self.streams.can_write(channel) {
            assert_eq!(self.next().await, Event::Writable(channel));
        }
        self.streams.write(channel, frame);
    }
}

pub(crate) fn quick() -> Timing {
    Timing {
        opening: Duration::from_secs(1),
        pause: Duration::from_millis(1),
        pause_max: Duration::from_millis(8),
        ..Timing::default()
    }
}

pub(crate) fn channel(nth: u32) -> ChannelId {
    ChannelId {
        from: ProcessId::new(0),
        to: ProcessId::new(1),
        nth,
    }
}

pub(crate) fn hello(generation: u64) -> Hello {
    Hello {
        topology: 7,
        job: JobId::default(),
        generation: Generation::new(generation),
        incarnation: Incarnation::new(11),
    }
}

pub(crate) fn feedback(next: u64) -> Feedback {
    Feedback {
        next: MessageNumber::new(next),
        next_marker: MarkerOrdinal::new(1),
        credit: Credit {
            number: MessageNumber::new(next + 100),
            bytes: 1 << 30,
        },
    }
}

pub(crate) fn welcome() -> Greeting {
    Greeting::Welcome {
        incarnation: Incarnation::new(22),
        feedback: feedback(1),
    }
}

/// One message of so many bytes.
pub(crate) fn message(number: u64, bytes: usize) -> Frame {
    let mut packed = u32::try_from(bytes).unwrap().to_le_bytes().to_vec();
    packed.resize(4 + bytes, 0x5a);
    Frame::Messages(Batch::new(MessageNumber::new(number), 1, Bytes::from(packed)).unwrap())
}

pub(crate) fn marker(ordinal: u64, after: u64) -> Frame {
    Frame::Marker(Marker {
        snapshot: SnapshotId::new(ordinal),
        taking: Mode::Classic.into(),
        used_ms: 0,
        ordinal: MarkerOrdinal::new(ordinal),
        after: MessageNumber::new(after),
        sent: MessageNumber::new(after),
    })
}

/// A sender and a receiver with a stream between them.
pub(crate) async fn connected(timing: Timing) -> (Node, Node) {
    let mut sender = Node::start(timing).await;
    let mut receiver = Node::start(timing).await;
    connect(&mut sender, &mut receiver, channel(1)).await;
    (sender, receiver)
}

pub(crate) async fn connect(sender: &mut Node, receiver: &mut Node, channel: ChannelId) {
    sender.streams.dial(channel, &receiver.address, hello(3));
    assert_eq!(receiver.greet(channel, welcome()).await, hello(3));
    let greeted = Event::Greeted(channel, Generation::new(3), welcome());
    assert_eq!(sender.next().await, greeted);
}

pub(crate) fn arrived(channel: ChannelId, frame: Frame) -> Event {
    Event::Arrived(channel, Generation::new(3), frame)
}

pub(crate) async fn until_tasks_are(baseline: usize) {
    let alive = || Handle::current().metrics().num_alive_tasks();
    let deadline = Instant::now() + LIMIT;
    while alive() > baseline {
        assert!(Instant::now() < deadline, "{} tasks remain", alive());
        tokio::task::yield_now().await;
    }
}
