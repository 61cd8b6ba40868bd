//! Streams for inputs: taken by a gRPC server, each handed to a task that reads it to its end.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use super::outlet::{Outlet, Tap, outlet};
use super::socket::{Connection, Socket};
use super::tasks::{Dialled, Input, Shared, StreamId, What};
use crate::protocol::ids::{ChannelId, Generation};
use crate::wire::channel::{WireError, read_frame, read_hello};
use crate::wire::pb;
use crate::wire::pb::channel_server::{Channel, ChannelServer};

/// How much a stream may have sent that is not read yet, in HTTP/2's own count. The socket is
/// always read, so it only has to cover a round trip; 256 KiB to 1 MiB do equally well.
pub(super) const WINDOW_BYTES: u32 = 1024 * 1024;

/// The longest HTTP/2 frame. The default, 16 KiB, cuts every batch into five: 1.6 times slower.
pub(super) const FRAME_BYTES: u32 = 256 * 1024;

/// How many connections may be open at once besides one for each input: senders that dial again
/// before their old connection is gone, and strangers. More wait to be accepted.
pub const SPARE_CONNECTIONS: usize = 128;

/// How long a sender that is not welcome may take to close its connection after it was told.
const LINGER: Duration = Duration::from_secs(1);

/// The pause after a failure to accept, which mostly is a want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Takes streams until the shutdown.
pub(super) async fn serve(listener: TcpListener, inputs: usize, shared: Arc<Shared>) {
    let stop = shared.stop.clone();
    let keepalive = Some(shared.timing.keepalive);
    let incoming = incoming(listener, inputs, Arc::clone(&shared));
    // A connection carries one channel: streams that share one can starve one another.
    let serving = Server::builder()
        .max_concurrent_streams(1)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .http2_keepalive_interval(keepalive)
        .http2_keepalive_timeout(keepalive)
        .add_service(ChannelServer::new(Carrier { shared }))
        .serve_with_incoming(incoming);
    if let Some(Err(error)) = stop.run_until_cancelled(serving).await {
        tracing::error!(%error, "no more streams are taken");
    }
}

fn incoming(
    listener: TcpListener,
    inputs: usize,
    shared: Arc<Shared>,
) -> impl Stream<Item = Result<Socket, io::Error>> {
    let permits = Arc::new(Semaphore::new(inputs + SPARE_CONNECTIONS));
    stream::unfold((listener, shared, permits), async |state| {
        let (listener, shared, permits) = &state;
        let permit = Arc::clone(permits).acquire_owned().await.ok()?;
        let stream = loop {
            match listener.accept().await {
                Ok((stream, _)) => break stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        };
        let socket = Socket::accepted(
            stream,
            Connection::new(shared.stop.child_token()),
            sleep(shared.timing.opening),
            shared.tasks.token(),
            permit,
        );
        Some((Ok(socket), state))
    })
}

/// The gRPC service.
struct Carrier {
    shared: Arc<Shared>,
}

#[tonic::async_trait]
impl Channel for Carrier {
    type CarryStream = stream::Map<Tap<pb::ToSender>, fn(pb::ToSender) -> Answered>;

    /// Answers at once: who dials waits for this before its first word is on the wire.
    async fn carry(
        &self,
        request: Request<Streaming<pb::ToReceiver>>,
    ) -> Result<Response<Self::CarryStream>, Status> {
        let connection = request.extensions().get::<Connection>().cloned();
        let connection = connection.ok_or_else(|| Status::internal("not on one of our sockets"))?;
        connection.call();
        let (outlet, tap) = outlet(&self.shared.wakeups, self.shared.tasks.token());
        let inbound = Inbound {
            shared: Arc::clone(&self.shared),
            stream: self.shared.next_stream(),
            words: request.into_inner(),
        };
        self.shared
            .tasks
            .spawn(inbound.carry(connection.end, outlet));
        Ok(Response::new(tap.map(Ok as fn(pb::ToSender) -> Answered)))
    }
}

type Answered = Result<pb::ToSender, Status>;

/// One stream, as its task reads it.
struct Inbound {
    shared: Arc<Shared>,
    stream: StreamId,
    words: Streaming<pb::ToReceiver>,
}

/// Why a stream for an input ends before its sender ends it.
#[derive(Debug, thiserror::Error)]
enum InboundError {
    #[error("no hello came in time")]
    Silent,
    #[error("the hello was not answered in time: the node is stopped or very busy")]
    Unanswered,
    #[error(transparent)]
    Nonsense(#[from] WireError),
    #[error("the connection is gone: {0}")]
    Gone(#[from] Status),
}

impl Inbound {
    /// Reads the stream to its end; the connection goes with it.
    async fn carry(mut self, end: CancellationToken, outlet: Outlet<pb::ToSender>) {
        let _end = end.clone().drop_guard();
        let whole = async {
            let mut carried = None;
            let outcome = self.converse(&mut carried, &end, outlet).await;
            match (outcome, carried) {
                (Ok(()), _) => {}
                // Peers die and jobs end; who watches them says so. The channel loses nothing.
                (Err(error @ InboundError::Gone(_)), Some(channel)) => {
                    tracing::debug!(%channel, %error, "the sender is gone");
                }
                (Err(error), None) => tracing::warn!(%error, "a stream is dropped"),
                (Err(error), Some(channel)) => {
                    tracing::warn!(%channel, %error, "a stream is dropped");
                }
            }
            if let Some(channel) = carried {
                self.tell(channel, What::Broken).await;
            }
        };
        // Who ends it has forgotten it already.
        end.run_until_cancelled(whole).await;
    }

    async fn converse(
        &mut self,
        carried: &mut Option<ChannelId>,
        end: &CancellationToken,
        outlet: Outlet<pb::ToSender>,
    ) -> Result<(), InboundError> {
        let opening = self.shared.timing.opening;
        let first = timeout(opening, self.words.message()).await;
        let Some(word) = first.map_err(|_| InboundError::Silent)?? else {
            return Ok(());
        };
        let (channel, hello) = read_hello(word)?;
        let (answered, answer) = oneshot::channel();
        let dialled = Dialled {
            input: Input {
                stream: self.stream,
                outlet,
                end: end.clone().drop_guard(),
            },
            answered,
        };
        *carried = Some(channel);
        self.tell(channel, What::Dialled(hello, Box::new(dialled)))
            .await;
        let answer = timeout(opening, answer).await;
        let is_welcome = answer.map_err(|_| InboundError::Unanswered)?;
        if !is_welcome.unwrap_or(false) {
            let _ = timeout(LINGER, self.words.message()).await;
            return Ok(());
        }
        if !self.shared.timing.delay.is_zero() {
            return self.delayed(channel, hello.generation).await;
        }
        while let Some(word) = self.words.message().await? {
            let frame = read_frame(word)?;
            self.tell(channel, What::Arrived(hello.generation, frame))
                .await;
        }
        Ok(())
    }

    /// The same, each frame some time after it came. How much is held is bounded by credit; what
    /// is held when the stream breaks was still under way.
    async fn delayed(
        &mut self,
        channel: ChannelId,
        generation: Generation,
    ) -> Result<(), InboundError> {
        let mut held = VecDeque::new();
        loop {
            let due = held.front().map(|&(due, _)| due);
            tokio::select! {
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let (_, frame) = held.pop_front().expect("the first is due");
                    self.tell(channel, What::Arrived(generation, frame)).await;
                }
                word = self.words.message() => match word? {
                    Some(word) => {
                        let due = Instant::now() + self.shared.timing.delay;
                        held.push_back((due, read_frame(word)?));
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    async fn tell(&self, channel: ChannelId, what: What) {
        self.shared.tell(channel, self.stream, what).await;
    }
}
