//! Real processes whose every deed is released by a schedule: the 21 golden files of a well-known
//! assignment are equal, whatever the machine does meanwhile.

use std::fs;
use std::path::Path;

use cutline::protocol::ids::SnapshotId;

use crate::cos418::{data, found};
use crate::peers::{TESTS, golden};
use crate::stage::Stage;

/// A bank of two, one snapshot, and these lines of a schedule.
fn token(stage: &Stage, schedule: &str) -> crate::ran::Ran {
    let text = "timeout = \"60s\"\n[job]\nprocesses = [\"a\", \"b\"]\ntopology = \"ring\"\n\
                [job.application]\nname = \"token\"\nbalances = { a = 3 }\n\
                [job.snapshots]\ninterval = \"0s\"\n\
                [[step]]\ndo = \"send\"\nfrom = \"a\"\nto = \"b\"\namount = 2\n\
                [[step]]\ndo = \"snapshot\"\nfrom = \"b\"\n\
                [[step]]\ndo = \"wait\"\nfor = { snapshots = 1, idle = true }\n\
                [[step]]\ndo = \"expect\"\nthat = { verdicts = \"hold\" }\n";
    let scenario = stage.write("token.toml", text);
    let file = stage.write("some.schedule", schedule);
    let arguments = [
        scenario.to_str().unwrap(),
        "--engine",
        "gated",
        "--schedule",
        file.to_str().unwrap(),
    ];
    stage.run_file("token", &arguments)
}

#[test]
fn a_schedule_decides_what_a_snapshot_finds_in_a_channel() {
    // The token is handled before b records, or it is still in the channel.
    let first = "step\nsend a→b\narrive a→b\ntake a→b\nstep\nsend b→a\n";
    let later = "step\nsend a→b   # under way\nstep\nsend b→a\ntime a 5ms\narrive b→a\ntake b→a\n";
    for (schedule, in_channels) in [(first, 0), (later, 2)] {
        let ran = token(&Stage::new(), schedule).ok();
        let tokens = &ran.view["snapshots"][0]["quantities"]["tokens"];
        assert_eq!(tokens["in_channels"], in_channels, "{ran}");
    }
}

#[test]
fn a_line_that_never_becomes_possible_is_named_with_what_is() {
    let ran = token(&Stage::new(), "step\ntake a→b\n").fails("line 2 of the schedule: take a→b");
    assert!(
        ran.view["failures"]
            .to_string()
            .contains("possible are: send a→b"),
        "{ran}"
    );
}

/// The derived schedule of a test in the form of ours: what a server does at a tick, in order.
fn translated(derived: &str) -> String {
    let mut lines = String::new();
    for line in derived.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[1..] {
            ["enqueue", from, to, what, ..] => {
                // Tokens are only sent when the script says so.
                let step = if what.starts_with("token") {
                    "step\n"
                } else {
                    ""
                };
                lines += &format!("{step}send {from}→{to}\n");
            }
            ["record", .., "cause=initiator"] => lines += "step\n",
            ["deliver", from, to, ..] => {
                lines += &format!("arrive {from}→{to}\ntake {from}→{to}\n");
            }
            _ => {}
        }
    }
    lines
}

fn is_golden(data: &Path, test: &str, top: &str) {
    let stage = Stage::new();
    let derived = data.join(format!("../derived/{test}.schedule.txt"));
    let schedule = translated(&fs::read_to_string(derived).unwrap());
    let schedule = stage.write("test.schedule", &schedule);
    let file = |name: String| data.join(name).to_str().unwrap().to_owned();
    let (events, top) = (file(format!("{test}.events")), file(format!("{top}.top")));
    let arguments = [
        &events,
        "--top",
        &top,
        "--tick-ms",
        "1",
        "--engine",
        "gated",
        "--schedule",
        schedule.to_str().unwrap(),
    ];
    let ran = stage.run_file(test, &arguments).ok();
    let golden = golden(data, test);
    for (golden, id) in golden.iter().zip(1..) {
        let (tokens, channels) = found(&ran, SnapshotId::new(id));
        assert_eq!(tokens, golden.tokens, "{ran}");
        let expected = golden.channels().into_iter();
        let expected =
            expected.map(|((from, to), amounts)| ((from.to_owned(), to.to_owned()), amounts));
        assert_eq!(channels, expected.collect(), "{ran}");
    }
}

#[test]
fn every_golden_snapshot_is_equal_by_its_schedule() {
    let Some(data) = data() else { return };
    for (test, top, _) in TESTS {
        is_golden(&data, test, top);
    }
}
