//! The arguments that are about files of other people's programs: `cutline audit` and `--from`.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cutline::audit::Form;
use cutline::control::command::{AuditFormat, JobForm};
use cutline::control::log::colour;
use cutline::control::view::Format;

use crate::format::FormatArguments;

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// The file.
    pub(crate) file: PathBuf,
    /// The form it is written in.
    #[arg(long, value_enum, default_value = "json", value_name = "FORM")]
    from: FromArgument,
    /// How the answer is written.
    #[arg(long, value_enum, default_value = "table")]
    format: AuditFormatArgument,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FromArgument {
    /// As docs/audit.md has it
    Json,
    /// The log of a servent of RAF's course
    Raf,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The job file.
    pub(crate) file: PathBuf,
    /// The form it is written in.
    #[arg(long, value_enum, default_value = "job", value_name = "FORM")]
    from: JobFormArgument,
    #[command(flatten)]
    pub(crate) format: FormatArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum JobFormArgument {
    /// A job file
    Job,
    /// A configuration of UT Dallas, CS 6378
    Utd,
}

impl CheckArguments {
    pub(crate) fn form(&self) -> JobForm {
        match self.from {
            JobFormArgument::Job => JobForm::Job,
            JobFormArgument::Utd => JobForm::Utd,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AuditFormatArgument {
    /// For people
    Table,
    /// For programs
    Json,
    /// For what grades by JUnit reports
    Junit,
}

impl AuditArguments {
    pub(crate) fn form(&self) -> Form {
        match self.from {
            FromArgument::Json => Form::Json,
            FromArgument::Raf => Form::Raf,
        }
    }

    pub(crate) fn format(&self) -> AuditFormat {
        match self.format {
            AuditFormatArgument::Table => AuditFormat::As(Format::Table(colour(&io::stdout()))),
            AuditFormatArgument::Json => AuditFormat::As(Format::Json),
            AuditFormatArgument::Junit => AuditFormat::Junit,
        }
    }
}
