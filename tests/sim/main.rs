//! The engine `sim`: scenarios in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]
#![allow(
    clippy::print_stdout,
    reason = "what was skipped or seen, for those who read along"
)]

mod cos418;
mod faults;
#[path = "../peers/files.rs"]
mod peers;
mod random;
mod scale;
mod steps;

use std::path::Path;

use cutline::apps::BuiltIn;
use cutline::scenario::{Scenario, Source, Text};
use cutline::sim::{self, Outcome, Settings, Told};

/// A scenario that came to its end, and all that was told meanwhile.
struct Ran {
    outcome: Outcome<BuiltIn>,
    told: Vec<String>,
}

fn run(scenario: &Scenario) -> Ran {
    let mut told = Vec::new();
    let mut tell = |at_us: u64, what: Told<'_>| told.push(format!("{at_us} {what:?}"));
    let outcome = sim::run(scenario, &Settings::default(), &mut tell).unwrap();
    Ran { outcome, told }
}

fn parsed(text: &str) -> Source {
    let origin = Path::new("/scenarios/some.toml");
    Source::parse(Text { origin, text }).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A bank of three in a ring, and these steps.
fn bank(steps: &str) -> Scenario {
    let text = format!(
        "timeout = \"60s\"\n[job]\nprocesses = 3\ntopology = \"ring\"\n\
         [job.application]\nname = \"bank\"\n[job.snapshots]\ninterval = \"100ms\"\n{steps}"
    );
    parsed(&text).scenario(None).unwrap()
}

/// Steps, one a line: `kill process = "p1"`.
fn steps(lines: &[&str]) -> String {
    let step = |line: &&str| {
        let (word, fields) = line.split_once(' ').unwrap_or((line, ""));
        let fields = fields.replace("; ", "\n");
        format!("[[step]]\ndo = \"{word}\"\n{fields}\n")
    };
    lines.iter().map(step).collect()
}

impl Ran {
    #[track_caller]
    fn ok(self) -> Self {
        assert!(self.outcome.failures.is_empty(), "{}", self.story());
        let broken = self.outcome.verified.iter().find(|each| !each.holds);
        assert!(broken.is_none(), "{broken:?}\n{}", self.story());
        self
    }

    #[track_caller]
    fn fails(self, words: &str) -> Self {
        let failures = self.outcome.failures.join("\n");
        assert!(failures.contains(words), "{}", self.story());
        self
    }

    fn story(&self) -> String {
        let failures = self.outcome.failures.join("\n");
        format!("{}\n{failures}", self.told.join("\n"))
    }

    fn case(&self, case: &str) -> u64 {
        let cases = self.outcome.figures.cases();
        let found = cases.iter().find(|(name, _)| name == case);
        found.unwrap_or_else(|| panic!("no case '{case}'")).1
    }
}
