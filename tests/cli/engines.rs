//! `cutline run`: one scenario on every engine, what an engine cannot do, and many seeds.

use std::fs;

use serde_json::Value;

use crate::folder::{Answer, Folder, JOB};

/// A step that takes a snapshot of each mode; the job's own is `classic`.
const MODES: &str = r#"
job = "bank.toml"
timeout = "30s"
[[step]]
do = "snapshot"
mode = "aligned"
alignment_timeout = "5ms"
wait = true
[[step]]
do = "snapshot"
mode = "unaligned"
from = "bob"
wait = true
[[step]]
do = "snapshot"
mode = "at-least-once"
wait = true
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "expect"
that = { snapshots = 4, aborted = 0 }
"#;

fn write(folder: &Folder, name: &str, text: &str) {
    fs::write(folder.path().join(name), text).unwrap();
}

/// A folder with a job that takes no snapshot by itself, and a scenario of it.
fn with(scenario: &str) -> Folder {
    let folder = Folder::new();
    write(
        &folder,
        "bank.toml",
        &format!("{JOB}[snapshots]\ninterval = \"0s\"\n"),
    );
    write(&folder, "story.toml", scenario);
    write(&folder, "none.schedule", "# nothing waits\n");
    folder
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.out).unwrap_or_else(|_| panic!("no JSON: {answer:?}"))
}

#[test]
fn a_snapshot_step_has_its_mode_on_every_engine_and_so_has_the_event_that_it_is_complete() {
    let expected = ["aligned", "unaligned", "at-least-once", "classic"];
    let engines: [&[&str]; 3] = [
        &["sim"],
        &["gated", "--schedule", "none.schedule"],
        &["free"],
    ];
    for engine in engines {
        let folder = with(MODES);
        let arguments = [
            "run",
            "story.toml",
            "--format",
            "json",
            "--log-format",
            "json",
        ];
        let answer = folder.ask(&[&arguments[..], &["--engine"], engine].concat());
        assert_eq!(answer.code, 0, "{engine:?}: {answer:?}");
        let view = json(&answer);
        let snapshots = view["snapshots"].as_array().unwrap();
        let modes: Vec<_> = snapshots.iter().map(|each| each["mode"].as_str()).collect();
        assert_eq!(modes, expected.map(Some), "{engine:?}: {answer:?}");
        let told = answer
            .err
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let told: Vec<Value> = told.collect();
        let complete = told.iter().filter(|event| event["event"] == "complete");
        let modes: Vec<_> = complete.map(|event| event["mode"].as_str()).collect();
        assert_eq!(modes, expected.map(Some), "{engine:?}: {answer:?}");
    }
}

/// A scenario that takes no snapshot, with this at its end.
fn without_snapshot(expectation: &str) -> String {
    format!(
        "job = \"bank.toml\"\n[[step]]\ndo = \"wait\"\nfor = {{ running = true }}\n\
         [[step]]\ndo = \"expect\"\nthat = {{ {expectation} }}\n"
    )
}

#[test]
fn without_a_snapshot_no_engine_finds_it_right_or_calls_its_verdicts_good() {
    for engine in ["sim", "free"] {
        let run = ["run", "story.toml", "--engine", engine];
        let folder = with(&without_snapshot(
            "verdicts = \"hold\", quantities = { mony = 0 }",
        ));
        let answer = folder.ask(&[&run[..], &["--format", "json"]].concat());
        assert_eq!(answer.code, 1, "{answer:?}");
        let failures = json(&answer)["failures"].clone();
        let failures = failures.as_array().unwrap();
        assert_eq!(failures.len(), 2, "{failures:?}");
        for failure in failures {
            let failure = failure.as_str().unwrap();
            assert!(failure.ends_with("found no complete snapshot"), "{failure}");
        }
        let answer = with(&without_snapshot("snapshots = 0")).ask(&run);
        assert_eq!(answer.code, 0, "{answer:?}");
        let last = answer.out.lines().last().unwrap();
        assert!(last.ends_with("there was no snapshot to judge"), "{last}");
    }
}

#[test]
fn what_an_engine_cannot_do_is_refused_with_the_remedy() {
    let folder = with(MODES);
    let run = |more: &[&str]| folder.ask(&[&["run", "story.toml"], more].concat());
    run(&["--engine", "fast"]).assert_error(&["'fast'", "sim, gated, free"]);
    run(&["--engine", "sim", "--out", "kept"]).assert_error(&["leave out --out", "free"]);
    assert!(!folder.path().join("kept").exists());
    for engine in [&["--engine", "sim"][..], &["--engine", "free"], &[]] {
        let schedule = [engine, &["--schedule", "none.schedule"]].concat();
        run(&schedule).assert_error(&["--schedule is for the engine gated", "--engine gated"]);
    }
    for engine in ["sim", "free"] {
        let words = [
            "only the engine gated",
            "leave out --engine",
            "'cutline run'",
        ];
        let step = folder.ask(&["step", "story.toml", "--engine", engine]);
        step.assert_error(&words);
        let step = folder
            .command(&["step", "story.toml"])
            .env("CUTLINE_ENGINE", engine)
            .output();
        Answer::of(&step.unwrap()).assert_error(&words);
    }
    run(&["--engine", "gated", "--schedule", "lost.schedule"])
        .assert_error(&["cannot read lost.schedule"]);
    write(&folder, "wrong.schedule", "step\ntake alice→carol\n");
    run(&[
        "--engine",
        "gated",
        "--schedule",
        "wrong.schedule",
        "--out",
        "kept",
    ])
    .assert_error(&["line 2: there is no channel 'alice→carol'"]);
    // With the line corrected the same command is to be possible.
    assert!(!folder.path().join("kept").exists());
    let own = format!("program = \"own-node\"\n{JOB}").replace("\"bank\"", "\"own\"");
    write(&folder, "bank.toml", &own);
    run(&["--engine", "sim"]).assert_error(&["has its own program", "take the engine free"]);
}

#[test]
fn seeds_are_for_the_engine_sim_and_go_upwards() {
    let folder = with(MODES);
    let run = |more: &[&str]| folder.ask(&[&["run", "story.toml", "--seeds"], more].concat());
    for engine in [&[][..], &["--engine", "free"], &["--engine", "gated"]] {
        let seeds = [&["0..3"], engine].concat();
        run(&seeds).assert_error(&["for the engine sim: add --engine sim"]);
    }
    for seeds in ["3..3", "5..2", "7", "a..b", "1.."] {
        let answer = run(&[seeds, "--engine", "sim"]);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{answer:?}");
        let told = ["the first below the second: 1..100", "--seeds"];
        assert!(
            told.iter().any(|told| answer.err.contains(told)),
            "{answer:?}"
        );
    }
    run(&["0..3", "--engine", "sim", "--seed", "1"]).assert_error(&["--seed", "cannot be used"]);
    run(&["0..3", "--engine", "sim", "--out", "kept"]).assert_error(&["--out", "cannot be used"]);
}

#[test]
fn a_range_of_seeds_is_told_with_its_speed_and_every_rare_case() {
    let folder = Folder::new();
    write(
        &folder,
        "random.toml",
        "[random]\nprocesses = [2, 3]\nfaults = [1, 2]\n",
    );
    let run = ["run", "random.toml", "--engine", "sim", "--seeds", "2..6"];
    let table = folder.ask(&run);
    assert_eq!(table.code, 0, "{table:?}");
    let last = table.out.lines().last().unwrap();
    assert!(
        last.starts_with("ok: 4 runs, ") && last.contains(" a second; "),
        "{last}"
    );
    let view = json(&folder.ask(&[&run[..], &["--format", "json"]].concat()));
    let of = |field: &str| view[field].as_u64();
    assert_eq!(
        [of("from"), of("to"), of("runs"), of("failed")],
        [2, 6, 4, 0].map(Some)
    );
    assert_eq!(
        (&view["ok"], &view["failing"]),
        (&true.into(), &Value::Array(vec![]))
    );
    assert!(view["runs_per_second"].as_f64().unwrap() > 0.0);
    let cases = view["cases"].as_object().unwrap();
    assert!(
        cases["complete snapshots"].as_u64().unwrap() > 4,
        "{view:#}"
    );
    for (case, times) in cases {
        let row = table
            .out
            .lines()
            .find(|line| line.starts_with(&format!("{case}  ")));
        let row = row.unwrap_or_else(|| panic!("'{case}' is not in {}", table.out));
        assert!(row.ends_with(&format!(" {times}")), "{row}: not {times}");
    }
}

/// A scenario that never comes out as it should.
const WRONG: &str = r#"
job = "bank.toml"
[[step]]
do = "wait"
for = { time = "101ms" }
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "expect"
that = { quantities = { money = 1999 } }
"#;

#[test]
fn a_seed_that_fails_is_told_with_the_command_that_repeats_it() {
    let folder = with(WRONG);
    fs::rename(
        folder.path().join("story.toml"),
        folder.path().join("a story.toml"),
    )
    .unwrap();
    let run = ["run", "a story.toml", "--engine", "sim", "--seeds", "4..6"];
    let answer = folder.ask(&[&run[..], &["--format", "json"]].concat());
    assert_eq!(answer.code, 1, "{answer:?}");
    let view = json(&answer);
    assert_eq!(
        (view["ok"].as_bool(), view["failed"].as_u64()),
        (Some(false), Some(2))
    );
    let failing = &view["failing"][1];
    assert_eq!(failing["seed"], 5);
    let failure = failing["failure"].as_str().unwrap();
    assert!(failure.contains("found money = 2000 in s1"), "{failure}");
    let command = failing["command"].as_str().unwrap();
    assert_eq!(command, "cutline run --engine sim 'a story.toml' --seed 5");
    // As a shell would take it apart.
    let again = [
        "run",
        "--engine",
        "sim",
        "a story.toml",
        "--seed",
        "5",
        "--format",
        "json",
    ];
    let again = folder.ask(&again);
    assert_eq!(again.code, 1, "{again:?}");
    let again = json(&again);
    assert_eq!(
        (&again["seed"], &again["failures"][0]),
        (&5.into(), &failure.into())
    );
    let table = folder.ask(&run);
    assert!(
        table
            .out
            .contains(&format!("seed 5: {failure}\n  {command}\n")),
        "{}",
        table.out
    );
    assert!(
        table
            .out
            .lines()
            .last()
            .unwrap()
            .starts_with("failed: 2 of 2 runs, ")
    );
}
