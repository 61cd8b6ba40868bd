//! What goes wrong in virtual time goes wrong as on real processes.

use super::{bank, run, steps};

#[test]
fn a_node_can_be_killed_at_every_point_of_a_snapshot_and_of_a_restore() {
    for point in ["recorded", "uploading", "stored"] {
        let kill = format!("kill process = \"p2\"; at_point = \"{point}\"");
        let text = steps(&[
            "wait for = { running = true, snapshots = 1 }",
            &kill,
            "wait for = { lost = \"p2\", joined = \"p2\", running = true }",
            "snapshot wait = true",
            "expect that = { restores = 1, verdicts = \"hold\" }",
        ]);
        let ran = run(&bank(&text)).ok();
        assert_eq!(ran.case(&format!("kills at {point}")), 1);
    }
    for point in ["prepared", "ready"] {
        let kill = format!("kill process = [\"p1\", \"p3\"]; at_point = \"{point}\"");
        let text = steps(&[
            "wait for = { running = true, snapshots = 1 }",
            &kill,
            "kill process = \"p2\"; together = true",
            "wait for = { lost = \"p3\", joined = \"p3\", running = true }",
            "expect that = { verdicts = \"hold\" }",
        ]);
        let ran = run(&bank(&text)).ok();
        assert_eq!(ran.case(&format!("kills at {point}")), 2);
        assert!(ran.case("losses while restoring") > 0, "{}", ran.story());
    }
}

#[test]
fn the_collector_can_be_killed_at_every_point() {
    for point in ["parts-in", "manifest", "notice"] {
        let kill = format!("kill process = \"collector\"; at_point = \"{point}\"");
        let text = steps(&[
            "wait for = { running = true, snapshots = 1 }",
            &kill,
            "wait for = { running = true, snapshots = 4 }",
            "expect that = { restores = 0, verdicts = \"hold\" }",
        ]);
        let ran = run(&bank(&text)).ok();
        assert_eq!(ran.case(&format!("kills at {point}")), 1);
        // What was written before the kill counts, though nobody had been told.
        let aborted = u64::from(point == "parts-in");
        assert_eq!(ran.case("aborted snapshots"), aborted, "{}", ran.story());
    }
    let text = steps(&[
        "wait for = { running = true, snapshots = 1 }",
        "kill process = \"collector\"; at_point = \"generation\"",
        "kill process = \"p1\"; together = true",
        "wait for = { running = true, generation = 2 }",
        "expect that = { verdicts = \"hold\" }",
    ]);
    run(&bank(&text)).ok();
}

#[test]
fn a_node_that_is_paused_too_long_is_replaced_and_a_shorter_pause_changes_nothing() {
    let paused = |pause: &str, restores: u64| {
        let wait = format!("wait for = {{ time = \"{pause}\" }}");
        let expect = format!("expect that = {{ restores = {restores}, verdicts = \"hold\" }}");
        let text = steps(&[
            "wait for = { running = true, snapshots = 1 }",
            "pause process = \"p2\"",
            &wait,
            "resume process = \"p2\"",
            "wait for = { running = true, time = \"1s\" }",
            &expect,
        ]);
        run(&bank(&text)).ok()
    };
    assert_eq!(
        paused("2s", 0).case("nodes replaced while they were there"),
        0
    );
    assert_eq!(
        paused("12s", 1).case("nodes replaced while they were there"),
        1
    );
}

#[test]
fn a_node_that_is_paused_joins_no_new_collector_before_it_goes_on() {
    let begin = [
        "wait for = { running = true, snapshots = 1 }",
        "pause process = \"p2\"",
        "kill process = \"collector\"",
    ];
    let with = |rest: &[&str]| bank(&steps(&[&begin[..], rest].concat()));
    let never = ["wait for = { running = true }; timeout = \"3s\""];
    run(&with(&never)).fails("not after 3s: everyone running");
    let resumed = [
        "wait for = { time = \"3s\" }",
        "resume process = \"p2\"",
        "wait for = { joined = \"p2\", running = true }; timeout = \"3s\"",
        "expect that = { restores = 0, verdicts = \"hold\" }",
    ];
    run(&with(&resumed)).ok();
    // Once it is given up another takes its place, and the job goes back to a snapshot.
    let replaced = [
        "wait for = { joined = \"p2\", running = true }; timeout = \"20s\"",
        "expect that = { restores = 1, verdicts = \"hold\" }",
    ];
    let ran = run(&with(&replaced)).ok();
    assert_eq!(ran.case("nodes replaced while they were there"), 1);
}

#[test]
fn a_broken_stream_loses_nothing_and_is_opened_again() {
    let text = steps(&[
        "wait for = { running = true, snapshots = 1 }",
        "break from = \"p1\"; to = \"p2\"",
        "break from = \"p2\"; to = \"p3\"; together = true",
        "wait for = { time = \"1s\" }",
        "break from = \"p1\"; to = \"p2\"",
        "snapshot wait = true",
        "expect that = { restores = 0, aborted = 0, verdicts = \"hold\" }",
    ]);
    let ran = run(&bank(&text)).ok();
    assert_eq!(ran.case("streams broken"), 3);
}

#[test]
fn a_program_that_dies_too_often_ends_the_job() {
    let kill = "restart process = \"p2\"";
    let mut lines = vec!["wait for = { running = true }"];
    lines.extend([kill; 11]);
    run(&bank(&steps(&lines))).fails("p2 has died more often than [restarts] allows");
}
