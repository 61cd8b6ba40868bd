//! Snapshots that other programs have taken, read from a documented form and judged by the same
//! verdicts as our own, as far as they are told of. `docs/audit.md` explains the form.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::check::{Account, Totals, Verdicts, judge_account};
use crate::job::{Refusals, read_text};

mod form;
mod junit;
mod raf;
mod read;

pub use junit::junit;

/// Why nothing can be judged.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
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

/// The form a file is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The documented one.
    #[default]
    Json,
    /// The log of a servent of RAF's course on concurrent and distributed systems.
    Raf,
}

/// A snapshot of somebody else's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What it is called.
    pub name: String,
    /// What is told of it.
    pub account: Account,
}

/// What became of judging one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Audited {
    /// What it is called.
    pub snapshot: String,
    /// Whether no verdict fails.
    pub holds: bool,
    /// The verdicts.
    pub verdicts: Verdicts,
    /// Where each quantity is; none, if that is not told in full.
    pub quantities: Option<BTreeMap<String, Sums>>,
}

/// Where one quantity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// In the local states.
    pub in_states: i128,
    /// In the channels.
    pub in_channels: i128,
    /// What there must be.
    pub expected: i128,
}

impl From<Totals> for Sums {
    fn from(totals: Totals) -> Self {
        Self {
            in_states: totals.in_states,
            in_channels: totals.in_channels,
            expected: totals.expected,
        }
    }
}

impl Snapshot {
    /// Reads all snapshots of a file.
    ///
    /// # Errors
    /// If the file cannot be read, or with everything in it that makes no sense.
    pub fn load(path: &Path, form: Form) -> Result<Vec<Self>, AuditError> {
        let failed = |source| AuditError::Read {
            path: path.to_owned(),
            source,
        };
        let text = read_text(path).map_err(failed)?;
        Self::parse(&text, path, form)
    }

    /// Reads all snapshots of a text; `origin` names it in refusals.
    ///
    /// # Errors
    /// With everything in it that makes no sense.
    pub fn parse(text: &str, origin: &Path, form: Form) -> Result<Vec<Self>, AuditError> {
        let read = match form {
            Form::Json => read::read(text, origin),
            Form::Raf => raf::read(text, origin),
        };
        read.map_err(AuditError::Refused)
    }

    /// Judges it.
    pub fn audit(&self) -> Audited {
        let verdicts = judge_account(&self.account);
        let totals = self.account.totals().ok();
        let sums = totals.map(|totals| {
            let each = totals.into_iter();
            each.map(|(name, totals)| (name, totals.into())).collect()
        });
        Audited {
            snapshot: self.name.clone(),
            holds: verdicts.hold(),
            verdicts,
            quantities: sums,
        }
    }
}

#[cfg(test)]
mod tests;
