//! Whether the numbers of a job make sense: durations, bounds, and what surrounds them.

use std::time::Duration;

use super::check::Check;
use super::parts::Parts;
use super::value::unfit;
use crate::protocol::frame::LENGTH_BYTES;

/// The longest message that may be allowed: a gRPC message has at most 4 MiB, and a message goes
/// in one, with a few dozen bytes around it.
pub const MESSAGE_BYTES_CEILING: u64 = 4 * 1024 * 1024 - 1024;

/// What any limit may be. Credits are limits added to what a channel has carried since its
/// generation began: this is more than any host holds, and far enough from 2^64 for ever.
const LIMIT_CEILING: u64 = 1 << 48;

/// Snapshots that may be allowed to be open at once: nodes remember each of them.
const OPEN_CEILING: u64 = 64;

/// Less silence than this would make a loss of every pause that an operating system makes.
const SILENCE_MIN: Duration = Duration::from_millis(100);

impl Check<'_> {
    pub(super) fn numbers(&self) {
        self.durations();
        self.snapshots();
        self.surroundings();
        self.limits();
    }

    fn snapshots(&self) {
        let snapshots = &self.parts.snapshots;
        if snapshots.timeout.is_zero() {
            let problem = "snapshots.timeout is zero: every snapshot would be aborted at once";
            self.refuse(
                "snapshots.timeout",
                problem,
                "give a duration such as \"30s\"",
            );
        }
        if snapshots.open_max == 0 {
            let problem = "snapshots.open_max is 0: no snapshot could ever begin";
            self.refuse("snapshots.open_max", problem, "give at least 1");
        }
        if snapshots.open_max > OPEN_CEILING {
            let problem = format!("snapshots.open_max is over {OPEN_CEILING}");
            self.refuse(
                "snapshots.open_max",
                problem,
                "give less: nodes remember each of them",
            );
        }
    }

    /// What is read from a file is so already; what is put together in code may not be.
    fn durations(&self) {
        let Parts {
            snapshots,
            restarts,
            silence,
            delay,
            ..
        } = self.parts;
        for (field, duration) in [
            ("snapshots.interval", snapshots.interval),
            ("snapshots.pause", snapshots.pause),
            ("snapshots.timeout", snapshots.timeout),
            (
                "snapshots.alignment_timeout",
                snapshots.alignment_timeout.unwrap_or_default(),
            ),
            ("restarts.window", restarts.window),
            ("restarts.backoff", restarts.backoff),
            ("silence", *silence),
            ("delay", *delay),
        ] {
            if let Some(problem) = unfit(duration) {
                self.refuse(
                    field,
                    format!("{field} is {problem}"),
                    "give whole milliseconds",
                );
            }
        }
    }

    fn surroundings(&self) {
        let Parts {
            store,
            restarts,
            silence,
            directory,
            ..
        } = self.parts;
        if store.retain == 0 {
            let problem = "store.retain is 0: there would be nothing to restore";
            self.refuse("store.retain", problem, "give at least 1");
        }
        if let Some(url) = &store.url {
            let problem = match url.scheme() {
                "file" if url.to_file_path().is_ok() => None,
                "file" => Some("is no path on this host"),
                "memory" => Some("is no store: processes do not share memory"),
                _ => Some("is no store that this program can open"),
            };
            if let Some(problem) = problem {
                let problem = format!("store.url {url} {problem}");
                self.refuse("store.url", problem, "use a directory, or file:///…");
            }
        }
        if restarts.window.is_zero() && restarts.max > 0 {
            let problem = "restarts.window is zero: restarts would never be counted";
            self.refuse(
                "restarts.window",
                problem,
                "give a duration such as \"60s\"",
            );
        }
        if *silence < SILENCE_MIN {
            let problem = format!("silence is under {}ms", SILENCE_MIN.as_millis());
            let remedy = "give more, such as \"10s\": a kill shows at once all the same";
            self.refuse("silence", problem, remedy);
        }
        if !directory.is_absolute() || directory.to_str().is_none() {
            let problem = "the job's directory is no absolute path in UTF-8";
            self.refuse("directory", problem, "give another");
        }
    }

    fn limits(&self) {
        let limits = &self.parts.limits;
        for (field, value) in [
            ("limits.window_messages", limits.window_messages),
            ("limits.message_bytes_max", limits.message_bytes_max),
            ("limits.outbox_bytes", limits.outbox_bytes),
            ("limits.recording_bytes_max", limits.recording_bytes_max),
        ] {
            if value == 0 {
                self.refuse(
                    field,
                    format!("{field} is 0: nothing could pass"),
                    "give at least 1",
                );
            }
        }
        for (field, value) in [
            ("limits.window_messages", limits.window_messages),
            ("limits.window_bytes", limits.window_bytes),
            ("limits.outbox_bytes", limits.outbox_bytes),
            ("limits.outbox_bytes_max", limits.outbox_bytes_max),
            ("limits.recording_bytes_max", limits.recording_bytes_max),
        ] {
            if value > LIMIT_CEILING {
                let problem = format!("{field} = {value} is over 2^48, as good as no limit");
                self.refuse(field, problem, format!("give at most {LIMIT_CEILING}"));
            }
        }
        if limits.outbox_bytes > limits.outbox_bytes_max {
            let problem = "limits.outbox_bytes is over limits.outbox_bytes_max: a node would end \
                           before it pauses";
            self.refuse("limits.outbox_bytes", problem, "raise outbox_bytes_max");
        }
        let message = limits.message_bytes_max;
        if message > MESSAGE_BYTES_CEILING {
            let problem = format!("limits.message_bytes_max = {message} does not fit into 4 MiB");
            let remedy = format!("give at most {MESSAGE_BYTES_CEILING}");
            self.refuse("limits.message_bytes_max", problem, remedy);
            return;
        }
        let needed = message.saturating_add(LENGTH_BYTES as u64);
        if needed > limits.window_bytes {
            let window = limits.window_bytes;
            let problem = format!(
                "limits.window_bytes = {window} is less than a message of {message} bytes and \
                 its length take: it could never be sent"
            );
            let field = ["limits.window_bytes", "limits.message_bytes_max"]
                .into_iter()
                .find(|field| self.places.has(field));
            let remedy =
                format!("give window_bytes = {needed} or more, or a lower message_bytes_max");
            self.refuse(field.unwrap_or("limits"), problem, remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::job::refused::refused;
    use crate::job::tests::{GOOD, parse};

    #[test]
    fn limits_that_sums_could_overflow_are_refused_with_the_remedy() {
        let limits = [
            "window_messages",
            "window_bytes",
            "outbox_bytes_max",
            "recording_bytes_max",
        ];
        let with = |limit: &str, value: u64| format!("{GOOD}[limits]\n{limit} = {value}\n");
        for limit in limits {
            let remedy = "give at most 281474976710656";
            refused(&with(limit, u64::MAX), 7, &[limit, "over 2^48", remedy]);
            refused(
                &with(limit, (1 << 48) + 1),
                7,
                &[limit, "over 2^48", remedy],
            );
            parse(&with(limit, 1 << 48)).expect(limit);
        }
    }
}
