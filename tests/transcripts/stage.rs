//! The language of transcripts.
//!
//! `job` takes lines `processes: p1 p2`, `channels: p1->p2 …`, `balances: p1=5 …`. `do` takes one
//! step a line:
//!
//! - `send p1 p2 5`: p1's application sends five tokens (into the outbox)
//! - `put p1->p2`, `arrive p1->p2`, `take p1->p2`: outbox to wire, wire to inbox, handle
//! - `ack p1->p2`: the receiver acknowledges, and the sender hears it
//! - `snapshot p1 …`: the collector triggers these initiators; `snapshot by aligned 100`: in this
//!   mode, with this limit
//! - `held p1`: the inputs that p1 holds; `verdicts s1`: what does not hold of s1
//! - `restore`, `restore s1`: a user asks for the job to be taken back
//! - `break p1->p2`, `crash p1`, `crash collector`, `pass 500` (milliseconds)
//! - `hold disk`, `release disk`: whether the store answers at once
//! - `disk`: what it was asked to do and has not done; `disk 0 done`, `disk 0 failed`, `disk 0
//!   unknown`: it does the first of it, does not, or does and says that it did not
//! - `hold p1`, `release p1`: whether p1 hears the collector
//! - `hello p1->p2 g2`: what p2 would say to such a hello
//! - `queues p1->p2`: what is where
//! - `stabilize`: until nothing moves
//!
//! The control streams, the handshakes and the store, unless they are held, take their course
//! after each step.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use cutline::apps::BuiltIn;
use cutline::check::{Answer, judge_manifest};
use cutline::protocol::Topology;
use cutline::protocol::application::Application;
use cutline::protocol::collector::{Announcement, Policy, Request};
use cutline::protocol::frame::{Batch, Hello};
use cutline::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use cutline::protocol::link::Limits;
use cutline::protocol::mode::Mode;
use cutline::protocol::process::Settings;
use cutline::protocol::records::{End, Manifest, Record};
use cutline::world::{Choice, Fate, Fault, Job, Notice, Operation, World};

/// More choices than any transcript needs.
const STEPS_MAX: usize = 10_000;

/// A job under way.
pub(crate) struct Stage {
    world: World<BuiltIn>,
    disk_held: bool,
    /// Who does not hear the collector.
    deaf: BTreeSet<ProcessId>,
}

impl Stage {
    pub(crate) fn begin(input: &str) -> (Self, String) {
        let line = |name: &str| -> Vec<String> {
            let lines = input.lines().filter_map(|line| line.split_once(": "));
            let words = lines
                .filter(|(key, _)| *key == name)
                .flat_map(|(_, v)| v.split(' '));
            words.map(str::to_owned).collect()
        };
        let channels = line("channels");
        let channels = channels.iter().map(|text| channel(text));
        let topology = Topology::new(line("processes"), channels).unwrap();
        let balances: serde_json::Map<_, _> = line("balances")
            .iter()
            .filter_map(|balance| balance.split_once('='))
            .map(|(name, balance)| (name.to_owned(), balance.parse::<u64>().unwrap().into()))
            .collect();
        let job = Job {
            topology: Arc::new(topology),
            application: "token".to_owned(),
            settings: serde_json::json!({ "balances": balances }),
            seed: 1,
            process: Settings {
                limits: Limits::default(),
                snapshot_timeout_ms: 10_000,
                trace: false,
            },
            policy: Policy {
                mode: Mode::Classic,
                alignment_timeout_ms: None,
                interval_ms: 0,
                pause_min_ms: 0,
                timeout_ms: 10_000,
                open_max: 4,
                failures_tolerated: 100,
                fall_back: false,
                retain: 100,
                silence_ms: 60_000,
                initiators: BTreeSet::new(),
            },
        };
        let mut stage = Self {
            world: World::new(job).unwrap(),
            disk_held: false,
            deaf: BTreeSet::new(),
        };
        stage.world.stabilize(STEPS_MAX);
        let text = stage.notices();
        (stage, text)
    }

    pub(crate) fn perform(&mut self, input: &str) -> String {
        let mut text = String::new();
        for line in input.lines() {
            let _ = writeln!(text, "{line}");
            let told = self.step(line);
            self.settle();
            for line in (told + &self.notices()).lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        text
    }

    fn step(&mut self, line: &str) -> String {
        let words: Vec<_> = line.split(' ').collect();
        let world = &mut self.world;
        match words.as_slice() {
            ["send", from, to, amount] => {
                let from = process(world, from);
                world.command(from, &format!("send {to} {amount}"));
            }
            ["put", on] => world.apply(&Choice::Send(channel(on))),
            ["arrive", on] => world.apply(&Choice::Arrive(channel(on))),
            ["take", on] => world.apply(&Choice::Take(channel(on))),
            ["ack", on] => {
                world.apply(&Choice::Acknowledge(channel(on)));
                world.apply(&Choice::Hear(channel(on)));
            }
            ["break", on] => world.apply(&Choice::Fault(Fault::Break(channel(on)))),
            ["crash", "collector"] => world.apply(&Choice::Fault(Fault::CrashCollector)),
            ["crash", name] => {
                let process = process(world, name);
                world.apply(&Choice::Fault(Fault::Crash(process)));
            }
            ["pass", ms] => world.apply(&Choice::Fault(Fault::Pass(ms.parse().unwrap()))),
            ["snapshot", rest @ ..] => {
                let by = rest.iter().position(|word| *word == "by");
                let (names, by) = rest.split_at(by.unwrap_or(rest.len()));
                let initiators = names.iter().map(|name| process(world, name)).collect();
                world.ask(Request::Snapshot {
                    initiators,
                    mode: by.get(1).map(|mode| mode.parse().unwrap()),
                    alignment_timeout_ms: by.get(2).map(|ms| ms.parse().unwrap()),
                });
            }
            ["held", name] => {
                let machine = world.process(process(world, name)).expect("up");
                let held: Vec<_> = machine.held().map(|channel| channel.to_string()).collect();
                return format!(
                    "{}\n",
                    if held.is_empty() {
                        "nothing".into()
                    } else {
                        held.join(" ")
                    }
                );
            }
            ["verdicts", id] => return self.verdicts(id.parse().unwrap()),
            ["restore"] => drop(world.ask(Request::Restore(None))),
            ["restore", id] => drop(world.ask(Request::Restore(Some(id.parse().unwrap())))),
            ["hold", "disk"] => self.disk_held = true,
            ["release", "disk"] => self.disk_held = false,
            ["disk"] => return self.pending(),
            ["disk", place, fate] => {
                world.apply(&Choice::Store(place.parse().unwrap(), parse_fate(fate)));
            }
            ["hold", name] => drop(self.deaf.insert(process(world, name))),
            ["release", name] => drop(self.deaf.remove(&process(world, name))),
            ["hello", on, generation] => return self.hello(channel(on), generation),
            ["queues", on] => return self.queues(channel(on)),
            ["stabilize"] => self.run(|choice| !matches!(choice, Choice::Tick(_))),
            _ => panic!("no such step: {line}"),
        }
        String::new()
    }

    /// Everything that is not a message, a marker or new work takes its course.
    fn settle(&mut self) {
        self.run(|choice| {
            matches!(
                choice,
                Choice::Report(..)
                    | Choice::Direct(..)
                    | Choice::Open(_)
                    | Choice::Start(_)
                    | Choice::StartCollector
                    | Choice::Store(..)
            )
        });
    }

    /// What is allowed, or answers a hello, takes its course, unless it is held.
    fn run(&mut self, allowed: impl Fn(&Choice) -> bool) {
        for _ in 0..STEPS_MAX {
            let next = self
                .world
                .choices()
                .into_iter()
                .find(|choice| match choice {
                    Choice::Store(..) if self.disk_held => false,
                    Choice::Direct(process, _) if self.deaf.contains(process) => false,
                    Choice::Hear(channel) if self.world.is_dialled(*channel) => true,
                    _ => allowed(choice),
                });
            match next {
                Some(choice) => self.world.apply(&choice),
                None => return,
            }
        }
        panic!("it does not come to rest");
    }

    /// What the store has before it.
    fn pending(&self) -> String {
        let name = |process: &ProcessId| self.world.job().topology.name(*process);
        let mut text = String::new();
        for (place, operation) in self.world.pending().iter().enumerate() {
            let what = match operation {
                Operation::Read => "everything is to be read".to_owned(),
                Operation::Create(Record::Log(entry)) => match entry.generation {
                    None => format!("the record of term {}", entry.term),
                    Some(begun) => format!("the record of {}", begun.generation),
                },
                Operation::Create(Record::Begun(begun)) => {
                    format!("the begin record of {}", begun.snapshot)
                }
                Operation::Create(Record::Manifest(manifest)) => {
                    let complete = if manifest.is_complete() {
                        "complete"
                    } else {
                        "aborted"
                    };
                    format!("the manifest of {}: {complete}", manifest.snapshot)
                }
                Operation::Delete(snapshot) => format!("{snapshot} is to be deleted"),
                Operation::Put(process, _, part, _) => {
                    format!("{}'s part of {}", name(process), part.snapshot)
                }
                Operation::Load(process, _, generation, snapshot) => {
                    format!(
                        "{snapshot} is to be read by {} for {generation}",
                        name(process)
                    )
                }
            };
            let _ = writeln!(text, "{place}: {what}");
        }
        text
    }

    /// Those that do not hold, with the evidence.
    fn verdicts(&self, snapshot: SnapshotId) -> String {
        let mut manifests = self.world.manifests();
        let manifest = manifests
            .find(|manifest| manifest.snapshot == snapshot)
            .unwrap();
        let verdicts = judge_manifest(&self.world.job().topology, manifest);
        let failing = verdicts
            .0
            .iter()
            .filter(|verdict| verdict.holds == Answer::No);
        let lines = failing.map(|verdict| format!("not {}: {}\n", verdict.name, verdict.evidence));
        match lines.collect::<String>() {
            none if none.is_empty() => "every verdict holds\n".to_owned(),
            some => some,
        }
    }

    fn hello(&self, on: ChannelId, generation: &str) -> String {
        let (sender, receiver) = (self.world.process(on.from), self.world.process(on.to));
        let hello = Hello {
            topology: self.world.job().topology.fingerprint(),
            job: receiver.expect("up").job(),
            generation: generation.parse().unwrap(),
            incarnation: sender.expect("up").incarnation(),
        };
        let name = self.world.job().topology.name(on.to);
        match receiver.expect("up").would_answer(on, hello) {
            true => format!("{name} would answer\n"),
            false => format!("{name} would say: not yet\n"),
        }
    }

    fn queues(&self, on: ChannelId) -> String {
        let sender = self.world.process(on.from).expect("up");
        let outbox = sender
            .outboxes()
            .iter()
            .find(|outbox| outbox.channel() == on)
            .unwrap();
        let receiver = self.world.process(on.to).expect("up");
        let handled = receiver
            .positions()
            .find(|(channel, _)| *channel == on)
            .unwrap()
            .1;
        format!(
            "sent {}, in the outbox {} B, on the wire {} frames, unacknowledged {}, handled {}\n",
            outbox.sent(),
            outbox.queued_bytes(),
            self.world.on_the_wire(on),
            outbox.unacknowledged(),
            handled
        )
    }

    fn notices(&mut self) -> String {
        let mut text = String::new();
        for notice in self.world.take_notices() {
            let name = |process: ProcessId| self.world.job().topology.name(process).to_owned();
            let line = match notice {
                Notice::Recorded(process, snapshot) => {
                    format!("{} records {snapshot} and puts its markers", name(process))
                }
                Notice::Whole(process, snapshot) => {
                    format!("{}'s part of {snapshot} is whole", name(process))
                }
                Notice::Breach(channel, breach) => format!("breach on {channel}: {breach}"),
                Notice::Refused(channel, reason) => format!("refused on {channel}: {reason}"),
                Notice::Replace(process) => format!("{} is to be replaced", name(process)),
                Notice::Absent(process) => format!("{} has not joined", name(process)),
                Notice::Failed(process, reason) => format!("{} fails: {reason}", name(process)),
                Notice::Announced(announcement) => match announcement {
                    Announcement::Joined(process, _) => format!("{} joins", name(process)),
                    Announcement::Lost(process, _) => format!("{} is lost", name(process)),
                    Announcement::Begun(snapshot) => format!("{snapshot} begins"),
                    Announcement::Ended(manifest) => self.ended(&manifest),
                    Announcement::Failed(reason) => format!("failure: {reason}"),
                    Announcement::Warned(reason) => format!("warning: {reason}"),
                    Announcement::Restoring(generation, snapshot) => {
                        format!("{generation} is to start from {snapshot}")
                    }
                    Announcement::Running(generation, snapshot) => {
                        format!("everyone runs {generation} from {snapshot}")
                    }
                },
            };
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// A snapshot as a reader wants it: local states, then channel states that are not empty.
    fn ended(&self, manifest: &Manifest) -> String {
        let snapshot = manifest.snapshot;
        match &manifest.end {
            End::Aborted { reason } => format!("{snapshot} is aborted: {reason}"),
            End::Complete { .. } => format!("{snapshot} is complete: {}", self.contents(snapshot)),
        }
    }

    fn contents(&self, snapshot: SnapshotId) -> String {
        let topology = &self.world.job().topology;
        let mut pieces = Vec::new();
        for process in topology.processes() {
            let part = self.world.part(snapshot, process).expect("complete");
            let setup = self.world.setup(process);
            let tokens = BuiltIn::in_state(&setup, &part.state)["tokens"];
            pieces.push(format!("{} {tokens}", topology.name(process)));
        }
        for &channel in topology.channels() {
            let part = |process| &self.world.part(snapshot, process).expect("complete").part;
            let input = part(channel.to).inputs.iter();
            let output = part(channel.from).outputs.iter();
            let ahead = input.filter(|input| input.channel == channel);
            let ahead = self.tokens(channel, ahead.flat_map(|input| &input.share));
            let overtaken = output.filter(|output| output.channel == channel);
            let overtaken = self.tokens(channel, overtaken.flat_map(|output| &output.share));
            match (ahead.as_str(), overtaken.as_str()) {
                ("", "") => {}
                (ahead, "") => pieces.push(format!("{channel} [{ahead}]")),
                (ahead, overtaken) => pieces.push(format!("{channel} [{ahead} | {overtaken}]")),
            }
        }
        pieces.join(", ")
    }
}

impl Stage {
    /// What recorded messages carry.
    fn tokens<'a>(&self, on: ChannelId, share: impl Iterator<Item = &'a Batch>) -> String {
        let setup = self.world.setup(on.to);
        let messages = share.flat_map(|batch| batch.messages());
        let tokens =
            messages.map(|(_, message)| BuiltIn::in_message(&setup, message)["tokens"].to_string());
        tokens.collect::<Vec<_>>().join(" ")
    }
}

fn process(world: &World<BuiltIn>, name: &str) -> ProcessId {
    world
        .job()
        .topology
        .process(name)
        .unwrap_or_else(|| panic!("no process {name}"))
}

fn parse_fate(text: &str) -> Fate {
    match text {
        "done" => Fate::Done,
        "failed" => Fate::Failed,
        "unknown" => Fate::Unknown,
        _ => panic!("no such fate: {text}"),
    }
}

fn channel(text: &str) -> ChannelId {
    text.replace("->", "→")
        .parse()
        .expect("a channel such as p1->p2")
}
