//! One generation of a recorded run, again: the same machines, told event by event what the trace
//! says happened.
//!
//! Frames, markers, recordings and parts are the core's own, as on real nodes. What was not traced,
//! since it decides nothing (when a frame was on the wire), is here as quick as can be. A process
//! records where the trace says so, by a trigger, and by the rules of `classic`, whatever the mode
//! was. For where everyone records is the cut, and a consistent cut has one state: what a channel
//! holds is what was sent on it before the cut and handled behind it. How a mode came by that
//! (held channels, markers that overtook, a limit that struck) makes no difference to it; only
//! which of it is the sender's share and which the receiver's, and this is not compared. A
//! snapshot that not everyone recorded, or whose cut need not be consistent, is recorded by each
//! process for itself, and of it only the states come out.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::Process;
use crate::protocol::application::{Application, Refusal, Setup};
use crate::protocol::cut::Restored;
use crate::protocol::events::{Directive, Effect, Input, Order};
use crate::protocol::frame::Hello;
use crate::protocol::ids::{ChannelId, Generation, Incarnation, ProcessId, SnapshotId, Term};
use crate::protocol::link::Limits;
use crate::protocol::mode::Mode;
use crate::protocol::process::Settings;
use crate::protocol::trace::{Event, What};

/// No bound at all, and room to count beyond: when a frame moved is not traced, so no bound on
/// what waits may decide what happens.
const UNBOUNDED: u64 = 1 << 60;

/// The one term there is.
const TERM: Term = Term::new(1);

/// Snapshots that processes record for themselves get ids from here on, so that no marker of one
/// means anything to another.
const OWN_IDS: u64 = 1 << 40;

/// A generation that is run again.
pub struct Replay<A> {
    generation: Generation,
    machines: Vec<Process<A>>,
    dialled: Vec<(ChannelId, Hello)>,
    captured: BTreeMap<(SnapshotId, ProcessId), Vec<u8>>,
    parts: BTreeMap<SnapshotId, BTreeMap<ProcessId, Restored>>,
    /// Snapshots that everyone recorded, of a mode whose cut is consistent.
    whole: BTreeSet<SnapshotId>,
    /// Those of the other modes.
    inconsistent: BTreeSet<SnapshotId>,
    said: Vec<Event>,
    broken: Option<String>,
    own_ids: u64,
}

impl<A: Application> Replay<A> {
    /// All processes are prepared for the generation: from the initial state, or from the parts of
    /// a snapshot. `events` are those that will be done, for a look at what was recorded.
    ///
    /// # Errors
    /// If an application refuses its settings.
    pub fn new(
        setups: &[Setup],
        limits: &Limits,
        parts: &[Restored],
        events: &[Event],
    ) -> Result<Self, Refusal> {
        let settings = Settings {
            limits: Limits {
                window_messages: UNBOUNDED,
                window_bytes: UNBOUNDED,
                message_bytes_max: limits.message_bytes_max,
                outbox_bytes: UNBOUNDED,
                outbox_bytes_max: UNBOUNDED,
                recording_bytes_max: UNBOUNDED,
            },
            snapshot_timeout_ms: UNBOUNDED,
            trace: true,
        };
        let machines = (1..).zip(setups).map(|(number, setup)| {
            let incarnation = Incarnation::new(number);
            Process::new(setup.clone(), settings.clone(), incarnation)
        });
        let (whole, inconsistent) = recorded(events, setups.len());
        let mut replay = Self {
            generation: events
                .first()
                .map(|event| event.generation)
                .unwrap_or_default(),
            machines: machines.collect::<Result<_, _>>()?,
            dialled: Vec::new(),
            captured: BTreeMap::new(),
            parts: BTreeMap::new(),
            whole,
            inconsistent,
            said: Vec::new(),
            broken: None,
            own_ids: OWN_IDS,
        };
        replay.prepare(parts);
        Ok(replay)
    }

    fn prepare(&mut self, parts: &[Restored]) {
        let restored = parts
            .first()
            .map(|part| part.part.snapshot)
            .unwrap_or_default();
        let order = Order::Prepare(self.generation, restored);
        for index in 0..self.machines.len() {
            self.direct(index, order.clone());
            if let Some(part) = parts.get(index) {
                let loaded = part.clone().load(self.machines[index].setup());
                let loaded = loaded.map(Box::new).map_err(|refusal| refusal.0);
                self.step(index, Input::Loaded(self.generation, loaded));
            }
        }
        for (channel, hello) in std::mem::take(&mut self.dialled) {
            self.step(channel.to.index(), Input::Dialled(channel, hello));
        }
        // A process that is prepared sends, if it handles nothing: what is in its share may be
        // handled elsewhere before it says that it runs.
        for index in 0..self.machines.len() {
            self.flow(index);
        }
    }

    /// Does an event again.
    ///
    /// # Errors
    /// With what came of it instead, if that is not one event and no breach; an event that is
    /// another than the one given is for the caller to see.
    pub fn apply(&mut self, event: &Event) -> Result<Event, String> {
        self.said.clear();
        let index = event.process.index();
        let mut own = None;
        match &event.what {
            What::Start { .. } => self.direct(index, Order::Run(self.generation)),
            What::Tick => self.step(index, Input::Tick),
            What::Command(command) => self.step(index, Input::Command(command.clone())),
            What::Handle { channel, .. } => self.step(index, Input::Take(*channel, 1)),
            What::Record { snapshot, .. } if self.whole.contains(snapshot) => {
                self.direct(index, Order::Trigger(*snapshot, Mode::Classic.into()));
            }
            What::Record { .. } => own = Some(self.record_alone(index)),
            What::End { .. } => self.direct(index, Order::Halt),
        }
        self.flow(index);
        if let Some(own) = own {
            self.end(index, own);
        }
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        match &mut self.said[..] {
            [said] => {
                // The mode and a process's own id are the replay's doing.
                if let (
                    What::Record { snapshot, mode, .. },
                    What::Record {
                        snapshot: id,
                        mode: by,
                        ..
                    },
                ) = (&mut said.what, &event.what)
                {
                    *mode = *by;
                    *snapshot = own.map_or(*snapshot, |_| *id);
                }
                Ok(self.said.remove(0))
            }
            [] => Err("nothing".to_owned()),
            more => Err(format!("{} events", more.len())),
        }
    }

    /// The parts of every snapshot that everyone recorded, as far as all are whole.
    pub fn snapshots(&self) -> impl Iterator<Item = (SnapshotId, Vec<Restored>)> + '_ {
        let all = self.parts.iter();
        let whole = all.filter(|(_, parts)| parts.len() == self.machines.len());
        whole.map(|(&snapshot, parts)| (snapshot, parts.values().cloned().collect()))
    }

    /// The snapshots that everyone recorded, by a mode whose cuts are not consistent.
    pub fn inconsistent(&self) -> impl Iterator<Item = SnapshotId> + '_ {
        self.inconsistent.iter().copied()
    }

    /// A process takes its state, and nobody else is to notice.
    fn record_alone(&mut self, index: usize) -> SnapshotId {
        let own = SnapshotId::new(self.own_ids);
        self.own_ids += 1;
        for other in (0..self.machines.len()).filter(|&other| other != index) {
            self.end(other, own);
        }
        self.direct(index, Order::Trigger(own, Mode::Classic.into()));
        own
    }

    fn end(&mut self, index: usize, snapshot: SnapshotId) {
        let low = SnapshotId::default();
        let complete = false;
        self.direct(
            index,
            Order::Ended {
                snapshot,
                complete,
                low,
            },
        );
    }

    fn direct(&mut self, index: usize, order: Order) {
        self.step(index, Input::Directive(Directive { term: TERM, order }));
    }

    /// Everything that a process has to say on its channels is said, and arrives.
    fn flow(&mut self, index: usize) {
        loop {
            let writable: Vec<_> = self.machines[index].writable().collect();
            if writable.is_empty() {
                return;
            }
            for channel in writable {
                self.step(index, Input::Writable(channel));
            }
        }
    }

    fn step(&mut self, index: usize, input: Input<A>) {
        let mut effects = Vec::new();
        self.machines[index].step(input, &mut effects);
        for effect in effects {
            self.execute(index, effect);
        }
    }

    fn execute(&mut self, index: usize, effect: Effect) {
        let (generation, id) = (self.generation, self.machines[index].id());
        match effect {
            Effect::Write(channel, frame) => {
                let arrived = Input::Arrived(channel, generation, frame);
                self.step(channel.to.index(), arrived);
            }
            Effect::Feedback(channel, feedback) => {
                let heard = Input::Heard(channel, generation, feedback);
                self.step(channel.from.index(), heard);
            }
            Effect::Dial(channel, hello) => self.dialled.push((channel, hello)),
            Effect::Greet(channel, greeting) => {
                let greeted = Input::Greeted(channel, generation, greeting);
                self.step(channel.from.index(), greeted);
            }
            Effect::Hangup(channel, breach) => {
                if let Some(breach) = breach {
                    self.broken = Some(format!("{channel} broken: {breach}"));
                }
            }
            Effect::Capture(snapshot, capture) => {
                self.captured.insert((snapshot, id), capture());
            }
            Effect::Store(part) => {
                let state = self.captured.remove(&(part.snapshot, id));
                let snapshot = part.snapshot;
                let restored = Restored {
                    part: *part,
                    state: state.unwrap_or_default().into(),
                    state_version: A::state_version(self.machines[index].setup()),
                };
                let parts = self.parts.entry(snapshot).or_default();
                parts.insert(id, restored);
                if parts.len() == self.machines.len() {
                    for index in 0..self.machines.len() {
                        self.end(index, snapshot);
                    }
                }
            }
            Effect::Forget(snapshot) => drop(self.captured.remove(&(snapshot, id))),
            Effect::Trace(event) => self.said.push(*event),
            Effect::Fail(reason) => self.broken = Some(reason),
            Effect::Load(..) | Effect::Commanded(_) | Effect::Report(_) | Effect::Halt => {}
        }
    }
}

/// The snapshots that every process recorded: those whose cuts are consistent, and the others.
fn recorded(events: &[Event], processes: usize) -> (BTreeSet<SnapshotId>, BTreeSet<SnapshotId>) {
    let mut recorded: BTreeMap<SnapshotId, (usize, Mode)> = BTreeMap::new();
    for event in events {
        if let What::Record { snapshot, mode, .. } = event.what {
            recorded.entry(snapshot).or_insert((0, mode)).0 += 1;
        }
    }
    recorded.retain(|_, (count, _)| *count == processes);
    let (whole, others): (Vec<_>, Vec<_>) = recorded
        .into_iter()
        .partition(|(_, (_, mode))| mode.is_consistent());
    let ids = |of: Vec<(SnapshotId, _)>| of.into_iter().map(|(id, _)| id).collect();
    (ids(whole), ids(others))
}
