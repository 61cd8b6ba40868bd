//! The collector's clock: how long this program has been running, not how late it is.

use std::time::{Duration, Instant};

/// More than this between two looks at the clock is not counted.
///
/// A collector that was stopped, or got no processor, has not listened meanwhile: were the gap
/// counted, every node would seem to have been silent for as long. The loop looks at its clock
/// twenty times a second, so that a second is far beyond what load alone does.
const GAP_MAX: Duration = Duration::from_secs(1);

/// Counts the time in which the collector was awake.
pub(super) struct Clock {
    last: Instant,
    awake: Duration,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            last: Instant::now(),
            awake: Duration::ZERO,
        }
    }

    /// Milliseconds awake since the start.
    pub(super) fn now_ms(&mut self) -> u64 {
        self.pass(Instant::now())
    }

    fn pass(&mut self, now: Instant) -> u64 {
        self.awake += now.saturating_duration_since(self.last).min(GAP_MAX);
        self.last = now;
        u64::try_from(self.awake.as_millis()).expect("nobody runs for half a billion years")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_which_the_collector_was_stopped_is_not_held_against_the_nodes() {
        let mut clock = Clock::new();
        let start = clock.last;
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(clock.pass(at(50)), 50);
        assert_eq!(clock.pass(at(60_050)), 1_050);
        assert_eq!(clock.pass(at(60_100)), 1_100);
    }
}
