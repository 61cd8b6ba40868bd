//! How often a program that has died is started again, and after which pause.

use std::collections::VecDeque;
use std::time::Duration;

/// What happens when a node or the collector dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarts {
    /// How often one program is started again within a window; once more ends the job.
    pub max: u32,
    /// The window.
    pub window: Duration,
    /// The pause before the second restart within a window; it doubles from then on.
    pub backoff: Duration,
}

/// No pause before a restart is longer: by then it is not the pause that helps.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

impl Restarts {
    /// How long to wait before a restart, when there were so many others within the window. The
    /// first is immediate, for most crashes are single ones.
    fn pause(&self, others: u32) -> Duration {
        match others {
            0 => Duration::ZERO,
            _ => self
                .backoff
                .saturating_mul(2u32.saturating_pow(others - 1))
                .min(BACKOFF_MAX),
        }
    }
}

/// What one program has used of its [`Restarts`].
#[derive(Clone, Debug, Default)]
pub struct UsedRestarts {
    /// When, within the window; never more than the job allows.
    recent: VecDeque<Duration>,
}

impl UsedRestarts {
    /// One restart is wanted now: after which pause, unless there have been too many. Time is
    /// counted from any moment, as long as it is the same one each time.
    pub fn next(&mut self, allowed: &Restarts, now: Duration) -> Option<Duration> {
        while let Some(&oldest) = self.recent.front()
            && now.saturating_sub(oldest) >= allowed.window
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
    fn the_first_restart_is_immediate_and_further_pauses_double_up_to_a_bound() {
        let backoff = Duration::from_millis(100);
        let restarts = Restarts {
            max: 99,
            window: Duration::from_secs(60),
            backoff,
        };
        let pauses = [0, 1, 2, 3, 8, 40].map(|others| restarts.pause(others).as_millis());
        assert_eq!(pauses, [0, 100, 200, 400, 10_000, 10_000]);
    }

    #[test]
    fn a_restart_is_allowed_again_when_others_have_left_the_window() {
        let allowed = Restarts {
            max: 4,
            window: Duration::from_secs(60),
            backoff: Duration::from_millis(5),
        };
        let mut used = UsedRestarts::default();
        let mut next = |at: u64| used.next(&allowed, Duration::from_secs(7 + at));
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
        let mut used = UsedRestarts::default();
        assert_eq!(used.next(&none, Duration::ZERO), None);
    }
}
