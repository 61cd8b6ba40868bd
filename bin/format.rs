//! How answers are written: the one argument that most commands have.

use std::io;

use clap::{Args, ValueEnum};
use cutline::control::log::colour;
use cutline::control::view::Format;

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormatArguments {
    /// How the answer is written: for people, or as JSON of a stable shape.
    #[arg(long, value_enum, default_value = "table", env = "CUTLINE_FORMAT")]
    format: FormatArgument,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArgument {
    /// For people
    Table,
    /// For programs
    Json,
}

impl From<FormatArguments> for Format {
    fn from(arguments: FormatArguments) -> Self {
        match arguments.format {
            FormatArgument::Table => table(),
            FormatArgument::Json => Self::Json,
        }
    }
}

/// How a table is written here.
pub(crate) fn table() -> Format {
    Format::Table(colour(&io::stdout()))
}
