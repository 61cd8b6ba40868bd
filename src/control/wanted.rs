//! What a snapshot is asked for by: who initiates it, and how it is taken.

use crate::protocol::mode::Mode;
use crate::wire::pb;

/// What snapshot is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedSnapshot {
    /// The processes that initiate it; none: the job's own initiators.
    pub from: Vec<String>,
    /// Another mode than the job's.
    pub mode: Option<Mode>,
    /// Another limit than the job's, for an aligned snapshot.
    pub alignment_timeout_ms: Option<u64>,
}

impl WantedSnapshot {
    pub(super) fn request(self, wait: bool) -> pb::SnapshotRequest {
        pb::SnapshotRequest {
            from: self.from,
            wait,
            mode: self.mode.map_or_else(String::new, |mode| mode.to_string()),
            alignment_timeout_ms: self.alignment_timeout_ms,
        }
    }
}

impl From<Vec<String>> for WantedSnapshot {
    fn from(from: Vec<String>) -> Self {
        Self {
            from,
            ..Self::default()
        }
    }
}

/// The milliseconds of a duration as people write it, such as `500ms`.
///
/// # Errors
/// If it is none.
pub fn millis(text: &str) -> Result<u64, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(duration.as_millis()).map_err(|_| "that is too long".to_owned())
}
