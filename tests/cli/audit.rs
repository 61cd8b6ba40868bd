//! `cutline audit`: answers in three forms and three exit statuses; and `check` on files that are
//! no job files.

use std::fs;

use crate::folder::Folder;

const SOUND: &str = r#"{"format": "cutline-audit-1", "expected": 3, "snapshots": [
  {"name": "a", "processes": {"p": {"holds": 1}, "q": {"holds": 0}},
   "channels": {"p->q": {"messages": [{"carries": 2}]}}}]}"#;

fn folder() -> Folder {
    let folder = Folder::new();
    let path = folder.path();
    fs::write(path.join("sound.json"), SOUND).unwrap();
    fs::write(path.join("short.json"), SOUND.replace(": 3", ": 4")).unwrap();
    fs::write(path.join("odd.json"), SOUND.replace("name", "nome")).unwrap();
    folder
}

#[test]
fn a_snapshot_that_holds_is_a_yes_and_says_what_is_not_known() {
    let answer = folder().ask(&["audit", "sound.json"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(
        answer.out.starts_with("a: no verdict fails\n"),
        "{answer:?}"
    );
    assert!(
        answer
            .out
            .contains("quantity: 1 in states + 2 in channels = 3"),
        "{answer:?}"
    );
    assert!(
        answer
            .out
            .contains("not known, because no process has a clock"),
        "{answer:?}"
    );
}

#[test]
fn a_snapshot_that_does_not_hold_is_a_no() {
    let answer = folder().ask(&["audit", "short.json"]);
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    assert!(answer.out.starts_with("a: not conserved\n"), "{answer:?}");
    let json = folder().ask(&["audit", "short.json", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json.code, &value["holds"]), (1, &false.into()));
    let sums = &value["snapshots"][0]["quantities"]["quantity"];
    let expected = serde_json::json!({ "in_states": 1, "in_channels": 2, "expected": 4 });
    assert_eq!(sums, &expected);
}

#[test]
fn what_is_no_snapshot_could_not_be_asked_about() {
    let folder = folder();
    folder
        .ask(&["audit", "odd.json"])
        .assert_error(&["odd.json:2: unknown field `nome`", "docs/audit.md"]);
    folder
        .ask(&["audit", "none.json"])
        .assert_error(&["cannot read none.json"]);
    folder
        .ask(&["audit", "sound.json", "--from", "raf"])
        .assert_error(&["no snapshot in this log"]);
}

#[test]
fn a_report_for_graders_has_a_case_for_each_verdict() {
    let answer = folder().ask(&["audit", "short.json", "--format", "junit"]);
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    let counts = "tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"4\"";
    assert!(answer.out.contains(counts), "{answer:?}");
    assert_eq!(answer.out.matches("<testcase ").count(), 5);
}

#[test]
fn a_configuration_of_another_course_is_checked_by_its_rules() {
    let folder = folder();
    let config = "2 1 1 5 900 9\n0 here 1\n1 there 2\n0 1\n0\n";
    fs::write(folder.path().join("config.txt"), config).unwrap();
    let answer = folder.ask(&["check", "config.txt", "--from", "utd"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("2: 0→1, 1→0"), "{answer:?}");
    assert!(
        answer
            .out
            .ends_with("config.txt:4: node 0 is its own neighbour, which is left out\n")
    );
    fs::write(
        folder.path().join("config.txt"),
        config.replace("0 1\n0\n", "1\n1\n"),
    )
    .unwrap();
    let answer = folder.ask(&["check", "config.txt", "--from", "utd"]);
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    assert!(
        answer
            .out
            .contains("config.txt:4: node 0 has the neighbour 1"),
        "{answer:?}"
    );
}
