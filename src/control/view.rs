//! What the read-only commands answer: for people a table, for programs JSON of a stable shape,
//! which `docs/cli.md` describes. Both are made from the same value.

mod audit;
mod list;
mod show;
mod status;
mod verify;

pub use audit::AuditView;
pub use list::{ListView, SnapshotRow};
pub use show::{ChannelRow, ProcessRow, QuantityRow, ShowView};
pub use status::{ProcessState, StatusView};
pub use verify::VerifyView;

use serde::Serialize;

use super::table::Colour;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table(Colour),
    /// For programs.
    Json,
}

/// Something that can be answered both ways.
pub trait View: Serialize {
    /// The answer for people.
    fn table(&self, colour: Colour) -> String;

    /// The answer in the form that is asked for; ends with a line's end.
    fn render(&self, format: Format) -> String {
        match format {
            Format::Table(colour) => self.table(colour),
            Format::Json => {
                let json = serde_json::to_string_pretty(self);
                json.expect("a view has only texts, numbers and lists") + "\n"
            }
        }
    }
}

/// A number of bytes as a person reads it.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = count;
    let mut last = 0;
    let mut unit = None;
    for name in UNITS {
        if value < 1024 {
            break;
        }
        last = value % 1024;
        value /= 1024;
        unit = Some(name);
    }
    match unit {
        None => format!("{count} B"),
        // One digit after the point, cut off rather than rounded.
        Some(unit) if value < 10 => format!("{value}.{} {unit}", last * 10 / 1024),
        Some(unit) => format!("{value} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_written_in_the_largest_unit_that_fits() {
        let texts = [0, 1023, 1024, 1536, 10 << 20, 5 << 40].map(super::bytes);
        assert_eq!(
            texts,
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "10 MiB", "5.0 TiB"]
        );
    }
}
