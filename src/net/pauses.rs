//! How long an output waits before it is dialled again. A stream that breaks is dialled at once,
//! as its peer may be back; one that breaks as soon as it is open, as the two ends do not
//! understand each other, more and more seldom: nothing else would slow that down.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::tasks::Timing;
use crate::protocol::ids::{ChannelId, Generation};

/// A stream that was dialled so long ago was a good one: the next is dialled at once.
const LASTING: Duration = Duration::from_secs(1);

/// The last dial of each output.
#[derive(Default)]
pub(super) struct Pauses {
    last: BTreeMap<ChannelId, Last>,
}

struct Last {
    generation: Generation,
    pause: Duration,
    /// When that pause was over.
    begun: Instant,
}

impl Pauses {
    /// How long to wait before an output is dialled, now. Another generation is another start.
    pub(super) fn before(
        &mut self,
        channel: ChannelId,
        generation: Generation,
        now: Instant,
        timing: &Timing,
    ) -> Duration {
        let last = self.last.get(&channel);
        let short = last.filter(|last| {
            last.generation == generation && now.saturating_duration_since(last.begun) < LASTING
        });
        let pause = match short {
            None => Duration::ZERO,
            Some(last) => (last.pause * 2).clamp(timing.pause, timing.pause_max),
        };
        let last = Last {
            generation,
            pause,
            begun: now + pause,
        };
        self.last.insert(channel, last);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::ProcessId;

    #[test]
    fn only_what_did_not_last_waits_and_longer_each_time() {
        let timing = Timing::default();
        let channel = ChannelId::new(ProcessId::new(0), ProcessId::new(1));
        let (first, second) = (Generation::new(1), Generation::new(2));
        let mut pauses = Pauses::default();
        let mut now = Instant::now();
        let mut waits = |generation, passed_ms| {
            now += Duration::from_millis(passed_ms);
            let pause = pauses.before(channel, generation, now, &timing);
            now += pause;
            pause.as_millis()
        };
        assert_eq!(waits(first, 0), 0);
        let short: Vec<_> = (0..9).map(|_| waits(first, 1)).collect();
        assert_eq!(short, [5, 10, 20, 40, 80, 160, 320, 500, 500]);
        assert_eq!(waits(second, 1), 0, "a new generation");
        assert_eq!(waits(second, 999), 5, "it did not last");
        assert_eq!(waits(second, 1_000), 0, "it did");
        assert_eq!(waits(second, 1), 5, "and so all begins again");
    }
}
