//! How a snapshot is taken. A mode is its answers to three questions; nothing else in the core
//! tells modes apart.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The rules a snapshot is taken by; travels in its markers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Chandy and Lamport, *Distributed Snapshots*, 1985: record at the first marker, hold
    /// nothing, overtake nothing; channel states are recorded by the receiver.
    #[default]
    Classic,
    /// Carbone and others, *Lightweight Asynchronous Snapshots*, 2015: hold each channel after
    /// its marker until the others' have come, then record; channels are empty.
    Aligned,
    /// Record at the first marker, which overtakes whatever waits in outboxes and inboxes; what
    /// it overtakes is the channels' state.
    Unaligned,
    /// As aligned, but holding nothing: cheap, and the cut is not consistent.
    AtLeastOnce,
}

/// Every mode, in the order of the manual.
pub const MODES: [Mode; 4] = [
    Mode::Classic,
    Mode::Aligned,
    Mode::Unaligned,
    Mode::AtLeastOnce,
];

/// When a process records its local state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// At the first marker, or the trigger.
    AtFirstMarker,
    /// When the markers of all inputs but back edges have come.
    WhenAligned,
}

impl Mode {
    /// When does a process record?
    pub const fn records(self) -> Records {
        match self {
            Self::Classic | Self::Unaligned => Records::AtFirstMarker,
            Self::Aligned | Self::AtLeastOnce => Records::WhenAligned,
        }
    }

    /// Is a channel held after its marker, until the others' have come?
    pub const fn holds(self) -> bool {
        matches!(self, Self::Aligned)
    }

    /// May a marker overtake queued messages?
    pub const fn overtakes(self) -> bool {
        matches!(self, Self::Unaligned)
    }

    /// Is the cut consistent? Only a process that neither records at once nor holds what is
    /// behind a marker handles messages that were sent after the cut.
    pub const fn is_consistent(self) -> bool {
        matches!(self.records(), Records::AtFirstMarker) || self.holds()
    }

    /// Does it wait for the markers of all inputs, so that the graph must have an order?
    pub const fn aligns(self) -> bool {
        matches!(self.records(), Records::WhenAligned)
    }

    /// May a snapshot of this mode and one of the other be open at once? Those that hold or
    /// overtake would do so to the other's markers.
    pub const fn overlaps(self, other: Self) -> bool {
        matches!((self, other), (Self::Classic, Self::Classic))
    }

    /// The word for it, everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Aligned => "aligned",
            Self::Unaligned => "unaligned",
            Self::AtLeastOnce => "at-least-once",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no mode: use classic, aligned, unaligned or at-least-once")]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let named = MODES.into_iter().find(|mode| mode.name() == text);
        named.ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

/// How one snapshot is taken: its mode and its limit T, which travel in triggers and markers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Taking {
    /// The mode.
    pub mode: Mode,
    /// T, in milliseconds from the trigger: an aligned snapshot that takes longer goes on as an
    /// unaligned one. Other modes have none.
    pub limit_ms: Option<u64>,
}

impl Taking {
    /// By this mode, with this limit if it is one that may have a limit.
    pub const fn new(mode: Mode, limit_ms: Option<u64>) -> Self {
        match mode {
            Mode::Aligned => Self { mode, limit_ms },
            Mode::Classic | Mode::Unaligned | Mode::AtLeastOnce => Self {
                mode,
                limit_ms: None,
            },
        }
    }
}

impl From<Mode> for Taking {
    fn from(mode: Mode) -> Self {
        Self::new(mode, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_back_from_its_name_whichever_way_it_is_written() {
        for mode in MODES {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            let json = serde_json::to_string(&mode).expect("a mode is a word");
            assert_eq!(json, format!("\"{mode}\""));
        }
        let error = "exact".parse::<Mode>().unwrap_err().to_string();
        assert!(error.contains("'exact'") && error.contains("at-least-once"));
    }

    #[test]
    fn only_an_aligned_snapshot_has_a_limit() {
        assert_eq!(Taking::new(Mode::Aligned, Some(5)).limit_ms, Some(5));
        for mode in [Mode::Classic, Mode::Unaligned, Mode::AtLeastOnce] {
            assert_eq!(Taking::new(mode, Some(5)), mode.into());
        }
    }

    #[test]
    fn only_classic_snapshots_overlap_and_only_at_least_once_is_inconsistent() {
        for one in MODES {
            for other in MODES {
                let both = one == Mode::Classic && other == Mode::Classic;
                assert_eq!(one.overlaps(other), both);
            }
            assert_eq!(one.is_consistent(), one != Mode::AtLeastOnce);
        }
    }
}
