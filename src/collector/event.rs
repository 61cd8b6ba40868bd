//! What those who watch a job are told, as JSON; `docs/events.md` describes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::{self, Totals};
use crate::protocol::application::Quantities;
use crate::protocol::events::StoredPart;
use crate::protocol::ids::{Generation, Incarnation, SnapshotId};
use crate::protocol::mode::Mode;
use crate::protocol::records::{End, Manifest, sizes};

/// Something that happened in a job. Processes appear by name, ids as people write them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum JobEvent {
    /// A node has joined.
    Joined {
        /// The process it hosts.
        process: String,
        /// Which start of the node it is.
        #[serde(with = "text")]
        incarnation: Incarnation,
        /// Where it takes its inputs' streams.
        address: String,
        /// Its process id on its host.
        pid: u32,
    },
    /// A process is lost: the job will be taken back.
    Lost {
        /// The process.
        process: String,
        /// Which start of the node it was.
        #[serde(with = "text")]
        incarnation: Incarnation,
    },
    /// A snapshot has begun.
    Begun {
        /// The snapshot.
        #[serde(with = "text")]
        snapshot: SnapshotId,
    },
    /// A snapshot is complete.
    Complete(Complete),
    /// A snapshot was aborted.
    Aborted {
        /// The snapshot.
        #[serde(with = "text")]
        snapshot: SnapshotId,
        /// The generation it was of.
        #[serde(with = "text")]
        generation: Generation,
        /// Why.
        reason: String,
    },
    /// A snapshot could not even begin, or its end could not be written so far.
    Failed {
        /// Why.
        reason: String,
    },
    /// Something that the user should know goes on all the same.
    Warning {
        /// What.
        reason: String,
    },
    /// A restore has begun.
    Restoring {
        /// The generation that begins.
        #[serde(with = "text")]
        generation: Generation,
        /// The snapshot it starts from.
        #[serde(with = "text")]
        snapshot: SnapshotId,
    },
    /// Everyone runs.
    Running {
        /// The generation.
        #[serde(with = "text")]
        generation: Generation,
        /// The snapshot it started from.
        #[serde(with = "text")]
        snapshot: SnapshotId,
    },
    /// A node is lost though its program may still exist: another is to be started in its place.
    Replace {
        /// The process.
        process: String,
        /// Which start of the node is to be replaced.
        #[serde(with = "text")]
        incarnation: Incarnation,
        /// Its process id on its host, if it ever said so to this collector.
        pid: Option<u32>,
    },
    /// A process has been without a node for as long as one may be silent: if there is a program
    /// for it, which may hang, another is to be started in its place.
    Absent {
        /// The process.
        process: String,
    },
    /// The job has ended as it should.
    Finished,
    /// The job cannot go on.
    Ended {
        /// Why.
        reason: String,
    },
}

/// A complete snapshot in a few figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complete {
    /// The snapshot.
    #[serde(with = "text")]
    pub snapshot: SnapshotId,
    /// The generation it is of.
    #[serde(with = "text")]
    pub generation: Generation,
    /// The mode it was taken by.
    pub mode: Mode,
    /// From its begin to its end.
    pub elapsed_ms: u64,
    /// The parts' lengths together.
    pub bytes: u64,
    /// Messages in all channel states.
    pub in_transit: u64,
    /// Every quantity the application names.
    pub quantities: BTreeMap<String, Total>,
}

/// One quantity, added up over a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// In all local states.
    pub in_states: i64,
    /// In all channel states.
    pub in_channels: i64,
    /// What both must come to.
    pub expected: i64,
}

impl JobEvent {
    /// The event as it is sent.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts, numbers and maps of them are always JSON")
    }

    /// The event as one line of the log.
    pub(super) fn log(&self) {
        match self {
            Self::Joined {
                process,
                incarnation,
                address,
                ..
            } => {
                tracing::info!(process, %incarnation, address, "joined");
            }
            Self::Lost {
                process,
                incarnation,
            } => {
                tracing::warn!(process, %incarnation, "lost");
            }
            Self::Begun { snapshot } => tracing::debug!(%snapshot, "begun"),
            Self::Complete(complete) => tracing::info!(
                snapshot = %complete.snapshot,
                bytes = complete.bytes,
                in_transit = complete.in_transit,
                elapsed_ms = complete.elapsed_ms,
                "complete"
            ),
            Self::Aborted {
                snapshot, reason, ..
            } => {
                tracing::warn!(%snapshot, "aborted: {reason}");
            }
            Self::Failed { reason } => tracing::warn!("a snapshot failed: {reason}"),
            Self::Warning { reason } => tracing::warn!("{reason}"),
            Self::Restoring {
                generation,
                snapshot,
            } => {
                tracing::info!(%generation, %snapshot, "restoring");
            }
            Self::Running {
                generation,
                snapshot,
            } => {
                tracing::info!(%generation, %snapshot, "running");
            }
            Self::Replace {
                process,
                incarnation,
                ..
            } => {
                tracing::warn!(process, %incarnation, "is to be replaced");
            }
            Self::Absent { process } => tracing::warn!(process, "has not joined"),
            Self::Finished => tracing::info!("the job has finished"),
            Self::Ended { reason } => tracing::error!("the job has ended: {reason}"),
        }
    }

    /// The end of a snapshot.
    pub(crate) fn of_end(manifest: &Manifest) -> Self {
        let (snapshot, generation) = (manifest.snapshot, manifest.generation);
        match &manifest.end {
            End::Complete {
                parts,
                expected,
                elapsed_ms,
            } => {
                let (bytes, in_transit) = sizes(parts);
                Self::Complete(Complete {
                    snapshot,
                    generation,
                    mode: manifest.mode,
                    elapsed_ms: *elapsed_ms,
                    bytes,
                    in_transit,
                    quantities: totals(parts, expected),
                })
            }
            End::Aborted { reason } => Self::Aborted {
                snapshot,
                generation,
                reason: reason.clone(),
            },
        }
    }
}

/// Sums of what strangers say may be anything; in events they stay at the bound.
fn bounded(amount: i128) -> i64 {
    let bounds = (i64::MIN.into(), i64::MAX.into());
    i64::try_from(amount.clamp(bounds.0, bounds.1)).expect("it is between the bounds")
}

fn totals(parts: &[StoredPart], expected: &Quantities) -> BTreeMap<String, Total> {
    let facts: Vec<_> = parts.iter().map(|part| &part.facts).collect();
    let totals = check::totals(&facts, expected).into_iter();
    let total = |of: Totals| Total {
        in_states: bounded(of.in_states),
        in_channels: bounded(of.in_channels),
        expected: bounded(of.expected),
    };
    totals.map(|(name, of)| (name, total(of))).collect()
}

/// Ids in JSON as people write them: `"s42"`.
pub(crate) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<T: Display, S: Serializer>(
        id: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::cut::{ChannelFacts, Facts, Run};
    use crate::protocol::ids::{ChannelId, MessageNumber, ProcessId, Term};

    fn part(process: u32, in_state: i64, in_channels: i64, in_transit: u64) -> StoredPart {
        let money = |amount| Quantities::from([("money".to_owned(), amount)]);
        let run = Run {
            first: MessageNumber::new(5),
            last: MessageNumber::new(4 + in_transit),
        };
        let input = ChannelFacts {
            after: None,
            channel: ChannelId::new(ProcessId::new(1 - process), ProcessId::new(process)),
            number: MessageNumber::new(4),
            share: if in_transit == 0 {
                Vec::new()
            } else {
                vec![run]
            },
        };
        let facts = Facts {
            process: ProcessId::new(process),
            outputs: Vec::new(),
            inputs: vec![input],
            in_state: money(in_state),
            in_channels: money(in_channels),
            initial: money(100),
            clock: None,
        };
        StoredPart {
            bytes: 64,
            checksum: 0,
            facts,
        }
    }

    fn manifest(end: End) -> Manifest {
        Manifest {
            snapshot: SnapshotId::new(7),
            generation: Generation::new(2),
            term: Term::new(1),
            nonce: 9,
            mode: Mode::Classic,
            topology: 0,
            end,
        }
    }

    #[test]
    fn a_complete_snapshot_is_told_with_its_totals() {
        let event = JobEvent::of_end(&manifest(End::Complete {
            parts: vec![part(0, 80, 0, 0), part(1, 90, 30, 3)],
            expected: Quantities::from([("money".to_owned(), 200)]),
            elapsed_ms: 12,
        }));
        let json = event.to_json();
        let wanted = concat!(
            r#"{"event":"complete","snapshot":"s7","generation":"g2","mode":"classic","#,
            r#""elapsed_ms":12,"bytes":128,"in_transit":3,"#,
            r#""quantities":{"money":{"in_states":170,"in_channels":30,"expected":200}}}"#
        );
        assert_eq!(json, wanted);
        assert_eq!(serde_json::from_str::<JobEvent>(&json).unwrap(), event);
    }

    #[test]
    fn totals_that_are_too_large_for_an_event_stay_at_the_bound() {
        let event = JobEvent::of_end(&manifest(End::Complete {
            parts: vec![part(0, i64::MAX, i64::MIN, 0), part(1, i64::MAX, -1, 0)],
            expected: Quantities::new(),
            elapsed_ms: 12,
        }));
        let JobEvent::Complete(complete) = event else {
            panic!("it is complete");
        };
        let money = complete.quantities["money"];
        assert_eq!((money.in_states, money.in_channels), (i64::MAX, i64::MIN));
    }

    #[test]
    fn an_aborted_snapshot_is_told_with_the_reason() {
        let end = End::Aborted {
            reason: "timed out".to_owned(),
        };
        let json = JobEvent::of_end(&manifest(end)).to_json();
        let wanted =
            r#"{"event":"aborted","snapshot":"s7","generation":"g2","reason":"timed out"}"#;
        assert_eq!(json, wanted);
        assert_eq!(JobEvent::Finished.to_json(), r#"{"event":"finished"}"#);
    }
}
