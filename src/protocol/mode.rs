//! How a snapshot is taken. A mode is its answers to three questions; nothing else in the core
//! tells modes apart.

use serde::{Deserialize, Serialize};

/// The rules a snapshot is taken by; travels in its markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Chandy and Lamport, *Distributed Snapshots*, 1985: record at the first marker, hold
    /// nothing, overtake nothing; channel states are recorded by the receiver.
    Classic,
}

/// When a process records its local state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// At the first marker, or the trigger.
    AtFirstMarker,
}

impl Mode {
    /// When does a process record?
    pub const fn records(self) -> Records {
        match self {
            Self::Classic => Records::AtFirstMarker,
        }
    }

    /// Is a channel held after its marker, until the others' have come?
    pub const fn holds(self) -> bool {
        match self {
            Self::Classic => false,
        }
    }

    /// May a marker overtake queued messages?
    pub const fn overtakes(self) -> bool {
        match self {
            Self::Classic => false,
        }
    }

    /// May two snapshots of this mode be open at once?
    pub const fn overlaps(self) -> bool {
        match self {
            Self::Classic => true,
        }
    }
}
