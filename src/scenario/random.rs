//! Random scenarios: a form that says what may be drawn, and a scenario drawn from it by a seed.
//!
//! What is drawn is the text of an ordinary scenario, which is then read as any other: so it can
//! be looked at, kept, changed, and run by every engine.

use std::path::Path;

use toml::de::DeValue;

use super::drawn;
use super::{Scenario, ScenarioError, Text, read_file};
use crate::job::{Document, Placed, Section, list, not, number};

/// Where scenarios come from: a file that is one, or the form of many.
#[derive(Clone, Debug)]
pub enum Source {
    /// The same scenario for every seed.
    Fixed(Box<Scenario>),
    /// Another one for every seed.
    Random(Random),
}

/// What may be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    /// The scenarios' name.
    pub(super) name: String,
    pub(super) origin: std::path::PathBuf,
    pub(super) processes: (u64, u64),
    pub(super) faults: (u64, u64),
    pub(super) topologies: Vec<String>,
    pub(super) applications: Vec<String>,
    pub(super) modes: Vec<String>,
    pub(super) kinds: Vec<String>,
}

/// The kinds of things that go wrong.
pub(super) const KINDS: [&str; 10] = [
    "kill",
    "kill-at-snapshot",
    "kill-at-restore",
    "kill-collector",
    "kill-collector-at-snapshot",
    "kill-collector-at-restore",
    "pause",
    "pause-collector",
    "break",
    "restore",
];
pub(super) const TOPOLOGIES: [&str; 5] = ["ring", "mesh", "line", "star", "random"];
const APPLICATIONS: [&str; 2] = ["bank", "token-ring"];

/// Processes that a drawn job may have, and faults in one scenario: what is larger finds nothing
/// that is smaller does not find sooner.
const PROCESSES_MAX: u64 = 64;
const FAULTS_MAX: u64 = 100;

impl Source {
    /// Reads a scenario file, or one with a table `[random]`.
    ///
    /// # Errors
    /// If a file cannot be read, or with everything that makes no sense.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let text = read_file(path)?;
        Self::parse(Text {
            origin: path,
            text: &text,
        })
    }

    /// Checks the text of a scenario file, or of one with a table `[random]`.
    ///
    /// # Errors
    /// With everything that makes no sense.
    pub fn parse(file: Text<'_>) -> Result<Self, ScenarioError> {
        let document = Document::new(file.origin.to_string_lossy(), file.text);
        let table = document.parse(file.text);
        let own = Placed {
            value: table.get_ref(),
            line: None,
        };
        let is_random = own.value.contains_key("random");
        if document.is_refused() || !is_random {
            let scenario = Scenario::parse(file.text, file.origin)?;
            return Ok(Self::Fixed(Box::new(scenario)));
        }
        let mut root = Section::new(&document, "a scenario", Some(own), None);
        let random = Random::read(root.table("random"), file.origin);
        root.finish();
        document.verdict().map_err(ScenarioError::Refused)?;
        Ok(Self::Random(random))
    }

    /// The scenario for a seed; without one, with the job's own seed, or the one for seed 1.
    ///
    /// # Errors
    /// If what is drawn makes no sense.
    pub fn scenario(&self, seed: Option<u64>) -> Result<Scenario, ScenarioError> {
        match (self, seed) {
            (Self::Fixed(scenario), None) => Ok(scenario.as_ref().clone()),
            (Self::Fixed(scenario), Some(seed)) => {
                let mut scenario = scenario.as_ref().clone();
                scenario.job = scenario.job.with_seed(seed);
                Ok(scenario)
            }
            (Self::Random(random), seed) => random.scenario(seed.unwrap_or(1)),
        }
    }
}

impl Random {
    fn read(mut table: Section<'_>, origin: &Path) -> Self {
        let name = origin.file_stem().unwrap_or_default();
        let random = Self {
            name: name.to_string_lossy().into_owned(),
            origin: origin.to_owned(),
            processes: range(&mut table, "processes", (2, 5), (2, PROCESSES_MAX)),
            faults: range(&mut table, "faults", (1, 6), (0, FAULTS_MAX)),
            topologies: words(&mut table, "topologies", &TOPOLOGIES),
            applications: words(&mut table, "applications", &APPLICATIONS),
            modes: words(&mut table, "modes", &drawn::MODES),
            kinds: words(&mut table, "kinds", &KINDS),
        };
        table.finish();
        random
    }

    /// The text of the scenario for a seed.
    #[must_use]
    pub fn text(&self, seed: u64) -> String {
        drawn::text(self, seed)
    }

    fn scenario(&self, seed: u64) -> Result<Scenario, ScenarioError> {
        let mut scenario = Scenario::parse(&self.text(seed), &self.origin)?;
        scenario.name.clone_from(&self.name);
        Ok(scenario)
    }
}

/// Two numbers within bounds, the first not above the second.
fn range(
    table: &mut Section<'_>,
    key: &'static str,
    otherwise: (u64, u64),
    (least, most): (u64, u64),
) -> (u64, u64) {
    let read = table.read(key, |value| {
        let ends = value.as_array().map(|ends| {
            let ends = ends.iter().map(|end| number(end.get_ref()));
            ends.collect::<Option<Vec<_>>>()
        });
        match ends.flatten().as_deref() {
            Some(&[from, to]) if least <= from && from <= to && to <= most => Ok((from, to)),
            _ => Err(form(value, least, most)),
        }
    });
    read.map_or(otherwise, |read| read.value)
}

fn form(value: &DeValue<'_>, least: u64, most: u64) -> (String, String) {
    let what = format!("two numbers from {least} to {most}, such as [{least}, {most}]");
    not(value, &what)
}

/// A list of known words; all of them where the file says nothing.
fn words(table: &mut Section<'_>, key: &'static str, known: &[&str]) -> Vec<String> {
    let Some(given) = table.texts(key) else {
        return known.iter().map(|&word| word.to_owned()).collect();
    };
    if given.is_empty() {
        let remedy = format!("give one or more of {}", list(known));
        table.refuse(None, format!("{key} is empty"), remedy);
    }
    for word in &given {
        if !known.contains(&word.value.as_str()) {
            let remedy = format!("use some of {}", list(known));
            let problem = format!("unknown word '{}' in {key}", word.value);
            table.refuse(word.line, problem, remedy);
        }
    }
    given.into_iter().map(|word| word.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Result<Source, ScenarioError> {
        let origin = Path::new("/scenarios/some.toml");
        Source::parse(Text { origin, text })
    }

    #[test]
    fn what_is_drawn_is_a_scenario_and_the_same_for_the_same_seed() {
        let source = source("[random]\n").unwrap();
        for seed in 0..200 {
            let drawn = source.scenario(Some(seed)).unwrap_or_else(|error| {
                let Source::Random(random) = &source else {
                    panic!("{error}")
                };
                panic!("seed {seed}: {error}\n{}", random.text(seed))
            });
            assert_eq!(drawn.job.seed(), seed);
            assert_eq!(drawn, source.scenario(Some(seed)).unwrap());
        }
        assert_ne!(
            source.scenario(Some(1)).unwrap().steps,
            source.scenario(Some(2)).unwrap().steps
        );
    }

    #[test]
    fn a_form_that_makes_no_sense_is_refused_with_line_and_remedy() {
        for (text, words) in [
            ("[random]\nprocesses = [5, 2]", "two numbers from 2 to 64"),
            (
                "[random]\nkinds = [\"fire\"]",
                "unknown word 'fire' in kinds",
            ),
            ("[random]\nmodes = []", "modes is empty"),
            ("[random]\nfaults = 3", "such as [0, 100]"),
            ("[random]\nsize = 3", "size"),
        ] {
            let refused = source(text).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn without_the_table_it_is_one_scenario() {
        let text = "[job]\nprocesses = 2\ntopology = \"ring\"\n\
                    [job.application]\nname = \"bank\"\n[[step]]\ndo = \"snapshot\"\n";
        let source = source(text).unwrap();
        let scenario = source.scenario(Some(7)).unwrap();
        assert_eq!((scenario.job.seed(), scenario.steps.len()), (7, 1));
    }
}
