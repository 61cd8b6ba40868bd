//! The trace of a node on its way to the disk, off the handling thread.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::protocol::application::Setup;
use crate::protocol::ids::Incarnation;
use crate::protocol::trace::Event;
use crate::trace::Writer;

/// Events that may wait for the disk. Beyond that the node waits: a trace with a hole in it would
/// be worth nothing, and who traces is not in a hurry.
const WAITING_MAX: usize = 16 * 1024;

/// How long a node that ends waits for what is left to be written: a disk that hangs must not keep
/// the program.
const CLOSE_MAX: Duration = Duration::from_secs(3);

type Entry = (Event, u64);

/// Where events go. Nothing exists before the first, and so nothing at all where none come.
pub(super) struct TraceFile {
    writer: Option<Writer>,
    writing: Option<(SyncSender<Entry>, JoinHandle<()>)>,
}

impl TraceFile {
    pub(super) fn new(directory: Option<&Path>, setup: &Setup, incarnation: Incarnation) -> Self {
        let writer = directory.map(|directory| {
            let topology = setup.topology.clone();
            Writer::new(directory, topology, setup.process, incarnation)
        });
        Self {
            writer,
            writing: None,
        }
    }

    /// Hands an event on, with the time of this node's clock.
    pub(super) fn write(&mut self, event: Event) {
        if let Some(writer) = self.writer.take() {
            let (events, waiting) = sync_channel(WAITING_MAX);
            let writing = spawn_blocking(move || write_all(writer, &waiting));
            self.writing = Some((events, writing));
        }
        if let Some((events, _)) = &self.writing {
            // A writer that has failed has said so, and the job goes on without a trace.
            let _ = events.send((event, now_us()));
        }
    }

    /// Waits until everything is written.
    pub(super) async fn close(&mut self) {
        if let Some((events, writing)) = self.writing.take() {
            drop(events);
            let _ = timeout(CLOSE_MAX, writing).await;
        }
    }
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}

/// Writes what comes, and flushes whenever nothing more waits.
fn write_all(mut writer: Writer, waiting: &Receiver<Entry>) {
    let write = |writer: &mut Writer, (event, at_us): Entry| writer.write(&event, at_us);
    let mut written = || {
        while let Ok(first) = waiting.recv() {
            write(&mut writer, first)?;
            while let Ok(next) = waiting.try_recv() {
                write(&mut writer, next)?;
            }
            writer.flush()?;
        }
        Ok::<(), std::io::Error>(())
    };
    if let Err(error) = written() {
        tracing::error!("the trace ends here: {error}");
    }
}
