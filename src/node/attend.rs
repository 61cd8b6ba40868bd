//! A node's side of the control stream: finds the collector, says how the node is, hears what it
//! is to do. A collector that is gone is looked for until it is back; the node goes on meanwhile.
//!
//! Every connection comes with an [`Uplink`] of its own, so that no word meant for one connection
//! ever goes out on the next. What is reported while there is no connection is not kept: the
//! node's machine says on every welcome what still matters.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;
use tonic::transport::Endpoint;

use crate::collector::{AddressError, read_address};
use crate::protocol::events::{Directive, Report};
use crate::wire::control::{
    self as words, Addresses, CollectorSaid, Place, Progress as Counted, WireError,
};
use crate::wire::pb;
use crate::wire::pb::collector_client::CollectorClient;

/// The longest time between two signs of life.
pub const HEARTBEAT_MAX: Duration = Duration::from_secs(1);

/// The pause before the second try; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// The longest pause: a collector that is back is to be found well within a second.
const PAUSE_MAX: Duration = Duration::from_millis(320);

/// A connection that lasted so long was a good one: the next try comes soon again.
const LASTING: Duration = Duration::from_secs(1);

/// How long one try may take. The collector answers a new stream at once.
const ATTEMPT_BOUND: Duration = Duration::from_secs(3);

/// Notices a collector whose host is gone: it sends no end of stream.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Words that wait for the collector. A node says a few a snapshot; if so many wait, the
/// collector does not read, and a new connection begins with how things stand anyway.
const WORDS_MAX: usize = 256;

/// Where the collector is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectorAddress {
    /// Always there.
    Fixed(SocketAddr),
    /// Where the address file in this job's directory says, read anew before every try.
    Published(PathBuf),
}

/// What the control stream is opened with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the collector is.
    pub collector: CollectorAddress,
    /// Where this node can be found.
    pub place: Place,
    /// How far this node is.
    pub progress: Arc<Progress>,
    /// Between two signs of life; the collector's patience must be several of them.
    pub heartbeat: Duration,
}

/// How far a node is, counted by its loop and told with each sign of life.
#[derive(Debug, Default)]
pub struct Progress {
    /// Messages handled since the job began.
    pub handled: AtomicU64,
    /// Messages sent since the job began.
    pub sent: AtomicU64,
}

/// What comes from the collector to the node's loop.
#[derive(Debug)]
pub enum ControlEvent {
    /// There is a connection: the first report on it has to be the join.
    Connected(Uplink),
    /// A word for the machine; with `Prepare`, where its receivers take their inputs' streams.
    Order(Directive, Addresses),
    /// A word for the application; to be answered with [`Uplink::command_done`].
    Command {
        /// To be named in the answer.
        request: u64,
        /// The word.
        text: String,
    },
    /// The connection is gone, and its uplink with it.
    Disconnected,
}

/// The way to the collector while one connection lasts. Never waits.
#[derive(Clone, Debug)]
pub struct Uplink {
    words: mpsc::Sender<pb::NodeWord>,
    place: Arc<Place>,
    joined: Arc<AtomicBool>,
    /// Ends the connection.
    broken: CancellationToken,
}

impl Uplink {
    /// Says something to the collector. Without effect if the connection is gone.
    pub fn report(&self, report: Report) {
        let joins = matches!(report, Report::Join(_));
        self.say(words::report(report, &self.place));
        if joins {
            // Signs of life may follow from now on, but not precede.
            self.joined.store(true, Ordering::Release);
        }
    }

    /// Answers a command; `refusal` says why it was not done.
    pub fn command_done(&self, request: u64, refusal: Option<String>) {
        self.say(words::command_done(request, refusal));
    }

    fn say(&self, word: pb::NodeWord) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.words.try_send(word) {
            tracing::warn!("the collector takes no word any more: looking for it anew");
            self.broken.cancel();
        }
    }
}

/// Why a connection could not be made or is gone.
#[derive(Debug, thiserror::Error)]
enum AttendError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("cannot connect to the collector")]
    Connect(#[from] tonic::transport::Error),
    #[error("the collector does not answer")]
    Silent,
    #[error("the control stream has failed")]
    Stream(#[from] tonic::Status),
    #[error("the collector says what makes no sense")]
    Wire(#[from] WireError),
    #[error("the collector has closed the control stream")]
    Closed,
    #[error("the collector does not read the control stream")]
    Full,
    #[error("another collector has taken over, at {0}")]
    Moved(SocketAddr),
}

/// How a connection came to an end that is none.
enum Over {
    /// The node's loop has gone.
    Nobody,
}

/// Attends to the collector until `shutdown`, or until nobody takes the events any more.
pub async fn run(config: Config, events: mpsc::Sender<ControlEvent>, shutdown: CancellationToken) {
    let attend = attend(&config, &events);
    tokio::select! {
        biased;
        () = shutdown.cancelled() => {}
        () = events.closed() => {}
        () = attend => {}
    }
}

async fn attend(config: &Config, events: &mpsc::Sender<ControlEvent>) {
    let mut pause = PAUSE_MIN;
    let mut complained = false;
    loop {
        let error = match timeout(ATTEMPT_BOUND, open(config)).await {
            Err(_) => AttendError::Silent,
            Ok(Err(error)) => error,
            Ok(Ok(opened)) => {
                tracing::info!(collector = %opened.address, "control stream open");
                complained = false;
                let since = Instant::now();
                let error = match converse(config, opened, events).await {
                    Ok(Over::Nobody) => return,
                    Err(error) => error,
                };
                if since.elapsed() >= LASTING {
                    pause = PAUSE_MIN;
                }
                if events.send(ControlEvent::Disconnected).await.is_err() {
                    return;
                }
                error
            }
        };
        complain(&error, !complained);
        complained = true;
        sleep(pause).await;
        pause = PAUSE_MAX.min(pause * 2);
    }
}

/// A stream that is open.
struct Opened {
    address: SocketAddr,
    inbound: Streaming<pb::CollectorWord>,
    words: mpsc::Sender<pb::NodeWord>,
}

async fn open(config: &Config) -> Result<Opened, AttendError> {
    let address = match &config.collector {
        CollectorAddress::Fixed(address) => *address,
        CollectorAddress::Published(dir) => read_address(dir)?,
    };
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .connect_timeout(ATTEMPT_BOUND)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true);
    let mut client = CollectorClient::new(endpoint.connect().await?);
    let (words, outbound) = mpsc::channel(WORDS_MAX);
    let inbound = client
        .attend(ReceiverStream::new(outbound))
        .await?
        .into_inner();
    Ok(Opened {
        address,
        inbound,
        words,
    })
}

/// A collector that was stopped, not killed, keeps its streams open: only the file shows that
/// another has taken its place.
fn check_moved(config: &Config, address: SocketAddr) -> Result<(), AttendError> {
    match &config.collector {
        CollectorAddress::Fixed(_) => Ok(()),
        CollectorAddress::Published(dir) => match read_address(dir) {
            Ok(other) if other != address => Err(AttendError::Moved(other)),
            _ => Ok(()),
        },
    }
}

/// One connection, from the join to its end.
async fn converse(
    config: &Config,
    opened: Opened,
    events: &mpsc::Sender<ControlEvent>,
) -> Result<Over, AttendError> {
    let Opened {
        address,
        mut inbound,
        words,
    } = opened;
    let uplink = Uplink {
        words,
        place: Arc::new(config.place.clone()),
        joined: Arc::default(),
        broken: CancellationToken::new(),
    };
    if events
        .send(ControlEvent::Connected(uplink.clone()))
        .await
        .is_err()
    {
        return Ok(Over::Nobody);
    }
    let mut beats = beats(config.heartbeat);
    loop {
        let word = tokio::select! {
            biased;
            () = uplink.broken.cancelled() => return Err(AttendError::Full),
            _ = beats.tick() => {
                check_moved(config, address)?;
                if uplink.joined.load(Ordering::Acquire) {
                    uplink.say(words::heartbeat(counted(&config.progress)));
                }
                continue;
            }
            word = inbound.message() => word?.ok_or(AttendError::Closed)?,
        };
        let event = match CollectorSaid::try_from(word)? {
            CollectorSaid::Order(directive, addresses) => ControlEvent::Order(directive, addresses),
            CollectorSaid::Command { request, text } => ControlEvent::Command { request, text },
        };
        // A loop that takes no orders is not alive: no heartbeats while it does not.
        if events.send(event).await.is_err() {
            return Ok(Over::Nobody);
        }
    }
}

fn beats(heartbeat: Duration) -> Interval {
    let mut beats = interval(heartbeat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

fn counted(progress: &Progress) -> Counted {
    Counted {
        handled: progress.handled.load(Ordering::Relaxed),
        sent: progress.sent.load(Ordering::Relaxed),
    }
}

/// The first failure is news; that it goes on is not.
fn complain(error: &AttendError, first: bool) {
    let cause = std::error::Error::source(error);
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    if first {
        tracing::warn!("{error}{cause}: looking for the collector");
    } else {
        tracing::debug!("{error}{cause}");
    }
}
