//! What can go wrong with a store. Every error names the file.

use std::error::Error;

use object_store::path::Path;

/// What can go wrong with a store.
///
/// The innermost cause is part of the text: these errors travel as texts, in reports of nodes and
/// reasons of aborts, and a chain of sources would be lost on the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No store can be at such a URL.
    #[error("no store can be at '{url}': {cause}; use a directory, or file:///…")]
    Url {
        /// The URL.
        url: String,
        /// Why.
        cause: String,
    },
    /// The directory is not there and cannot be created, or cannot be used.
    #[error("the store '{url}' cannot be opened: {cause}")]
    Open {
        /// The URL.
        url: String,
        /// Why.
        cause: String,
    },
    /// The file is not there.
    #[error("{file} is missing from the store")]
    Missing {
        /// The file.
        file: String,
    },
    /// A file is in the way that may not be overwritten.
    #[error("{file} is in the store already")]
    Exists {
        /// The file.
        file: String,
    },
    /// The file is there, but not as it was written.
    #[error("{file} is torn or damaged: {cause}")]
    Damaged {
        /// The file.
        file: String,
        /// How one can tell.
        cause: String,
    },
    /// A file is missing that must once have been there.
    #[error("{file} is missing from the store, though {cause}")]
    Gap {
        /// The file.
        file: String,
        /// How one can tell.
        cause: String,
    },
    /// It did not work.
    #[error("cannot {action} {file}: {cause}")]
    Failed {
        /// What was to be done.
        action: &'static str,
        /// To which file.
        file: String,
        /// Why it could not be done.
        cause: String,
    },
    /// It took too long; a write may still come to pass.
    #[error("cannot {action} {file}: the store does not answer")]
    TimedOut {
        /// What was to be done.
        action: &'static str,
        /// To which file.
        file: String,
    },
}

impl StoreError {
    pub(super) fn failed(action: &'static str, path: &Path, error: &dyn Error) -> Self {
        let mut innermost = error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        Self::Failed {
            action,
            file: file(path),
            cause: innermost.to_string(),
        }
    }

    pub(super) fn timed_out(action: &'static str, path: &Path) -> Self {
        let file = file(path);
        Self::TimedOut { action, file }
    }
}

fn file(path: &Path) -> String {
    if path.is_root() {
        return "the store".to_owned();
    }
    path.to_string()
}
