//! Scenarios in TOML that make sense, and what comes of them.

use std::path::Path;

use super::*;

pub(super) const JOB: &str = r#"timeout = "20s"
[job]
processes = 3
topology = "line"
application = { name = "token", balance = 5 }
"#;

pub(super) fn parse(text: &str) -> Result<Scenario, ScenarioError> {
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

const P1: ProcessId = ProcessId::new(0);
const P2: ProcessId = ProcessId::new(1);
const P3: ProcessId = ProcessId::new(2);

const STEPS: &str = r#"
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
mode = "aligned"
alignment_timeout = "5ms"
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

#[test]
fn every_step_is_read() {
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
            mode: None,
            alignment_timeout: None,
            wait: false,
        },
        Step::Snapshot {
            from: BTreeSet::from([P1]),
            mode: Some(Mode::Aligned),
            alignment_timeout: Some(Duration::from_millis(5)),
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
    assert_eq!(steps(STEPS), expected);
}

#[test]
fn every_condition_and_expectation_is_read() {
    let text = r#"
[[step]]
do = "wait"
for.snapshots = 3
for.generation = 2
for.running = true
for.lost = "p2"
for.joined = "p3"
for.time = "1s"
for.idle = true
timeout = "5s"
[[step]]
do = "wait"
for = { generation = "g7", time = "2s" }
[[step]]
do = "expect"
[step.that]
snapshots = ">= 3"
aborted = 0
restores = "==1"
generation = "<= 4"
verdicts = "hold"
quantities = { money = 4000, debt = -1 }
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
do = "snapshot"
mode = "aligned"
alignment_timeout = "5ms"
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
            "aligned snapshot, unaligned after 5ms",
            "wait for 2 complete snapshots, p2 lost, 1s 500ms",
            "expect complete snapshots: at least 3, every verdict holds, \
         in every complete snapshot tokens = 15",
        ]
    );
}

#[test]
fn some_points_are_of_the_collector_and_the_others_of_a_node() {
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
        let file = Text {
            origin: &examples,
            text,
        };
        Source::parse(file).unwrap_or_else(|error| panic!("{error} in\n{text}"));
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

#[test]
fn every_example_makes_sense() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = |folder: &str| {
        let entries = std::fs::read_dir(examples.join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let files = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
        files.collect::<Vec<_>>()
    };
    let (jobs, scenarios) = (files("jobs"), files("scenarios"));
    assert!(
        jobs.len() >= 3 && !scenarios.is_empty(),
        "the folders are read"
    );
    for path in jobs {
        Job::load(&path).unwrap_or_else(|error| panic!("{error}"));
    }
    for path in scenarios {
        let source = Source::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let has_steps = |scenario: &Scenario| !scenario.steps.is_empty();
        assert!(!matches!(&source, Source::Fixed(scenario) if !has_steps(scenario)));
    }
}
