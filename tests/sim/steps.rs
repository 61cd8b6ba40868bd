//! Every step does in virtual time what it does on real processes.

use super::{Ran, bank, parsed, run, steps};

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let story = |seed: u64| {
        let text = steps(&[
            "wait for = { running = true, snapshots = 3 }",
            "kill process = \"p2\"",
            "wait for = { lost = \"p2\", running = true, snapshots = 5 }",
        ]);
        let mut scenario = bank(&text);
        scenario.job = scenario.job.with_seed(seed);
        let ran = run(&scenario).ok();
        (ran.told.clone(), format!("{:?}", ran.outcome.verified))
    };
    assert_eq!(story(1), story(1));
    assert_ne!(story(1), story(2));
}

#[test]
fn a_killed_node_comes_back_and_the_job_goes_back_to_a_snapshot() {
    let text = steps(&[
        "wait for = { running = true, snapshots = 2 }",
        "kill process = \"p2\"",
        "wait for = { lost = \"p2\", joined = \"p2\", running = true }; timeout = \"10s\"",
        "snapshot from = [\"p1\", \"p3\"]; wait = true",
        "expect that = { snapshots = \">= 3\", restores = 1, generation = 2, verdicts = \"hold\", \
         quantities = { money = 3000 } }",
    ]);
    run(&bank(&text)).ok();
}

#[test]
fn a_killed_collector_rolls_nobody_back() {
    let text = steps(&[
        "wait for = { running = true, snapshots = 2 }",
        "kill process = \"collector\"",
        "wait for = { running = true, snapshots = 4 }",
        "expect that = { restores = 0, verdicts = \"hold\" }",
    ]);
    run(&bank(&text)).ok();
}

#[test]
fn an_expectation_that_does_not_hold_is_told_with_its_line_and_what_was_found() {
    let text = steps(&[
        "wait for = { running = true, snapshots = 2 }",
        "expect that = { restores = 3, quantities = { money = 1 } }",
    ]);
    let ran = run(&bank(&text)).fails("expected restores: 3, found 0");
    let ran = ran.fails("expected in every complete snapshot money = 1, found money = 3000 in s1");
    assert!(
        ran.outcome.failures[0].starts_with("line 12: "),
        "{}",
        ran.story()
    );
}

#[test]
fn where_no_snapshot_is_complete_nothing_that_is_expected_of_snapshots_holds() {
    let text = steps(&["expect that = { verdicts = \"hold\", quantities = { money = 3000 } }"]);
    let ran = run(&bank(&text)).fails("expected every verdict holds, found no complete snapshot");
    ran.fails("expected in every complete snapshot money = 3000, found no complete snapshot");
}

#[test]
fn a_quantity_that_no_snapshot_knows_is_not_zero() {
    let text = steps(&[
        "wait for = { running = true, snapshots = 1 }",
        "expect that = { quantities = { mony = 0, money = 3000 } }",
    ]);
    run(&bank(&text)).fails(", found no quantity 'mony', only money");
}

#[test]
fn a_wait_that_takes_too_long_fails_in_virtual_time() {
    let text = steps(&[
        "wait for = { snapshots = 1000 }; timeout = \"5s\"",
        "restore",
    ]);
    let ran = run(&bank(&text)).fails("not after 5s: 1000 complete snapshots");
    assert!(
        !ran.story().contains("restore the newest"),
        "nothing comes after it"
    );
    let text = steps(&["wait for = { snapshots = 100000 }; timeout = \"100s\""]);
    run(&bank(&text)).fails("the scenario takes longer than its timeout, 1m");
}

#[test]
fn steps_that_begin_at_a_time_or_together_do_so() {
    let text = steps(&[
        "snapshot at = \"2s\"; from = \"p1\"",
        "snapshot from = \"p2\"; together = true",
        "pause at = \"3s\"; process = [\"p1\", \"collector\"]",
        "wait for = { time = \"500ms\" }",
        "resume process = [\"p1\", \"collector\"]",
        "wait for = { snapshots = 20, running = true }",
        "expect that = { restores = 0 }",
    ]);
    let ran = run(&bank(&text)).ok();
    assert_eq!(ran.case("programs paused"), 2);
    let first_run_us = ran.outcome.seen.first_run_us.unwrap();
    let story = ran.story();
    for (line, after_us) in [(9, 2_000_000), (17, 3_000_000)] {
        let told = format!("{} Step({line}, ", first_run_us + after_us);
        assert!(story.contains(&told), "{told}\n{story}");
    }
}

#[test]
fn a_restore_takes_the_job_back_and_a_restart_waits_until_it_runs() {
    let text = steps(&[
        "wait for = { running = true, snapshots = 3 }",
        "restore snapshot = \"s2\"",
        "expect that = { restores = 1, generation = 2 }",
        "restart process = [\"p1\", \"p2\", \"p3\", \"collector\"]",
        "expect that = { restores = 2, generation = 3, verdicts = \"hold\" }",
    ]);
    run(&bank(&text)).ok();
}

/// A bank of three whose messages wait in outboxes, and these steps.
fn slow_bank(text: &str) -> Ran {
    let job = "timeout = \"60s\"\n[job]\nprocesses = 3\ntopology = \"ring\"\n\
               [job.application]\nname = \"bank\"\nevery_ms = 1\n\
               [job.limits]\nwindow_messages = 1\n[job.snapshots]\ninterval = \"0s\"\n";
    run(&parsed(&format!("{job}{text}")).scenario(None).unwrap())
}

#[test]
fn a_snapshot_step_may_name_another_mode_than_the_jobs() {
    let ran = slow_bank(&steps(&[
        "snapshot mode = \"aligned\"; wait = true",
        "snapshot mode = \"unaligned\"; from = \"p2\"; wait = true",
        "snapshot mode = \"at-least-once\"; wait = true",
        "snapshot wait = true",
    ]));
    assert!(ran.outcome.failures.is_empty(), "{}", ran.story());
    let modes = ran
        .outcome
        .verified
        .iter()
        .map(|verified| verified.mode.name());
    let expected = ["aligned", "unaligned", "at-least-once", "classic"];
    assert_eq!(modes.collect::<Vec<_>>(), expected);
    let struck = "sender shares that are not empty in aligned snapshots";
    assert_eq!(ran.case(struck), 0, "{}", ran.story());
    let limited = "snapshot mode = \"aligned\"; alignment_timeout = \"0ms\"; wait = true";
    let ran = slow_bank(&steps(&["wait for = { time = \"1s\" }", limited])).ok();
    assert!(ran.case(struck) > 0, "{}", ran.story());
}

#[test]
fn tokens_are_sent_as_told_and_a_refused_command_fails_its_step() {
    let job = "timeout = \"60s\"\n[job]\nprocesses = [\"left\", \"right\"]\ntopology = \"mesh\"\n\
               [job.application]\nname = \"token\"\nbalances = { left = 3, right = 0 }\n\
               [job.snapshots]\ninterval = \"0s\"\n";
    let text = steps(&[
        "send from = \"left\"; to = \"right\"; amount = 2",
        "snapshot from = \"right\"; together = true",
        "wait for = { snapshots = 1, idle = true }",
        "expect that = { snapshots = 1, quantities = { tokens = 3 }, verdicts = \"hold\" }",
        "send process = \"left\"; text = \"dance\"",
    ]);
    let scenario = parsed(&format!("{job}{text}")).scenario(None).unwrap();
    let ran = run(&scenario).fails("unknown command 'dance'");
    assert_eq!(ran.outcome.failures.len(), 1, "{}", ran.story());
}
