//! Parts that are not as they were written: found, named, and never restored.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::running::Up;
use crate::stage::Stage;

/// What can happen to a file.
type Damage = fn(&Path);

const DAMAGES: [(&str, Damage); 4] = [
    ("torn", |path| {
        let bytes = fs::read(path).unwrap();
        // As after a power failure: the length is there, the last blocks are not.
        let half = bytes.len() / 2;
        let torn: Vec<u8> = bytes[..half]
            .iter()
            .copied()
            .chain((half..bytes.len()).map(|_| 0))
            .collect();
        fs::write(path, torn).unwrap();
    }),
    ("truncated", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
    }),
    ("bit-flipped", |path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(path, bytes).unwrap();
    }),
    ("missing", |path| fs::remove_file(path).unwrap()),
];

fn job(fall_back: bool) -> String {
    format!(
        "processes = 3\ntopology = \"ring\"\n[application]\nname = \"bank\"\nevery_ms = 2\n\
         [snapshots]\ninterval = \"0s\"\n[store]\nfall_back = {fall_back}\n"
    )
}

fn damage(up: &Up<'_>, snapshot: &str, damage: Damage) -> String {
    // In the store an id is a bare number or as it is written; the name of the file says which.
    let file = format!("snapshots/{snapshot}/p2.part");
    let path = up.root().join("store").join(&file);
    assert!(path.is_file(), "{}", path.display());
    damage(&path);
    file
}

/// The parts of the newest snapshot are damaged while the job runs; then a node dies.
fn is_found_named_and_not_restored(kind: &str) {
    let (_, damaging) = DAMAGES.iter().find(|(name, _)| *name == kind).unwrap();
    let stage = Stage::new();
    let mut up = stage.up("bank", &job(false));
    up.runs();
    assert_eq!([up.snapshot(), up.snapshot()], ["s1", "s2"]);
    up.ask(&["verify", "--all"]).yes();
    let file = damage(&up, "s2", *damaging);
    let state = if kind == "missing" {
        "missing"
    } else {
        "damaged"
    };
    let verified = up.ask(&["verify", "s2", "--format", "json"]);
    assert_eq!(verified.code, 1, "{verified}");
    let view = verified.json();
    let parts = view["snapshots"][0]["parts"].as_array().unwrap();
    let states: Vec<_> = parts
        .iter()
        .map(|part| part["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["intact", state, "intact"], "{verified}");
    assert!(
        parts[1]["fault"].as_str().unwrap().contains(&file),
        "{verified}"
    );
    up.ask(&["verify", "--all"]).no(&[&file]);
    up.ask(&["verify", "s1"]).yes();

    // Another process is lost, so that the one with the damaged part is a survivor.
    assert!(up.program("p3").signal(Signal::SIGKILL).unwrap());
    let answer = up.ends().no(&[&file, "s2"]);
    let ran = answer.err.matches("\"event\":\"running\"").count();
    assert_eq!(ran, 1, "nobody ran again: {answer}");
}

#[test]
fn a_torn_part_is_found_named_and_not_restored() {
    is_found_named_and_not_restored("torn");
}

#[test]
fn a_truncated_part_is_found_named_and_not_restored() {
    is_found_named_and_not_restored("truncated");
}

#[test]
fn a_bit_flipped_part_is_found_named_and_not_restored() {
    is_found_named_and_not_restored("bit-flipped");
}

#[test]
fn a_missing_part_is_found_named_and_not_restored() {
    is_found_named_and_not_restored("missing");
}

#[test]
fn where_it_is_allowed_the_newest_sound_snapshot_is_taken_instead() {
    let stage = Stage::new();
    let mut up = stage.up("bank", &job(true));
    up.runs();
    let snapshots: Vec<_> = (0..6).map(|_| up.snapshot()).collect();
    // s1 and s2 stay sound, the four newer ones do not.
    let files: Vec<_> = snapshots[2..]
        .iter()
        .zip(DAMAGES)
        .map(|(snapshot, (_, damaging))| damage(&up, snapshot, damaging))
        .collect();
    let before = up.events().len();
    assert!(up.program("p2").signal(Signal::SIGKILL).unwrap());
    let running = up.event_after(before, "the restore", |event| event["event"] == "running");
    assert_eq!(running["snapshot"], "s2", "{}", up.story());
    // It says what it has passed over.
    for file in &files {
        assert!(
            up.story().contains(file.as_str()),
            "{file} is not in {}",
            up.story()
        );
    }
    assert_eq!(up.snapshot(), "s7");
    up.ask(&["verify", "s7"]).yes();
    // What has been passed over once is not gone back to by the next crash.
    let before = up.events().len();
    assert!(up.program("p1").signal(Signal::SIGKILL).unwrap());
    let running = up.event_after(before, "the restore", |event| event["event"] == "running");
    assert_eq!(running["snapshot"], "s7", "{}", up.story());
    up.interrupt();
}

#[test]
fn a_damaged_record_is_named_and_stands_in_the_way_of_no_other_snapshot() {
    let stage = Stage::new();
    let mut up = stage.up("bank", &job(false));
    up.runs();
    assert_eq!([up.snapshot(), up.snapshot()], ["s1", "s2"]);
    up.interrupt();
    let file = "snapshots/s1/manifest.json";
    let (_, flip) = DAMAGES[2];
    flip(&stage.path().join("bank.cutline/store").join(file));
    let mut up = Up::start(&stage, "bank");
    assert_eq!(up.runs()["snapshot"], "s2");
    let log = stage.path().join("bank.cutline/logs/collector.log");
    let log = fs::read_to_string(log).unwrap();
    assert!(
        log.contains("s1 cannot be read") && log.contains(file),
        "{log}"
    );
    assert_eq!(up.snapshot(), "s3");
    let listed = up.ask(&["list", "--format", "json"]).yes().json();
    let states = listed["snapshots"].as_array().unwrap().iter();
    let states: Vec<_> = states.map(|row| row["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["unreadable", "complete", "complete"]);
    up.ask(&["verify", "s2"]).yes();
    up.ask(&["verify", "s1"]).no(&[file]);
    up.ask(&["verify", "--all"])
        .no(&["s1 cannot be read: ", file, "1 of 3 do not hold"]);
    up.interrupt();

    // What may be the newest is wanted.
    flip(
        &stage
            .path()
            .join("bank.cutline/store/snapshots/s3/manifest.json"),
    );
    let up = Up::start(&stage, "bank");
    let answer = up
        .ends()
        .says(&["s3 may be the one", "store.fall_back = true"]);
    assert_eq!(answer.code, 2, "it could not even start: {answer}");
}
