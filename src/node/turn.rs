//! How long a node handles messages before everything else on its thread has its turn: its
//! streams, the clock, the signs of life. How long a message takes is the application's business,
//! so it is measured.

use std::time::{Duration, Instant};

use crate::protocol::ids::ChannelId;

/// How long a turn is to take. A marker that overtakes, and the limit of a snapshot, wait for it.
const TURN: Duration = Duration::from_millis(1);

/// Messages handled between two looks at the clock, at most. The look costs as much as one or two
/// small messages, and this many that each take 30 ms, where the last ones took none, still leave
/// a node within the patience of a collector.
const TAKE_MAX: u32 = 256;

/// Whose turn it is, and for how long.
#[derive(Debug)]
pub(super) struct Turn {
    /// Messages to be handled at once.
    take: u32,
    since: Instant,
    ends: Instant,
    /// The channel that was taken from last.
    last: Option<ChannelId>,
}

impl Turn {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            take: 1,
            since: now,
            ends: now,
            last: None,
        }
    }

    /// A turn begins: of these channels, the one behind the last is first.
    pub(super) fn begin(&mut self, channels: &mut [ChannelId], now: Instant) {
        let last = channels
            .iter()
            .position(|channel| Some(*channel) == self.last);
        channels.rotate_left(last.map_or(0, |last| last + 1));
        self.since = now;
        self.ends = now + TURN;
    }

    /// How many messages are to be handled now.
    pub(super) fn take(&self) -> u32 {
        self.take
    }

    /// So many have been, from this channel. Whether the turn is over.
    pub(super) fn took(&mut self, channel: ChannelId, now: Instant) -> bool {
        let lasted = now - self.since;
        if lasted > TURN {
            self.take = (self.take / 2).max(1);
        } else if lasted < TURN / 4 {
            self.take = (self.take * 2).min(TAKE_MAX);
        }
        self.last = Some(channel);
        self.since = now;
        now >= self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::ProcessId;

    fn channels() -> Vec<ChannelId> {
        let to = ProcessId::new(0);
        (1..=3)
            .map(|from| ChannelId::new(ProcessId::new(from), to))
            .collect()
    }

    #[test]
    fn quick_messages_are_handled_many_at_once_and_slow_ones_one_by_one() {
        let mut now = Instant::now();
        let mut turn = Turn::new(now);
        let mut channels = channels();
        let mut take = |each: Duration| {
            turn.begin(&mut channels, now);
            let took = turn.take();
            now += each * took;
            turn.took(channels[0], now);
            took
        };
        let quick: Vec<_> = (0..20).map(|_| take(Duration::from_nanos(50))).collect();
        assert_eq!((quick[0], quick[19]), (1, TAKE_MAX));
        let slow: Vec<_> = (0..20).map(|_| take(Duration::from_millis(3))).collect();
        assert_eq!((slow[0], slow[19]), (TAKE_MAX, 1));
    }

    #[test]
    fn a_channel_that_used_up_a_turn_is_the_last_in_the_next() {
        let now = Instant::now();
        let mut turn = Turn::new(now);
        let mut order = Vec::new();
        for _ in 0..4 {
            let mut channels = channels();
            turn.begin(&mut channels, now);
            order.push(channels[0]);
            assert!(turn.took(channels[0], now + TURN));
        }
        let channels = channels();
        assert_eq!(order, [channels[0], channels[1], channels[2], channels[0]]);
    }

    #[test]
    fn all_channels_have_their_turn_where_there_is_time() {
        let now = Instant::now();
        let mut turn = Turn::new(now);
        turn.begin(&mut channels(), now);
        assert!(channels().iter().all(|channel| !turn.took(*channel, now)));
    }
}
