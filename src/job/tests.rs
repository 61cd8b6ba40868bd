//! Jobs that make sense, and what comes of them.

use std::path::Path;

use super::*;
use crate::apps::BuiltIn;
use crate::protocol::application::Application as _;
use crate::protocol::mode::Mode;

pub(super) const GOOD: &str = r#"
processes = 3
topology = "ring"
[application]
name = "bank"
"#;

pub(super) fn parse(text: &str) -> Result<Job, JobError> {
    Job::parse(text, Path::new("/jobs/test.toml"))
}

#[test]
fn what_the_file_does_not_say_is_the_default() {
    let job = parse(GOOD).unwrap();
    assert_eq!(job.name(), "test");
    assert_eq!(job.directory(), Path::new("/jobs/test.cutline"));
    assert_eq!(job.store_url().as_str(), "file:///jobs/test.cutline/store/");
    assert_eq!(
        job.limits(),
        Limits::default(),
        "default.toml and the protocol agree"
    );
    assert_eq!(job.silence(), Duration::from_secs(10));
    assert_eq!(job.program(), None);
    let policy = job.policy();
    let expected = Policy {
        mode: Mode::Classic,
        alignment_timeout_ms: None,
        interval_ms: 5000,
        pause_min_ms: 0,
        timeout_ms: 30_000,
        open_max: 4,
        failures_tolerated: 3,
        fall_back: false,
        retain: 10,
        silence_ms: 10_000,
        initiators: BTreeSet::from([ProcessId::new(0)]),
    };
    assert_eq!(policy, expected);
}

/// Says something of everything.
const FULL: &str = r#"
name = "full"
processes = ["a", "b", "c-1"]
channels = ["a -> b", "b→c-1", "a -> b #2", "c-1 <-> a"]
program = "../bin/mine"
seed = 18_446_744_073_709_551_615
silence = "2s"
delay = "40ms"
trace = true
directory = "./elsewhere"
[application]
name = "mine"
word = "x"
list = [1, 2.5, true]
table = { deep = { n = -3 } }
[snapshots]
mode = "aligned"
alignment_timeout = "500ms"
back_edges = ["c-1 -> a"]
interval = "1m 30s"
pause = "300ms"
timeout = "7s"
open_max = 2
failures_tolerated = 0
initiators = ["a", "b"]
[store]
url = "file:///shared/store"
retain = 1
fall_back = true
[restarts]
max = 0
window = "0s"
backoff = "1s"
[limits]
window_messages = 100
window_bytes = "64KiB"
message_bytes_max = 1024
outbox_bytes = 2048
outbox_bytes_max = "1 MiB"
recording_bytes_max = "1GiB"
"#;

#[test]
fn every_field_of_a_file_arrives() {
    let job = parse(FULL).unwrap();
    assert_eq!(job.name(), "full");
    assert_eq!(job.program(), Some(Path::new("/bin/mine")));
    assert_eq!(job.directory(), Path::new("/jobs/elsewhere"));
    assert_eq!(job.store_url().as_str(), "file:///shared/store");
    let channels = job.topology().channels().iter();
    let channels: Vec<_> = channels.map(|&c| job.topology().channel_name(c)).collect();
    assert_eq!(channels, ["a→b", "a→b#2", "a→c-1", "b→c-1", "c-1→a"]);
    let setup = job.setup(ProcessId::new(2));
    let table = serde_json::json!({ "deep": { "n": -3 } });
    let settings = serde_json::json!({ "word": "x", "list": [1, 2.5, true], "table": table });
    assert_eq!(setup.settings, settings);
    assert_eq!((setup.application.as_str(), setup.seed), ("mine", u64::MAX));
    let policy = job.policy();
    assert_eq!(
        (policy.interval_ms, policy.pause_min_ms, policy.timeout_ms),
        (90_000, 300, 7000)
    );
    assert_eq!(
        (policy.open_max, policy.failures_tolerated, policy.retain),
        (2, 0, 1)
    );
    assert!(policy.fall_back && job.trace());
    assert_eq!(policy.mode, Mode::Aligned);
    assert_eq!(policy.alignment_timeout_ms, Some(500));
    let back_edges = job.topology().back_edges().iter();
    let back_edges: Vec<_> = back_edges.map(ToString::to_string).collect();
    assert_eq!(back_edges, ["p3→p1"]);
    assert_eq!((policy.silence_ms, job.delay().as_millis()), (2000, 40));
    assert_eq!(
        policy.initiators,
        BTreeSet::from([ProcessId::new(0), ProcessId::new(1)])
    );
    assert_eq!(job.limits().window_bytes, 65_536);
    assert_eq!(job.limits().outbox_bytes_max, 1 << 20);
    assert_eq!(job.limits().recording_bytes_max, 1 << 30);
    assert_eq!(job.restarts().max, 0);
}

#[test]
fn every_application_that_comes_along_needs_no_program() {
    for name in BuiltIn::NAMES {
        let job = parse(&GOOD.replace("bank", name)).unwrap();
        assert_eq!((job.application(), job.program()), (name, None));
        let started = BuiltIn::start(&job.setup(ProcessId::new(0)));
        assert!(started.is_ok(), "{name}: {started:?}");
    }
}

#[test]
fn a_store_may_be_a_path_beside_the_file_and_moves_with_the_directory_if_it_has_no_url() {
    let job = parse(&format!("{GOOD}[store]\nurl = \"../shared store\"\n")).unwrap();
    assert_eq!(job.store_url().as_str(), "file:///shared%20store/");
    let moved = parse(GOOD)
        .unwrap()
        .with_directory(Path::new("/tmp/x/../y"))
        .with_seed(9);
    assert_eq!(moved.store_url().as_str(), "file:///tmp/y/store/");
    assert_eq!(moved.seed(), 9);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Job::load(Path::new("/nowhere/x.toml")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read /nowhere/x.toml");
    assert!(std::error::Error::source(&error).is_some());
}

fn imported() -> Parts {
    let mut parts = Parts::new("import", "/tmp/import.cutline");
    parts.imported = true;
    parts.processes = vec!["N1".into(), "N10".into(), "Zürich_2".into()];
    parts.channels = vec![Link::new("N10", "N1"), Link::new("N1", "N10")];
    parts.channels.push(Link {
        nth: 2,
        ..Link::new("N10", "Zürich_2")
    });
    parts.application = "token".into();
    let settings = serde_json::json!({ "balances": { "N1": 3, "Zürich_2": 0 }, "x": [[1.5]] });
    parts.settings = settings.as_object().unwrap().clone();
    parts.snapshots.interval = Duration::ZERO;
    parts.snapshots.initiators = vec!["N10".into()];
    parts.seed = u64::MAX;
    parts
}

#[test]
fn a_job_made_in_code_is_written_to_a_file_that_reads_back_as_the_same_job() {
    let mut parts = imported();
    for _ in 0..2 {
        let job = Job::new(parts.clone()).unwrap();
        let text = job.to_toml();
        assert_eq!(
            Job::parse(&text, Path::new("/other/place.toml")).unwrap(),
            job,
            "{text}"
        );
        parts.program = Some("/bin/it's \"mine\"".into());
        parts.store.url = Some(Url::parse("file:///a").unwrap());
        parts.snapshots.timeout = Duration::from_millis(61_001);
    }
    let job = parse(GOOD).unwrap();
    assert_eq!(parse(&job.to_toml()).unwrap(), job);
}

#[test]
fn a_job_made_in_code_is_checked_as_a_file_is() {
    let refusal = |change: fn(&mut Parts)| {
        let mut parts = imported();
        change(&mut parts);
        Job::new(parts).unwrap_err().to_string()
    };
    let found = refusal(|parts| parts.imported = false);
    assert!(
        found.starts_with("job 'import': 'N1' is no name for a process; use"),
        "{found}"
    );
    assert!(refusal(|parts| parts.processes.push("a->b".into())).contains("'a->b' is no id"));
    assert!(refusal(|parts| parts.directory = "x".into()).contains("no absolute path in UTF-8"));
    let found = refusal(|parts| drop(parts.settings.insert("x".into(), u64::MAX.into())));
    assert!(found.contains("what a job file cannot"), "{found}");
    let null = refusal(|parts| drop(parts.settings.insert("x".into(), serde_json::Value::Null)));
    assert!(null.contains("what a job file cannot"), "{null}");
    let found = refusal(|parts| parts.silence = Duration::from_micros(1_000_500));
    assert!(
        found.contains("silence is no whole number of milliseconds"),
        "{found}"
    );
}

#[test]
fn a_job_says_in_a_few_lines_what_it_is() {
    let job = parse(&format!("{GOOD}balance = 5\n")).unwrap();
    let expected = "\
job test
  processes    3: p1, p2, p3
  channels     3: p1→p2, p2→p3, p3→p1
  initiators   p1 (one in each root component)
  application  bank, balance = 5
  snapshots    every 5s, timeout 30s, 4 open at once, 3 failures tolerated
  store        file:///jobs/test.cutline/store/, 10 kept
  restarts     at most 10 within 1m
  directory    /jobs/test.cutline";
    assert_eq!(job.to_string(), expected);
}

#[test]
fn the_page_shows_the_defaults_and_the_json_as_they_are() {
    let page = include_str!("../../docs/job-file.md");
    assert!(
        page.contains(read::DEFAULT_TOML),
        "docs/job-file.md shows default.toml"
    );
    let json = page
        .split("```json\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let shown: serde_json::Value = serde_json::from_str(json.expect("an example")).unwrap();
    assert_eq!(parse(GOOD).unwrap().to_json(), shown);
    for (section, table) in read::default_table() {
        let fields = table
            .get_ref()
            .as_table()
            .into_iter()
            .flatten()
            .map(|(key, _)| key);
        for key in std::iter::once(section).chain(fields) {
            let found = [format!("`{key}`"), format!("`[{key}]`")];
            let explained = found.iter().any(|text| page.contains(text));
            assert!(explained, "docs/job-file.md explains {key}");
        }
    }
    for (place, text) in page.split("```toml\n").skip(1).enumerate() {
        let text = text.split("```").next().expect("the block has an end");
        if text != read::DEFAULT_TOML {
            parse(text).unwrap_or_else(|error| panic!("example {place} of the page: {error}"));
        }
    }
}

#[test]
fn the_jobs_in_examples_make_sense() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/jobs");
    for name in ["bank", "ring"] {
        let job = Job::load(&folder.join(format!("{name}.toml"))).unwrap();
        assert_eq!(job.name(), name);
        assert_eq!(job.directory(), folder.join(format!("{name}.cutline")));
    }
}
