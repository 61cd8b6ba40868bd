//! The supervisor with shell scripts for programs.

use std::process::Stdio;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::*;
use crate::control::directory::JobDirectory;
use crate::control::incarnations::{Condition, all, newest};
use crate::control::stop::down;
use crate::job::Restarts;

/// A condition that a test waits for comes within this, or the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

fn plan(top: &TempDir, max: u32, scripts: &[(&str, &str)]) -> Plan {
    let members = scripts.iter().map(|(name, script)| Member {
        who: Who::named(name),
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), (*script).into()],
    });
    Plan {
        directory: JobDirectory::new(top.path().join("x.cutline")),
        members: members.collect(),
        restarts: Restarts {
            max,
            window: Duration::from_secs(600),
            backoff: Duration::from_millis(1),
        },
        silence: Duration::from_millis(200),
    }
}

/// A supervisor on a thread of its own, as it is in a process of its own.
struct Running {
    directory: JobDirectory,
    events: mpsc::Sender<News>,
    notices: std::sync::mpsc::Receiver<Programs>,
    shutdown: CancellationToken,
    thread: std::thread::JoinHandle<Result<Ending, StartError>>,
}

impl Running {
    fn begin(plan: Plan) -> Self {
        let (events, mut heard) = mpsc::channel(16);
        let (told, notices) = std::sync::mpsc::channel();
        let shutdown = CancellationToken::new();
        let directory = plan.directory.clone();
        let until = shutdown.clone();
        directory.create().unwrap();
        let thread = std::thread::spawn(move || {
            let lock = plan.directory.lock().unwrap();
            let tell = move |notice| {
                if let Notice::Programs(notice) = notice {
                    let _ = told.send(notice);
                }
            };
            let hurry = CancellationToken::new();
            let runtime = runtime();
            let all = supervise(&plan, &lock, &mut heard, &until, &hurry, &tell);
            runtime.block_on(all)
        });
        Self {
            directory,
            events,
            notices,
            shutdown,
            thread,
        }
    }

    fn notice(&self, wanted: impl Fn(&Programs) -> bool) -> Programs {
        loop {
            let notice = self
                .notices
                .recv_timeout(PATIENCE)
                .expect("the notice comes");
            if wanted(&notice) {
                return notice;
            }
        }
    }

    fn newest(&self, name: &str) -> OsProcess {
        let mut found = None;
        until("the program's start", || {
            found = newest(&self.directory, &Who::named(name));
            found.is_some()
        });
        found.unwrap()
    }

    fn end(self) -> Result<Ending, StartError> {
        self.shutdown.cancel();
        self.thread.join().unwrap()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what} took too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_dies_is_started_again_and_everything_ends_on_shutdown() {
    let top = tempfile::tempdir().unwrap();
    let running = Running::begin(plan(&top, 3, &[("p1", "sleep 60"), ("p2", "sleep 60")]));
    let (first, other) = (running.newest("p1"), running.newest("p2"));
    first.signal(Signal::SIGKILL).unwrap();
    let died = running.notice(|notice| matches!(notice, Programs::Died { .. }));
    let killed = format!("p1 (pid {}) was killed by SIGKILL", first.pid);
    assert_eq!(died.to_string(), killed);
    running.notice(|notice| matches!(notice, Programs::Restarted { .. }));
    let second = running.newest("p1");
    assert_ne!(second.pid, first.pid);
    assert_eq!(running.newest("p2"), other);
    let directory = running.directory.clone();
    assert_eq!(running.end().unwrap(), Ending::Stopped);
    assert!(!second.exists() && !other.exists());
    assert!(all(&directory).is_empty());
}

#[test]
fn over_the_limit_the_job_fails_with_the_cause_and_the_last_lines() {
    let top = tempfile::tempdir().unwrap();
    // It lives long enough for the other to be seen.
    let script = "echo starting; echo 'out of luck' >&2; sleep 0.3; exit 7";
    let running = Running::begin(plan(&top, 2, &[("p1", script), ("p2", "sleep 60")]));
    let other = running.newest("p2");
    let deaths = || {
        let died = running.notice(|notice| matches!(notice, Programs::Died { .. }));
        matches!(died, Programs::Died { lines, .. } if lines == ["starting", "out of luck"])
    };
    assert!(deaths() && deaths() && deaths());
    let Ending::Failed(reason) = running.thread.join().unwrap().unwrap() else {
        panic!("the job did not fail");
    };
    assert!(
        reason.starts_with("p1 failed with exit status 7"),
        "{reason}"
    );
    assert!(reason.contains("its 2 restarts in 10m"), "{reason}");
    assert!(reason.ends_with("| starting\n  | out of luck"), "{reason}");
    assert!(!other.exists());
}

#[test]
fn a_program_that_could_not_even_begin_is_not_tried_again() {
    let top = tempfile::tempdir().unwrap();
    let running = Running::begin(plan(
        &top,
        9,
        &[("collector", "echo 'port 7 is taken'; exit 2")],
    ));
    let error = running.thread.join().unwrap().unwrap_err().to_string();
    assert_eq!(error, "collector could not start: port 7 is taken");
}

#[test]
fn a_missing_program_is_named_and_the_others_are_ended() {
    let top = tempfile::tempdir().unwrap();
    let mut plan = plan(&top, 9, &[("p1", "sleep 60"), ("p2", "")]);
    plan.members[1].program = "/nowhere/cutline-node".into();
    let directory = plan.directory.clone();
    let error = Running::begin(plan)
        .thread
        .join()
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("cannot start p2: /nowhere/cutline-node"),
        "{error}"
    );
    assert!(all(&directory).is_empty());
}

#[test]
fn an_incarnation_that_was_given_up_is_replaced_once_and_ended_although_stopped() {
    let top = tempfile::tempdir().unwrap();
    let running = Running::begin(plan(&top, 3, &[("p1", "sleep 60")]));
    let first = running.newest("p1");
    first.signal(Signal::SIGSTOP).unwrap();
    until("the stop", || first.condition() == Condition::Stopped);
    let replace = News::Replace {
        who: Who::named("p1"),
        pid: first.pid,
    };
    // Said twice, as by a collector that was itself started again.
    running.events.blocking_send(replace.clone()).unwrap();
    running.events.blocking_send(replace).unwrap();
    running.notice(|notice| matches!(notice, Programs::Restarted { .. }));
    let second = running.newest("p1");
    assert_ne!(first.pid, second.pid);
    assert_eq!(first.condition(), Condition::Stopped);
    assert_eq!(all(&running.directory).len(), 2);
    assert_eq!(running.end().unwrap(), Ending::Stopped);
    assert!(!first.exists() && !second.exists());
}

#[test]
fn a_replaced_incarnation_that_ends_is_told_and_not_started_again() {
    let top = tempfile::tempdir().unwrap();
    let running = Running::begin(plan(&top, 3, &[("p1", "sleep 60")]));
    let first = running.newest("p1");
    let replace = News::Replace {
        who: Who::named("p1"),
        pid: first.pid,
    };
    running.events.blocking_send(replace).unwrap();
    running.notice(|notice| matches!(notice, Programs::Restarted { .. }));
    first.signal(Signal::SIGKILL).unwrap();
    let ended = running.notice(|notice| matches!(notice, Programs::GivenUpEnded { .. }));
    assert!(
        ended.to_string().ends_with("was killed by SIGKILL"),
        "{ended}"
    );
    assert_eq!(all(&running.directory).len(), 1);
    running.end().unwrap();
}

#[test]
fn a_node_that_never_joins_is_replaced_when_it_has_had_its_time() {
    let top = tempfile::tempdir().unwrap();
    let running = Running::begin(plan(&top, 3, &[("p1", "sleep 60")]));
    let first = running.newest("p1");
    until("the replacement", || {
        running
            .events
            .blocking_send(News::Absent(Who::named("p1")))
            .unwrap();
        running
            .notices
            .try_iter()
            .any(|notice| matches!(notice, Programs::Restarted { .. }))
    });
    assert!(first.exists() && running.newest("p1") != first);
    running.end().unwrap();
}

#[test]
fn the_end_of_the_job_is_seen_from_its_programs_if_the_word_of_it_is_lost() {
    let top = tempfile::tempdir().unwrap();
    let failing = [
        ("collector", "echo 'the job has ended: no luck'; exit 1"),
        ("p1", "sleep 60"),
    ];
    let running = Running::begin(plan(&top, 3, &failing));
    let error = running.thread.join().unwrap().unwrap_err().to_string();
    assert_eq!(error, "the job cannot start: the job has ended: no luck");
    let top = tempfile::tempdir().unwrap();
    let ended = [("collector", "exit 0"), ("p1", "exit 0")];
    let ending = Running::begin(plan(&top, 3, &ended))
        .thread
        .join()
        .unwrap()
        .unwrap();
    assert_eq!(ending, Ending::Finished);
}

#[test]
fn the_logs_are_bounded_that_of_the_supervisor_itself_too() {
    let top = tempfile::tempdir().unwrap();
    let plan = plan(&top, 3, &[("p1", "sleep 60")]);
    plan.directory.create().unwrap();
    let long = plan.directory.supervisor_log();
    let file = std::fs::File::create(&long).unwrap();
    file.set_len(logs::LOG_BYTES_MAX).unwrap();
    let running = Running::begin(plan);
    until("the log is moved aside", || logs::length(&long) == 0);
    assert_eq!(running.end().unwrap(), Ending::Stopped);
}

#[test]
fn a_job_whose_directory_is_removed_ends() {
    let top = tempfile::tempdir().unwrap();
    let running = Running::begin(plan(&top, 3, &[("p1", "sleep 60")]));
    let process = running.newest("p1");
    std::fs::remove_dir_all(running.directory.root()).unwrap();
    let ending = running.thread.join().unwrap().unwrap();
    assert!(matches!(ending, Ending::Failed(reason) if reason.contains("has removed")));
    assert!(!process.exists());
}

#[test]
fn the_collectors_word_ends_the_job() {
    for (before, event, ending) in [
        (None, News::Finished, "Ok(Finished)"),
        (
            Some(News::Running),
            News::Failed("x".to_owned()),
            "Ok(Failed(\"x\"))",
        ),
        (None, News::Failed("x".to_owned()), "Err(Job(\"x\"))"),
    ] {
        let top = tempfile::tempdir().unwrap();
        let running = Running::begin(plan(&top, 3, &[("p1", "sleep 60")]));
        let process = running.newest("p1");
        for event in before.into_iter().chain([event]) {
            running.events.blocking_send(event).unwrap();
        }
        assert_eq!(format!("{:?}", running.thread.join().unwrap()), ending);
        assert!(!process.exists());
    }
}

#[test]
fn down_reaches_stopped_programs_and_those_that_do_not_listen() {
    let top = tempfile::tempdir().unwrap();
    let directory = JobDirectory::new(top.path().join("x.cutline"));
    directory.create().unwrap();
    // As a supervisor that was itself killed leaves them; `exec` so that the pid is sleep's, and
    // no child of the shell outlives the test. What is ignored stays ignored over an exec.
    let script = ["exec sleep 60", "trap '' TERM; echo deaf; exec sleep 60"];
    let mut children: Vec<_> = script
        .iter()
        .map(|script| {
            let mut command = std::process::Command::new("/bin/sh");
            command
                .args(["-c", script])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut word = [0; 5];
    io::Read::read_exact(children[1].stdout.as_mut().unwrap(), &mut word).unwrap();
    let mut processes = Vec::new();
    for (nth, child) in (1..).zip(&children) {
        let record = incarnations::record_path(&directory, &Who::named("p1"), child.id());
        processes.push(incarnations::write(&record, child.id(), nth).unwrap());
    }
    processes[0].signal(Signal::SIGSTOP).unwrap();
    until("the stop", || {
        processes[0].condition() == Condition::Stopped
    });
    let down = runtime().block_on(down(&directory, None)).unwrap();
    assert_eq!(down.supervisor, None);
    assert_eq!(down.others.ended, [processes[0].pid]);
    assert_eq!(down.others.killed, [processes[1].pid]);
    assert!(!directory.run().exists());
    for child in &mut children {
        child.wait().unwrap();
    }
}

#[test]
fn programs_that_end_of_themselves_together_are_each_started_again_once() {
    let top = tempfile::tempdir().unwrap();
    // Each ends well when it is started first, and stays from then on.
    let script = |name: &str| {
        let mark = top.path().join(name).display().to_string();
        format!("test -e {mark} && exec sleep 60; touch {mark}")
    };
    let (p1, p2) = (script("p1"), script("p2"));
    let scripts = [("p1", &*p1), ("p2", &*p2), ("p3", "exec sleep 60")];
    // One restart is enough for each: nobody ends again.
    let running = Running::begin(plan(&top, 1, &scripts));
    for _ in 0..2 {
        running.notice(|notice| matches!(notice, Programs::Restarted { .. }));
    }
    let pids = [running.newest("p1").pid, running.newest("p2").pid];
    assert_eq!(all(&running.directory).len(), 3, "{pids:?} and p3");
    assert_eq!(running.end().unwrap(), Ending::Stopped);
}
