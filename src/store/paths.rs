//! Every path in a store is spelled here, and read here.
//!
//! `log/<n>.json`, `snapshots/<id>/begun.json`, `snapshots/<id>/manifest.json`,
//! `snapshots/<id>/<process>.part`; names of processes keep their case and are escaped.

use object_store::path::Path;

use crate::name::encode_name;
use crate::protocol::ids::SnapshotId;
use crate::protocol::records::Record;

const LOG: &str = "log";
const SNAPSHOTS: &str = "snapshots";
const BEGUN: &str = "begun.json";
const MANIFEST: &str = "manifest.json";
const RECORD_END: &str = ".json";
const PART_END: &str = ".part";

/// The folders that files are in: the log's, and one for each snapshot.
pub(super) const FOLDERS: [&str; 2] = [LOG, SNAPSHOTS];

pub(super) fn root() -> Path {
    Path::default()
}

pub(super) fn log_folder() -> Path {
    spelled(LOG)
}

pub(super) fn log(number: u64) -> Path {
    spelled(&format!("{LOG}/{number}{RECORD_END}"))
}

pub(super) fn snapshots_folder() -> Path {
    spelled(SNAPSHOTS)
}

pub(super) fn snapshot(id: SnapshotId) -> Path {
    spelled(&format!("{SNAPSHOTS}/{id}"))
}

pub(super) fn begun(id: SnapshotId) -> Path {
    spelled(&format!("{SNAPSHOTS}/{id}/{BEGUN}"))
}

pub(super) fn manifest(id: SnapshotId) -> Path {
    spelled(&format!("{SNAPSHOTS}/{id}/{MANIFEST}"))
}

pub(super) fn part(id: SnapshotId, process: &str) -> Path {
    spelled(&format!(
        "{SNAPSHOTS}/{id}/{}{PART_END}",
        encode_name(process)
    ))
}

pub(super) fn record(record: &Record) -> Path {
    match record {
        Record::Log(entry) => log(entry.number),
        Record::Begun(record) => begun(record.snapshot),
        Record::Manifest(record) => manifest(record.snapshot),
    }
}

/// The number of a log record; nothing, if it is something else.
pub(super) fn log_number(path: &Path) -> Option<u64> {
    let number = path.filename()?.strip_suffix(RECORD_END)?.parse().ok()?;
    // `log/07.json` is nobody's.
    (log(number) == *path).then_some(number)
}

/// The snapshot a file belongs to; nothing, if it is something else.
pub(super) fn snapshot_of(path: &Path) -> Option<SnapshotId> {
    let id = path
        .as_ref()
        .strip_prefix(SNAPSHOTS)?
        .strip_prefix('/')?
        .split('/')
        .next()?;
    let id = id.parse().ok()?;
    path.prefix_matches(&snapshot(id)).then_some(id)
}

pub(super) fn is_part(path: &Path) -> bool {
    snapshot_of(path).is_some() && path.as_ref().ends_with(PART_END) && path.parts_count() == 3
}

/// Whether a file name is that of a file being written: that of one of ours, `#` and a number.
pub(super) fn is_staging(name: &str) -> bool {
    name.rsplit_once('#').is_some_and(|(name, number)| {
        (name.ends_with(RECORD_END) || name.ends_with(PART_END))
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn spelled(path: &str) -> Path {
    Path::parse(path).expect("every segment is made of letters, digits and a few safe signs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SnapshotId = SnapshotId::new(42);

    #[test]
    fn paths_are_spelled_so() {
        assert_eq!(log(7).as_ref(), "log/7.json");
        assert_eq!(begun(ID).as_ref(), "snapshots/s42/begun.json");
        assert_eq!(manifest(ID).as_ref(), "snapshots/s42/manifest.json");
        assert_eq!(part(ID, "bank-3").as_ref(), "snapshots/s42/bank-3.part");
        assert_eq!(part(ID, "N1").as_ref(), "snapshots/s42/_4e1.part");
        assert_eq!(
            part(ID, "../ö").as_ref(),
            "snapshots/s42/_2e_2e_2f_c3_b6.part"
        );
    }

    #[test]
    fn paths_are_read_back_and_others_are_nobodys() {
        assert_eq!(log_number(&log(7)), Some(7));
        for stranger in [
            "log/07.json",
            "log/+7.json",
            "log/7.json.bak",
            "log/x/7.json",
        ] {
            assert_eq!(
                log_number(&Path::parse(stranger).unwrap()),
                None,
                "{stranger}"
            );
        }
        assert_eq!(snapshot_of(&part(ID, "a")), Some(ID));
        for stranger in [
            "snapshots/42/a.part",
            "snapshots/s042/a.part",
            "other/s42/a.part",
        ] {
            assert_eq!(
                snapshot_of(&Path::parse(stranger).unwrap()),
                None,
                "{stranger}"
            );
        }
        assert!(is_part(&part(ID, "N1")));
        assert!(!is_part(&manifest(ID)));
    }

    #[test]
    fn only_staging_files_of_our_own_are_swept() {
        assert!(is_staging("manifest.json#1"));
        assert!(is_staging("_4e1.part#12"));
        for other in ["manifest.json", "a.part#", "a.part#x", "notes#1", "#1"] {
            assert!(!is_staging(other), "{other}");
        }
    }
}
