//! Joining the job and starting from a cut: the process's side of design section 4.

use super::{Phase, Process, held_by};
use crate::protocol::application::{Application, Pace};
use crate::protocol::cut::{InputPart, Loaded, OutputPart, Part};
use crate::protocol::events::{Directive, Effect, Holding, Join, Order, Report, Standing};
use crate::protocol::frame::Batch;
use crate::protocol::ids::{ChannelId, Generation, JobId, MessageNumber, SnapshotId};
use crate::protocol::link::{Inbox, Inboxes, Outbox, Outboxes};
use crate::protocol::mode::Mode;
use crate::protocol::mutant::{Mutant::IgnoresTerm, is};

impl<A: Application> Process<A> {
    /// A control stream is open: join, naming the generation this node holds.
    pub(super) fn connected(&self, effects: &mut Vec<Effect>) {
        effects.push(Effect::Report(Report::Join(Join {
            process: self.id(),
            incarnation: self.incarnation,
            topology: self.setup.topology.fingerprint(),
            application: self.setup.application.clone(),
            job: self.job,
            holding: self.holding(),
        })));
    }

    /// The collector's word. That of an older term is refused: its writer leads no more.
    pub(super) fn directed(&mut self, directive: Directive, effects: &mut Vec<Effect>) {
        let is_past = directive.term < self.term && !is(IgnoresTerm);
        if is_past && !self.is_of_another_job(&directive.order) {
            return;
        }
        self.term = directive.term;
        match directive.order {
            Order::Welcome(standing) => self.welcomed(&standing, effects),
            Order::Trigger(snapshot, taking) => self.trigger(snapshot, taking, effects),
            Order::Ended { snapshot, low, .. } => {
                self.end(snapshot, effects);
                self.end_up_to(low, effects);
            }
            Order::Prepare(generation, snapshot) => self.prepare(generation, snapshot, effects),
            Order::Run(generation) => self.run(generation, effects),
            Order::Refused { reason, .. } => {
                effects.push(Effect::Fail(format!(
                    "the collector refuses this node: {reason}"
                )));
            }
            Order::Halt => {
                self.end_trace(effects);
                effects.push(Effect::Halt);
            }
        }
    }

    /// Whether it is the refusal of another job's collector, to whom the address of this one's now
    /// belongs: its term says nothing about this job's. One of this job must be of its time.
    fn is_of_another_job(&self, order: &Order) -> bool {
        let unknown = JobId::default();
        matches!(*order, Order::Refused { job, .. } if job != unknown && job != self.job)
            && self.job != unknown
    }

    /// What the collector does not name as open has ended, unless it has begun since.
    fn welcomed(&mut self, standing: &Standing, effects: &mut Vec<Effect>) {
        self.job = standing.job;
        let open = self.recordings.keys().copied();
        let gone: Vec<_> = open
            .filter(|id| *id <= standing.last && !standing.open.contains(id))
            .collect();
        for snapshot in gone {
            self.end(snapshot, effects);
        }
        self.end_up_to(standing.low, effects);
        self.report_stored(effects);
    }

    /// Drops everything of older generations and asks for this process's part. A word about a
    /// generation that is over changes nothing; one about the current is answered again.
    fn prepare(&mut self, generation: Generation, snapshot: SnapshotId, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::Running(current) if current >= generation => return,
            Phase::Loading(current, _) | Phase::Prepared(current) if current > generation => return,
            Phase::Prepared(current) if current == generation => {
                return effects.push(Effect::Report(Report::Ready(generation)));
            }
            // The part is being read, or could not be and nobody heard of it: once more.
            _ => {}
        }
        self.end_trace(effects);
        for snapshot in self.recordings.keys().copied().collect::<Vec<_>>() {
            self.end(snapshot, effects);
        }
        let inputs = self.inboxes.iter().map(Inbox::channel);
        let outputs = self.outboxes.iter().map(Outbox::channel);
        effects.extend(
            inputs
                .chain(outputs)
                .map(|channel| Effect::Hangup(channel, None)),
        );
        self.inboxes = Inboxes::default();
        self.outboxes = Outboxes::none();
        self.application = None;
        self.phase = Phase::Loading(generation, snapshot);
        if snapshot == SnapshotId::default() {
            let loaded = A::start(&self.setup).map(|application| Loaded {
                part: self.initial_part(&application),
                application,
            });
            self.install(generation, loaded.map_err(|refusal| refusal.0), effects);
        } else {
            effects.push(Effect::Load(generation, snapshot));
        }
    }

    /// The part has been read, or cannot be.
    pub(super) fn loaded(
        &mut self,
        generation: Generation,
        loaded: Result<Box<Loaded<A>>, String>,
        effects: &mut Vec<Effect>,
    ) {
        let Phase::Loading(current, snapshot) = self.phase else {
            return;
        };
        if current != generation {
            return;
        }
        let loaded = loaded.and_then(|loaded| {
            self.check_part(&loaded.part, snapshot)?;
            Ok(*loaded)
        });
        self.install(generation, loaded, effects);
    }

    /// Fills inboxes with receiver shares and outboxes with sender shares, dials, answers ready.
    /// Never half of it: without a part the process stays empty and says why.
    fn install(
        &mut self,
        generation: Generation,
        loaded: Result<Loaded<A>, String>,
        effects: &mut Vec<Effect>,
    ) {
        let Loaded { part, application } = match loaded {
            Ok(loaded) => loaded,
            Err(reason) => {
                return effects.push(Effect::Report(Report::Unready(generation, reason)));
            }
        };
        let limits = &self.settings.limits;
        let inboxes = part.inputs.iter().map(|input| {
            let goes_on_after = match part.mode.is_consistent() {
                true => input.handled,
                // The two ends do not agree: the sender's is where the channel goes on.
                false => input.after,
            };
            Inbox::new(input.channel, goes_on_after, &input.share, limits)
        });
        self.inboxes = Inboxes::new(inboxes.collect());
        let outboxes = part.outputs.iter();
        let outboxes =
            outboxes.map(|output| Outbox::new(output.channel, output.sent, &output.share, limits));
        let topology = &self.setup.topology;
        let leaves = |channel| !topology.is_on_cycle(channel);
        self.outboxes = Outboxes::new(outboxes.collect(), leaves, limits);
        if let Some(tracer) = &mut self.tracer {
            tracer.resume(generation, &part);
        }
        self.initial = part.initial;
        self.application = Some(application);
        self.pace = Pace::Now;
        self.phase = Phase::Prepared(generation);
        for outbox in self.outboxes.iter() {
            effects.push(Effect::Dial(outbox.channel(), self.hello(generation)));
        }
        effects.push(Effect::Report(Report::Ready(generation)));
    }

    /// Everyone is ready. Markers of those who heard of it sooner may have come.
    fn run(&mut self, generation: Generation, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Prepared(generation) {
            self.phase = Phase::Running(generation);
            if let Some(tracer) = &mut self.tracer {
                effects.push(Effect::Trace(tracer.start(&mut self.outboxes)));
            }
            for snapshot in self.recordings.keys().copied().collect::<Vec<_>>() {
                self.go_on(snapshot, effects);
            }
        }
    }

    /// The generation it runs, if it runs.
    pub(super) fn running(&self) -> Option<Generation> {
        match self.holding() {
            Holding::Running(generation) => Some(generation),
            Holding::Nothing | Holding::Prepared(_) => None,
        }
    }

    /// The part of every process in `s0`: nothing was sent.
    fn initial_part(&self, application: &A) -> Part {
        let topology = &self.setup.topology;
        let none = MessageNumber::default();
        let outputs = topology.outputs(self.id()).into_iter();
        let outputs = outputs.map(|channel| OutputPart {
            channel,
            sent: none,
            after: none,
            share: Vec::new(),
        });
        let inputs = topology.inputs(self.id()).into_iter();
        let inputs = inputs.map(|channel| InputPart {
            channel,
            handled: none,
            after: none,
            share: Vec::new(),
        });
        Part {
            snapshot: SnapshotId::default(),
            generation: Generation::default(),
            process: self.id(),
            mode: Mode::Classic,
            clock: None,
            initial: held_by(application, &self.setup),
            outputs: outputs.collect(),
            inputs: inputs.collect(),
        }
    }

    /// A part must be of this process and of this snapshot, and know exactly its channels.
    fn check_part(&self, part: &Part, snapshot: SnapshotId) -> Result<(), String> {
        if part.process != self.id() || part.snapshot != snapshot {
            return Err(format!(
                "the part is of {} in {}, not of {} in {snapshot}",
                part.process,
                part.snapshot,
                self.id()
            ));
        }
        let inputs: Vec<ChannelId> = part.inputs.iter().map(|input| input.channel).collect();
        let outputs: Vec<ChannelId> = part.outputs.iter().map(|output| output.channel).collect();
        let topology = &self.setup.topology;
        if inputs != topology.inputs(self.id()) || outputs != topology.outputs(self.id()) {
            return Err("the part has other channels than the topology".to_owned());
        }
        for input in &part.inputs {
            let last = follow(input.handled, &input.share);
            if last != Some(input.after) && part.mode.is_consistent() {
                return Err(format!("what it recorded on {} has gaps", input.channel));
            }
        }
        // The settings may be others by now: what is longer than every window would wait for ever.
        let longest = self.settings.limits.message_bytes_max;
        for output in &part.outputs {
            if follow(output.after, &output.share) != Some(output.sent) {
                return Err(format!("what it recorded on {} has gaps", output.channel));
            }
            let messages = output.share.iter().flat_map(Batch::messages);
            let bytes = messages.map(|(_, message)| message.len() as u64).max();
            if let Some(bytes) = bytes.filter(|bytes| *bytes > longest) {
                return Err(format!(
                    "a message of {bytes} bytes waits on {}, over limits.message_bytes_max = \
                     {longest}: raise that",
                    output.channel
                ));
            }
        }
        Ok(())
    }
}

/// The number of the last message, if the batches follow this number and one another.
fn follow(after: MessageNumber, share: &[Batch]) -> Option<MessageNumber> {
    share.iter().try_fold(after, |last, batch| {
        (batch.first() == last.next()).then(|| batch.last())
    })
}
