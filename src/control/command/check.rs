//! `cutline check`: whether a job file makes sense.

use std::path::Path;

use serde_json::json;

use super::{CommandError, Reply};
use crate::apps::BuiltIn;
use crate::control::view::Format;
use crate::job::{Job, JobError};
use crate::protocol::application::{Application as _, Refusal};

/// Checks a job file: yes with the job in a few lines, or no with everything that is wrong.
///
/// # Errors
/// If the file cannot be read.
pub fn check(file: &Path, format: Format) -> Result<Reply, CommandError> {
    let job = Job::load(file);
    if let Ok(job) = &job
        && let Some(Refusal(problem)) = application_refusal(job)
    {
        let origin = file.display();
        return Ok(Reply {
            text: match format {
                Format::Table(_) => format!("{origin}: {problem}; correct [application]\n"),
                Format::Json => {
                    let refusal = json!({
                        "origin": origin.to_string(), "line": null, "problem": problem,
                        "remedy": "correct [application]",
                    });
                    let object = json!({ "ok": false, "job": null, "refusals": [refusal] });
                    format!("{object:#}\n")
                }
            },
            yes: false,
        });
    }
    match job {
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

/// What a built-in application says against the job's settings; a program of the user's own is
/// asked when it starts.
pub(in crate::control) fn application_refusal(job: &Job) -> Option<Refusal> {
    if job.program().is_some() {
        return None;
    }
    let mut processes = job.topology().processes();
    processes.find_map(|process| BuiltIn::start(&job.setup(process)).err())
}
