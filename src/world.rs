//! A whole job in memory, with every choice explicit: the same machines as on real nodes, joined
//! by queues instead of sockets.
//!
//! Each channel has its outbox (in the sender), the wire, its inbox (in the receiver) and the way
//! back; the store has its pending operations; the control streams have theirs. Nothing moves but
//! by [`World::apply`], one [`Choice`] at a time, so a model checker can try all of them, a test
//! can pick at random and a transcript can write them down. A fault that cannot be chosen here is
//! a fault that cannot be found here.

mod choice;
mod disk;
mod effects;
mod replay;
mod state;
mod touched;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub use choice::{Choice, Fault};
pub use disk::{Fate, Operation};
pub use replay::Replay;
pub use touched::Touched;

use disk::Disk;

use crate::protocol::application::{Application, Refusal, Setup};
use crate::protocol::collector::{
    Announcement, Answer, Collector, CollectorEffect, CollectorInput, Policy, Request, RequestId,
};
use crate::protocol::cut::Restored;
use crate::protocol::events::{Directive, Input, Report};
use crate::protocol::frame::{Feedback, Frame, Greeting, Hello};
use crate::protocol::ids::{ChannelId, Generation, Incarnation, ProcessId, SnapshotId};
use crate::protocol::process::Settings;
use crate::protocol::records::Manifest;
use crate::protocol::trace::Event;
use crate::protocol::{Process, Topology};

/// What the job of a world is made of.
#[derive(Clone, Debug)]
pub struct Job {
    /// The processes and channels.
    pub topology: Arc<Topology>,
    /// The application's name.
    pub application: String,
    /// The application's settings.
    pub settings: serde_json::Value,
    /// The seed of its randomness.
    pub seed: u64,
    /// The bounds of the processes.
    pub process: Settings,
    /// How the collector behaves.
    pub policy: Policy,
}

/// A job in memory. Two are equal if they have the same future.
#[derive(Clone, Debug)]
pub struct World<A> {
    job: Job,
    nodes: Vec<Node<A>>,
    links: BTreeMap<ChannelId, Link>,
    control: BTreeMap<(ProcessId, Incarnation), Control>,
    collector: Option<Collector>,
    disk: Disk,
    answers: BTreeMap<RequestId, Result<Answer, String>>,
    /// Collectors, incarnations and requests so far: the next takes the next number.
    collectors: u64,
    incarnations: u64,
    requests: u64,
    now_ms: u64,
    notices: Vec<Notice>,
    trace: Vec<Event>,
    /// What the last choices have changed, if somebody wants to know.
    touched: Option<Vec<Touched>>,
    /// Why the job ended, if it has.
    pub ended: Option<Result<(), String>>,
}

/// Something that happened, for transcripts and for tests that count.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A process took its local state.
    Recorded(ProcessId, SnapshotId),
    /// A process handed its part to the store.
    Whole(ProcessId, SnapshotId),
    /// A stream was dropped, as a peer did what no correct peer does.
    Breach(ChannelId, String),
    /// A hello was refused for good.
    Refused(ChannelId, String),
    /// The collector announced something.
    Announced(Announcement),
    /// The collector wants a node replaced.
    Replace(ProcessId),
    /// The collector has waited long for a node of this process.
    Absent(ProcessId),
    /// A node ended, with its reason.
    Failed(ProcessId, String),
}

/// The node of one process; `None` while it is down.
#[derive(Clone, Debug)]
struct Node<A> {
    process: Option<Process<A>>,
    captured: BTreeMap<SnapshotId, Vec<u8>>,
}

/// What lies between the two ends of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Link {
    /// The sender wants a stream.
    dialling: Option<Hello>,
    /// The stream that is open, and the generation it speaks for.
    stream: Option<Generation>,
    wire: VecDeque<Frame>,
    back: VecDeque<Back>,
}

/// What travels from the receiver to the sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Back {
    Greeting(Greeting),
    Feedback(Feedback),
}

/// A control stream; what is in it when it closes may still arrive at the collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Control {
    up: VecDeque<Up>,
    down: VecDeque<Directive>,
    open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Up {
    Said(Report),
    Gone,
}

impl<A: Application> World<A> {
    /// A job whose collector and nodes have all just been started.
    ///
    /// # Errors
    /// If the application refuses its settings.
    pub fn new(job: Job) -> Result<Self, Refusal> {
        let channels = job.topology.channels().iter();
        let links = channels
            .map(|&channel| (channel, Link::default()))
            .collect();
        let mut world = Self {
            nodes: Vec::new(),
            links,
            control: BTreeMap::new(),
            collector: None,
            disk: Disk::default(),
            answers: BTreeMap::new(),
            collectors: 0,
            incarnations: 0,
            requests: 0,
            now_ms: 0,
            notices: Vec::new(),
            trace: Vec::new(),
            touched: None,
            ended: None,
            job,
        };
        for process in world.job.topology.processes() {
            A::start(&world.setup(process))?;
            world.nodes.push(Node {
                process: None,
                captured: BTreeMap::new(),
            });
        }
        world.apply(&Choice::StartCollector);
        for process in world.job.topology.processes() {
            world.apply(&Choice::Start(process));
        }
        Ok(world)
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// What a process is started with.
    pub fn setup(&self, process: ProcessId) -> Setup {
        Setup {
            topology: self.job.topology.clone(),
            process,
            application: self.job.application.clone(),
            settings: self.job.settings.clone(),
            seed: self.job.seed,
            message_bytes_max: self.job.process.limits.message_bytes_max,
        }
    }

    /// The machine of a process, while its node is up.
    pub fn process(&self, process: ProcessId) -> Option<&Process<A>> {
        self.nodes[process.index()].process.as_ref()
    }

    /// The machine of the collector, while it is up.
    pub fn collector(&self) -> Option<&Collector> {
        self.collector.as_ref()
    }

    /// Whether everyone runs, by the collector's account.
    pub fn is_running(&self) -> bool {
        let collector = self.collector.as_ref();
        collector.is_some_and(|collector| collector.phase() == "running")
    }

    /// Whether what the sender of a channel hears next is the answer to its hello.
    pub fn is_dialled(&self, channel: ChannelId) -> bool {
        matches!(self.links[&channel].back.front(), Some(Back::Greeting(_)))
    }

    /// Frames on the wire of a channel.
    pub fn on_the_wire(&self, channel: ChannelId) -> usize {
        self.links[&channel].wire.len()
    }

    /// The frames on the wire of a channel, the next to arrive first.
    pub fn wire(&self, channel: ChannelId) -> impl ExactSizeIterator<Item = &Frame> {
        self.links[&channel].wire.iter()
    }

    /// What the store was asked to do and has not done, in the order of [`Choice::Store`].
    pub fn pending(&self) -> &[Operation] {
        &self.disk.pending
    }

    /// Every snapshot that has ended, as its manifest says.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.disk.manifests.values()
    }

    /// A part on disk.
    pub fn part(&self, snapshot: SnapshotId, process: ProcessId) -> Option<&Restored> {
        self.disk.parts.get(&(snapshot, process))
    }

    /// What happened since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// What the processes did, in the order in which it happened, where the job is traced.
    pub fn trace(&self) -> &[Event] {
        &self.trace
    }

    /// Asks the collector for something; the answer comes in its time.
    pub fn ask(&mut self, request: Request) -> RequestId {
        self.requests += 1;
        let asker = RequestId(self.requests);
        self.collect(CollectorInput::Asked(asker, request));
        asker
    }

    /// The answer to a request, once it is there.
    pub fn answer(&self, asker: RequestId) -> Option<&Result<Answer, String>> {
        self.answers.get(&asker)
    }

    /// Gives a word to the application of a process.
    pub fn command(&mut self, process: ProcessId, command: &str) {
        self.step(process, Input::Command(command.to_owned()));
    }

    /// Lets everything take its course, without faults and without new work, until nothing is
    /// left to do or `steps_max` choices have been made. Returns whether nothing is left.
    pub fn stabilize(&mut self, steps_max: usize) -> bool {
        for _ in 0..steps_max {
            match self
                .choices()
                .into_iter()
                .find(|choice| !matches!(choice, Choice::Tick(_)))
            {
                Some(choice) => self.apply(&choice),
                None => return true,
            }
        }
        false
    }

    /// One input to the collector, with all its effects.
    fn collect(&mut self, input: CollectorInput) {
        if let Some(mut collector) = self.collector.take() {
            let mut effects = Vec::new();
            collector.step(input, &mut effects);
            self.collector = Some(collector);
            self.carry_out(effects);
        }
    }

    fn carry_out(&mut self, effects: Vec<CollectorEffect>) {
        for effect in effects {
            match effect {
                CollectorEffect::Read => self.disk.submit(Operation::Read),
                CollectorEffect::Create(record) => self.disk.submit(Operation::Create(record)),
                CollectorEffect::Delete(snapshot) => self.disk.submit(Operation::Delete(snapshot)),
                CollectorEffect::Tell(process, incarnation, directive) => {
                    self.tell(process, incarnation, directive);
                }
                CollectorEffect::Dismiss(process, incarnation, directive) => {
                    self.tell(process, incarnation, directive);
                }
                CollectorEffect::Lead => {}
                CollectorEffect::Replace(process, _) => {
                    self.notices.push(Notice::Replace(process));
                }
                CollectorEffect::Absent(process) => self.notices.push(Notice::Absent(process)),
                CollectorEffect::Answer(asker, answer) => {
                    self.answers.insert(asker, answer);
                }
                CollectorEffect::Announce(announcement) => {
                    self.notices.push(Notice::Announced(announcement));
                }
                CollectorEffect::Finish => self.ended = Some(Ok(())),
                CollectorEffect::Fail(reason) | CollectorEffect::Unread(reason) => {
                    self.ended = Some(Err(reason));
                }
                CollectorEffect::Fenced(term) => {
                    self.ended = Some(Err(format!("another collector leads, in term {term}")));
                }
            }
        }
    }

    fn tell(&mut self, process: ProcessId, incarnation: Incarnation, directive: Directive) {
        if let Some(control) = self.control.get_mut(&(process, incarnation))
            && control.open
        {
            control.down.push_back(directive);
            self.touch(Touched::Control(process, incarnation));
        }
    }
}
