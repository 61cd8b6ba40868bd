//! Scenarios in TOML: what is read, and what is refused with its line.

use std::path::Path;

use super::*;

const JOB: &str = r#"timeout = "20s"
[job]
processes = 3
topology = "line"
application = { name = "token", balance = 5 }
"#;

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, Path::new("/jobs/story.toml"))
}

fn steps(text: &str) -> Vec<Step> {
    let scenario = parse(&format!("{JOB}{text}")).unwrap_or_else(|error| panic!("{error}"));
    scenario
        .steps
        .into_iter()
        .map(|scheduled| scheduled.step)
        .collect()
}

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

const P1: ProcessId = ProcessId::new(0);
const P2: ProcessId = ProcessId::new(1);
const P3: ProcessId = ProcessId::new(2);

#[test]
fn every_step_is_read() {
    let text = r#"
[[step]]
do = "send"
process = "p1"
text = "anything at all"
[[step]]
do = "send"
from = "p1"
to = "p2"
amount = 5
[[step]]
do = "snapshot"
[[step]]
do = "snapshot"
from = "p1"
wait = true
[[step]]
do = "kill"
process = ["p2", "collector"]
[[step]]
do = "kill"
process = "p2"
at_point = "uploading"
[[step]]
do = "pause"
process = "collector"
[[step]]
do = "resume"
process = "collector"
[[step]]
do = "restart"
process = ["p1", "p3"]
[[step]]
do = "restore"
[[step]]
do = "restore"
snapshot = "s0"
"#;
    let targets = |targets: &[Target]| targets.iter().copied().collect();
    let collector = targets(&[Target::Collector]);
    let expected = [
        Step::Send {
            process: P1,
            text: "anything at all".into(),
        },
        Step::Send {
            process: P1,
            text: "send p2 5".into(),
        },
        Step::Snapshot {
            from: BTreeSet::new(),
            wait: false,
        },
        Step::Snapshot {
            from: BTreeSet::from([P1]),
            wait: true,
        },
        Step::Kill {
            targets: targets(&[Target::Node(P2), Target::Collector]),
            at_point: None,
        },
        Step::Kill {
            targets: targets(&[Target::Node(P2)]),
            at_point: Some(Point::Uploading),
        },
        Step::Pause {
            targets: targets(&[Target::Collector]),
        },
        Step::Resume { targets: collector },
        Step::Restart {
            targets: targets(&[Target::Node(P1), Target::Node(P3)]),
        },
        Step::Restore { snapshot: None },
        Step::Restore {
            snapshot: Some(SnapshotId::new(0)),
        },
    ];
    assert_eq!(steps(text), expected);
}

#[test]
fn every_condition_and_expectation_is_read() {
    let text = r#"
[[step]]
do = "wait"
for = { snapshots = 3, generation = 2, running = true, lost = "p2", joined = "p3", time = "1s", idle = true }
timeout = "5s"
[[step]]
do = "wait"
for = { generation = "g7", time = "2s" }
[[step]]
do = "expect"
that = { snapshots = ">= 3", aborted = 0, restores = "==1", generation = "<= 4", verdicts = "hold", quantities = { money = 4000, debt = -1 } }
"#;
    let quantities = BTreeMap::from([("money".to_owned(), 4000), ("debt".to_owned(), -1)]);
    let expected = [
        Step::Wait {
            conditions: vec![
                Condition::Snapshots(3),
                Condition::Generation(Generation::new(2)),
                Condition::Running,
                Condition::Lost(P2),
                Condition::Joined(P3),
                Condition::Time(Duration::from_secs(1)),
                Condition::Idle,
            ],
            timeout: Duration::from_secs(5),
        },
        Step::Wait {
            conditions: vec![
                Condition::Generation(Generation::new(7)),
                Condition::Time(Duration::from_secs(2)),
            ],
            timeout: WAIT_TIMEOUT + Duration::from_secs(2),
        },
        Step::Expect {
            expectations: vec![
                Expectation::Snapshots(Bound::AtLeast(3)),
                Expectation::Aborted(Bound::Exactly(0)),
                Expectation::Restores(Bound::Exactly(1)),
                Expectation::Generation(Bound::AtMost(4)),
                Expectation::Verdicts,
                Expectation::Quantities(quantities),
            ],
        },
    ];
    assert_eq!(steps(text), expected);
    assert!(Bound::AtLeast(3).holds(3) && !Bound::AtLeast(3).holds(2));
    assert!(Bound::AtMost(3).holds(3) && !Bound::AtMost(3).holds(4));
    assert!(Bound::Exactly(3).holds(3) && !Bound::Exactly(3).holds(2));
}

#[test]
fn steps_begin_at_a_time_or_after_the_step_before_or_together_with_it() {
    let snapshot = "[[step]]\ndo = \"snapshot\"\n";
    let text = format!(
        "{JOB}{snapshot}at = \"1s\"\n{snapshot}together = true\n{snapshot}at = \"1s\"\n{snapshot}"
    );
    let scenario = parse(&text).unwrap();
    assert_eq!(scenario.timeout, Duration::from_secs(20));
    let lines = |group: &[Scheduled]| group.iter().map(|step| step.line).collect::<Vec<_>>();
    let groups: Vec<_> = scenario.groups().map(lines).collect();
    assert_eq!(groups, [vec![6, 9], vec![12], vec![15]]);
    assert_eq!(scenario.steps[2].at, Some(Duration::from_secs(1)));

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

#[test]
fn an_inline_job_is_named_after_the_scenario() {
    let scenario = parse(&format!("{JOB}[[step]]\ndo = \"snapshot\"\n")).unwrap();
    assert_eq!(scenario.job.name(), "story");
    assert_eq!(scenario.job.directory(), Path::new("/jobs/story.cutline"));
}

#[test]
fn steps_are_told_in_words() {
    let text = r#"
[[step]]
do = "kill"
process = "p2"
at_point = "recorded"
[[step]]
do = "snapshot"
from = ["p1"]
wait = true
[[step]]
do = "wait"
for = { lost = "p2", snapshots = 2, time = "1500ms" }
[[step]]
do = "expect"
that = { snapshots = ">= 3", verdicts = "hold", quantities = { tokens = 15 } }
"#;
    let scenario = parse(&format!("{JOB}{text}")).unwrap();
    let topology = scenario.job.topology();
    let told: Vec<_> = scenario
        .steps
        .iter()
        .map(|step| step.step.describe(topology))
        .collect();
    assert_eq!(
        told,
        [
            "kill p2 at recorded",
            "snapshot from p1, and wait for it",
            "wait for 2 complete snapshots, p2 lost, 1s 500ms",
            "expect complete snapshots: at least 3, every verdict holds, \
         in every complete snapshot tokens = 15",
        ]
    );
}

#[test]
fn points_are_read_by_their_names() {
    for point in Point::ALL {
        assert_eq!(Point::named(&point.to_string()), Some(point));
    }
    let of_collector = Point::ALL.iter().filter(|point| point.is_of_collector());
    assert_eq!(of_collector.count(), 4);
}

#[test]
fn the_examples_of_the_page_make_sense() {
    let page = include_str!("../../docs/scenario.md");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/jobs/page.toml");
    let mut count = 0;
    for text in page.split("```toml\n").skip(1) {
        let text = text.split("```").next().expect("the block has an end");
        Scenario::parse(text, &examples).unwrap_or_else(|error| panic!("{error} in\n{text}"));
        count += 1;
    }
    assert!(count >= 2, "the page has examples");
    for point in Point::ALL {
        assert!(
            page.contains(&format!("`{point}`")),
            "docs/scenario.md explains {point}"
        );
    }
}
