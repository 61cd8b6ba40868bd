//! Tables for people: columns as wide as their widest cell, and colour where it says something.

use std::fmt;

/// Whether colour may be used; the same text without it says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The reader is a terminal.
    On,
    /// It is a file, a pipe, or somebody who does not want it.
    Off,
}

/// What a cell says about its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing.
    Plain,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Of less interest.
    Faint,
}

impl Tone {
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Good => Some("32"),
            Self::Bad => Some("1;31"),
            Self::Faint => Some("2"),
        }
    }

    /// The text in this tone.
    pub fn paint(self, text: &str, colour: Colour) -> String {
        match (self.code(), colour) {
            (Some(code), Colour::On) if !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
    right: bool,
}

impl Cell {
    /// A text, at the left.
    pub fn text(text: impl fmt::Display) -> Self {
        Self {
            text: text.to_string(),
            tone: Tone::Plain,
            right: false,
        }
    }

    /// A number, at the right.
    pub fn number(number: impl fmt::Display) -> Self {
        Self {
            right: true,
            ..Self::text(number)
        }
    }

    /// The same with a tone.
    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

/// A table that is being put together.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(headings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            headings: headings.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table as text, a line for each row.
    pub fn render(&self, colour: Colour) -> String {
        let mut widths: Vec<_> = self.headings.iter().map(|text| width(text)).collect();
        for row in &self.rows {
            for (column, cell) in widths.iter_mut().zip(row) {
                *column = (*column).max(width(&cell.text));
            }
        }
        let is_right = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.next().is_some_and(|cell| cell.right)
        };
        let headings = self.headings.iter().enumerate().map(|(column, text)| Cell {
            text: text.to_uppercase(),
            tone: Tone::Faint,
            right: is_right(column),
        });
        let mut text = line(&headings.collect::<Vec<_>>(), &widths, colour);
        for row in &self.rows {
            text.push_str(&line(row, &widths, colour));
        }
        text
    }
}

fn line(cells: &[Cell], widths: &[usize], colour: Colour) -> String {
    let mut text = String::new();
    for (place, (cell, &column)) in cells.iter().zip(widths).enumerate() {
        let last = place + 1 == cells.len();
        let blanks = " ".repeat(column.saturating_sub(width(&cell.text)));
        let painted = cell.tone.paint(&cell.text, colour);
        match (cell.right, last) {
            (true, _) => text.push_str(&(blanks + &painted)),
            (false, true) => text.push_str(&painted),
            (false, false) => text.push_str(&(painted + &blanks)),
        }
        if !last {
            text.push_str("  ");
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Names are short and mostly plain; what is wider than one place on a terminal is not counted
/// as such.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_numbers_stand_right() {
        let mut table = Table::new(["channel", "messages", "state"]);
        table.row(vec![Cell::text("p1→p2"), Cell::number(7), Cell::text("")]);
        table.row(vec![
            Cell::text("alice→bob"),
            Cell::number(1234),
            Cell::text("ok"),
        ]);
        let text = "\
CHANNEL    MESSAGES  STATE
p1→p2             7
alice→bob      1234  ok
";
        assert_eq!(table.render(Colour::Off), text);
    }

    #[test]
    fn colour_changes_nothing_but_the_colour() {
        let mut table = Table::new(["verdict"]);
        table.row(vec![Cell::text("holds").toned(Tone::Good)]);
        let coloured = table.render(Colour::On);
        assert!(coloured.contains("\x1b[32mholds\x1b[0m"), "{coloured}");
        let plain = coloured
            .replace("\x1b[32m", "")
            .replace("\x1b[2m", "")
            .replace("\x1b[0m", "");
        assert_eq!(plain, table.render(Colour::Off));
    }
}
