//! What is wrong with a file that a user wrote: where, what, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

/// How many refusals are printed. Whoever has more mostly has one mistake many times.
const SHOWN_MAX: usize = 20;

/// Why a job cannot be had from a file or from parts.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It makes no sense.
    #[error("{0}")]
    Refused(Refusals),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The file, as it was named.
    pub origin: String,
    /// The line, from 1; none where the file as a whole is meant.
    pub line: Option<u32>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            origin,
            line,
            problem,
            remedy,
        } = self;
        match line {
            Some(line) => write!(f, "{origin}:{line}: {problem}; {remedy}"),
            None => write!(f, "{origin}: {problem}; {remedy}"),
        }
    }
}

/// Everything found wrong in one reading, in the order of the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Refusals {
    found: Vec<Refusal>,
}

impl Refusals {
    /// What was found.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Refusal> {
        self.found.iter()
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn add(&mut self, refusal: Refusal) {
        if !self.found.contains(&refusal) {
            self.found.push(refusal);
        }
    }

    /// By file and line; what concerns a whole file comes first.
    pub(crate) fn sorted(mut self) -> Self {
        self.found
            .sort_by(|a, b| (&a.origin, a.line).cmp(&(&b.origin, b.line)));
        self
    }
}

impl IntoIterator for Refusals {
    type Item = Refusal;
    type IntoIter = std::vec::IntoIter<Refusal>;

    fn into_iter(self) -> Self::IntoIter {
        self.found.into_iter()
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, refusal) in self.found.iter().take(SHOWN_MAX).enumerate() {
            let end = if place == 0 { "" } else { "\n" };
            write!(f, "{end}{refusal}")?;
        }
        match self.found.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// Names in a message: all of them, or the first few and how many more.
pub(crate) fn list<T: fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    const LISTED_MAX: usize = 12;
    let mut names = names.into_iter();
    let mut text: Vec<String> = names
        .by_ref()
        .take(LISTED_MAX)
        .map(|n| n.to_string())
        .collect();
    let more = names.count();
    if more > 0 {
        text.push(format!("and {more} more"));
    }
    text.join(", ")
}
