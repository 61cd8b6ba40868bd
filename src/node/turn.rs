//! How long a node handles messages before everything else on its thread has its turn: its
//! streams, the clock, the signs of life. How long a message takes is the application's business,
//! so it is measured.

use std::time::{Duration, Instant};

use super::driver::Driver;
use crate::protocol::Input;
use crate::protocol::application::Application;
use crate::protocol::ids::ChannelId;

/// How long a turn is to take. A marker that overtakes, and the limit of a snapshot, wait for it.
const TURN: Duration = Duration::from_millis(1);

/// Messages handled between two looks at the clock, at most. The look costs as much as one or two
/// small messages, and this many that each take 30 ms, where the last ones took none, still leave
/// a node within the patience of a collector.
const TAKE_MAX: u32 = 256;

/// So often a channel is taken from in a turn: half a window of small messages by default, so that
/// its sender hears of its credit before that is used up.
const ROUNDS_MAX: u32 = 16;

/// Whose turn it is, and for how long.
#[derive(Debug)]
pub(super) struct Turn {
    /// Messages to be handled at once.
    take: u32,
    rounds: u32,
    since: Instant,
    ends: Instant,
    is_over: bool,
    /// The channel that was taken from last.
    last: Option<ChannelId>,
}

impl Turn {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            take: 1,
            rounds: 0,
            since: now,
            ends: now,
            is_over: true,
            last: None,
        }
    }

    /// A turn begins.
    pub(super) fn begin(&mut self, now: Instant) {
        self.rounds = 0;
        self.since = now;
        self.ends = now + TURN;
        self.is_over = false;
    }

    /// Whether these channels are to be taken from once more; if so, the one behind the last is
    /// first.
    pub(super) fn goes_round(&mut self, channels: &mut [ChannelId]) -> bool {
        self.rounds += 1;
        let last = channels
            .iter()
            .position(|channel| Some(*channel) == self.last);
        channels.rotate_left(last.map_or(0, |last| last + 1));
        !channels.is_empty() && !self.is_over && self.rounds <= ROUNDS_MAX
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
        self.is_over = now >= self.ends;
        self.is_over
    }
}

impl<A: Application> Driver<A> {
    /// Has messages handled for a turn; the buffer is for the channels.
    pub(super) fn handle(&mut self, channels: &mut Vec<ChannelId>) {
        self.turn.begin(Instant::now());
        loop {
            channels.clear();
            channels.extend(self.process.takable());
            if !self.turn.goes_round(channels) {
                return;
            }
            for &channel in &*channels {
                self.step(Input::Take(channel, self.turn.take()));
                if self.turn.took(channel, Instant::now()) {
                    break;
                }
            }
        }
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
            turn.begin(now);
            assert!(turn.goes_round(&mut channels));
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
            turn.begin(now);
            assert!(turn.goes_round(&mut channels));
            order.push(channels[0]);
            assert!(turn.took(channels[0], now + TURN));
            assert!(!turn.goes_round(&mut channels));
        }
        let channels = channels();
        assert_eq!(order, [channels[0], channels[1], channels[2], channels[0]]);
    }

    #[test]
    fn channels_are_taken_from_in_rounds_while_there_is_time_and_something_to_take() {
        let now = Instant::now();
        let mut turn = Turn::new(now);
        turn.begin(now);
        assert!(!turn.goes_round(&mut []));
        turn.begin(now);
        let mut rounds = 0;
        let mut channels = channels();
        while turn.goes_round(&mut channels) {
            rounds += 1;
            assert!(channels.iter().all(|channel| !turn.took(*channel, now)));
        }
        assert_eq!(rounds, ROUNDS_MAX);
    }
}
