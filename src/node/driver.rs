//! The loop of a node: inputs in, effects out, in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::NodeError;
use super::addresses::Addresses;
use super::attend::{ControlEvent, Progress, Uplink};
use super::gate::Gate;
use super::parts::Parts;
use super::trace_file::TraceFile;
use super::turn::Turn;
use crate::hold::Point;
use crate::net::{Event, Streams};
use crate::protocol::application::{Application, Pace};
use crate::protocol::events::{Order, Report};
use crate::protocol::frame::{Frame, Greeting, Hello};
use crate::protocol::ids::ChannelId;
use crate::protocol::{Effect, Input, Process};

/// How often the machine is told the time and says what does not press: well below any timeout a
/// job can have.
const CLOCK: Duration = Duration::from_millis(20);

/// Events taken in before the machine's own work has its turn; each is at most one frame.
const EVENTS_AT_ONCE: usize = 64;

/// A `Ready` is on its way to the collector within this time; only a scenario waits for it.
const FLUSH: Duration = Duration::from_millis(20);

/// Everything a node's loop owns.
pub(super) struct Driver<A> {
    pub(super) process: Process<A>,
    pub(super) streams: Streams,
    /// Where deeds wait, in a job that is released deed by deed.
    pub(super) gate: Option<Gate>,
    parts: Parts<A>,
    trace: TraceFile,
    progress: Arc<Progress>,
    uplink: Option<Uplink>,
    addresses: Addresses,
    /// The command whose outcome the machine states next.
    command: Option<u64>,
    effects: Vec<Effect>,
    channels: Vec<ChannelId>,
    /// When the application's next tick is due, once it has said so.
    tick_due: Instant,
    pub(super) turn: Turn,
    pub(super) started: Instant,
    pub(super) ended: Option<Result<(), NodeError>>,
}

impl<A: Application> Driver<A> {
    pub(super) fn new(
        process: Process<A>,
        streams: Streams,
        gate: Option<Gate>,
        parts: Parts<A>,
        trace: TraceFile,
        progress: Arc<Progress>,
    ) -> Self {
        let now = Instant::now();
        Self {
            process,
            streams,
            gate,
            parts,
            trace,
            progress,
            uplink: None,
            addresses: Addresses::default(),
            command: None,
            effects: Vec::new(),
            channels: Vec::new(),
            tick_due: now,
            turn: Turn::new(now),
            started: now,
            ended: None,
        }
    }

    /// Runs until the job ends, the machine fails, or `shutdown`.
    pub(super) async fn run(
        mut self,
        mut control: mpsc::Receiver<ControlEvent>,
        shutdown: CancellationToken,
    ) -> Result<(), NodeError> {
        let mut clock = interval(CLOCK);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut released = None;
        while self.ended.is_none() {
            let busy = match self.gate {
                None => self.work(),
                Some(_) => {
                    self.work_gated(released.take()).await;
                    false
                }
            };
            let tick_due = self.tick_at().filter(|_| !busy);
            let strikes = self.strikes_at();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                event = control.recv() => match event {
                    Some(event) => self.controlled(event),
                    None => break,
                },
                deed = Self::released(&mut self.gate) => match deed {
                    Some(deed) => released = Some(deed),
                    None => break,
                },
                result = self.parts.recv() => self.step(result),
                _ = clock.tick() => self.clock_ticks(),
                () = until(strikes) => self.tell_time(),
                event = self.streams.recv() => match event {
                    Some(event) => self.carried(event),
                    None => break,
                },
                () = until(tick_due) => {}
                // Others on this thread have their turn, and the loop comes back at once.
                () = tokio::task::yield_now(), if busy => {}
            }
        }
        // Only what has not been said yet: a directive may have ended the trace.
        self.process.end_trace(&mut self.effects);
        self.carry_out();
        self.trace.close().await;
        self.streams.shutdown().await;
        self.ended.unwrap_or(Ok(()))
    }

    /// Takes in what has come, handles, starts new work, and hands on what there is to write.
    /// Returns whether there is more to do at once.
    fn work(&mut self) -> bool {
        for _ in 0..EVENTS_AT_ONCE {
            match self.streams.try_recv() {
                Some(event) => self.carried(event),
                None => break,
            }
        }
        let mut channels = std::mem::take(&mut self.channels);
        self.handle(&mut channels);
        self.tick();
        if self.process.strikes_ms().is_some() {
            // Markers say how much of the limit is used up.
            self.tell_time();
        }
        channels.clear();
        channels.extend(self.process.pressing());
        self.write_on(channels);
        self.count();
        self.process.takable().next().is_some() || self.is_tick_due()
    }

    /// Notes how far the machine is, for its signs of life.
    pub(super) fn count(&self) {
        let Progress { handled, sent, .. } = &*self.progress;
        handled.store(self.process.handled(), Ordering::Relaxed);
        sent.store(self.process.sent(), Ordering::Relaxed);
    }

    /// Hands the machine's next words on these channels to the streams, while there is room.
    pub(super) fn write_on(&mut self, channels: Vec<ChannelId>) {
        for &channel in &channels {
            while self.streams.can_write(channel) {
                self.process
                    .step(Input::Writable(channel), &mut self.effects);
                if self.effects.is_empty() {
                    break;
                }
                self.carry_out();
            }
        }
        // The buffer is kept, as that of the effects.
        self.channels = channels;
    }

    fn tick(&mut self) {
        if self.is_tick_due() {
            self.step(Input::Tick);
            let pause = match self.process.pace() {
                Some(Pace::After(pause_ms)) => Duration::from_millis(u64::from(pause_ms)),
                _ => Duration::ZERO,
            };
            self.tick_due = Instant::now() + pause;
        }
    }

    fn is_tick_due(&self) -> bool {
        match self.process.pace() {
            None | Some(Pace::Idle) => false,
            Some(Pace::Now) => true,
            Some(Pace::After(_)) => Instant::now() >= self.tick_due,
        }
    }

    /// When the loop is to look again for the application's sake.
    fn tick_at(&self) -> Option<Instant> {
        matches!(self.process.pace(), Some(Pace::After(_))).then_some(self.tick_due)
    }

    /// When the limit of a snapshot strikes: the clock alone would be late by up to its step.
    /// Where time is released by hand, it is not for the clock to strike.
    fn strikes_at(&self) -> Option<Instant> {
        let strikes_ms = self.process.strikes_ms().filter(|_| self.gate.is_none())?;
        self.started.checked_add(Duration::from_millis(strikes_ms))
    }

    /// Tells the machine the time, unless time is released by hand.
    fn tell_time(&mut self) {
        if self.gate.is_none() {
            let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.step(Input::Time { now_ms });
        }
    }

    fn clock_ticks(&mut self) {
        self.break_as_ordered();
        self.tell_time();
        if self.gate.is_none() {
            // What did not press has waited until now.
            let mut channels = std::mem::take(&mut self.channels);
            channels.clear();
            channels.extend(self.process.writable());
            self.write_on(channels);
        }
    }

    /// Drops a stream that a scenario wants broken, once there is one.
    fn break_as_ordered(&mut self) {
        let Some(channel) = self.parts.hold().to_break() else {
            return;
        };
        let mut outboxes = self.process.outboxes().iter();
        if outboxes.any(|outbox| outbox.channel() == channel && outbox.is_open()) {
            self.streams.hang_up(channel);
            self.step(Input::Broken(channel));
            self.parts.hold().has_broken();
        }
    }

    pub(super) fn carried(&mut self, event: Event) {
        if self.gate.is_some() && self.waits_at_the_gate(&event) {
            return;
        }
        match event {
            Event::Dialled(channel, hello) => self.step(Input::Dialled(channel, hello)),
            Event::Greeted(channel, generation, greeting) => {
                if let Greeting::Refused(reason) = &greeting {
                    tracing::warn!(%channel, reason, "the receiver refuses the stream");
                }
                self.step(Input::Greeted(channel, generation, greeting));
            }
            Event::Arrived(channel, generation, frame) => {
                if matches!(frame, Frame::Marker(_)) {
                    // How long a snapshot takes is measured from here.
                    self.tell_time();
                }
                self.step(Input::Arrived(channel, generation, frame));
            }
            Event::Heard(channel, generation, feedback) => {
                self.step(Input::Heard(channel, generation, feedback));
            }
            Event::Broken(channel) => self.step(Input::Broken(channel)),
            // The work that follows looks at every channel.
            Event::Writable(_) => {}
        }
    }

    fn controlled(&mut self, event: ControlEvent) {
        match event {
            ControlEvent::Connected(uplink) => {
                self.uplink = Some(uplink);
                self.step(Input::Connected);
            }
            ControlEvent::Disconnected => self.uplink = None,
            ControlEvent::Order(directive, addresses) => {
                match directive.order {
                    Order::Prepare(generation, _) => {
                        self.addresses.note(generation, addresses);
                        self.parts.hold().at(Point::Prepared);
                    }
                    Order::Trigger(..) => self.tell_time(),
                    _ => {}
                }
                self.step(Input::Directive(directive));
            }
            ControlEvent::Command { request, text } => {
                self.command = Some(request);
                self.step(Input::Command(text));
            }
        }
    }

    pub(super) fn step(&mut self, input: Input<A>) {
        self.process.step(input, &mut self.effects);
        if !self.effects.is_empty() {
            self.carry_out();
        }
    }

    fn carry_out(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            self.execute(effect);
        }
        // The buffer is kept, so that a step costs no allocation.
        self.effects = effects;
    }

    fn execute(&mut self, effect: Effect) {
        match effect {
            Effect::Write(channel, frame) => self.streams.write(channel, frame),
            Effect::Feedback(channel, feedback) => self.streams.feedback(channel, feedback),
            Effect::Dial(channel, hello) => self.dial(channel, hello),
            Effect::Greet(channel, greeting) => self.streams.greet(channel, greeting),
            Effect::Hangup(channel, breach) => {
                if let Some(breach) = breach {
                    let channel = self.process.setup().topology.channel_name(channel);
                    tracing::warn!(channel, %breach, "the stream is closed");
                }
                self.streams.hang_up(channel);
            }
            Effect::Capture(snapshot, capture) => {
                tracing::debug!(%snapshot, "recorded");
                self.parts.capture(snapshot, capture);
                self.parts.hold().at(Point::Recorded);
            }
            Effect::Store(part) => self.parts.store(part),
            Effect::Forget(snapshot) => self.parts.forget(snapshot),
            Effect::Load(generation, snapshot) => self.parts.load(generation, snapshot),
            Effect::Commanded(outcome) => {
                if let (Some(request), Some(uplink)) = (self.command.take(), &self.uplink) {
                    uplink.command_done(request, outcome.err().map(|refusal| refusal.0));
                }
            }
            Effect::Report(report) => self.report(report),
            Effect::Trace(event) => self.trace.write(*event),
            Effect::Halt => {
                tracing::info!("the job has ended");
                self.ended.get_or_insert(Ok(()));
            }
            // Whoever runs the node says so; once is enough.
            Effect::Fail(reason) => {
                self.ended.get_or_insert(Err(NodeError::Failed(reason)));
            }
        }
    }

    fn dial(&mut self, channel: ChannelId, hello: Hello) {
        match self.addresses.of(hello.generation, channel.to) {
            Some(address) => self.streams.dial(channel, address, hello),
            None => {
                let reason = format!("the collector has given no address for {channel}");
                self.ended.get_or_insert(Err(NodeError::Failed(reason)));
            }
        }
    }

    fn report(&self, report: Report) {
        match &report {
            Report::Unready(generation, reason) => {
                tracing::warn!(%generation, reason, "the part cannot be loaded");
            }
            Report::Declined {
                snapshot, reason, ..
            } => tracing::warn!(%snapshot, reason, "declined"),
            Report::Ready(generation) => tracing::info!(%generation, "ready"),
            Report::Join(_) | Report::Stored { .. } => {}
        }
        let is_ready = matches!(report, Report::Ready(_));
        if let Some(uplink) = &self.uplink {
            uplink.report(report);
        }
        if is_ready && self.parts.hold().armed(Point::Ready) {
            let hold = self.parts.hold().clone();
            tokio::spawn(async move {
                sleep(FLUSH).await;
                hold.at(Point::Ready);
            });
        }
    }
}

/// The time to be waited for; for ever if there is none.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
