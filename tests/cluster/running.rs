//! A job that runs under `cutline up` while a test looks on.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Instant;

use cutline::control::directory::JobDirectory;
use cutline::control::incarnations::{self, OsProcess};
use cutline::control::who::Who;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::asked::Answer;
use crate::ran::{events, last_lines};
use crate::stage::{BOUND, Stage, until};

/// A job in the foreground of another process.
pub(crate) struct Up<'s> {
    stage: &'s Stage,
    child: Child,
    directory: JobDirectory,
    out: PathBuf,
    err: PathBuf,
}

impl<'s> Up<'s> {
    /// Starts the job whose file is called so. What it tells goes to a file, each time a new one.
    pub(crate) fn start(stage: &'s Stage, name: &str) -> Self {
        let file = stage.path().join(format!("{name}.toml"));
        let free = |end: &str| {
            let path = |number| stage.path().join(format!("{name}.{number}.{end}"));
            (0..).map(path).find(|path| !path.exists()).unwrap()
        };
        let (out, err) = (free("out"), free("err"));
        let mut command = stage.cutline(&["up", file.to_str().unwrap(), "--log-format", "json"]);
        command.stdout(File::create(&out).unwrap());
        command.stderr(File::create(&err).unwrap());
        Self {
            stage,
            child: command.spawn().unwrap(),
            directory: JobDirectory::new(stage.path().join(format!("{name}.cutline"))),
            out,
            err,
        }
    }

    /// The job's directory.
    pub(crate) fn root(&self) -> &Path {
        self.directory.root()
    }

    /// Its path as a flag.
    pub(crate) fn dir(&self) -> &str {
        self.root().to_str().unwrap()
    }

    /// Asks the job something.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Answer {
        let flag = ["--dir", self.dir()];
        self.stage.ask(&[arguments, &flag].concat())
    }

    /// Everything told so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.err).unwrap();
        // The last line may still be being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        events(whole)
    }

    /// How many events there are of a kind.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.events()
            .iter()
            .filter(|event| event["event"] == kind)
            .count()
    }

    /// Waits for an event that satisfies a condition, from the beginning.
    #[track_caller]
    pub(crate) fn event(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.event_after(0, what, wanted)
    }

    /// Waits for an event that satisfies a condition, of those after so many.
    #[track_caller]
    pub(crate) fn event_after(
        &mut self,
        after: usize,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let begin = Instant::now();
        loop {
            let ended = self.child.try_wait().unwrap();
            let found = self
                .events()
                .into_iter()
                .skip(after)
                .find(|event| wanted(event));
            if let Some(event) = found {
                return event;
            }
            let in_time = begin.elapsed() < BOUND && ended.is_none();
            assert!(in_time, "{what} did not come ({ended:?})\n{}", self.story());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Waits until everyone runs for the first time.
    #[track_caller]
    pub(crate) fn runs(&mut self) -> Value {
        self.event("the job's beginning", |event| event["event"] == "running")
    }

    /// Waits for so many complete snapshots more than there are now.
    #[track_caller]
    pub(crate) fn completes(&mut self, more: usize) -> Value {
        let mut last = Value::Null;
        for _ in 0..more {
            let now = self.events().len();
            last = self.event_after(now, "a snapshot", |event| event["event"] == "complete");
        }
        last
    }

    /// Takes a snapshot, and answers with its id.
    #[track_caller]
    pub(crate) fn snapshot(&self) -> String {
        let answer = self.ask(&["snapshot", "--wait", "--format", "json"]).yes();
        answer.json()["snapshot"].as_str().unwrap().to_owned()
    }

    /// The newest incarnation of a program.
    pub(crate) fn program(&self, who: &str) -> OsProcess {
        until(who, || {
            incarnations::newest(&self.directory, &Who::named(who))
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, signal).unwrap();
    }

    /// Whether the supervisor is still there.
    pub(crate) fn is_up(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it as Ctrl-C does; it has nothing to complain of.
    #[track_caller]
    pub(crate) fn interrupt(self) -> Answer {
        self.signal(Signal::SIGINT);
        self.ends().yes()
    }

    /// Waits until it has ended.
    #[track_caller]
    pub(crate) fn ends(mut self) -> Answer {
        let status = until("the supervisor's end", || self.child.try_wait().unwrap());
        Answer {
            code: status.code().unwrap(),
            out: fs::read_to_string(&self.out).unwrap(),
            err: fs::read_to_string(&self.err).unwrap(),
        }
    }

    /// What happened so far, for a test that fails.
    pub(crate) fn story(&self) -> String {
        let told = fs::read_to_string(&self.err).unwrap();
        format!("{told}{}", last_lines(&self.directory.logs()))
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        // Nobody else waits for it. After `ends` both say that it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
