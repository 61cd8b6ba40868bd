//! What became of verifying one snapshot: the verdicts, and what each rests on.
//!
//! As JSON (stable; more fields may come):
//!
//! ```json
//! {
//!   "snapshot": "s42", "generation": "g7", "mode": "classic",
//!   "outcome": "complete", "reason": null, "holds": true,
//!   "verdicts": [{"name": "complete", "holds": "yes", "evidence": "2 parts, …"}],
//!   "quantities": {"money": {"in_states": 190, "in_channels": 10,
//!                            "initial": 200, "expected": 200}},
//!   "parts": [{"process": "alice", "file": "snapshots/s42/alice.part", "bytes": 512,
//!              "state": "intact", "fault": null}]
//! }
//! ```
//!
//! `outcome` is `complete` or `aborted`, with the reason in `reason`. A verdict `holds` `yes`,
//! `no` or `unknown`; the snapshot `holds` if none is `no`. The `state` of a part is `intact`,
//! `missing` or `damaged`, with what is wrong in `fault`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use super::judge::{Cut, Files, Totals, aborted, inconsistent, judge, process_name, totals};
use super::verdict::{Verdict, Verdicts};
use crate::protocol::application::Quantities;
use crate::protocol::cut::Facts;
use crate::protocol::events::StoredPart;
use crate::protocol::ids::{Generation, SnapshotId};
use crate::protocol::mode::Mode;
use crate::protocol::records::Manifest;
use crate::protocol::topology::Topology;

/// What became of verifying one snapshot. Prints as a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The snapshot.
    #[serde(serialize_with = "as_written")]
    pub snapshot: SnapshotId,
    /// The generation it is of.
    #[serde(serialize_with = "as_written")]
    pub generation: Generation,
    /// How it was taken.
    pub mode: Mode,
    /// `complete` or `aborted`.
    pub outcome: &'static str,
    /// Why it was aborted.
    pub reason: Option<String>,
    /// Whether no verdict fails.
    pub holds: bool,
    /// The verdicts.
    pub verdicts: Verdicts,
    /// Where each quantity is.
    pub quantities: BTreeMap<String, Totals>,
    /// The part files, in the order of the manifest.
    pub parts: Vec<VerifiedPart>,
}

/// One part file of a snapshot that was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifiedPart {
    /// The name of the process.
    pub process: String,
    /// The name of the file in the store.
    pub file: String,
    /// Its length, as the manifest notes it.
    pub bytes: u64,
    /// What was found.
    pub state: PartState,
    /// What is wrong with it.
    pub fault: Option<String>,
}

/// What was found where a part file should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// The file, as it was written.
    Intact,
    /// Nothing.
    Missing,
    /// Something else.
    Damaged,
}

impl VerifiedPart {
    /// One that is as it was written.
    pub fn intact(topology: &Topology, stored: &StoredPart, file: String) -> Self {
        Self {
            process: process_name(topology, stored.facts.process),
            file,
            bytes: stored.bytes,
            state: PartState::Intact,
            fault: None,
        }
    }

    /// Notes what was found instead.
    pub fn found(&mut self, state: PartState, fault: String) {
        self.state = state;
        self.fault = Some(fault);
    }
}

impl Verified {
    /// The result for a complete snapshot: for each of its parts what was found where it should
    /// be, and what it says, or the manifest says of it.
    pub fn complete(
        topology: &Topology,
        manifest: &Manifest,
        expected: &Quantities,
        looked: Vec<(VerifiedPart, Facts)>,
    ) -> Self {
        let (parts, facts): (Vec<_>, Vec<_>) = looked.into_iter().unzip();
        let in_state = |state: PartState| parts.iter().filter(move |part| part.state == state);
        let faults = |state: PartState| {
            let faults = in_state(state).filter_map(|part| part.fault.clone());
            faults.collect::<Vec<_>>()
        };
        let cut = Cut {
            topology,
            fingerprint: manifest.topology,
            mode: manifest.mode,
            facts: facts.iter().collect(),
            expected,
            files: Files::Read {
                bytes: in_state(PartState::Intact).map(|part| part.bytes).sum(),
                missing: faults(PartState::Missing),
                damaged: faults(PartState::Damaged),
            },
        };
        let (quantities, verdicts) = (totals(&cut.facts, cut.expected), judge(&cut));
        Self {
            quantities,
            parts,
            ..Self::new(manifest, verdicts)
        }
    }

    /// The result for an aborted snapshot.
    pub fn aborted(manifest: &Manifest, reason: &str) -> Self {
        Self {
            outcome: "aborted",
            reason: Some(reason.to_owned()),
            ..Self::new(manifest, aborted(reason))
        }
    }

    /// The result with one more verdict.
    #[must_use]
    pub fn with(mut self, verdict: Verdict) -> Self {
        self.verdicts.0.push(verdict);
        self.holds = self.verdicts.hold();
        self
    }

    /// Which snapshot it is, and how it was taken and ended.
    pub fn title(&self) -> String {
        let Self {
            snapshot,
            generation,
            mode,
            outcome,
            ..
        } = self;
        format!("{snapshot} of {generation}, {mode}, {outcome}")
    }

    /// All verdicts in one.
    pub fn in_short(&self) -> String {
        let failing = self.verdicts.failing();
        match &self.reason {
            _ if self.holds => "every verdict holds".to_owned(),
            Some(reason) => reason.clone(),
            // It is the mode's doing, unless it is not even complete and whole.
            None if !self.mode.is_consistent()
                && !failing
                    .iter()
                    .any(|name| ["complete", "intact"].contains(name)) =>
            {
                inconsistent(self.mode)
            }
            None => format!("not {}", failing.join(", not ")),
        }
    }

    fn new(manifest: &Manifest, verdicts: Verdicts) -> Self {
        Self {
            snapshot: manifest.snapshot,
            generation: manifest.generation,
            mode: manifest.mode,
            outcome: "complete",
            reason: None,
            holds: verdicts.hold(),
            verdicts,
            quantities: BTreeMap::new(),
            parts: Vec::new(),
        }
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}\n{}",
            self.title(),
            self.in_short(),
            self.verdicts
        )
    }
}

fn as_written<S: Serializer>(id: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}
