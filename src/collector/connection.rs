//! The collector's side of TCP: connections that end when they are told to, whatever the other
//! side does or does not do.
//!
//! A graceful end of HTTP/2 waits for the client, so one that never answers, or never said
//! anything, would keep the collector from ending.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

/// Connections at once besides one for each process: commands of people and their watchers, each
/// with one, and nodes that have another until the loss of the one before is noticed.
const SPARE: usize = 256;

/// So long a connection may keep its place without a byte said.
const FIRST_BYTE_BOUND: Duration = Duration::from_secs(10);

/// Before the next try when accepting failed, mostly for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An accepted connection.
pub(super) struct Connection {
    socket: TcpStream,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Until the first byte has come.
    patience: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

/// How many may be connected at once where there are so many processes. Each costs a descriptor.
pub(super) const fn connections_max(processes: usize) -> usize {
    processes + SPARE
}

/// Everyone who connects, so many at once, until `end`. More wait to be accepted.
pub(super) fn accept(
    listener: TcpListener,
    connections_max: usize,
    end: CancellationToken,
) -> impl Stream<Item = io::Result<Connection>> {
    let places = Arc::new(Semaphore::new(connections_max));
    futures::stream::unfold(
        (listener, places, end),
        |(listener, places, end)| async move {
            let place = Arc::clone(&places).acquire_owned().await;
            let place = place.expect("the semaphore is never closed");
            let socket = loop {
                match listener.accept().await {
                    Ok((socket, _)) => break socket,
                    Err(error) => {
                        tracing::warn!("cannot accept a connection: {error}");
                        sleep(ACCEPT_PAUSE).await;
                    }
                }
            };
            // Words are small and awaited: nothing may sit in the kernel for want of company.
            let _ = socket.set_nodelay(true);
            let connection = Connection {
                socket,
                end: Box::pin(end.clone().cancelled_owned()),
                patience: Some(Box::pin(sleep(FIRST_BYTE_BOUND))),
                _place: place,
            };
            Some((Ok(connection), (listener, places, end)))
        },
    )
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // The connection's task always waits for something to read: an end is seen here.
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        if read.is_ready() {
            self.patience = None;
        } else if let Some(patience) = &mut self.patience
            && patience.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;
    use crate::program::allow_sockets;

    /// More than a collector has once had room for, whatever its job.
    const PROCESSES: usize = 600;

    #[tokio::test]
    async fn every_process_of_a_large_job_has_a_place() {
        if let Err(error) = allow_sockets(2 * PROCESSES, || "both ends".to_owned()) {
            eprintln!("skipped: {error}");
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut accepted = Box::pin(accept(
            listener,
            connections_max(PROCESSES),
            CancellationToken::new(),
        ));
        let mut both = Vec::new();
        for process in 0..PROCESSES {
            let dialled = TcpStream::connect(address).await.unwrap();
            let taken = tokio::time::timeout(FIRST_BYTE_BOUND, accepted.next()).await;
            let taken = taken.unwrap_or_else(|_| panic!("no place for process {process}"));
            both.push((dialled, taken.unwrap().unwrap()));
        }
    }
}
