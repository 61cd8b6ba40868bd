//! Every point of `kill … at`: a program is held exactly there and killed, more than once; the job
//! goes on, and every verdict holds.

use cutline::scenario::Point;

use crate::ran::Ran;
use crate::stage::Stage;

/// Four branches that pay one another as fast as there is room, so that hundreds of payments are on
/// their way in every cut: every few milliseconds, it was a handful in a test, and once none.
const JOB: &str = r#"
timeout = "90s"
[job]
processes = 4
topology = "mesh"
[job.application]
name = "bank"
every_ms = 0
[job.snapshots]
interval = "150ms"

[[step]]
do = "wait"
for = { running = true, snapshots = 2 }
"#;

const SNAPSHOT: &str = r#"
[[step]]
do = "snapshot"
wait = true
"#;

fn kill(who: &str, point: Point) -> String {
    format!(
        "[[step]]\ndo = \"kill\"\nprocess = \"{who}\"\nat_point = \"{point}\"\n",
        point = point.name()
    )
}

/// Kills a program that a restore is to come by, without waiting for it to do so.
fn meanwhile(who: &str) -> String {
    format!("[[step]]\ndo = \"kill\"\nprocess = \"{who}\"\ntogether = true\n")
}

fn back(who: &[&str]) -> String {
    let each = who
        .iter()
        .map(|who| format!("[[step]]\ndo = \"wait\"\nfor = {{ joined = \"{who}\" }}\n"));
    each.chain(["[[step]]\ndo = \"wait\"\nfor = { running = true }\n".to_owned()])
        .collect()
}

fn expect(restores: &str) -> String {
    format!(
        "[[step]]\ndo = \"expect\"\nthat = {{ restores = {restores}, verdicts = \"hold\", \
         quantities = {{ money = 4000 }} }}\n"
    )
}

/// Runs it; each of so many kills happened at the point and nowhere else.
fn survived(point: Point, kills: usize, steps: &[String]) -> Ran {
    let stage = Stage::alone();
    let ran = stage
        .run(point.name(), &format!("{JOB}{}", steps.concat()))
        .ok();
    let at = format!(" killed at {}", point.name());
    let held = ran.events("held").filter(|event| {
        event["message"]
            .as_str()
            .is_some_and(|message| message.ends_with(&at))
    });
    let held = held.count();
    assert_eq!(held, kills, "{ran}");
    println!(
        "{}: {held} kills there, {} complete, {} aborted, {} restores, {} messages in channels",
        point.name(),
        ran.number("complete"),
        ran.number("aborted"),
        ran.number("restores"),
        ran.in_transit(),
    );
    assert!(
        ran.in_transit() > 0,
        "a cut with nothing on its way proves little: {ran}"
    );
    ran
}

/// A node on its way to a snapshot: an initiator, and one that is not.
fn a_recording_node(point: Point) {
    let one = |who| [kill(who, point), back(&[who]), SNAPSHOT.to_owned()].concat();
    let ran = survived(point, 2, &[one("p1"), one("p3"), expect("2")]);
    assert_eq!(ran.count("lost"), 2, "{ran}");
    // What it was recording is lost with it; nothing else is.
    assert!((2..=8).contains(&ran.number("aborted")), "{ran}");
}

/// A node that is being taken back, as another was lost.
fn a_restoring_node(point: Point) {
    let one = |who, lost| {
        [
            kill(who, point),
            meanwhile(lost),
            back(&[who, lost]),
            SNAPSHOT.to_owned(),
        ]
        .concat()
    };
    let ran = survived(
        point,
        2,
        &[one("p1", "p2"), one("p4", "p3"), expect("\">= 2\"")],
    );
    // A generation of which a process has died before it ran does not count as one that did.
    assert!(ran.number("restores") <= 4, "{ran}");
    assert!(
        ran.count("restoring") > 1 + 2,
        "each restore was tried twice: {ran}"
    );
}

/// A collector in the midst of a snapshot. Nobody is taken back on its account.
fn a_collecting_collector(point: Point) -> Ran {
    let one = || [kill("collector", point), back(&[]), SNAPSHOT.to_owned()].concat();
    let ran = survived(point, 2, &[one(), one(), expect("0")]);
    assert_eq!((ran.count("lost"), ran.count("died")), (0, 2), "{ran}");
    ran
}

/// The tests, each with its point.
macro_rules! points {
    ($($test:ident, $point:ident, $what:expr;)*) => {
        $(#[test]
        fn $test() {
            $what(Point::$point);
        })*

        #[test]
        fn every_point_has_its_kills() {
            assert_eq!([$(Point::$point),*], Point::ALL);
        }
    };
}

points! {
    a_node_dies_when_it_has_recorded, Recorded, a_recording_node;
    a_node_dies_while_its_part_is_written, Uploading, a_recording_node;
    a_node_dies_when_its_part_is_stored, Stored, a_recording_node;
    a_node_dies_when_it_is_told_to_restore, Prepared, a_restoring_node;
    a_node_dies_when_it_is_ready_to_run, Ready, a_restoring_node;
    a_collector_dies_when_all_parts_are_in, PartsIn, |point| {
        // They are in the store, but nobody may complete them any more.
        let ran = a_collecting_collector(point);
        assert!(ran.number("aborted") >= 2, "{ran}");
    };
    a_collector_dies_when_the_manifest_is_written, Manifest, |point| {
        // That moment completes a snapshot, whoever tells of it.
        let ran = a_collecting_collector(point);
        assert!(ran.number("complete") >= ran.count("complete") as u64 + 2, "{ran}");
    };
    a_collector_dies_when_a_generation_is_written, Generation, |point| {
        let one = |lost| {
            let steps = [kill("collector", point), meanwhile(lost), back(&[lost])];
            [steps.concat(), SNAPSHOT.to_owned()].concat()
        };
        survived(point, 2, &[one("p2"), one("p1"), expect("2")]);
    };
    a_collector_dies_before_all_know_of_an_end, Notice, a_collecting_collector;
}
