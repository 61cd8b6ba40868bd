//! When what is on its way on a channel is due at its end. The queues themselves are the world's.

use std::collections::VecDeque;

use super::ByChannel;
use crate::protocol::Topology;
use crate::protocol::ids::ChannelId;

/// Both directions of every channel.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: ByChannel<Lane>,
}

/// The two directions of a channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub(super) wire: Due,
    pub(super) back: Due,
}

/// When each thing of one direction is due: the order is that of the queue in the world.
#[derive(Clone, Debug, Default)]
pub(super) struct Due {
    due_us: VecDeque<u64>,
    last_us: u64,
}

impl Lanes {
    pub(super) fn new(topology: &Topology) -> Self {
        let lanes = topology.channels().iter();
        Self {
            lanes: lanes.map(|&channel| (channel, Lane::default())).collect(),
        }
    }

    pub(super) fn of(&mut self, channel: ChannelId) -> &mut Lane {
        self.lanes.entry(channel).or_default()
    }
}

impl Due {
    pub(super) fn len(&self) -> usize {
        self.due_us.len()
    }

    /// A stream that has gone has taken along what was on it.
    pub(super) fn shorten(&mut self, length: usize) {
        while self.due_us.len() > length {
            self.due_us.pop_front();
        }
        if length == 0 {
            self.last_us = 0;
        }
    }

    /// What comes behind another is never there before it.
    pub(super) fn push(&mut self, due_us: u64) {
        self.last_us = self.last_us.max(due_us);
        self.due_us.push_back(self.last_us);
    }

    pub(super) fn pop(&mut self) {
        self.due_us.pop_front();
    }

    /// When the next is due.
    pub(super) fn next_us(&self) -> Option<u64> {
        self.due_us.front().copied()
    }
}
