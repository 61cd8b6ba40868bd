//! The files that others have published, for every test that reads them; and the seven tests of
//! COS 418 among them, which run on each engine.
//!
//! They are no part of this repository; without them those tests are skipped, and say so.

use std::fs;
use std::path::{Path, PathBuf};

use cutline::scenario::{GoldenSnapshot, Text};

/// A folder of the files; none, with a word about it, where they are not at hand.
pub(crate) fn peers(folder: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/peers");
    let peers = std::env::var_os("CUTLINE_PEERS").map_or_else(beside, PathBuf::from);
    let data = peers.join(folder);
    if data.is_dir() {
        return Some(data);
    }
    let (data, what) = (data.display(), "CUTLINE_PEERS says where");
    println!("skipped: there is no folder {data}; {what}");
    None
}

/// The tests of COS 418, each with its topology and the number of its golden files.
pub(crate) const TESTS: [(&str, &str, usize); 7] = [
    ("2nodes-simple", "2nodes", 1),
    ("2nodes-message", "2nodes", 1),
    ("3nodes-simple", "3nodes", 1),
    ("3nodes-bidirectional-messages", "3nodes", 1),
    ("8nodes-sequential-snapshots", "8nodes", 2),
    ("8nodes-concurrent-snapshots", "8nodes", 5),
    ("10nodes", "10nodes", 10),
];

/// The golden files of one of them, in the order of their snapshots; `data` is their folder.
pub(crate) fn golden(data: &Path, test: &str) -> Vec<GoldenSnapshot> {
    let paths = fs::read_dir(data)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let of_test = paths.filter(|path| {
        let number = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix(test));
        let number = number.and_then(|rest| rest.strip_suffix(".snap"));
        number.is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()))
    });
    let read = of_test.map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        GoldenSnapshot::parse(Text {
            text: &text,
            origin: &path,
        })
        .unwrap()
    });
    let mut read: Vec<_> = read.collect();
    read.sort_by_key(|golden| golden.id);
    let expected = TESTS.iter().find(|(name, ..)| *name == test).unwrap().2;
    assert_eq!(read.len(), expected, "{test}");
    read
}
