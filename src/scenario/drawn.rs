//! Drawing a scenario: what goes wrong when, such that each step can be carried out.
//!
//! A step that holds something at a point waits until the point is come by. So snapshots are
//! taken all the time, and a kill in the midst of a restore comes along with the kill that the
//! restore is for.

use std::fmt::Write as _;

use super::random::Random;
use crate::apps::SplitMix64;
use crate::protocol::ids::ProcessId;

/// The modes that may be drawn.
pub(super) const MODES: [&str; 5] = [
    "classic",
    "aligned",
    "aligned-limited",
    "unaligned",
    "at-least-once",
];

/// Points of a node, and of the collector, that each snapshot comes by.
const SNAPSHOT_POINTS: [&str; 3] = ["recorded", "uploading", "stored"];
const COLLECTOR_POINTS: [&str; 3] = ["parts-in", "manifest", "notice"];
/// Points of a node that each restore comes by.
const RESTORE_POINTS: [&str; 2] = ["prepared", "ready"];

/// The text of a scenario.
pub(super) fn text(random: &Random, seed: u64) -> String {
    let mut drawing = Drawing {
        random: SplitMix64::new(seed, ProcessId::new(u32::MAX - 1)),
        text: format!("# Drawn from {} with seed {seed}.\n", random.name),
        processes: 0,
        is_hasty: false,
        is_consistent: true,
        channels: Vec::new(),
    };
    drawing.job(random, seed);
    drawing.wait("{ running = true }");
    let (least, most) = random.faults;
    for _ in 0..drawing.between(least, most) {
        let kind = drawing.pick(&random.kinds).to_owned();
        drawing.fault(&kind);
        if drawing.chance(2) {
            let pause_ms = drawing.between(1, 400);
            drawing.wait(&format!("{{ time = \"{pause_ms}ms\" }}"));
        }
    }
    // Long enough for whoever was paused to be missed, and to come back.
    drawing.wait("{ running = true, time = \"5s\" }");
    if !drawing.is_hasty {
        drawing.step("snapshot", "wait = true");
        drawing.step("expect", "that = { snapshots = \">= 1\" }");
    }
    // Where there is too little time there may be none that could be judged. Those that there are
    // are judged at the end of every run.
    if drawing.is_consistent && !drawing.is_hasty {
        drawing.step("expect", "that = { verdicts = \"hold\" }");
    }
    drawing.text
}

struct Drawing {
    random: SplitMix64,
    text: String,
    processes: u64,
    /// Snapshots have hardly any time.
    is_hasty: bool,
    /// Its cuts are consistent.
    is_consistent: bool,
    /// The ends of every channel.
    channels: Vec<(u64, u64)>,
}

impl Drawing {
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.random.below(1 + most - least)
    }

    /// One time in so many.
    fn chance(&mut self, times: u64) -> bool {
        self.random.below(times) == 0
    }

    fn pick<'w>(&mut self, words: &'w [impl AsRef<str>]) -> &'w str {
        let index = self.random.below(words.len() as u64);
        words[usize::try_from(index).unwrap_or_default()].as_ref()
    }

    fn process(&mut self) -> String {
        format!("p{}", self.between(1, self.processes))
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    fn step(&mut self, word: &str, fields: &str) {
        let _ = writeln!(self.text, "\n[[step]]\ndo = \"{word}\"\n{fields}");
    }

    fn wait(&mut self, conditions: &str) {
        self.step("wait", &format!("for = {conditions}\ntimeout = \"60s\""));
    }

    fn job(&mut self, random: &Random, seed: u64) {
        let (least, most) = random.processes;
        self.processes = self.between(least, most);
        let topology = self.pick(&random.topologies).to_owned();
        self.line("timeout = \"600s\"\n\n[job]");
        self.line(&format!("processes = {}\nseed = {seed}", self.processes));
        let channels = self.connected(&topology);
        let written = channels
            .iter()
            .map(|(from, to)| format!("\"p{from} -> p{to}\""));
        let written: Vec<_> = written.collect();
        self.line(&format!("channels = [{}]", written.join(", ")));
        self.channels = channels;
        let silence_ms = self.between(1_000, 3_000);
        // Where each message waits for the one before, a slow channel would take for ever.
        let is_narrow = self.chance(2);
        let delays: &[_] = if is_narrow { &["0"] } else { &["0", "1", "20"] };
        let delay_ms = self.pick(delays).to_owned();
        self.line(&format!(
            "silence = \"{silence_ms}ms\"\ndelay = \"{delay_ms}ms\""
        ));
        // A token that goes round needs a ring.
        let mut application = self.pick(&random.applications);
        if application == "token-ring" && topology != "ring" {
            application = "bank";
        }
        self.line(&format!("\n[job.application]\nname = \"{application}\""));
        if application == "bank" {
            // On a narrow channel enough has to wait that markers wait behind it.
            let every_ms = self.between(1, if is_narrow { 3 } else { 30 });
            self.line(&format!("every_ms = {every_ms}"));
        }
        let mode = self.pick(&random.modes);
        self.is_consistent = mode != "at-least-once";
        let interval_ms = self.between(30, 400);
        // Some are too short for many a snapshot.
        self.is_hasty = self.chance(4);
        let timeout_ms = match self.is_hasty {
            true => self.between(20, 200),
            false => self.between(3_000, 5_000),
        };
        let open_max = self.between(1, 4);
        self.line("\n[job.snapshots]");
        if mode == "aligned-limited" {
            let limit_ms = self.between(0, 30);
            self.line(&format!("alignment_timeout = \"{limit_ms}ms\""));
        }
        let mode = mode.trim_end_matches("-limited");
        self.line(&format!(
            "mode = \"{mode}\"\ninterval = \"{interval_ms}ms\""
        ));
        self.line(&format!(
            "timeout = \"{timeout_ms}ms\"\nopen_max = {open_max}"
        ));
        // What is to be seen is that snapshots fail and are kept, not that the job gives up.
        self.line("failures_tolerated = 100000\n\n[job.store]\nretain = 100000");
        self.line("\n[job.restarts]\nmax = 100000\nbackoff = \"0ms\"\n\n[job.limits]");
        let window = self.pick(if is_narrow {
            &["1", "2"]
        } else {
            &["16", "8192"]
        });
        self.line(&format!("window_messages = {window}"));
        if is_narrow {
            self.line("outbox_bytes = 200");
        }
    }

    /// The ends of the channels.
    fn connected(&mut self, topology: &str) -> Vec<(u64, u64)> {
        let count = self.processes;
        let all = || (1..=count).flat_map(move |from| (1..=count).map(move |to| (from, to)));
        let ring = |from: u64, to: u64| from % count + 1 == to;
        let chosen: Vec<_> = match topology {
            "mesh" => all().filter(|(from, to)| from != to).collect(),
            "line" => all().filter(|(from, to)| from + 1 == *to).collect(),
            "star" => all()
                .filter(|(from, to)| from != to && (*from == 1 || *to == 1))
                .collect(),
            "random" => all()
                .filter(|&(from, to)| ring(from, to) || (from != to && self.chance(3)))
                .collect(),
            _ => all().filter(|&(from, to)| ring(from, to)).collect(),
        };
        chosen
    }

    fn fault(&mut self, kind: &str) {
        let (one, other) = (self.process(), self.process());
        match kind {
            "kill" if self.chance(3) => {
                self.step("kill", &format!("process = [\"{one}\", \"{other}\"]"));
            }
            "kill" => self.step("kill", &format!("process = \"{one}\"")),
            "kill-at-snapshot" | "kill-collector-at-snapshot" if self.is_hasty => {
                let who = if kind == "kill-at-snapshot" {
                    &one
                } else {
                    "collector"
                };
                self.step("kill", &format!("process = \"{who}\""));
            }
            "kill-at-snapshot" => {
                let point = self.pick(&SNAPSHOT_POINTS);
                self.step("kill", &at(&one, point));
            }
            "kill-collector" => self.step("kill", "process = \"collector\""),
            "kill-collector-at-snapshot" => {
                let point = self.pick(&COLLECTOR_POINTS);
                self.step("kill", &at("collector", point));
            }
            "kill-at-restore" => {
                // A restore that is under way already may have come by the point.
                self.wait("{ running = true }");
                let point = self.pick(&RESTORE_POINTS);
                self.step("kill", &at(&one, point));
                let other = self.another(&one);
                self.step("kill", &format!("process = \"{other}\"\ntogether = true"));
            }
            "kill-collector-at-restore" => {
                self.wait("{ running = true }");
                self.step("kill", &at("collector", "generation"));
                self.step("kill", &format!("process = \"{one}\"\ntogether = true"));
            }
            "pause" | "pause-collector" => {
                let who = if kind == "pause" { &one } else { "collector" };
                let pause_ms = self.between(10, 4_000);
                self.step("pause", &format!("process = \"{who}\""));
                self.wait(&format!("{{ time = \"{pause_ms}ms\" }}"));
                self.step("resume", &format!("process = \"{who}\""));
            }
            "break" => {
                if self.chance(2) {
                    // While its markers are on their way.
                    self.wait("{ running = true }");
                    self.step("snapshot", "");
                    let pause_ms = self.between(1, 20);
                    self.wait(&format!("{{ time = \"{pause_ms}ms\" }}"));
                }
                for nth in 0..self.between(1, 3) {
                    let index = self.random.below(self.channels.len() as u64);
                    let (from, to) = self.channels[usize::try_from(index).unwrap_or_default()];
                    let together = if nth > 0 { "\ntogether = true" } else { "" };
                    let fields = format!("from = \"p{from}\"\nto = \"p{to}\"{together}");
                    self.step("break", &fields);
                }
            }
            _ => {
                self.wait("{ running = true }");
                self.step("restore", "");
            }
        }
    }

    /// A process that is not this one.
    fn another(&mut self, one: &str) -> String {
        loop {
            let other = self.process();
            if other != one {
                return other;
            }
        }
    }
}

fn at(who: &str, point: &str) -> String {
    format!("process = \"{who}\"\nat_point = \"{point}\"")
}
