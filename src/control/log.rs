//! Where notices, progress and errors are written: standard error, for people or for programs.

use std::fmt;
use std::io::{self, Write as _};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value, json};

use super::notice::Notice;
use super::table::{Colour, Tone};

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// A line of text.
    Human,
    /// A line of JSON.
    Json,
}

impl LogFormat {
    /// As it is given on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

/// What stands before a line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The time since the begin: somebody is watching.
    Elapsed,
    /// The time of day, in UTC: it is read afterwards.
    Wall,
}

/// Standard error.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    format: LogFormat,
    clock: Clock,
    colour: Colour,
    begin: Instant,
}

impl Log {
    /// A log that begins now.
    pub fn new(format: LogFormat, clock: Clock) -> Self {
        Self {
            format,
            clock,
            colour: colour(&io::stderr()),
            begin: Instant::now(),
        }
    }

    /// How it is written.
    pub const fn format(&self) -> LogFormat {
        self.format
    }

    /// Writes a notice; for people only if it is notable.
    pub fn notice(&self, notice: &Notice) {
        match self.format {
            LogFormat::Json => self.object(&serde_json::to_value(notice).unwrap_or_default()),
            LogFormat::Human if notice.is_notable() => {
                let tone = if notice.is_bad() {
                    Tone::Bad
                } else {
                    Tone::Plain
                };
                self.line(notice, tone);
            }
            LogFormat::Human => {}
        }
    }

    /// Writes a notice, for people in these words.
    pub fn notice_as(&self, notice: &Notice, words: &str) {
        match self.format {
            LogFormat::Json => self.notice(notice),
            LogFormat::Human => self.line(&words, Tone::Good),
        }
    }

    /// Writes a sentence about what is going on.
    pub fn say(&self, event: &str, sentence: &str) {
        match self.format {
            LogFormat::Json => self.object(&json!({ "event": event, "message": sentence })),
            LogFormat::Human => self.line(&sentence, Tone::Faint),
        }
    }

    fn line(&self, text: &dyn fmt::Display, tone: Tone) {
        let text = text.to_string();
        let time = match self.clock {
            Clock::Elapsed => {
                let elapsed = self.begin.elapsed();
                format!("{:>7}", format!("{:.2}s", elapsed.as_secs_f64()))
            }
            Clock::Wall => wall(SystemTime::now()),
        };
        let mut lines = text.lines();
        let first = tone.paint(lines.next().unwrap_or_default(), self.colour);
        let mut written = format!("{}  {first}\n", Tone::Faint.paint(&time, self.colour));
        for line in lines {
            written.push_str(&format!("{:width$}  {line}\n", "", width = time.len()));
        }
        write(&written);
    }

    fn object(&self, value: &Value) {
        let mut object = Map::new();
        object.insert("at".to_owned(), wall(SystemTime::now()).into());
        if let Value::Object(fields) = value {
            object.extend(fields.clone());
        }
        write(&format!("{}\n", Value::Object(object)));
    }

    /// Writes an error, the last word of a command that could not do what it should.
    pub fn error(&self, message: &str) {
        match self.format {
            LogFormat::Json => self.object(&json!({ "event": "error", "message": message })),
            LogFormat::Human => {
                let who = Tone::Bad.paint("cutline:", self.colour);
                write(&format!("{who} {message}\n"));
            }
        }
    }
}

/// What cannot be written to standard error cannot be reported either.
fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn wall(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Whether a stream may be written to in colour: only a terminal whose owner wants it.
pub fn colour(stream: &impl io::IsTerminal) -> Colour {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if stream.is_terminal() && !unwanted {
        Colour::On
    } else {
        Colour::Off
    }
}

/// A duration as it is told to people.
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
