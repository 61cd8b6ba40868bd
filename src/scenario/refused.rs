//! Scenarios that make no sense, each with the line and the remedy that must be named.

use proptest::prelude::*;
use proptest::sample::Index;

use super::tests::{JOB, parse};
use super::{Scenario, ScenarioError, TIMEOUT};

/// The only refusal of a job with these steps, from line 6 on.
#[track_caller]
fn refused(text: &str, line: u32, words: &[&str]) {
    refused_whole(&format!("{JOB}{text}"), line, words);
}

#[track_caller]
fn refused_whole(text: &str, line: u32, words: &[&str]) {
    let error = parse(text).expect_err(text).to_string();
    let start = format!("/jobs/story.toml:{line}: ");
    let fits = error.lines().count() == 1
        && error.starts_with(&start)
        && words.iter().all(|word| error.contains(word));
    assert!(fits, "expected {start}{words:?}, found\n{error}");
}

#[test]
fn a_step_that_could_not_begin_is_refused() {
    let snapshot = "[[step]]\ndo = \"snapshot\"\n";
    refused(
        &format!("{snapshot}together = true\n"),
        8,
        &["no step before"],
    );
    let both = format!("{snapshot}{snapshot}together = true\nat = \"1s\"\n");
    refused(&both, 10, &["not both"]);
    let wait = format!("{snapshot}[[step]]\ndo = \"wait\"\nfor = {{ idle = true }}\n");
    refused(
        &format!("{wait}together = true\n"),
        11,
        &["after the step before"],
    );
    let back = format!("{snapshot}at = \"2s\"\n{snapshot}at = \"1s\"\n");
    refused(&back, 11, &["at lies before a step further up"]);
    refused(
        &format!("{snapshot}at = \"20s\"\n"),
        8,
        &["the scenario's timeout"],
    );
}

#[test]
fn unknown_names_in_steps_are_refused_with_the_known_ones() {
    let step = |word: &str, rest: &str| format!("[[step]]\ndo = \"{word}\"\n{rest}\n");
    refused(
        &step("dance", ""),
        7,
        &["unknown step 'dance'", "send, snapshot, kill"],
    );
    refused("[[step]]\n", 6, &["[[step]] number 1 has no field 'do'"]);
    refused(
        &step("kill", "process = \"p9\""),
        8,
        &["no process 'p9'", "p1, p2, p3"],
    );
    refused(&step("pause", ""), 6, &["no field 'process'", "collector"]);
    let at = |point: &str| format!("process = \"p1\"\nat_point = \"{point}\"");
    refused(
        &step("kill", &at("asleep")),
        9,
        &["unknown point 'asleep'", "recorded, uploading"],
    );
    refused(
        &step("kill", &at("manifest")),
        9,
        &["come by the point 'manifest'", "parts-in"],
    );
    refused(
        &step("pause", &at("stored")),
        9,
        &["unknown field 'at_point'"],
    );
    refused(
        &step("snapshot", "from = [\"p1\", \"p4\"]"),
        8,
        &["no process 'p4'"],
    );
    refused(
        &step("snapshot", "from = [\"p2\"]"),
        8,
        &["no marker from p2 reaches p1"],
    );
    refused(
        &step("snapshot", "mode = \"exact\""),
        8,
        &["mode is \"exact\"", "at-least-once"],
    );
    refused(
        &step("restore", "snapshot = 3"),
        8,
        &["snapshot is 3", "\"s3\""],
    );
    refused(
        &step("restart", "process = []"),
        6,
        &["process names nobody"],
    );
}

#[test]
fn a_snapshot_that_its_mode_does_not_allow_is_refused() {
    let ring = JOB.replace("\"line\"", "\"ring\"");
    let snapshot = |rest: &str| format!("{ring}[[step]]\ndo = \"snapshot\"\n{rest}\n");
    parse(&snapshot("from = \"p2\"")).expect("a classic one may begin anywhere");
    refused_whole(
        &snapshot("from = \"p2\"\nmode = \"aligned\""),
        9,
        &[
            "aligned snapshots wait for no input of p1",
            "let p1 initiate too",
        ],
    );
    for (line, mode) in [(8, ""), (9, "mode = \"unaligned\"\n")] {
        refused_whole(
            &snapshot(&format!("{mode}alignment_timeout = \"5ms\"")),
            line,
            &[
                "snapshots have no alignment timeout",
                "give mode = \"aligned\"",
            ],
        );
    }
}

#[test]
fn commands_that_cannot_be_given_are_refused() {
    let send = |rest: &str| format!("[[step]]\ndo = \"send\"\n{rest}\n");
    refused(&send("text = \"x\""), 6, &["no field 'process'"]);
    refused(&send("process = \"p1\""), 6, &["no field 'text'"]);
    refused(
        &send("from = \"p1\"\nto = \"p2\""),
        6,
        &["no field 'amount'"],
    );
    refused(
        &send("from = \"p2\"\nto = \"p1\"\namount = 1"),
        9,
        &["no channel p2→p1"],
    );
    refused(
        &send("from = \"p1\"\nto = \"p2\"\namount = -1"),
        10,
        &["amount is -1"],
    );
    let both = "from = \"p1\"\nto = \"p2\"\namount = 1\ntext = \"x\"";
    refused(&send(both), 11, &["in both ways"]);
}

#[test]
fn conditions_that_cannot_hold_are_refused() {
    let wait = |conditions: &str| format!("[[step]]\ndo = \"wait\"\n{conditions}\n");
    refused(&wait(""), 6, &["no field 'for'", "running = true"]);
    refused(
        &wait("for = {}"),
        8,
        &["nothing in the table", "snapshots, generation"],
    );
    refused(&wait("for = 3"), 8, &["for is 3", "a table"]);
    refused(
        &wait("for = { running = false }"),
        8,
        &["running is false", "true"],
    );
    refused(
        &wait("for = { quiet = true }"),
        8,
        &["unknown field 'quiet'", "idle"],
    );
    refused(&wait("for = { lost = \"p9\" }"), 8, &["no process 'p9'"]);
    let late = "for = { time = \"5s\" }\ntimeout = \"5s\"";
    refused(&wait(late), 9, &["strikes before it can end"]);
    let expect = |that: &str| format!("[[step]]\ndo = \"expect\"\nthat = {that}\n");
    refused(
        &expect("{ snapshots = \"> 3\" }"),
        8,
        &["snapshots is \"> 3\"", ">= 3"],
    );
    refused(
        &expect("{ snapshots = \"≥3\" }"),
        8,
        &["snapshots is \"≥3\""],
    );
    refused(
        &expect("{ verdicts = true }"),
        8,
        &["verdicts is true", "hold"],
    );
    refused(
        &expect("{ quantities = { money = \"x\" } }"),
        8,
        &["hold money, which is \"x\""],
    );
    refused(&expect("{ quantities = {} }"), 8, &["quantities is empty"]);
}

#[test]
fn what_is_wrong_with_the_job_is_said_with_the_line_in_its_own_file() {
    let step = "[[step]]\ndo = \"snapshot\"\n";
    let without = parse(step).unwrap_err().to_string();
    assert!(
        without.starts_with("/jobs/story.toml: a scenario has no field 'job'"),
        "{without}"
    );
    let job = JOB.replace("\"line\"", "\"lime\"");
    refused_whole(&format!("{job}{step}"), 4, &["unknown topology 'lime'"]);
    refused_whole(
        &format!("job = \"none.toml\"\n{step}"),
        1,
        &["none.toml", "No such file"],
    );
    let without = parse(JOB).unwrap_err().to_string();
    assert!(
        without.starts_with("/jobs/story.toml: a scenario has no field 'step'"),
        "{without}"
    );
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("story.toml");
    std::fs::write(folder.path().join("job.toml"), "processes = 1\n").unwrap();
    let text = format!("job = \"job.toml\"\n{step}");
    let error = Scenario::parse(&text, &scenario).unwrap_err().to_string();
    assert!(
        error.contains("job.toml: the job has no application"),
        "{error}"
    );
    let good = "processes = 1\napplication = { name = \"bank\" }\n";
    std::fs::write(folder.path().join("job.toml"), good).unwrap();
    std::fs::write(&scenario, &text).unwrap();
    let scenario = Scenario::load(&scenario).unwrap();
    assert_eq!(
        (scenario.name.as_str(), scenario.job.name()),
        ("story", "job")
    );
    assert_eq!(scenario.timeout, TIMEOUT);
    assert!(scenario.job.directory().ends_with("job.cutline"));
}

/// The lines of the page's examples: a text that is nearly right finds more than any noise.
fn example_lines() -> Vec<&'static str> {
    let page = include_str!("../../docs/scenario.md");
    let blocks = page.split("```toml\n").skip(1);
    let blocks = blocks.filter_map(|text| text.split("```").next());
    blocks.flat_map(str::lines).collect()
}

proptest! {
    #[test]
    fn lines_in_any_order_are_a_scenario_or_refused_within_the_file(
        picked in proptest::collection::vec(any::<Index>(), 0..40),
        cut in 0..4usize,
    ) {
        let lines = example_lines();
        let job = JOB.lines().take(2 + cut);
        let text: Vec<_> = job.chain(picked.iter().map(|index| *index.get(&lines))).collect();
        if let Err(error) = parse(&text.join("\n")) {
            let ScenarioError::Refused(refusals) = error else { panic!("{error}") };
            prop_assert!(!refusals.is_empty());
            for refusal in refusals.iter() {
                let line = refusal.line.unwrap_or(1) as usize;
                prop_assert!((1..=text.len() + 1).contains(&line), "{refusal}");
            }
        }
    }
}
