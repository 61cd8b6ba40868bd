//! How often a program is started again, and after what pause.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// No pause grows beyond this: a program that may be restarted often is still tried now and
/// then, whatever its window.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// How often a program is started again; from the job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Restarts within one window, at most.
    pub max: u32,
    /// The window.
    pub window: Duration,
    /// The pause before the second restart in a row; it doubles from restart to restart. The
    /// first restart is at once.
    pub backoff: Duration,
}

/// What one program has used of it.
#[derive(Clone, Debug, Default)]
pub struct Restarts {
    recent: VecDeque<Instant>,
}

impl Restarts {
    /// One restart is wanted now: after which pause, unless there have been too many.
    pub fn next(&mut self, policy: &RestartPolicy, now: Instant) -> Option<Duration> {
        while let Some(&oldest) = self.recent.front()
            && now.duration_since(oldest) >= policy.window
        {
            self.recent.pop_front();
        }
        let used = u32::try_from(self.recent.len()).unwrap_or(u32::MAX);
        if used >= policy.max {
            return None;
        }
        self.recent.push_back(now);
        let doubled = |times: u32| policy.backoff.saturating_mul(2_u32.saturating_pow(times));
        Some(
            used.checked_sub(1)
                .map_or(Duration::ZERO, doubled)
                .min(BACKOFF_MAX),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_the_pause_doubles_up_to_the_limit() {
        let policy = RestartPolicy {
            max: 4,
            window: Duration::from_secs(60),
            backoff: Duration::from_millis(5),
        };
        let mut restarts = Restarts::default();
        let now = Instant::now();
        let mut next = |at: u64| restarts.next(&policy, now + Duration::from_secs(at));
        let pauses: Vec<_> = (0..5)
            .map(|at| next(at).map(|pause| pause.as_millis()))
            .collect();
        assert_eq!(pauses, [Some(0), Some(5), Some(10), Some(20), None]);
        // The first two have left the window.
        assert_eq!(next(61), Some(Duration::from_millis(10)));
    }

    #[test]
    fn no_restart_is_allowed_where_none_is() {
        let policy = RestartPolicy {
            max: 0,
            window: Duration::from_secs(60),
            backoff: Duration::ZERO,
        };
        assert_eq!(Restarts::default().next(&policy, Instant::now()), None);
    }
}
