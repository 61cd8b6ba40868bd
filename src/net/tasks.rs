//! What the tasks that read the streams share, and what they tell the loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::outlet::{Outlet, Wakeups};
use crate::protocol::frame::{Feedback, Frame, Greeting, Hello};
use crate::protocol::ids::{ChannelId, Generation};
use crate::wire::pb;

/// How long things may take before a stream is given up.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// For each step of opening a stream: a connection without a call, a call without a hello, a
    /// hello without an answer, and for one whole try of the sender. Well above a busy node's
    /// delay; a node that is stopped for longer finds its senders dialling again.
    pub opening: Duration,
    /// The first pause between two tries to open a stream. Receivers that have not prepared a
    /// generation yet mostly have a few milliseconds later.
    pub pause: Duration,
    /// The longest. Short beside the second in which a job is to be back.
    pub pause_max: Duration,
    /// How long a connection may be silent before its peer is asked for a sign of life, and then
    /// how long that may take. It only finds hosts that have vanished, since a process that ends
    /// closes its sockets; pings as rare as this are no burden to any HTTP/2 end or proxy.
    pub keepalive: Duration,
    /// How long everything that comes on a stream for an input is held before it is told, as if
    /// it had been under way so long. For those who want to see messages in channels.
    pub delay: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(5),
            pause: Duration::from_millis(5),
            pause_max: Duration::from_millis(500),
            keepalive: Duration::from_secs(30),
            delay: Duration::ZERO,
        }
    }
}

/// What the tasks of all streams share.
pub(super) struct Shared {
    pub(super) timing: Timing,
    happenings: mpsc::Sender<Happening>,
    pub(super) wakeups: Arc<Wakeups>,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
    streams: AtomicU64,
}

impl Shared {
    pub(super) fn new(
        timing: Timing,
        happenings: mpsc::Sender<Happening>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            timing,
            happenings,
            wakeups: Arc::default(),
            tasks: TaskTracker::new(),
            stop,
            streams: AtomicU64::new(0),
        }
    }

    pub(super) fn next_stream(&self) -> StreamId {
        StreamId(self.streams.fetch_add(1, Ordering::Relaxed))
    }

    /// Tells the loop, when it has a place for it. Fails only when the loop is gone, and then so
    /// are the tasks.
    pub(super) async fn tell(&self, channel: ChannelId, stream: StreamId, what: What) {
        let happening = Happening {
            channel,
            stream,
            what,
        };
        let _ = self.happenings.send(happening).await;
    }
}

/// Which stream: a channel may be carried by one after another, and a late word of an earlier one
/// means nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamId(u64);

/// What a stream's task tells.
pub(super) struct Happening {
    pub(super) channel: ChannelId,
    pub(super) stream: StreamId,
    pub(super) what: What,
}

pub(super) enum What {
    Dialled(Hello, Box<Dialled>),
    Greeted(Generation, Greeting, Option<Outlet<pb::ToReceiver>>),
    Arrived(Generation, Frame),
    Heard(Generation, Feedback),
    Broken,
}

/// The loop's end of a stream that waits for an answer.
pub(super) struct Dialled {
    pub(super) input: Input,
    /// Tells the stream's task whether it was welcome.
    pub(super) answered: oneshot::Sender<bool>,
}

/// The loop's end of a stream for an input; dropping it closes the connection.
pub(super) struct Input {
    pub(super) stream: StreamId,
    pub(super) outlet: Outlet<pb::ToSender>,
    pub(super) end: DropGuard,
}
