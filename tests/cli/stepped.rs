//! `cutline step`: a job whose every deed is picked by somebody who is asked, here through a pipe.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::folder::Folder;

const STORY: &str = r#"
timeout = "60s"
[job]
processes = ["a", "b"]
topology = "ring"
[job.application]
name = "token"
balances = { a = 3 }
[job.snapshots]
interval = "0s"
[[step]]
do = "send"
from = "a"
to = "b"
amount = 2
[[step]]
do = "snapshot"
from = "b"
[[step]]
do = "wait"
for = { snapshots = 1, idle = true }
[[step]]
do = "expect"
that = { verdicts = "hold", quantities = { tokens = 3 } }
"#;

/// What is picked becomes possible within this, or the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first line of every list.
const FIRST: &str = "0 step";

/// A program that is killed when the test is over, if it has not ended.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A job that waits for what is picked.
struct Stepped {
    folder: Folder,
    child: Ending,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: JoinHandle<String>,
}

impl Stepped {
    fn new() -> Self {
        let folder = Folder::new();
        fs::write(folder.path().join("story.toml"), STORY).unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        let mut command = folder.command(&["step", "story.toml", "--format", "json"]);
        let mut child = command
            .env("TMPDIR", folder.path().join("tmp"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = child.stderr.take().unwrap();
        let mut stepped = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            errors: std::thread::spawn(move || all(errors)),
            folder,
            child: Ending(child),
        };
        assert_eq!(stepped.line(), FIRST);
        stepped
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
        line.trim_end().to_owned()
    }

    /// Answers with a line; the rest of the list that was shown before it.
    fn say(&mut self, line: &str) -> Vec<String> {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let mut shown = Vec::new();
        loop {
            match self.line() {
                first if first == FIRST => return shown,
                other => shown.push(other),
            }
        }
    }

    /// The number under which a deed is shown, once it is.
    fn number_of(&mut self, deed: &str) -> String {
        let (begin, mut before) = (Instant::now(), Vec::new());
        loop {
            assert!(begin.elapsed() < PATIENCE, "{deed} is not in {before:?}");
            // An empty line is no answer: the list is shown again.
            let shown = self.say("");
            let found = shown
                .iter()
                .find_map(|line| line.strip_suffix(&format!(" {deed}")));
            // Nothing but what is picked moves: a list that has come twice stays.
            if let (Some(number), true) = (found, shown == before) {
                return number.to_owned();
            }
            before = shown;
        }
    }

    fn pick(&mut self, deed: &str) {
        let number = self.number_of(deed);
        self.say(&number);
    }

    /// No more input: what is told until the end, on both streams.
    fn finish(mut self) -> (i32, String, String) {
        drop(self.input.take());
        let mut out = String::new();
        self.output.read_to_string(&mut out).unwrap();
        let status = self.child.0.wait().unwrap();
        let errors = self.errors.join().unwrap();
        let left: Vec<PathBuf> = fs::read_dir(self.folder.path().join("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        let mine = self.folder.path().to_str().unwrap().as_bytes().to_vec();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_mine = line.windows(mine.len()).any(|part| part == mine);
            assert!(!is_mine, "left running: {}", String::from_utf8_lossy(&line));
        }
        (status.code().unwrap(), out, errors)
    }
}

fn all(mut stream: ChildStderr) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The last line of the answer, behind the last list.
fn view(out: &str) -> serde_json::Value {
    let begin = out
        .find('{')
        .unwrap_or_else(|| panic!("no answer in {out}"));
    serde_json::from_str(&out[begin..]).unwrap_or_else(|error| panic!("{error} in {out}"))
}

#[test]
fn what_is_picked_is_done_and_nothing_else_moves() {
    let mut stepped = Stepped::new();
    // The token is sent, and b records before it has handled it.
    stepped.say("0");
    stepped.pick("send a→b");
    stepped.pick("arrive a→b");
    stepped.number_of("take a→b");
    stepped.say("step");
    stepped.pick("send b→a");
    let (code, out, errors) = stepped.finish();
    assert_eq!(code, 0, "{out}\n{errors}");
    let view = view(&out);
    let tokens = &view["snapshots"][0]["quantities"]["tokens"];
    assert_eq!(
        (&tokens["in_states"], &tokens["in_channels"]),
        (&1.into(), &2.into()),
        "{view:#}\n{errors}"
    );
    assert_eq!(view["ok"], true);
}

#[test]
fn a_pick_that_makes_no_sense_is_refused_and_the_list_comes_again() {
    let mut stepped = Stepped::new();
    for pick in ["99", "dance", "take a→c", "tick c"] {
        stepped.say(pick);
    }
    stepped.say("0");
    // By a line instead of a number; a file may have an arrow of plain letters.
    stepped.say("send a->b");
    stepped.pick("arrive a→b");
    let (code, out, errors) = stepped.finish();
    assert_eq!(code, 0, "{out}\n{errors}");
    for refusal in [
        "the list has no number 99",
        "'dance' is no line of a schedule: write step, ",
        "there is no channel 'a→c'",
        "there is no process 'c'",
    ] {
        assert!(errors.contains(refusal), "'{refusal}' is not in {errors}");
    }
}

#[test]
fn the_end_of_input_lets_everything_go_on_to_the_end_and_leaves_nothing() {
    let (code, out, errors) = Stepped::new().finish();
    assert_eq!(code, 0, "{out}\n{errors}");
    let view = view(&out);
    assert_eq!(
        (view["ok"].as_bool(), view["complete"].as_u64()),
        (Some(true), Some(1))
    );
    assert!(!errors.contains("refused"), "{errors}");
}
