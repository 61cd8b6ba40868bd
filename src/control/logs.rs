//! The programs' logs: appended to, bounded in size, and their last lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// A log that has grown to this is moved aside, over the one that was moved aside before: a
/// program that talks without end takes at most twice this (and what it writes between two
/// looks). Large enough for days of the usual line for each snapshot.
pub const LOG_BYTES_MAX: u64 = 64 << 20;

/// How much of a log's end is looked at for its last lines; lines are rarely over 500 bytes.
const TAIL_BYTES: u64 = 64 << 10;

/// A longer line is cut when it is shown: it would fill the terminal.
const LINE_CHARS_MAX: usize = 240;

/// Opens a log to append to, moving one that is too long aside first.
///
/// # Errors
/// If the file system says no.
pub fn open(path: &Path) -> io::Result<File> {
    if length(path) >= LOG_BYTES_MAX {
        fs::rename(path, aside(path))?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// Empties a log that has become too long while it is written to, keeping a copy. Whoever writes
/// appends, and so goes on at the new end; lines between the copy and the cut are lost.
///
/// # Errors
/// If the file system says no.
pub fn trim(path: &Path, bytes_max: u64) -> io::Result<()> {
    if length(path) < bytes_max {
        return Ok(());
    }
    fs::copy(path, aside(path))?;
    OpenOptions::new().write(true).open(path)?.set_len(0)
}

/// The length of a log; 0 if there is none.
pub fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

fn aside(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// The last lines of a log, at most `lines`, none of them before the byte `from`.
pub fn tail(path: &Path, from: u64, lines: usize) -> Vec<String> {
    tail_bytes(path, from).map_or_else(|_| Vec::new(), |bytes| last_lines(&bytes, lines))
}

fn tail_bytes(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    // Shorter than it was: it has been emptied since.
    let from = if from > length { 0 } else { from };
    let begin = from.max(length.saturating_sub(TAIL_BYTES));
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn last_lines(bytes: &[u8], lines: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let all: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &all[all.len().saturating_sub(lines)..];
    last.iter().map(|line| shown(line)).collect()
}

/// A line as it may be shown on a terminal: not too long, and without control characters.
fn shown(line: &str) -> String {
    let clean = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(LINE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_last_lines_are_those_of_the_last_start_only() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("p1.log");
        writeln!(open(&path).unwrap(), "of the first start").unwrap();
        let from = length(&path);
        let mut log = open(&path).unwrap();
        for line in 0..5 {
            writeln!(log, "line {line}\n").unwrap();
        }
        assert_eq!(tail(&path, from, 2), ["line 3", "line 4"]);
        assert_eq!(tail(&path, from, 10).len(), 5);
        assert_eq!(tail(&path, 0, 10).len(), 6);
        assert!(tail(&top.path().join("none.log"), 0, 10).is_empty());
    }

    #[test]
    fn a_log_that_grows_too_long_is_emptied_under_its_writer() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("p1.log");
        let mut log = open(&path).unwrap();
        writeln!(log, "long enough").unwrap();
        trim(&path, 1000).unwrap();
        assert_eq!(length(&path), 12);
        trim(&path, 12).unwrap();
        assert_eq!(length(&path), 0);
        writeln!(log, "next").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "next\n");
        assert_eq!(
            fs::read_to_string(top.path().join("p1.log.1")).unwrap(),
            "long enough\n"
        );
    }
}
