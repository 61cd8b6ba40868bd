//! The course's own tests, where they are at hand, and files that are not of the form.

use std::path::{Path, PathBuf};

use super::*;

const TOP: &str = "# two\n2\nN10 4\nN2 0\nN10 N2\nN2 N10\n";

fn parse(events: &str, top: &str) -> Result<Scenario, ScenarioError> {
    let events = Text {
        origin: Path::new("/t/a.events"),
        text: events,
    };
    Scenario::from_cos418(
        events,
        Text {
            origin: Path::new("/t/a.top"),
            text: top,
        },
        10,
    )
}

#[track_caller]
fn refused(events: &str, top: &str, start: &str, word: &str) {
    let error = parse(events, top).expect_err(events).to_string();
    let fits = error.lines().count() == 1 && error.starts_with(start) && error.contains(word);
    assert!(fits, "expected {start} … {word}, found\n{error}");
}

/// The course's files; none, with a word about it, where they are not at hand.
fn peers() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/peers");
    let peers = std::env::var_os("CUTLINE_PEERS").map_or_else(beside, PathBuf::from);
    let folder = peers.join("cos418/test_data");
    if folder.is_dir() {
        // A job's directory is kept without `..`, and compared.
        return folder.canonicalize().ok();
    }
    eprintln!("skipped: {} is not there", folder.display());
    None
}

/// The seven tests: events, topology, and how many golden snapshots there are.
const TESTS: [(&str, &str, usize); 7] = [
    ("2nodes-simple", "2nodes", 1),
    ("2nodes-message", "2nodes", 1),
    ("3nodes-simple", "3nodes", 1),
    ("3nodes-bidirectional-messages", "3nodes", 1),
    ("8nodes-sequential-snapshots", "8nodes", 2),
    ("8nodes-concurrent-snapshots", "8nodes", 5),
    ("10nodes", "10nodes", 10),
];

fn goldens(folder: &Path, test: &str) -> Vec<GoldenSnapshot> {
    let names = std::iter::once(format!("{test}.snap"));
    let names = names.chain((0..10).map(|number| format!("{test}{number}.snap")));
    let paths = names
        .map(|name| folder.join(name))
        .filter(|path| path.is_file());
    let golden = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        GoldenSnapshot::parse(Text {
            origin: &path,
            text: &text,
        })
        .unwrap()
    };
    paths.map(golden).collect()
}

#[test]
fn all_seven_tests_of_the_course_are_read_with_as_many_snapshots_as_goldens() {
    let Some(folder) = peers() else { return };
    for (test, top, count) in TESTS {
        let [events, top] = [format!("{test}.events"), format!("{top}.top")];
        let read = Scenario::load_cos418(&folder.join(events), &folder.join(top), 5);
        let scenario = read.unwrap_or_else(|error| panic!("{error}"));
        let snapshots = scenario.steps.iter();
        let snapshots = snapshots.filter(|step| matches!(step.step, Step::Snapshot { .. }));
        let goldens = goldens(&folder, test);
        assert_eq!((snapshots.count(), goldens.len()), (count, count), "{test}");

        let names = scenario.job.parts().processes.clone();
        assert!(names.is_sorted(), "{test}: ids are sorted as texts");
        let tokens: u64 = scenario.job.parts().settings["balances"]
            .as_object()
            .unwrap()
            .values()
            .map(|balance| balance.as_u64().unwrap())
            .sum();
        for golden in &goldens {
            assert!(
                golden.tokens.keys().eq(&names),
                "{test}: {:?}",
                golden.tokens
            );
            assert_eq!(
                golden.total(),
                tokens,
                "{test}: no token is lost in a golden snapshot"
            );
            let topology = scenario.job.topology();
            for (from, to) in golden.channels().into_keys() {
                assert!(
                    topology.channel(&format!("{from}→{to}")).is_some(),
                    "{test}"
                );
            }
        }
        let policy = scenario.job.policy();
        assert!(policy.open_max >= count as u64 && policy.retain >= count as u64);
        let text = scenario.job.to_toml();
        let again = Job::parse(&text, Path::new("/elsewhere/job.toml")).unwrap();
        assert_eq!(again, scenario.job, "nodes can read the job from a file");
    }
}

#[test]
fn lines_with_no_tick_between_them_begin_together() {
    let events = "send N10 N2 3\nsnapshot N2 \n\n# a word\ntick 3\nsend N2 N10 1\ntick\n";
    let scenario = parse(events, TOP).unwrap();
    let topology = scenario.job.topology();
    let told = |step: &Scheduled| format!("{} {}", step.line, step.step.describe(topology));
    let groups = scenario
        .groups()
        .map(|group| group.iter().map(told).collect::<Vec<_>>());
    assert_eq!(
        groups.collect::<Vec<_>>(),
        [
            vec!["1 tell N10: send N2 3", "2 snapshot from N2"],
            vec!["5 wait for 30ms"],
            vec!["6 tell N2: send N10 1"],
            vec!["7 wait for 10ms"],
            vec!["7 wait for 1 complete snapshots, nothing moving"],
            vec![
                "7 expect complete snapshots: 1, every verdict holds, \
             in every complete snapshot tokens = 4"
            ],
        ]
    );
    assert_eq!(scenario.timeout, TIMEOUT + Duration::from_millis(40));
    assert!(scenario.notes.is_empty());
    assert_eq!(
        scenario.job.policy().interval_ms,
        0,
        "the script alone takes snapshots"
    );
    let balances = serde_json::json!({ "balances": { "N10": 4, "N2": 0 } });
    let setup = scenario.job.setup(ProcessId::new(0));
    assert_eq!(
        (setup.application.as_str(), setup.settings),
        ("token", balances)
    );
    assert_eq!(
        topology.name(ProcessId::new(0)),
        "N10",
        "N10 stands before N2"
    );
}

#[test]
fn links_from_a_server_to_itself_are_ignored_with_a_note() {
    let top = format!("{TOP}N2 N2\nN2 N10\n");
    let scenario = parse("tick\n", &top).unwrap();
    assert_eq!(scenario.job.topology().channels().len(), 2);
    let notes = ["/t/a.top:7: a link from N2 to itself is ignored"];
    assert_eq!(scenario.notes[..1], notes);
    assert_eq!(
        scenario.notes[1],
        "/t/a.top:8: N2→N10 is given twice and taken once"
    );
}

#[test]
fn events_that_cannot_happen_are_refused_with_their_line() {
    refused(
        "tick\nsend N1 N2 1\n",
        TOP,
        "/t/a.events:2: ",
        "no server 'N1'; use one of N10, N2",
    );
    refused(
        "send N2 N10\n",
        TOP,
        "/t/a.events:1: ",
        "'send N2 N10' is no event",
    );
    refused(
        "send N2 N10 -1\n",
        TOP,
        "/t/a.events:1: ",
        "'-1' is no number of tokens",
    );
    refused(
        "send N2 N10 5\n",
        TOP,
        "/t/a.events:1: ",
        "waits for ever: there are 4 tokens",
    );
    refused("snapshot N3\n", TOP, "/t/a.events:1: ", "no server 'N3'");
    refused(
        "tick x\n",
        TOP,
        "/t/a.events:1: ",
        "'x' is no number of ticks",
    );
    refused(
        "tick 9999999999999\n",
        TOP,
        "/t/a.events:1: ",
        "more than a year",
    );
    refused("\n\nstop\n", TOP, "/t/a.events:3: ", "'stop' is no event");
    let one_way = "2\nN1 1\nN2 0\nN1 N2\n";
    refused(
        "send N2 N1 1\n",
        one_way,
        "/t/a.events:1: ",
        "no link N2 N1",
    );
    refused(
        "snapshot N2\n",
        one_way,
        "/t/a.events:1: ",
        "no marker from N2 reaches N1",
    );
    parse("snapshot N1\n", one_way).expect("N1 reaches everyone");
}

#[test]
fn topologies_that_are_not_of_the_form_are_refused_with_their_line() {
    refused("", "# nothing\n", "/t/a.top: ", "the number of servers");
    refused("", "x\nN1 1\n", "/t/a.top: ", "the number of servers");
    refused(
        "",
        "2\nN1 1\n",
        "/t/a.top:1: ",
        "2 servers are announced, and 1 lines follow",
    );
    refused("", "1\nN1 many\n", "/t/a.top:2: ", "'N1 many' is no server");
    refused("", "2\nN1 1\nN1 1\n", "/t/a.top:3: ", "'N1' is given twice");
    refused("", "1\nN1->N2 1\n", "/t/a.top:2: ", "no id");
    refused(
        "",
        "1\nN1 1\nN1 N2\n",
        "/t/a.top:3: ",
        "no server 'N2'; use one of N1",
    );
    refused("", "1\nN1 1\nN1 N2 N3\n", "/t/a.top:3: ", "no link");
    let many = "2\nN1 9223372036854775807\nN2 1\n";
    refused("", many, "/t/a.top: ", "2^63 tokens");
}

#[test]
fn a_golden_snapshot_is_read_with_the_order_of_its_messages() {
    let text = "# golden\n7\nN1 5\nN2 0\nN1 N2 token(3)\nN2 N1 token(1)\nN1 N2 token(2)\n";
    let read = |text| {
        GoldenSnapshot::parse(Text {
            origin: Path::new("a.snap"),
            text,
        })
    };
    let golden = read(text).unwrap();
    assert_eq!((golden.id, golden.tokens["N1"], golden.total()), (7, 5, 11));
    assert_eq!(golden.channels()[&("N1", "N2")], [3, 2]);
    assert_eq!(golden.messages.len(), 3);
    for (wrong, start) in [
        ("N1 5\n", "a.snap: the file has no number"),
        (
            "0\nN1 5\nN1 N2 token(3)\n",
            "a.snap:3: 'N2' has no line of its own",
        ),
        (
            "0\nN1 5\nN1 N1 marker(3)\n",
            "a.snap:3: 'N1 N1 marker(3)' is no line",
        ),
        ("0\nN1 x\n", "a.snap:2: 'N1 x' is no line"),
        ("0\n1\n", "a.snap:2: '1' is no line"),
    ] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }
}
