//! Ctrl-C and its kin: the first asks to end, the second to hurry.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The signals that end a job: from the terminal, from `cutline down`, and when the terminal is
/// closed.
#[derive(Debug)]
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// Cancelled by the first.
    pub shutdown: CancellationToken,
    /// Cancelled by the second.
    pub hurry: CancellationToken,
}

impl Interrupts {
    /// Takes the signals over from now on.
    ///
    /// # Errors
    /// If the operating system does not allow it.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            shutdown: CancellationToken::new(),
            hurry: CancellationToken::new(),
        })
    }

    /// Does the work, passing signals on meanwhile.
    pub async fn during<T>(mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = self.interrupt.recv() => self.pass_on(),
                _ = self.terminate.recv() => self.pass_on(),
                _ = self.hang_up.recv() => self.pass_on(),
            }
        }
    }

    fn pass_on(&self) {
        if self.shutdown.is_cancelled() {
            self.hurry.cancel();
        }
        self.shutdown.cancel();
    }
}
