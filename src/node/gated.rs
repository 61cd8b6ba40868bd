//! The loop of a node whose job has a gate: it does what is released, and nothing else of that
//! kind. What the streams say to one another, the control stream and the store go on freely.

use std::time::{Duration, Instant};

use super::NodeError;
use super::driver::Driver;
use super::gate::{Deed, Gate};
use crate::net::Event;
use crate::protocol::Input;
use crate::protocol::application::{Application, Pace};
use crate::protocol::ids::ChannelId;

impl<A: Application> Driver<A> {
    /// The next deed that is released; never, without a gate.
    pub(super) async fn released(gate: &mut Option<Gate>) -> Option<Deed> {
        match gate {
            None => std::future::pending().await,
            // Whoever ran the job is gone, and with it the job's other programs.
            Some(gate) => gate.released().await.ok(),
        }
    }

    /// Whether what the streams tell has to wait: a frame, until it is released.
    pub(super) fn waits_at_the_gate(&mut self, event: &Event) -> bool {
        match (&mut self.gate, event) {
            (Some(gate), Event::Arrived(channel, generation, frame)) => {
                gate.hold(*channel, *generation, frame.clone());
                true
            }
            _ => false,
        }
    }

    /// Takes in what has come and says what is possible, or does what is released.
    pub(super) async fn work_gated(&mut self, released: Option<Deed>) {
        while let Some(event) = self.streams.try_recv() {
            self.carried(event);
        }
        if let Some(deed) = released {
            self.release(deed);
        }
        // What receivers say back is not the channel's own: it waits for nobody.
        let own = self.process.id();
        let inputs = self.process.writable().filter(|channel| channel.to == own);
        self.write_on(inputs.collect());
        self.count();
        let can = self.possible();
        if let Some(gate) = &mut self.gate
            && let Err(error) = gate.say(&can, released.is_some()).await
        {
            let reason = format!("whoever releases the deeds of this node is gone: {error}");
            self.ended.get_or_insert(Err(NodeError::Failed(reason)));
        }
    }

    fn possible(&self) -> Vec<Deed> {
        let own = self.process.id();
        let is_ready =
            |channel: &ChannelId| channel.from == own && self.streams.can_write(*channel);
        let sends = self.process.writable().filter(is_ready).map(Deed::Send);
        let arrivals = self.gate.iter().flat_map(Gate::arrived).map(Deed::Arrive);
        let takes = self.process.takable().map(Deed::Take);
        let ticks = !matches!(self.process.pace(), None | Some(Pace::Idle));
        let ticks = ticks.then_some(Deed::Tick).into_iter();
        sends.chain(arrivals).chain(takes).chain(ticks).collect()
    }

    fn release(&mut self, deed: Deed) {
        match deed {
            Deed::Send(channel) => {
                if self.streams.can_write(channel) {
                    self.step(Input::Writable(channel));
                }
            }
            Deed::Arrive(channel) => {
                let arrived = self.gate.as_mut().and_then(|gate| gate.arrive(channel));
                if let Some((generation, frame)) = arrived {
                    self.step(Input::Arrived(channel, generation, frame));
                }
            }
            Deed::Take(channel) => self.step(Input::Take(channel, 1)),
            Deed::Tick => self.step(Input::Tick),
            Deed::Time(time_ms) => {
                if let Some(gate) = &mut self.gate {
                    let now_ms = gate.pass(time_ms);
                    self.step(Input::Time { now_ms });
                }
            }
            Deed::Open => {
                if let Some(mut gate) = self.gate.take() {
                    let passed = Duration::from_millis(gate.pass(0));
                    // Time goes on from where it was.
                    let now = Instant::now();
                    self.started = now.checked_sub(passed).unwrap_or(now);
                    for (channel, generation, frame) in gate.empty() {
                        self.step(Input::Arrived(channel, generation, frame));
                    }
                }
            }
        }
    }
}
