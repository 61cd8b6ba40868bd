//! Where a scenario's job lives: in the directory that was named, or in one that goes away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::RunError;

/// The directory of a run; one that nobody named goes away with this.
pub(super) struct Home {
    pub(super) path: PathBuf,
    is_kept: bool,
}

impl Home {
    /// The directory that was named, if it is new or empty; else one of its own.
    pub(super) fn make(out: Option<&Path>) -> Result<Self, RunError> {
        let Some(out) = out else {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let nanos = since.map_or(0, |since| since.as_nanos());
            let name = format!("cutline-run-{}-{nanos}", std::process::id());
            let path = std::env::temp_dir().join(name);
            return Ok(Self {
                path,
                is_kept: false,
            });
        };
        match fs::read_dir(out).map(|mut entries| entries.next().is_some()) {
            Ok(true) => Err(RunError::NotEmpty(out.to_owned())),
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(RunError::Out {
                path: out.to_owned(),
                source,
            }),
            _ => Ok(Self {
                path: out.to_owned(),
                is_kept: true,
            }),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !self.is_kept {
            // Best effort: it is in the system's directory for such things.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
