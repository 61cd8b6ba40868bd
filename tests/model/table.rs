//! The table of worlds in `docs/model-checking.md`: compared with what was explored, or written
//! anew with `REWRITE=1`. States are compared exactly, times not at all.

use std::fs;
use std::io::{Read as _, Seek as _, Write as _};
use std::time::Duration;

use crate::explored::{CASES, Case};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/model-checking.md");

/// The line above the rows.
const RULE: &str = "|---|---|---|---|---|---|--:|--:|---|";

/// The columns of what was measured.
const STATES: usize = 6;
const TIME: usize = 7;

/// Compares the row of a world with what was found, or writes it.
pub(crate) fn compare(case: &Case, states: usize, elapsed: Duration) {
    let row = row(case, states, elapsed);
    if std::env::var_os("REWRITE").is_some() {
        return rewrite(case, &row);
    }
    let page = fs::read_to_string(PAGE).expect("the page");
    let stands = page.lines().find(|line| line.starts_with(&key(case)));
    let stands = stands.unwrap_or_default();
    let another = format!("the row of {} is another: REWRITE=1 writes it", case.name);
    assert_eq!(told(stands), told(&row), "{another}");
    // However many threads explore a world, it is the same world. A change in the core may make
    // states one or tell them apart: whoever makes it is to know why.
    let cells: Vec<_> = stands.split('|').map(str::trim).collect();
    let before: usize = cells[1 + STATES].parse().expect("a number of states");
    assert_eq!(states, before, "{another}, if it is understood");
}

fn key(case: &Case) -> String {
    format!("| `{}` |", case.name)
}

fn row(case: &Case, states: usize, elapsed: Duration) -> String {
    let shows: Vec<_> = case.shows.iter().map(|rare| rare.to_string()).collect();
    format!(
        "{} {} | {} | {} | {} | {} | {states} | {:.1} | {} |",
        key(case),
        case.graph.name,
        if case.sends.is_empty() {
            "none"
        } else {
            case.sends
        },
        case.mode,
        case.snapshots,
        case.trouble,
        elapsed.as_secs_f64(),
        shows.join(", ")
    )
}

/// What the row says of the world, apart from what was measured.
fn told(row: &str) -> Vec<&str> {
    let cells = row.trim_matches('|').split('|').map(str::trim);
    let cells = cells
        .enumerate()
        .filter(|(column, _)| ![STATES, TIME].contains(column));
    cells.map(|(_, cell)| cell).collect()
}

/// Other worlds are written by other processes at the same time.
fn rewrite(case: &Case, row: &str) {
    let page = fs::File::options().read(true).write(true).open(PAGE);
    let mut page = page.expect("the page");
    page.lock().expect("a lock on the page");
    let mut text = String::new();
    page.read_to_string(&mut text).expect("text");
    let (above, rows) = text.split_once(RULE).expect("a table");
    let (rows, below) = rows.split_once("\n\n").unwrap_or((rows, ""));
    let written = CASES
        .iter()
        .filter_map(|other| match other.name == case.name {
            true => Some(row),
            false => rows.lines().find(|line| line.starts_with(&key(other))),
        });
    let rows: Vec<_> = written.collect();
    let text = format!("{above}{RULE}\n{}\n\n{below}", rows.join("\n"));
    page.rewind().expect("the start of the page");
    page.set_len(0).expect("an empty page");
    page.write_all(text.as_bytes())
        .expect("the page is written");
}
