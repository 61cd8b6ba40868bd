//! `cutline check`: whether a job file makes sense.

use std::path::Path;

use serde_json::json;

use super::{CommandError, Reply};
use crate::control::view::Format;
use crate::job::{Job, JobError};

/// Checks a job file: yes with the job in a few lines, or no with everything that is wrong.
///
/// # Errors
/// If the file cannot be read.
pub fn check(file: &Path, format: Format) -> Result<Reply, CommandError> {
    match Job::load(file) {
        Ok(job) => Ok(Reply::yes(match format {
            Format::Table(_) => format!("{job}\n"),
            Format::Json => {
                let object = json!({ "ok": true, "job": job.to_json(), "refusals": [] });
                format!("{object:#}\n")
            }
        })),
        Err(JobError::Refused(refusals)) => Ok(Reply {
            text: match format {
                Format::Table(_) => format!("{refusals}\n"),
                Format::Json => {
                    let object = json!({ "ok": false, "job": null, "refusals": refusals });
                    format!("{object:#}\n")
                }
            },
            yes: false,
        }),
        Err(error) => Err(error.into()),
    }
}
