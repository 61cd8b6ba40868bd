//! A TCP connection that ends when it is told to, whatever its peer does.
//!
//! tonic drives connections on tasks of its own, which nobody can join or abort. Everything on
//! them hangs on the socket, so it is the socket that is given the end: reads and writes fail
//! from then on, and the tasks go. It also counts as a task, so that who waits for the tasks of
//! the streams waits for those of their connections too.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::transport::server::Connected;

/// What a stream knows of the connection it is on.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// Ends the connection.
    pub(super) end: CancellationToken,
    /// Whether a call has been made on it.
    called: Arc<AtomicBool>,
}

impl Connection {
    pub(super) fn new(end: CancellationToken) -> Self {
        Self {
            end,
            called: Arc::default(),
        }
    }

    /// A call has been made on it.
    pub(super) fn call(&self) {
        self.called.store(true, Ordering::Relaxed);
    }

    fn is_called(&self) -> bool {
        self.called.load(Ordering::Relaxed)
    }
}

/// A TCP connection that ends when it is told to.
pub(super) struct Socket {
    stream: TcpStream,
    connection: Connection,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    /// How long a peer may hold it without making a call.
    silence: Option<Pin<Box<Sleep>>>,
    _counted: TaskTrackerToken,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Socket {
    /// Takes over a connection that this node has opened.
    pub(super) fn dialled(
        stream: TcpStream,
        connection: Connection,
        counted: TaskTrackerToken,
    ) -> Self {
        // Small words are not to be held back. Where that cannot be had, the connection is
        // slower and no less right.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "nodelay refused");
        }
        Self {
            stream,
            ended: Box::pin(connection.end.clone().cancelled_owned()),
            silence: None,
            connection,
            _counted: counted,
            _permit: None,
        }
    }

    /// Takes over a connection from a peer, who is to make a call before `silence` is over.
    pub(super) fn accepted(
        stream: TcpStream,
        connection: Connection,
        silence: Sleep,
        counted: TaskTrackerToken,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            silence: Some(Box::pin(silence)),
            _permit: Some(permit),
            ..Self::dialled(stream, connection, counted)
        }
    }

    fn is_silent(&mut self, context: &mut Context<'_>) -> bool {
        if self.connection.is_called() {
            self.silence = None;
        }
        self.silence
            .as_mut()
            .is_some_and(|silence| silence.as_mut().poll(context).is_ready())
    }
}

impl Connected for Socket {
    type ConnectInfo = Connection;

    fn connect_info(&self) -> Connection {
        self.connection.clone()
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "ended by this node")
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Whoever drives a connection is always reading it: this is what wakes it at the end.
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(ended()));
        }
        if self.is_silent(context) {
            tracing::warn!("a connection on which nobody calls is closed");
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.connection.end.is_cancelled() {
            return Poll::Ready(Err(ended()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.connection.end.is_cancelled() {
            return Poll::Ready(Err(ended()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
