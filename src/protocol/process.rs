//! One process: its application, its channels' ends and its recordings.
//!
//! # The algorithm
//!
//! For process *p* and snapshot *s* (Chandy and Lamport, *Distributed Snapshots*, 1985, section 3,
//! for the mode `classic`; the manual's section *Modes* for the others):
//!
//! 1. **Open.** The first marker of *s* off the wire, or the trigger at an initiator, opens *s* at
//!    *p*. A marker counts when it reaches the head of its inbox, or at once if it may overtake.
//! 2. **Record**, when the mode says so, in one indivisible step: take the local state; put the
//!    marker on every output (*marker-sending rule*), at the front if it may overtake; release held
//!    channels; open the recording of every input.
//! 3. **Channel states.** For every input, what is in its inbox ahead of the marker begins its
//!    recording, and what arrives up to the marker is appended (*marker-receiving rule*). What the
//!    marker overtook in an outbox is the sender's share.
//! 4. **Close.** An input closes when its marker comes. The part is complete when every input is
//!    closed and every marker has been handed to the driver; it counts when it is on disk.
//!
//! A marker never splits the handling of one message, markers of other snapshots are never
//! channel state, and a marker of a snapshot that has ended is ignored and not forwarded.
//!
//! # How it is driven
//!
//! [`Process::step`] takes one [`Input`] and appends [`Effect`]s, whose order is the algorithm.
//! Between steps the driver asks what can be done: [`pressing`](Process::pressing) or
//! [`writable`](Process::writable), [`takable`](Process::takable), [`pace`](Process::pace),
//! [`strikes_ms`](Process::strikes_ms).

mod channels;
mod restart;
mod snapshots;
mod state;
mod traced;

use std::collections::{BTreeMap, BTreeSet};

use super::application::{Application, Outputs, Pace, Quantities, Refusal, Setup};
use super::events::{Effect, Holding, Input};
use super::frame::{Frame, Hello};
use super::ids::{ChannelId, Generation, Incarnation, JobId, ProcessId, SnapshotId, Term};
use super::link::{Inboxes, Limits, Outbox, Outboxes};
use super::recording::Recording;
use super::trace::{Tracer, What};

/// How a process behaves apart from its application; from the job file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The bounds of its channels.
    pub limits: Limits,
    /// A recording not on disk after this is ended, whatever the collector says.
    pub snapshot_timeout_ms: u64,
    /// Whether it says what happens in it, event by event.
    pub trace: bool,
}

/// Which generation the process is in, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Just started: nothing to run.
    Idle,
    /// Its part is being read; nothing older is left.
    Loading(Generation, SnapshotId),
    /// Its part is loaded; frames are queued, nothing is handled.
    Prepared(Generation),
    /// Handling.
    Running(Generation),
}

/// Which snapshots have ended: a late marker must not open one again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Ended {
    /// All up to this one; only the collector moves it.
    low: SnapshotId,
    /// Single ones above it; the collector keeps open ids, and so these, in a small window.
    above: BTreeSet<SnapshotId>,
}

impl Ended {
    fn contains(&self, snapshot: SnapshotId) -> bool {
        snapshot <= self.low || self.above.contains(&snapshot)
    }

    fn insert(&mut self, snapshot: SnapshotId) {
        if snapshot > self.low {
            self.above.insert(snapshot);
        }
    }

    fn raise(&mut self, low: SnapshotId) {
        self.low = self.low.max(low);
        self.above = self.above.split_off(&self.low.next());
    }
}

/// One process. Generic over the application, so that handling a message is a plain call.
#[derive(Clone, Debug)]
pub struct Process<A> {
    setup: Setup,
    settings: Settings,
    incarnation: Incarnation,
    initial: Quantities,
    /// `j0` until a collector has said which.
    job: JobId,
    term: Term,
    phase: Phase,
    application: Option<A>,
    pace: Pace,
    inboxes: Inboxes,
    outboxes: Outboxes,
    recordings: BTreeMap<SnapshotId, Recording>,
    ended: Ended,
    now_ms: u64,
    tracer: Option<Tracer>,
}

impl<A: Application> Process<A> {
    /// A process that has just started and is in no generation.
    ///
    /// # Errors
    /// If the application refuses its settings.
    pub fn new(
        setup: Setup,
        settings: Settings,
        incarnation: Incarnation,
    ) -> Result<Self, Refusal> {
        let initial = held_by(&A::start(&setup)?, &setup);
        let processes = setup.topology.processes().len();
        let tracer = settings
            .trace
            .then(|| Tracer::new(setup.process, processes));
        Ok(Self {
            initial,
            setup,
            settings,
            incarnation,
            job: JobId::default(),
            term: Term::default(),
            phase: Phase::Idle,
            application: None,
            pace: Pace::Now,
            inboxes: Inboxes::default(),
            outboxes: Outboxes::none(),
            recordings: BTreeMap::new(),
            ended: Ended::default(),
            now_ms: 0,
            tracer,
        })
    }

    /// Takes one input; the effects are to be carried out in the order they are appended.
    pub fn step(&mut self, input: Input<A>, effects: &mut Vec<Effect>) {
        match input {
            Input::Connected => self.connected(effects),
            Input::Directive(directive) => self.directed(directive, effects),
            Input::Dialled(channel, hello) => self.dialled(channel, hello, effects),
            Input::Greeted(channel, generation, greeting) => {
                self.greeted(channel, generation, greeting, effects);
            }
            Input::Arrived(channel, generation, frame) => {
                self.arrived(channel, generation, frame, effects);
            }
            Input::Heard(channel, generation, feedback) => {
                self.heard(channel, generation, feedback, effects);
            }
            Input::Broken(channel) => self.broken(channel, effects),
            Input::Writable(channel) => self.write(channel, effects),
            Input::Take(channel, messages_max) => self.take(channel, messages_max, effects),
            Input::Tick => self.tick(effects),
            Input::Command(command) => self.command(&command, effects),
            Input::Time { now_ms } => self.time(now_ms, effects),
            Input::Loaded(generation, loaded) => self.loaded(generation, loaded, effects),
            Input::Stored(snapshot, stored) => self.stored(snapshot, stored, effects),
        }
        debug_assert!(self.is_kept_right(), "after each change of a channel");
    }

    /// The process this is.
    pub fn id(&self) -> ProcessId {
        self.setup.process
    }

    /// What it was started with.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Which start of the node this is.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The application, while there is one.
    pub fn application(&self) -> Option<&A> {
        self.application.as_ref()
    }

    /// The generation it holds, and how far it is.
    pub fn holding(&self) -> Holding {
        match self.phase {
            Phase::Idle | Phase::Loading(..) => Holding::Nothing,
            Phase::Prepared(generation) => Holding::Prepared(generation),
            Phase::Running(generation) => Holding::Running(generation),
        }
    }

    /// The inputs from which a step [`Input::Take`] takes something.
    pub fn takable(&self) -> impl Iterator<Item = ChannelId> + '_ {
        let running = matches!(self.phase, Phase::Running(_));
        let inputs = self.inboxes.filled().filter(move |&input| {
            running
                && !self.is_held(input)
                && match self.inboxes[input].head() {
                    None => false,
                    Some(Frame::Marker(_)) => true,
                    Some(Frame::Messages(_)) => self.has_room_for(input),
                }
        });
        inputs.map(|input| self.inboxes[input].channel())
    }

    /// When the application wants its next tick; `None` while it may not start new work.
    pub fn pace(&self) -> Option<Pace> {
        let running = matches!(self.phase, Phase::Running(_));
        (running && !self.outboxes.any_full()).then_some(self.pace)
    }

    /// The job it is in; `j0` until a collector has said so.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// Messages handled since the job began; a restore takes it back, as it does the messages.
    pub fn handled(&self) -> u64 {
        self.inboxes.handled()
    }

    /// Messages sent since the job began; a restore takes it back, as it does the messages.
    pub fn sent(&self) -> u64 {
        self.outboxes.sent()
    }

    /// The sender's end of each output.
    pub fn outboxes(&self) -> &[Outbox] {
        &self.outboxes
    }

    /// The last message handled on each input.
    pub fn positions(&self) -> impl Iterator<Item = (ChannelId, super::ids::MessageNumber)> + '_ {
        self.inboxes
            .iter()
            .map(|inbox| (inbox.channel(), inbox.handled()))
    }

    /// The snapshots that are open here, with the channels whose markers each waits for.
    pub fn recordings(&self) -> impl Iterator<Item = (SnapshotId, Vec<ChannelId>)> + '_ {
        self.recordings
            .iter()
            .map(|(&snapshot, recording)| (snapshot, recording.waits_for()))
    }

    /// The generation whose frames count here.
    fn generation(&self) -> Option<Generation> {
        match self.phase {
            Phase::Idle | Phase::Loading(..) => None,
            Phase::Prepared(generation) | Phase::Running(generation) => Some(generation),
        }
    }

    fn hello(&self, generation: Generation) -> Hello {
        Hello {
            topology: self.setup.topology.fingerprint(),
            job: self.job,
            generation,
            incarnation: self.incarnation,
        }
    }

    /// Whether a message may be taken from this input: every output that is not on a cycle with
    /// it has room. Outputs on a cycle are not waited for, as that would be waiting for oneself.
    fn has_room_for(&self, input: usize) -> bool {
        let channel = self.inboxes[input].channel();
        let is_on_cycle = self.setup.topology.is_on_cycle(channel);
        self.outboxes.has_room(is_on_cycle)
    }

    /// Handling cannot wait, so what it sends on a cycle has a last bound that ends the node.
    fn check_outboxes(&self, effects: &mut Vec<Effect>) {
        let bound = self.settings.limits.outbox_bytes_max;
        for outbox in self.outboxes.overfull() {
            let channel = self.setup.topology.channel_name(outbox.channel());
            effects.push(Effect::Fail(format!(
                "the outbox of {channel} holds {} bytes, over outbox_bytes_max = {bound}: \
                 the application sends more on a cycle than it takes in",
                outbox.queued_bytes()
            )));
        }
    }

    fn tick(&mut self, effects: &mut Vec<Effect>) {
        if self.pace().is_none() {
            return;
        }
        self.begin_event();
        let application = self
            .application
            .as_mut()
            .expect("a running process has one");
        self.pace = application.tick(&mut Outputs::new(&mut self.outboxes));
        self.end_event(|| What::Tick, effects);
        self.check_outboxes(effects);
    }

    fn command(&mut self, command: &str, effects: &mut Vec<Effect>) {
        if self.running().is_none() {
            let refusal = Refusal("the process is not running".to_owned());
            return effects.push(Effect::Commanded(Err(refusal)));
        }
        self.begin_event();
        let application = self
            .application
            .as_mut()
            .expect("a running process has one");
        let outcome = application.command(command, &mut Outputs::new(&mut self.outboxes));
        self.end_event(|| What::Command(command.to_owned()), effects);
        self.wake();
        effects.push(Effect::Commanded(outcome));
        self.check_outboxes(effects);
    }

    /// An application that has nothing to do is asked again after it has been given something.
    fn wake(&mut self) {
        if self.pace == Pace::Idle {
            self.pace = Pace::Now;
        }
    }
}

/// What the state of an application holds of each quantity.
fn held_by<A: Application>(application: &A, setup: &Setup) -> Quantities {
    A::in_state(setup, &application.capture()())
}
