//! The control plane on loopback: collector, control streams and the command line's client, all
//! real; only the nodes have no application.

#![allow(clippy::unwrap_used)] // Clippy takes only the tests themselves for tests.

mod job;
mod life;
mod node;
mod program;
mod streams;

use std::future::Future;
use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Far more than anything here takes, even on a busy machine.
const BOUND: Duration = Duration::from_secs(30);

/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(10);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(BOUND, what)
        .await
        .expect("it did not happen in time")
}

/// Waits until a question is answered.
async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    soon(async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            sleep(LOOK).await;
        }
    })
    .await
}
