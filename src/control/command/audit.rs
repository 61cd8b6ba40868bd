//! `cutline audit`: the verdicts on what another program tells of its snapshots.

use std::path::Path;

use super::{CommandError, Reply};
use crate::audit::{Audited, Form, Snapshot, junit};
use crate::control::view::{AuditView, Format, View as _};

/// How the verdicts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// As other answers are.
    As(Format),
    /// As JUnit's XML.
    Junit,
}

/// Judges every snapshot of a file. No, if a verdict fails on one of them.
///
/// # Errors
/// If the file cannot be read or is not of the form.
pub fn audit(file: &Path, form: Form, format: AuditFormat) -> Result<Reply, CommandError> {
    let snapshots = Snapshot::load(file, form)?;
    let audited: Vec<Audited> = snapshots.iter().map(Snapshot::audit).collect();
    let view = AuditView::new(file.to_string_lossy(), audited);
    Ok(Reply {
        text: match format {
            AuditFormat::As(format) => view.render(format),
            AuditFormat::Junit => junit(&view.file, &view.snapshots),
        },
        yes: view.holds,
    })
}
