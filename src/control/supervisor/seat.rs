//! One program's place in a supervisor, and the start of what takes it.

use std::io;
use std::process::Stdio;
use std::time::Instant;

use tokio::process::{Child, Command};

use super::plan::{Member, StartError};
use crate::control::directory::JobDirectory;
use crate::control::incarnations::{self, OsProcess};
use crate::control::logs;
use crate::control::notice::Programs;
use crate::job::UsedRestarts;
use crate::program::BY_HAND;

/// One program's place.
pub(super) struct Seat<'a> {
    pub(super) member: &'a Member,
    pub(super) restarts: UsedRestarts,
    pub(super) current: Option<Current>,
    /// When to start it again.
    pub(super) due: Option<Instant>,
    /// Its last incarnation ended with success, as programs do when the job has ended.
    pub(super) has_ended: bool,
    /// What is told of that when it turns out that the job has not.
    pub(super) untold: Option<Programs>,
}

/// The incarnation that counts; others of the same program have been given up.
pub(super) struct Current {
    pub(super) process: OsProcess,
    /// When it was started.
    pub(super) since: Instant,
    /// Where its log begins in the file.
    pub(super) log_from: u64,
}

impl<'a> Seat<'a> {
    pub(super) fn of(member: &'a Member) -> Self {
        Self {
            member,
            restarts: UsedRestarts::default(),
            current: None,
            due: None,
            has_ended: false,
            untold: None,
        }
    }

    pub(super) fn taken_by(&mut self, current: Current) {
        self.current = Some(current);
        self.due = None;
        self.has_ended = false;
    }
}

/// Starts a program, the `nth` of all, and writes it down.
pub(super) fn spawn(
    directory: &JobDirectory,
    member: &Member,
    nth: u64,
) -> Result<(Child, Current), StartError> {
    let spawn_error = |source: io::Error| StartError::Spawn {
        who: member.who.clone(),
        program: member.program.clone(),
        source,
    };
    let path = directory.log(&member.who);
    let log = logs::open(&path).map_err(spawn_error)?;
    let log_from = logs::length(&path);
    let mut command = Command::new(&member.program);
    for variable in BY_HAND {
        command.env_remove(variable);
    }
    let child = command
        .args(&member.arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(spawn_error)?)
        .stderr(log)
        // Ctrl-C on a terminal is for the supervisor, which ends its children in its own way.
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let child = child.map_err(spawn_error)?;
    let pid = child.id().expect("nobody has waited for it");
    let record = incarnations::record_path(directory, &member.who, pid);
    let process = incarnations::write(&record, pid, nth).map_err(spawn_error)?;
    let current = Current {
        process,
        since: Instant::now(),
        log_from,
    };
    Ok((child, current))
}
