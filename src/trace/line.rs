//! One event as one line of JSON, and back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::protocol::clock::Clock;
use crate::protocol::ids::{ChannelId, MessageNumber, ProcessId};
use crate::protocol::mode::Mode;
use crate::protocol::topology::Topology;
use crate::protocol::trace::{Event, Sent, What};

/// Why a line is no event of this job.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Not the JSON that is written here.
    #[error("it is no event: {0}")]
    Json(#[from] serde_json::Error),
    /// A process, a channel, an id or bytes that cannot be.
    #[error("{0}")]
    Unknown(String),
}

/// The names of a job's processes and channels, to read lines with.
#[derive(Debug)]
pub struct Names {
    topology: Arc<Topology>,
    processes: BTreeMap<String, ProcessId>,
    channels: BTreeMap<String, ChannelId>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    what: WhatLine,
    process: String,
    generation: String,
    at_us: u64,
    clock: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sends: Vec<SentLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum WhatLine {
    Start {
        restored: String,
    },
    Tick,
    Command {
        command: String,
    },
    Handle {
        channel: String,
        number: u64,
        message: String,
    },
    Record {
        snapshot: String,
        mode: Mode,
        state: String,
    },
    End {
        state: String,
    },
}

#[derive(Serialize, Deserialize)]
struct SentLine {
    channel: String,
    number: u64,
    checksum: String,
}

impl Names {
    /// The names in this topology.
    pub fn new(topology: Arc<Topology>) -> Self {
        let processes = topology.processes();
        let processes = processes.map(|process| (topology.name(process).to_owned(), process));
        let channels = topology.channels().iter();
        let channels = channels.map(|&channel| (topology.channel_name(channel), channel));
        Self {
            processes: processes.collect(),
            channels: channels.collect(),
            topology,
        }
    }

    /// The topology.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The line of an event that was written down at this time (microseconds since 1970),
    /// without its end.
    pub fn write(&self, event: &Event, at_us: u64) -> String {
        let topology = &self.topology;
        let known = topology.processes();
        let known = known.map(|id| (topology.name(id).to_owned(), event.clock.of(id)));
        let sends = event.sends.iter().map(|sent| SentLine {
            channel: topology.channel_name(sent.channel),
            number: sent.number.get(),
            checksum: checksum_text(sent.checksum),
        });
        let line = Line {
            what: self.what_line(&event.what),
            process: topology.name(event.process).to_owned(),
            generation: event.generation.to_string(),
            at_us,
            clock: known.filter(|(_, count)| *count > 0).collect(),
            sends: sends.collect(),
        };
        serde_json::to_string(&line).expect("no map keys but strings, no floats")
    }

    /// Reads a line back: the event, and when it was written down.
    ///
    /// # Errors
    /// If it is no event of this job.
    pub fn read(&self, line: &str) -> Result<(Event, u64), LineError> {
        let line: Line = serde_json::from_str(line)?;
        let mut counts = vec![0; self.topology.processes().len()];
        for (name, count) in &line.clock {
            counts[self.process(name)?.index()] = *count;
        }
        let clock = Clock::of_counts(counts).expect("a topology has a process");
        let sends = line.sends.iter().map(|sent| {
            Ok(Sent {
                channel: self.channel(&sent.channel)?,
                number: MessageNumber::new(sent.number),
                checksum: checksum_of(&sent.checksum)?,
            })
        });
        let event = Event {
            process: self.process(&line.process)?,
            generation: id(&line.generation)?,
            clock: Arc::new(clock),
            sends: sends.collect::<Result<_, LineError>>()?,
            what: self.what_of(line.what)?,
        };
        Ok((event, line.at_us))
    }

    fn what_line(&self, what: &What) -> WhatLine {
        match what {
            What::Start { restored } => WhatLine::Start {
                restored: restored.to_string(),
            },
            What::Tick => WhatLine::Tick,
            What::Command(command) => WhatLine::Command {
                command: command.clone(),
            },
            What::Handle {
                channel,
                number,
                message,
            } => WhatLine::Handle {
                channel: self.topology.channel_name(*channel),
                number: number.get(),
                message: hexadecimal(message),
            },
            What::Record {
                snapshot,
                mode,
                state,
            } => WhatLine::Record {
                snapshot: snapshot.to_string(),
                mode: *mode,
                state: checksum_text(*state),
            },
            What::End { state } => WhatLine::End {
                state: checksum_text(*state),
            },
        }
    }

    fn what_of(&self, line: WhatLine) -> Result<What, LineError> {
        Ok(match line {
            WhatLine::Start { restored } => What::Start {
                restored: id(&restored)?,
            },
            WhatLine::Tick => What::Tick,
            WhatLine::Command { command } => What::Command(command),
            WhatLine::Handle {
                channel,
                number,
                message,
            } => What::Handle {
                channel: self.channel(&channel)?,
                number: MessageNumber::new(number),
                message: bytes_of(&message)?,
            },
            WhatLine::Record {
                snapshot,
                mode,
                state,
            } => What::Record {
                snapshot: id(&snapshot)?,
                mode,
                state: checksum_of(&state)?,
            },
            WhatLine::End { state } => What::End {
                state: checksum_of(&state)?,
            },
        })
    }

    fn process(&self, name: &str) -> Result<ProcessId, LineError> {
        let unknown = || LineError::Unknown(format!("the job has no process '{name}'"));
        self.processes.get(name).copied().ok_or_else(unknown)
    }

    fn channel(&self, name: &str) -> Result<ChannelId, LineError> {
        let unknown = || LineError::Unknown(format!("the job has no channel {name}"));
        self.channels.get(name).copied().ok_or_else(unknown)
    }
}

fn id<T: std::str::FromStr>(text: &str) -> Result<T, LineError>
where
    T::Err: std::fmt::Display,
{
    text.parse()
        .map_err(|error: T::Err| LineError::Unknown(error.to_string()))
}

fn checksum_text(checksum: u32) -> String {
    format!("{checksum:08x}")
}

fn checksum_of(text: &str) -> Result<u32, LineError> {
    let unknown = |_| LineError::Unknown(format!("'{text}' is no checksum"));
    u32::from_str_radix(text, 16).map_err(unknown)
}

/// Two digits for a byte: readable, and as easy to change by hand.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a text takes everything");
    }
    text
}

fn bytes_of(text: &str) -> Result<Bytes, LineError> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes = pairs.iter().map(|&[high, low]| {
        let byte = digit(high)? << 4 | digit(low)?;
        u8::try_from(byte).ok()
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    match bytes.filter(|_| rest.is_empty()) {
        Some(bytes) => Ok(bytes.into()),
        None => Err(LineError::Unknown(
            "the message is not written in pairs of hexadecimal digits".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{Generation, SnapshotId};

    fn names() -> Names {
        let names = vec!["alice".to_owned(), "bob".to_owned()];
        let channels = ["p1→p2", "p2→p1"].map(|text| text.parse().unwrap());
        Names::new(Arc::new(Topology::new(names, channels).unwrap()))
    }

    fn event(what: What) -> Event {
        Event {
            process: ProcessId::new(1),
            generation: Generation::new(3),
            clock: Arc::new(Clock::of_counts(vec![0, 5]).unwrap()),
            what,
            sends: vec![Sent {
                channel: "p2→p1".parse().unwrap(),
                number: MessageNumber::new(4),
                checksum: 0xbeef,
            }],
        }
    }

    #[test]
    fn every_event_reads_back_as_it_was_written() {
        let handle = What::Handle {
            channel: "p1→p2".parse().unwrap(),
            number: MessageNumber::new(9),
            message: Bytes::from_static(b"\x00\xffz"),
        };
        let record = What::Record {
            snapshot: SnapshotId::new(2),
            mode: Mode::Classic,
            state: 7,
        };
        let restored = SnapshotId::default();
        let command = What::Command("say \"no\"\n".to_owned());
        let all = [
            What::Start { restored },
            What::Tick,
            command,
            handle,
            record,
            What::End { state: u32::MAX },
        ];
        for what in all {
            let (names, event) = (names(), event(what));
            let line = names.write(&event, 17);
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(names.read(&line).unwrap(), (event, 17));
        }
    }

    #[test]
    fn a_line_has_the_documented_shape() {
        let what = What::Handle {
            channel: "p1→p2".parse().unwrap(),
            number: MessageNumber::new(9),
            message: Bytes::from_static(b"\x03\x00"),
        };
        let page = include_str!("../../docs/trace.md");
        let shown = page
            .lines()
            .find(|line| line.starts_with("{\"event\":\"handle\""));
        assert_eq!(Some(names().write(&event(what), 17).as_str()), shown);
    }

    #[test]
    fn what_is_no_event_of_the_job_is_named() {
        let line = names().write(&event(What::Tick), 1);
        let refusal = |from: &str, to: &str| {
            let changed = line.replace(from, to);
            assert_ne!(changed, line);
            names().read(&changed).unwrap_err().to_string()
        };
        assert!(refusal("bob→alice", "bob→carol").contains("no channel bob→carol"));
        assert!(refusal("\"process\":\"bob\"", "\"process\":\"eve\"").contains("'eve'"));
        assert!(refusal("0000beef", "000xbeef").contains("no checksum"));
        assert!(refusal("\"g3\"", "\"3\"").contains("a generation such as g7"));
        assert!(refusal("\"event\":\"tick\"", "\"event\":\"tock\"").contains("no event"));
        assert!(bytes_of("0").is_err() && bytes_of("0g").is_err());
    }
}
