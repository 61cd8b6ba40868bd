//! What may stand in a file of snapshots, what is judged of it, and what is refused, where.

use std::path::Path;

use super::{Audited, Form, Snapshot, junit};
use crate::check::Answer;

/// Two processes and two channels, of which everything is told.
const WHOLE: &str = r#"{
  "format": "cutline-audit-1",
  "topology": {"processes": ["alice", "bob"], "channels": ["alice→bob", "bob->alice"]},
  "expected": {"money": 200},
  "snapshots": [{
    "name": "s1",
    "processes": {
      "alice": {"holds": {"money": 60}, "sent": {"alice→bob": 7}, "received": {"bob→alice": 5},
                "clock": {"alice": 12, "bob": 5}},
      "bob": {"holds": {"money": 100}, "sent": {"bob→alice": 5}, "received": {"alice→bob": 5},
              "clock": {"alice": 5, "bob": 10}}
    },
    "channels": {
      "alice→bob": {"messages": [{"number": 6, "carries": {"money": 30}},
                                 {"number": 7, "carries": {"money": 10}}]},
      "bob→alice": {"messages": []}
    }
  }]
}"#;

fn parse(text: &str) -> Result<Vec<Snapshot>, String> {
    let parsed = Snapshot::parse(text, Path::new("x.json"), Form::Json);
    parsed.map_err(|error| error.to_string())
}

/// The only snapshot of a text, with its changes, judged.
#[track_caller]
fn audited(changes: &[(&str, &str)]) -> Audited {
    let snapshots = parse(&changed(changes)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(snapshots.len(), 1);
    snapshots[0].audit()
}

#[track_caller]
fn changed(changes: &[(&str, &str)]) -> String {
    let mut text = WHOLE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

/// The names of the verdicts with this answer.
fn with(audited: &Audited, holds: Answer) -> Vec<&'static str> {
    let verdicts = audited.verdicts.0.iter();
    let these = verdicts.filter(|verdict| verdict.holds == holds);
    these.map(|verdict| verdict.name).collect()
}

/// Just this verdict fails, with this evidence.
#[track_caller]
fn fails(changes: &[(&str, &str)], name: &str, evidence: &str) {
    let audited = audited(changes);
    assert_eq!(with(&audited, Answer::No), [name], "{}", audited.verdicts);
    let found = &audited.verdicts.get(name).unwrap().evidence;
    assert!(found.contains(evidence), "{found}");
    assert!(!audited.holds);
}

/// Just this verdict cannot be told, for this reason; nothing fails.
#[track_caller]
fn is_open(changes: &[(&str, &str)], names: &[&str], reason: &str) {
    let audited = audited(changes);
    assert!(audited.holds, "{}", audited.verdicts);
    assert_eq!(
        with(&audited, Answer::Unknown),
        names,
        "{}",
        audited.verdicts
    );
    let found = &audited.verdicts.get(names[0]).unwrap().evidence;
    assert!(found.contains(reason), "{found}");
}

#[track_caller]
fn is_refused(changes: &[(&str, &str)], words: &[&str]) {
    let refusal = parse(&changed(changes)).expect_err("refused");
    for word in words {
        assert!(refusal.contains(word), "'{word}' is not in {refusal}");
    }
    assert_eq!(refusal.lines().count(), 1, "{refusal}");
}

#[test]
fn of_a_snapshot_that_is_told_in_full_every_verdict_holds() {
    let audited = audited(&[]);
    let all = ["complete", "non-negative", "exact", "causal", "conserved"];
    assert_eq!(with(&audited, Answer::Yes), all, "{}", audited.verdicts);
    let money = audited.quantities.unwrap()["money"];
    assert_eq!(
        (money.in_states, money.in_channels, money.expected),
        (160, 40, 200)
    );
}

#[test]
fn clocks_and_counts_may_be_as_large_as_they_can_be_written() {
    let half = "9223372036854775808"; // Two of them are one too many for 64 bits.
    let (alice, bob) = (format!(r#""alice": {half}"#), format!(r#""bob": {half}"#));
    let audited = audited(&[(r#""alice": 12"#, &alice), (r#""bob": 10"#, &bob)]);
    assert!(audited.holds, "{}", audited.verdicts);
    let causal = audited.verdicts.get("causal").unwrap();
    assert_eq!(causal.holds, Answer::Yes);
    assert!(
        causal.evidence.starts_with("18446744073709551616 events"),
        "{causal:?}"
    );
    let most = "18446744073709551615";
    let sent = |channel: &str, count: &str| format!(r#""sent": {{"{channel}": {count}}}"#);
    let [one, other] = [("alice→bob", "7"), ("bob→alice", "5")];
    let told = [sent(one.0, one.1), sent(other.0, other.1)];
    let more = [sent(one.0, most), sent(other.0, most)];
    fails(
        &[(&*told[0], &*more[0]), (&*told[1], &*more[1])],
        "exact",
        "missing",
    );
}

#[test]
fn a_state_that_is_missing_is_named() {
    let told = r#""processes": ["alice", "bob"]"#;
    let more = r#""processes": ["alice", "bob", "carol"]"#;
    let audited = audited(&[(told, more)]);
    assert_eq!(audited.verdicts.failing(), ["complete"]);
    let conserved = audited.verdicts.get("conserved").unwrap();
    assert_eq!(conserved.evidence, "it is not told what carol holds");
    let empty = ",\n      \"bob→alice\": {\"messages\": []}";
    fails(&[(empty, "")], "complete", "bob→alice has no channel state");
}

#[test]
fn a_channel_that_received_more_than_was_sent_is_negative_by_its_counts() {
    let change = (r#""sent": {"bob→alice": 5}"#, r#""sent": {"bob→alice": 3}"#);
    fails(
        &[change],
        "non-negative",
        "bob→alice handled up to m5, sent up to m3",
    );
}

#[test]
fn a_channel_that_received_more_than_was_sent_is_negative_by_its_amount() {
    let less = (
        r#""bob→alice": {"messages": []}"#,
        r#""bob→alice": {"holds": {"money": -16}}"#,
    );
    let balanced = (r#""money": 100"#, r#""money": 116"#);
    // The sum is right, as it is for every program that takes the difference for the channel.
    fails(
        &[less, balanced],
        "non-negative",
        "bob→alice holds -16 money",
    );
}

#[test]
fn a_message_that_is_missing_or_doubled_makes_a_channel_inexact() {
    fails(
        &[(r#""number": 7"#, r#""number": 6"#)],
        "exact",
        "m6 recorded twice",
    );
    fails(
        &[(
            r#""received": {"alice→bob": 5}"#,
            r#""received": {"alice→bob": 4}"#,
        )],
        "exact",
        "alice→bob: m5 missing",
    );
    // Without counts too, they must follow one another.
    let uncounted = (r#""sent": {"alice→bob": 7}, "#, "");
    fails(
        &[uncounted, (r#""number": 7"#, r#""number": 8"#)],
        "exact",
        "m7 missing",
    );
}

#[test]
fn messages_without_numbers_are_counted() {
    let bare = [(r#""number": 6, "#, ""), (r#""number": 7, "#, "")];
    is_open(&bare, &["exact"], "alice→bob lacks message numbers");
    let fewer = [
        bare[0],
        bare[1],
        (r#""sent": {"alice→bob": 7}"#, r#""sent": {"alice→bob": 8}"#),
    ];
    fails(
        &fewer,
        "exact",
        "alice→bob: 2 messages recorded, 3 sent and not received",
    );
}

#[test]
fn a_clock_that_knows_what_had_not_happened_is_not_causal() {
    let change = (r#""clock": {"alice": 5"#, r#""clock": {"alice": 13"#);
    fails(
        &[change],
        "causal",
        "bob knew of event 13 of alice, which had recorded at event 12",
    );
}

#[test]
fn money_that_is_missing_is_not_conserved() {
    fails(
        &[(r#""money": 60"#, r#""money": 50"#)],
        "conserved",
        "= 190, not 200",
    );
}

#[test]
fn what_is_not_told_is_not_known_and_no_fault() {
    is_open(
        &[(
            ",\n                \"clock\": {\"alice\": 12, \"bob\": 5}",
            "",
        )],
        &["causal"],
        "only 1 of 2 parts have a clock",
    );
    is_open(
        &[(r#"  "expected": {"money": 200},"#, "")],
        &["conserved"],
        "must add up to",
    );
    is_open(
        &[(r#", "carries": {"money": 10}"#, "")],
        &["conserved"],
        "what is in alice→bob",
    );
    is_open(
        &[(r#""sent": {"alice→bob": 7}, "#, "")],
        &["non-negative", "exact"],
        "alice→bob lacks counts of messages sent and received",
    );
    let topology = changed(&[]).lines().nth(2).unwrap().to_owned();
    is_open(
        &[(&topology, "")],
        &["complete"],
        "it is not stated which processes",
    );
}

#[test]
fn where_no_channel_is_told_of_nothing_is_known_of_channels() {
    let text = r#"{"format": "cutline-audit-1", "expected": 3, "snapshots": [
        {"processes": {"a": {"holds": 1}, "b": {"holds": 2}}}]}"#;
    let audited = parse(text).unwrap()[0].audit();
    assert_eq!(with(&audited, Answer::Yes), ["conserved"]);
    let alone = text.replace(
        "\"expected\"",
        "\"topology\": {\"processes\": [\"a\", \"b\"], \"channels\": []}, \"expected\"",
    );
    let audited = parse(&alone).unwrap()[0].audit();
    assert_eq!(with(&audited, Answer::Unknown), ["causal"]);
}

#[test]
fn a_bare_number_is_a_quantity_without_a_name() {
    let text = r#"{"format": "cutline-audit-1", "expected": 3, "snapshots": [
        {"processes": {"a": {"holds": 1}, "b": {"holds": 0}},
         "channels": {"a->b": {"messages": [{"carries": 2}]}}}]}"#;
    let audited = parse(text).unwrap()[0].audit();
    assert_eq!(audited.snapshot, "snapshot 1");
    assert_eq!(
        with(&audited, Answer::Yes),
        ["conserved"],
        "{}",
        audited.verdicts
    );
}

#[test]
fn what_is_not_of_the_form_is_refused_with_its_line() {
    is_refused(
        &[(r#""name": "s1""#, r#""nome": "s1""#)],
        &["x.json:6: unknown field `nome`", "`name`", "docs/audit.md"],
    );
    is_refused(
        &[("\"expected\": {", "\"expected\": {\"money\": 1, ")],
        &["x.json:4: 'money' is given twice"],
    );
    is_refused(&[("[{\n", "[{,\n")], &["x.json:5: ", "correct the JSON"]);
    is_refused(
        &[(r#""number": 6"#, r#""number": -6"#)],
        &["x.json:14: invalid value", "-6"],
    );
    is_refused(
        &[("audit-1", "audit-9")],
        &["'cutline-audit-9'", "write \"cutline-audit-1\""],
    );
}

#[test]
fn a_name_that_is_nowhere_is_refused_with_its_path() {
    is_refused(
        &[(
            r#""sent": {"alice→bob": 7}"#,
            r#""sent": {"alice→carol": 7}"#,
        )],
        &["snapshots[0].processes.alice.sent.alice→carol: the topology has no channel"],
    );
    is_refused(
        &[(r#""sent": {"alice→bob": 7}"#, r#""sent": {"bob→alice": 7}"#)],
        &["snapshots[0].processes.alice.sent.bob→alice: this is not the process's end"],
    );
    is_refused(
        &[(r#""clock": {"alice": 12"#, r#""clock": {"carol": 12"#)],
        &["alice.clock: the topology has no process 'carol'"],
    );
    is_refused(
        &[(r#""bob->alice"]"#, r#""bob->alice", "bob→alice"]"#)],
        &["topology: bob→alice is given twice"],
    );
    is_refused(
        &[(r#""bob->alice"]"#, r#""bob->alice", "bob"]"#)],
        &["'bob' is no channel"],
    );
    is_refused(
        &[(r#""number": 6"#, r#""number": 0"#)],
        &["messages[0]: the number is 0; count from 1"],
    );
    is_refused(
        &[(r#"{"messages": []}"#, "{}")],
        &["channels.bob→alice: neither messages"],
    );
}

#[test]
fn one_reading_finds_all_that_is_wrong() {
    let twice = changed(&[
        (r#""number": 6"#, r#""number": 0"#),
        (r#"{"messages": []}"#, "{}"),
    ]);
    assert_eq!(parse(&twice).unwrap_err().lines().count(), 2);
}

#[test]
fn junit_has_a_test_case_for_each_verdict() {
    let mut one = audited(&[
        (r#""name": "s1""#, r#""name": "<s> & \"1\"""#),
        (r#""money": 60"#, r#""money": 50"#),
        (r#""sent": {"alice→bob": 7}, "#, ""),
    ]);
    one.verdicts.0[0].evidence = "a\u{1}b".to_owned();
    let text = junit("x.json", &[one]);
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="x.json" tests="5" failures="1" errors="0">
  <testsuite name="&lt;s&gt; &amp; &quot;1&quot;" tests="5" failures="1" errors="0" skipped="2">
"#;
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.matches("<testcase ").count(), 5);
    assert_eq!(
        text.matches("<failure type=\"conserved\" message=\"money: ")
            .count(),
        1
    );
    assert_eq!(
        text.matches("<skipped message=\"not known, because alice→bob ")
            .count(),
        2
    );
    assert!(text.ends_with("  </testsuite>\n</testsuites>\n"), "{text}");
    assert!(!text.contains('\u{1}'));
}
