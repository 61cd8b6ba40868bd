//! `cutline status`: how a job stands.

use std::fmt::Write as _;

use serde::Serialize;

use super::View;
use crate::control::table::{Cell, Colour, Table, Tone};

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusView {
    /// The job.
    pub job: String,
    /// Whether it runs: whether a collector answers.
    pub up: bool,
    /// `stopped`, or the collector's `starting`, `restoring`, `running`, `stopping` or
    /// `ended`.
    pub phase: String,
    /// The pid of `cutline up`, if there is one.
    pub supervisor: Option<u32>,
    /// The collector's term, such as `t2`; none where no collector answers, here and below.
    pub term: Option<String>,
    /// The generation, such as `g3`.
    pub generation: Option<String>,
    /// The snapshot it started from.
    pub restored: Option<String>,
    /// The newest complete snapshot of the current line, which a restore takes; none, if that is
    /// the initial state.
    pub newest: Option<String>,
    /// Snapshots that are open.
    pub open: Vec<String>,
    /// How many are complete.
    pub complete: u64,
    /// How many were aborted.
    pub aborted: u64,
    /// Failures since the last complete one.
    pub failures_in_row: u64,
    /// Every process.
    pub processes: Vec<ProcessState>,
}

/// How a process stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessState {
    /// Its name.
    pub process: String,
    /// `live`, `paused` or `lost`.
    pub state: &'static str,
    /// Its node's pid.
    pub pid: Option<u32>,
    /// Where it takes its inputs' streams.
    pub address: Option<String>,
    /// `nothing`, `prepared` or `running`.
    pub holding: String,
    /// The generation it holds.
    pub generation: Option<String>,
    /// Messages handled since the job began, without what restores took back.
    pub handled: u64,
    /// Messages sent since the job began, without what restores took back.
    pub sent: u64,
}

impl View for StatusView {
    fn table(&self, colour: Colour) -> String {
        let tone = match (self.up, self.phase.as_str()) {
            (true, "running") => Tone::Good,
            (true, _) => Tone::Plain,
            (false, _) => Tone::Bad,
        };
        let mut text = format!("{} {}", self.job, tone.paint(&self.phase, colour));
        if let (Some(generation), Some(restored)) = (&self.generation, &self.restored) {
            let _ = write!(text, ", generation {generation} from {restored}");
        }
        if let Some(pid) = self.supervisor {
            let _ = write!(text, ", supervisor pid {pid}");
        }
        let _ = write!(
            text,
            "\nsnapshots: {} complete (newest {}), {} aborted",
            self.complete,
            self.newest.as_deref().unwrap_or("none"),
            self.aborted,
        );
        if self.failures_in_row > 0 {
            let _ = write!(text, ", {} failures in a row", self.failures_in_row);
        }
        if !self.open.is_empty() {
            let _ = write!(text, ", open: {}", self.open.join(" "));
        }
        text.push('\n');
        if !self.processes.is_empty() {
            let _ = write!(text, "\n{}", self.processes(colour));
        }
        text
    }
}

impl StatusView {
    fn processes(&self, colour: Colour) -> String {
        let headings = [
            "process", "state", "pid", "holds", "handled", "sent", "address",
        ];
        let mut table = Table::new(headings);
        for row in &self.processes {
            let tone = if row.state == "live" {
                Tone::Good
            } else {
                Tone::Bad
            };
            let holds = match &row.generation {
                Some(generation) => format!("{generation} {}", row.holding),
                None => row.holding.clone(),
            };
            table.row(vec![
                Cell::text(&row.process),
                Cell::text(row.state).toned(tone),
                Cell::number(row.pid.map(|pid| pid.to_string()).unwrap_or_default()),
                Cell::text(holds),
                Cell::number(row.handled),
                Cell::number(row.sent),
                Cell::text(row.address.as_deref().unwrap_or_default()),
            ]);
        }
        table.render(colour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::view::Format;

    fn view() -> StatusView {
        let process = ProcessState {
            process: "alice".to_owned(),
            state: "live",
            pid: Some(4711),
            address: Some("127.0.0.1:5000".to_owned()),
            holding: "running".to_owned(),
            generation: Some("g3".to_owned()),
            handled: 12,
            sent: 13,
        };
        StatusView {
            job: "bank".to_owned(),
            up: true,
            phase: "running".to_owned(),
            supervisor: Some(4700),
            term: Some("t1".to_owned()),
            generation: Some("g3".to_owned()),
            restored: Some("s8".to_owned()),
            newest: Some("s9".to_owned()),
            open: vec!["s10".to_owned()],
            complete: 9,
            aborted: 1,
            failures_in_row: 0,
            processes: vec![process],
        }
    }

    #[test]
    fn a_running_job_is_shown_with_its_processes() {
        let text = "\
bank running, generation g3 from s8, supervisor pid 4700
snapshots: 9 complete (newest s9), 1 aborted, open: s10

PROCESS  STATE   PID  HOLDS       HANDLED  SENT  ADDRESS
alice    live   4711  g3 running       12    13  127.0.0.1:5000
";
        assert_eq!(view().render(Format::Table(Colour::Off)), text);
    }

    #[test]
    fn the_json_of_status_has_its_documented_shape() {
        let value = serde_json::to_value(view()).unwrap();
        let expected = serde_json::json!({
            "job": "bank", "up": true, "phase": "running", "supervisor": 4700, "term": "t1",
            "generation": "g3", "restored": "s8", "newest": "s9", "open": ["s10"],
            "complete": 9, "aborted": 1, "failures_in_row": 0,
            "processes": [{
                "process": "alice", "state": "live", "pid": 4711, "address": "127.0.0.1:5000",
                "holding": "running", "generation": "g3", "handled": 12, "sent": 13,
            }],
        });
        assert_eq!(value, expected);
    }
}
