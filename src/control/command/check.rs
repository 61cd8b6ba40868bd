//! `cutline check`: whether a job file makes sense.

use std::path::Path;

use serde_json::json;

use super::{CommandError, Reply};
use crate::apps::BuiltIn;
use crate::control::view::Format;
use crate::job::{Job, JobError};
use crate::protocol::application::{Application as _, Refusal};

/// The form a job is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobForm {
    /// A job file.
    #[default]
    Job,
    /// A configuration of a project of UT Dallas.
    Utd,
}

/// Checks a job file: yes with the job in a few lines, or no with everything that is wrong.
///
/// # Errors
/// If the file cannot be read.
pub fn check(file: &Path, form: JobForm, format: Format) -> Result<Reply, CommandError> {
    let read = match form {
        JobForm::Job => Job::load(file).map(|job| (job, Vec::new())),
        JobForm::Utd => Job::load_utd(file),
    };
    let (job, notes) = match read {
        Ok((job, notes)) => (Ok(job), notes),
        Err(error) => (Err(error), Vec::new()),
    };
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
            Format::Table(_) => {
                let lines = std::iter::once(job.to_string()).chain(notes);
                lines.map(|line| line + "\n").collect()
            }
            Format::Json => {
                let job = job.to_json();
                let object = json!({ "ok": true, "job": job, "refusals": [], "notes": notes });
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
