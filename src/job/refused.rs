//! Jobs that make no sense, each with the line and the remedy that must be named.

use std::collections::BTreeSet;
use std::path::Path;

use super::tests::{GOOD, parse};
use super::{Job, JobError};
use crate::protocol::ids::ProcessId;

fn refusals(text: &str) -> Vec<String> {
    match parse(text).expect_err(text) {
        JobError::Refused(refusals) => refusals.iter().map(ToString::to_string).collect(),
        other => panic!("{other}"),
    }
}

/// The only refusal; it must name this line and hold all these words.
#[track_caller]
pub(super) fn refused(text: &str, line: u32, words: &[&str]) {
    let refusals = refusals(text);
    let start = format!("/jobs/test.toml:{line}: ");
    assert!(
        refusals.len() == 1
            && refusals[0].starts_with(&start)
            && words.iter().all(|word| refusals[0].contains(word)),
        "expected {start}{words:?}, found {refusals:#?}"
    );
}

#[test]
fn unknown_names_are_refused_with_their_line_and_the_known_ones() {
    let job = |channels: &str| {
        format!("processes = 2\nchannels = [\n{channels}\n]\n[application]\nname = \"bank\"\n")
    };
    refused(
        &job("\"p1->p2\",\n\"p2->p9\""),
        4,
        &["p2→p9", "no process 'p9'", "p1, p2"],
    );
    refused(
        &job("\"p1->p2\",\n\"p2 p1\""),
        4,
        &["'p2 p1' is no channel", "p1 <-> p2"],
    );
    let initiator = "[snapshots]\ninitiators = [\"p7\"]\n";
    refused(
        &format!("{GOOD}{initiator}"),
        7,
        &["initiator 'p7'", "p1, p2, p3"],
    );
    refused(
        &GOOD.replace("bank", "banc"),
        5,
        &["'banc'", "bank, token, token-ring, count", "program"],
    );
    refused(
        &GOOD.replace("ring", "torus"),
        3,
        &["'torus'", "ring, mesh, line, star, random"],
    );
    refused(
        &format!("colour = 1{GOOD}"),
        1,
        &["unknown field 'colour' in a job file", "silence"],
    );
    let field = "[limits]\nwindow = 3\n";
    refused(
        &format!("{GOOD}{field}"),
        7,
        &["'window' in [limits]", "window_bytes"],
    );
    refused(
        &format!("{GOOD}[snapshots]\nmode = \"exact\"\n"),
        7,
        &["exact", "classic, aligned, unaligned, at-least-once"],
    );
    refused(
        &format!("{GOOD}[snapshots]\nback_edges = [\"p3->p1\",\n\"p1->p3\"]\n"),
        8,
        &["p1→p3", "no channel of the job"],
    );
}

#[test]
fn back_edges_that_leave_a_cycle_or_a_process_without_marker_are_refused_naming_them() {
    let job = |snapshots: &str| {
        let channels = "\"p1 -> p2\", \"p2 <-> p3\", \"p3 -> p1\"";
        format!(
            "processes = 3\nchannels = [{channels}]\n[application]\nname = \"bank\"\n\
             [snapshots]\n{snapshots}"
        )
    };
    refused(
        &job("back_edges = \"p3 -> p1\""),
        6,
        &["still a cycle through p2, p3"],
    );
    let named = "mode = \"aligned\"\nback_edges = [\"p1->p2\", \"p3->p2\"]\n";
    parse(&job(named)).expect("p2 initiates, as it has no other input");
    refused(
        &job(&format!("{named}initiators = [\"p1\"]\n")),
        8,
        &["no input of p2", "let p2 initiate too"],
    );
    let classic = named.replace("aligned", "classic");
    parse(&job(&format!("{classic}initiators = [\"p1\"]\n"))).expect("nobody aligns");
}

#[test]
fn impossible_channels_are_refused_with_their_line() {
    let job = |channel: &str| {
        let channels = format!("\"p1 <-> p2\",\n\"{channel}\"");
        format!("processes = 2\nchannels = [{channels}]\n[application]\nname = \"bank\"\n")
    };
    refused(&job("p2 -> p2"), 3, &["p2→p2", "itself"]);
    refused(
        &job("p2 -> p1"),
        3,
        &["p2→p1 is given twice, first on line 2", "p2→p1#2"],
    );
    parse(&job("p2 -> p1#2")).unwrap();
    refused(
        &format!("channels = []{GOOD}"),
        3,
        &["both channels and topology"],
    );
    let neither = "processes = 2\n[application]\nname = \"bank\"\n";
    assert!(refusals(neither)[0].contains("nothing says how the processes are connected"));
    parse(&neither.replace('2', "1")).expect("one process needs no channel");
}

#[test]
fn impossible_processes_are_refused_with_their_line() {
    let job = |processes: &str| {
        format!("processes = {processes}\ntopology = \"mesh\"\n[application]\nname = \"bank\"\n")
    };
    refused(
        &job("[\"a\",\n\"b\",\n\"a\"]"),
        3,
        &["'a' is named twice, first on line 1"],
    );
    refused(
        &job("[\"a\",\n\"N1\"]"),
        2,
        &["'N1' is no name for a process", "a-z, 0-9"],
    );
    refused(
        &job("[\"a\",\n\"collector\"]"),
        2,
        &["what the collector is called"],
    );
    refused(&job("0"), 1, &["no processes", "processes = 4"]);
    refused(&job("20000"), 1, &["over 16384"]);
    refused(
        &job("\"many\""),
        1,
        &["processes is \"many\"", "a list of names"],
    );
    refused(&job("[1]"), 1, &["an element of processes is 1"]);
    refused(&job("300"), 2, &["89700 channels"]);
    refused(
        &format!("name = \"A b\"\n{}", job("2")),
        1,
        &["'A b' is no name for a job"],
    );
    let refusal = Job::parse(GOOD, Path::new("/jobs/My_Job.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        refusal.starts_with("/jobs/My_Job.toml: 'My_Job' is no name"),
        "{refusal}"
    );
}

#[test]
fn initiators_that_do_not_reach_everyone_are_refused_naming_whom() {
    let text = r#"
processes = 4
channels = ["p1 -> p2", "p2 -> p3", "p4 -> p3"]
application = { name = "bank" }
[snapshots]
initiators = ["p2"]
"#;
    refused(
        text,
        6,
        &[
            "no marker from p2 reaches p1, p4",
            "let p1, p4 initiate too",
        ],
    );
    let job = parse(&text.replace("initiators = [\"p2\"]", "")).unwrap();
    let roots = BTreeSet::from([ProcessId::new(0), ProcessId::new(3)]);
    assert_eq!(
        job.initiators(),
        &roots,
        "by default one in each root component"
    );
    assert_eq!(job.policy().initiators, roots);
}

#[test]
fn snapshots_that_could_never_be_taken_are_refused_with_the_remedy() {
    let with = |section: &str, line: &str| format!("{GOOD}[{section}]\n{line}\n");
    refused(
        &with("snapshots", "timeout = \"0s\""),
        7,
        &["timeout is zero", "30s"],
    );
    refused(
        &with("snapshots", "timeout = \"10\""),
        7,
        &["timeout is \"10\"", "300ms"],
    );
    refused(
        &with("snapshots", "pause = \"10us\""),
        7,
        &["no whole number of milliseconds"],
    );
    refused(
        &with("snapshots", "interval = \"3years\""),
        7,
        &["more than a year"],
    );
    refused(
        &with("snapshots", "timeout = 10"),
        7,
        &["timeout is 10", "a duration such as"],
    );
    refused(
        &with("snapshots", "open_max = 0"),
        7,
        &["open_max is 0", "at least 1"],
    );
    refused(
        &with("snapshots", "open_max = -1"),
        7,
        &["open_max is -1", "whole number"],
    );
    refused(
        &with("snapshots", "failures_tolerated = 4_294_967_296"),
        7,
        &["below 2^32"],
    );
    parse(&with("snapshots", "interval = \"0s\"")).expect("none but on demand");
}

#[test]
fn stores_restarts_and_limits_that_make_no_sense_are_refused_with_the_remedy() {
    let with = |section: &str, line: &str| format!("{GOOD}[{section}]\n{line}\n");
    refused(&with("store", "retain = 0"), 7, &["nothing to restore"]);
    refused(
        &with("store", "url = \"memory:///\""),
        7,
        &["do not share memory"],
    );
    refused(
        &with("store", "url = \"flie:///x\""),
        7,
        &["flie:///x is no store", "use a directory"],
    );
    for url in ["s3://bucket/prefix", "gs://bucket", "https://host/x"] {
        let line = format!("url = \"{url}\"");
        let cannot = format!("{url} is no store that this program can open");
        refused(&with("store", &line), 7, &[&cannot, "use a directory"]);
    }
    refused(
        &with("store", "url = \"file://host/x\""),
        7,
        &["file://host/x is no path on this host", "file:///"],
    );
    refused(
        &with("store", "fall_back = 1"),
        7,
        &["fall_back is 1", "true or false"],
    );
    refused(
        &with("restarts", "window = \"0s\""),
        7,
        &["never be counted"],
    );
    refused(
        &with("limits", "message_bytes_max = \"4MiB\""),
        7,
        &["4 MiB", "at most 4193280"],
    );
    refused(
        &with("limits", "window_bytes = 1048576"),
        7,
        &["could never be sent", "1048580"],
    );
    refused(
        &with("limits", "window_messages = 0"),
        7,
        &["window_messages is 0"],
    );
    refused(
        &with("limits", "outbox_bytes = \"1GiB\""),
        7,
        &["raise outbox_bytes_max"],
    );
    refused(&with("limits", "outbox_bytes = \"1GB\""), 7, &["64KiB"]);
    refused(
        &format!("silence = \"0s\"{GOOD}"),
        1,
        &["silence is under 100ms"],
    );
}

#[test]
fn a_random_topology_needs_its_edges_and_only_it_has_them() {
    let job = |topology: &str| GOOD.replace("\"ring\"", topology);
    refused(
        &job("\"random\""),
        3,
        &["needs its number of edges", "edges = 3"],
    );
    refused(
        &job("{ kind = \"random\", edges = 9 }"),
        3,
        &["only 3 are not in the ring"],
    );
    refused(
        &job("{ kind = \"ring\", edges = 9 }"),
        3,
        &["neither seed nor edges"],
    );
    refused(&job("{ edges = 1 }"), 3, &["has no kind"]);
    refused(
        &job("{ kind = \"ring\", x = 1 }"),
        3,
        &["unknown field 'x' in topology"],
    );
    let channels = |topology: &str| {
        parse(&job(topology))
            .unwrap()
            .topology()
            .channels()
            .to_vec()
    };
    let own = channels("{ kind = \"random\", edges = 2, seed = 1 }");
    assert_eq!(own.len(), 5);
    assert_eq!(
        own,
        channels("{ kind = \"random\", edges = 2 }"),
        "else the job's seed, 1"
    );
}

#[test]
fn one_reading_finds_many_mistakes_in_the_order_of_their_lines() {
    let text = r#"name = "no name"
processes = ["a", "a"]
channels = ["a -> a", "a -> x", "b"]
what = 1
[application]
[snapshots]
timeout = "0s"
initiators = ["y"]
[limits]
window_messages = 0
"#;
    let refusals = refusals(text);
    let lines: Vec<_> = refusals
        .iter()
        .map(|line| line.split(':').nth(1).unwrap())
        .collect();
    assert_eq!(
        lines,
        ["1", "2", "3", "3", "3", "4", "5", "7", "8", "10"],
        "{refusals:#?}"
    );
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    let refusals = refusals("processes = 4\ntopology = \n[application\nname = \"bank\"\n");
    assert!(
        refusals[0].starts_with("/jobs/test.toml:2: this is not TOML"),
        "{refusals:#?}"
    );
    let twice = format!("processes = 1{GOOD}");
    assert!(
        parse(&twice)
            .unwrap_err()
            .to_string()
            .contains(":2: this is not TOML: duplicate key")
    );
}
