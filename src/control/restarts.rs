//! How often a program has been started again, and when it may be once more.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::job::Restarts;

/// What one program has used of its [`Restarts`].
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// When, within the window; never more than the job allows.
    recent: VecDeque<Instant>,
}

impl Used {
    /// One restart is wanted now: after which pause, unless there have been too many.
    pub fn next(&mut self, allowed: &Restarts, now: Instant) -> Option<Duration> {
        while let Some(&oldest) = self.recent.front()
            && now.duration_since(oldest) >= allowed.window
        {
            self.recent.pop_front();
        }
        let others = u32::try_from(self.recent.len()).unwrap_or(u32::MAX);
        if others >= allowed.max {
            return None;
        }
        self.recent.push_back(now);
        Some(allowed.pause(others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_allowed_again_when_others_have_left_the_window() {
        let allowed = Restarts {
            max: 4,
            window: Duration::from_secs(60),
            backoff: Duration::from_millis(5),
        };
        let mut used = Used::default();
        let now = Instant::now();
        let mut next = |at: u64| used.next(&allowed, now + Duration::from_secs(at));
        let pauses: Vec<_> = (0..5)
            .map(|at| next(at).map(|pause| pause.as_millis()))
            .collect();
        assert_eq!(pauses, [Some(0), Some(5), Some(10), Some(20), None]);
        // The first two have left the window.
        assert_eq!(next(61), Some(Duration::from_millis(10)));
    }

    #[test]
    fn no_restart_is_allowed_where_none_is() {
        let none = Restarts {
            max: 0,
            window: Duration::from_secs(60),
            backoff: Duration::ZERO,
        };
        assert_eq!(Used::default().next(&none, Instant::now()), None);
    }
}
