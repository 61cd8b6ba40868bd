//! Streams for outputs: dialled, each on a TCP connection of its own, and read to the end.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{error::Elapsed, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Endpoint, Uri};
use tonic::{Status, Streaming};
use tower::service_fn;

use super::inbound::{FRAME_BYTES, WINDOW_BYTES};
use super::outlet::{Outlet, outlet};
use super::socket::{Connection, Socket};
use super::tasks::{Shared, StreamId, What};
use crate::protocol::frame::{Greeting, Hello};
use crate::protocol::ids::ChannelId;
use crate::wire::channel::{WireError, hello_word, read_feedback, read_greeting};
use crate::wire::pb;
use crate::wire::pb::channel_client::ChannelClient;

/// What is to be dialled; then, the stream's task.
pub(super) struct Dial {
    pub(super) shared: Arc<Shared>,
    pub(super) channel: ChannelId,
    pub(super) stream: StreamId,
    pub(super) address: String,
    pub(super) hello: Hello,
    /// How long before the first try.
    pub(super) wait: Duration,
    pub(super) end: CancellationToken,
}

/// Why a stream for an output could not be opened, or ended.
#[derive(Debug, thiserror::Error)]
enum OutboundError {
    #[error("the receiver cannot be reached: {0}")]
    Unreachable(#[from] tonic::transport::Error),
    #[error("no answer came in time")]
    Unanswered(#[from] Elapsed),
    #[error("the receiver ended the stream")]
    Ended,
    #[error(transparent)]
    Nonsense(#[from] WireError),
    #[error("the connection is gone: {0}")]
    Gone(#[from] Status),
}

/// A stream whose hello has been answered.
struct Answered {
    greeting: Greeting,
    outlet: Outlet<pb::ToReceiver>,
    words: Streaming<pb::ToSender>,
}

impl Dial {
    /// Opens the stream, however often it takes, and reads it to its end.
    pub(super) async fn carry(self) {
        self.end.run_until_cancelled(self.dial()).await;
    }

    async fn dial(&self) {
        let timing = &self.shared.timing;
        let mut pause = timing.pause;
        if !self.wait.is_zero() {
            sleep(self.wait).await;
        }
        loop {
            // A connection lasts no longer than the stream that was opened on it.
            let connection = Connection::new(self.end.child_token());
            let end = connection.end.clone().drop_guard();
            let answered = timeout(timing.opening, self.open(connection)).await;
            match answered.map_err(OutboundError::from).flatten() {
                Ok(answered) if answered.greeting == Greeting::NotYet => {
                    tracing::debug!(channel = %self.channel, "the receiver is not there yet");
                }
                Ok(answered) => return self.converse(answered).await,
                Err(error) => self.complain(&error, pause),
            }
            drop(end);
            sleep(pause).await;
            pause = (pause * 2).min(timing.pause_max);
        }
    }

    async fn open(&self, connection: Connection) -> Result<Answered, OutboundError> {
        let shared = &self.shared;
        let (outlet, tap) = outlet(&shared.wakeups, shared.tasks.token());
        // It is there before it is asked for: nobody waits for anybody.
        outlet.put(hello_word(self.channel, &self.hello));
        let counted = shared.tasks.token();
        let address = self.address.clone();
        let connect = move |_: Uri| {
            let (address, connection) = (address.clone(), connection.clone());
            let counted = counted.clone();
            Box::pin(async move {
                let stream = TcpStream::connect(address).await?;
                Ok::<_, std::io::Error>(TokioIo::new(Socket::dialled(stream, connection, counted)))
            })
        };
        // The name is never looked up: the connector knows the address.
        let endpoint = Endpoint::from_static("http://cutline")
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .http2_keep_alive_interval(shared.timing.keepalive)
            .keep_alive_timeout(shared.timing.keepalive)
            .keep_alive_while_idle(true);
        let channel = endpoint.connect_with_connector(service_fn(connect)).await?;
        let mut words = ChannelClient::new(channel).carry(tap).await?.into_inner();
        let first = words.message().await?.ok_or(OutboundError::Ended)?;
        Ok(Answered {
            greeting: read_greeting(first)?,
            outlet,
            words,
        })
    }

    async fn converse(&self, answered: Answered) {
        let Answered {
            greeting,
            outlet,
            mut words,
        } = answered;
        let generation = self.hello.generation;
        let is_welcome = matches!(greeting, Greeting::Welcome { .. });
        let outlet = is_welcome.then_some(outlet);
        self.tell(What::Greeted(generation, greeting, outlet)).await;
        if !is_welcome {
            return;
        }
        let error = loop {
            let word = match words.message().await {
                Ok(Some(word)) => word,
                Ok(None) => break OutboundError::Ended,
                Err(status) => break status.into(),
            };
            match read_feedback(word) {
                Ok(feedback) => self.tell(What::Heard(generation, feedback)).await,
                Err(error) => break error.into(),
            }
        };
        let channel = self.channel;
        match &error {
            // Peers die and jobs end; who watches them says so. The channel loses nothing.
            OutboundError::Ended | OutboundError::Gone(_) => {
                tracing::debug!(%channel, %error, "the receiver is gone");
            }
            _ => tracing::warn!(%channel, %error, "a stream is dropped"),
        }
        self.tell(What::Broken).await;
    }

    /// Once, when it has been tried for a while.
    fn complain(&self, error: &OutboundError, pause: Duration) {
        let pause_max = self.shared.timing.pause_max;
        let (channel, address) = (self.channel, &self.address);
        if pause < pause_max && pause * 2 >= pause_max {
            tracing::warn!(%channel, %error, address, "the stream cannot be opened, still trying");
        } else {
            tracing::debug!(%channel, %error, address, "the stream cannot be opened yet");
        }
    }

    async fn tell(&self, what: What) {
        self.shared.tell(self.channel, self.stream, what).await;
    }
}
