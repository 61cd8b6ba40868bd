//! The engine `gated`: real nodes, whose every deed is released by a line of a schedule, or by
//! somebody who is asked.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Write as _;

use tokio::sync::mpsc;

use super::Engine;
use crate::control::gated::Gates;
use crate::node::gate::Deed;
use crate::protocol::Topology;

/// Lines that have been read and not done; whoever types is never so far ahead.
const LINES_MAX: usize = 16;

/// Where the next line comes from.
pub enum Schedule {
    /// A file, with the numbers of its lines.
    File(VecDeque<(u32, String)>),
    /// Somebody who is told what is possible; the list last shown.
    Asked(mpsc::Receiver<String>, Vec<(String, Deed)>),
}

/// What a line of a schedule says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    /// The scenario goes on, up to the next step that does something.
    Step,
    /// A process does something.
    Deed(String, Deed),
}

impl Schedule {
    /// The lines of a file.
    #[must_use]
    pub fn of_file(text: &str) -> Self {
        let lines = (1..).zip(text.lines().map(|line| {
            let said = line.split_once(" #").map_or(line, |(said, _)| said);
            said.trim().to_owned()
        }));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        Self::File(lines.collect())
    }

    /// Asks on standard input.
    #[must_use]
    pub fn asked() -> Self {
        let (send, lines) = mpsc::channel(LINES_MAX);
        // It waits for the next line until the program ends.
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if send.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self::Asked(lines, Vec::new())
    }

    /// Everything in it that makes no sense for a job.
    ///
    /// # Errors
    /// With the first such line.
    pub fn check(&self, topology: &Topology) -> Result<(), String> {
        let Self::File(lines) = self else {
            return Ok(());
        };
        for (number, line) in lines {
            read(line, topology).map_err(|problem| format!("line {number}: {problem}"))?;
        }
        Ok(())
    }

    /// The next line, and what to call it; or what is wrong with what was picked.
    async fn next(
        &mut self,
        gates: &Gates,
        topology: &Topology,
    ) -> Option<(String, Result<String, String>)> {
        match self {
            Self::File(lines) => {
                let (number, line) = lines.pop_front()?;
                Some((format!("line {number} of the schedule: {line}"), Ok(line)))
            }
            Self::Asked(lines, shown) => loop {
                *shown = gates.possible();
                let mut text = String::from("0 step\n");
                for (number, (process, deed)) in (1..).zip(shown.iter()) {
                    let deed = named(process, *deed, topology);
                    let _ = writeln!(text, "{number} {deed}");
                }
                let mut out = std::io::stdout().lock();
                // Who does not read is not asked any more.
                out.write_all(text.as_bytes())
                    .and_then(|()| out.flush())
                    .ok()?;
                drop(out);
                let line = lines.recv().await?.trim().to_owned();
                // An empty line only asks what is possible by now.
                if !line.is_empty() {
                    return Some((format!("'{line}'"), picked(line, shown, topology)));
                }
            },
        }
    }

    pub(super) const fn is_asked(&self) -> bool {
        matches!(self, Self::Asked(..))
    }
}

/// The line that somebody has picked, by its number or by itself.
fn picked(line: String, shown: &[(String, Deed)], topology: &Topology) -> Result<String, String> {
    match line.parse::<usize>() {
        Err(_) => Ok(line),
        Ok(0) => Ok("step".to_owned()),
        Ok(number) => match shown.get(number - 1) {
            Some((process, deed)) => Ok(named(process, *deed, topology)),
            None => Err(format!("the list has no number {number}")),
        },
    }
}

/// A deed as people write it.
fn named(process: &str, deed: Deed, topology: &Topology) -> String {
    match deed {
        Deed::Send(channel) => format!("send {}", topology.channel_name(channel)),
        Deed::Arrive(channel) => format!("arrive {}", topology.channel_name(channel)),
        Deed::Take(channel) => format!("take {}", topology.channel_name(channel)),
        Deed::Tick => format!("tick {process}"),
        Deed::Time(time_ms) => format!("time {process} {time_ms}ms"),
        Deed::Open => "open".to_owned(),
    }
}

/// What a line says, of this job.
fn read(line: &str, topology: &Topology) -> Result<Line, String> {
    const REMEDY: &str = "write step, send P→Q, arrive P→Q, take P→Q, tick P or time P 5ms";
    let words: Vec<_> = line.split_whitespace().collect();
    let channel = |name: &str| {
        let known = topology.channel(name);
        known.ok_or_else(|| format!("there is no channel '{name}'"))
    };
    let process = |name: &str| {
        let known = topology.process(name).map(|_| name.to_owned());
        known.ok_or_else(|| format!("there is no process '{name}'"))
    };
    let name = |process| topology.name(process).to_owned();
    match words[..] {
        ["step"] => Ok(Line::Step),
        ["send", on] => channel(on).map(|on| Line::Deed(name(on.from), Deed::Send(on))),
        ["arrive", on] => channel(on).map(|on| Line::Deed(name(on.to), Deed::Arrive(on))),
        ["take", on] => channel(on).map(|on| Line::Deed(name(on.to), Deed::Take(on))),
        ["tick", at] => Ok(Line::Deed(process(at)?, Deed::Tick)),
        ["time", at, time] => {
            let time = humantime::parse_duration(time).map_err(|error| error.to_string())?;
            let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            Ok(Line::Deed(process(at)?, Deed::Time(time_ms)))
        }
        _ => Err(format!("'{line}' is no line of a schedule: {REMEDY}")),
    }
}

impl Engine<'_> {
    /// Line by line; then nothing waits any more, and the scenario goes on to its end.
    pub(super) async fn scheduled(&self, gates: &Gates, schedule: &mut Schedule) {
        while self.observer.seen().first_run.is_none() {
            self.observer.more().await;
        }
        let topology = self.job.topology();
        let mut steps = self.scenario.steps.as_slice();
        while let Some((what, line)) = schedule.next(gates, topology).await {
            let done = match line.and_then(|line| read(&line, topology)) {
                Err(problem) => Err(problem),
                Ok(Line::Step) => {
                    let deed = steps.iter().position(|scheduled| scheduled.step.is_deed());
                    let until = deed.map_or(steps.len(), |deed| deed + 1);
                    let (now, later) = steps.split_at(until);
                    steps = later;
                    if !self.in_turn(now).await {
                        return;
                    }
                    Ok(())
                }
                Ok(Line::Deed(process, deed)) => gates.release(&process, deed).await,
            };
            match done {
                Ok(()) => {}
                Err(problem) if schedule.is_asked() => self.log.say("refused", &problem),
                Err(problem) => {
                    let can = gates.possible().into_iter();
                    let can = can.map(|(process, deed)| named(&process, deed, topology));
                    let can = can.collect::<Vec<_>>().join(", ");
                    return self.fail(format!("{what}: {problem}; possible are: {can}"));
                }
            }
        }
        gates.open();
        self.in_turn(steps).await;
    }

    /// Steps one after the other. Answers whether all were done.
    async fn in_turn(&self, steps: &[crate::scenario::Scheduled]) -> bool {
        for scheduled in steps {
            if scheduled.step.is_deed() {
                self.last_deed.set(std::time::Instant::now());
            }
            if !self.chain(&[scheduled]).await {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{ChannelId, ProcessId};

    #[test]
    fn a_schedule_is_read_line_by_line_and_refused_with_the_line() {
        let ends = [ProcessId::new(0), ProcessId::new(1)];
        let channel = ChannelId::new(ends[0], ends[1]);
        let names = vec!["a".to_owned(), "b".to_owned()];
        let topology = Topology::new(names, [channel]).unwrap();
        let read = |line: &str| read(line, &topology);
        let deed = |process: &str, deed| Ok(Line::Deed(process.to_owned(), deed));
        assert_eq!(read("step"), Ok(Line::Step));
        assert_eq!(read("send a→b"), deed("a", Deed::Send(channel)));
        assert_eq!(read("arrive a->b"), deed("b", Deed::Arrive(channel)));
        assert_eq!(read("take a→b"), deed("b", Deed::Take(channel)));
        assert_eq!(read("tick b"), deed("b", Deed::Tick));
        assert_eq!(read("time a 5ms"), deed("a", Deed::Time(5)));
        for (line, word) in [
            ("send b→a", "no channel 'b→a'"),
            ("tick c", "no process 'c'"),
            ("dance", "no line of a schedule"),
        ] {
            assert!(read(line).unwrap_err().contains(word), "{line}");
        }
        let schedule = Schedule::of_file("# first\n\nstep\ntick c # never\n");
        let refused = schedule.check(&topology).unwrap_err();
        assert_eq!(refused, "line 4: there is no process 'c'");
    }
}
