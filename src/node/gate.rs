//! The gate of a node whose job is released deed by deed: every send, arrival, taking and tick,
//! and time itself, wait until whoever runs the job says so.
//!
//! Whoever does listens on a socket in the job's directory. The node says its name there, and
//! after every change what is possible; it is told what to do, and answers when it is done. Both
//! speak in lines of text:
//!
//! ```text
//! node      process p1
//! node      can send p1→p2, take p2→p1, tick p1
//! runner    send p1→p2
//! node      done
//! node      can take p2→p1, tick p1
//! runner    open                          from now on nothing waits
//! ```
//!
//! Channels are named as in `run/hold`: by the numbers of their ends. A node of any other job has
//! no gate, and asks nobody.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::protocol::frame::Frame;
use crate::protocol::ids::{ChannelId, Generation};

/// Something that waits until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Deed {
    /// The next frame goes onto the wire.
    Send(ChannelId),
    /// The next frame that has come goes into the inbox.
    Arrive(ChannelId),
    /// The message or marker at the head of an inbox is handled.
    Take(ChannelId),
    /// The application starts new work.
    Tick,
    /// So many milliseconds pass.
    Time(u64),
    /// Nothing waits any more.
    Open,
}

impl Deed {
    /// As it is written on the socket.
    pub fn line(self) -> String {
        match self {
            Self::Send(channel) => format!("send {channel}"),
            Self::Arrive(channel) => format!("arrive {channel}"),
            Self::Take(channel) => format!("take {channel}"),
            Self::Tick => "tick".to_owned(),
            Self::Time(time_ms) => format!("time {time_ms}"),
            Self::Open => "open".to_owned(),
        }
    }

    /// What a line says.
    pub fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match word {
            "send" => rest.parse().ok().map(Self::Send),
            "arrive" => rest.parse().ok().map(Self::Arrive),
            "take" => rest.parse().ok().map(Self::Take),
            "time" => rest.parse().ok().map(Self::Time),
            "tick" if rest.is_empty() => Some(Self::Tick),
            "open" if rest.is_empty() => Some(Self::Open),
            _ => None,
        }
    }
}

/// Where whoever releases the deeds of a job listens.
pub fn gate_path(dir: &Path) -> PathBuf {
    dir.join("run/gate")
}

/// A node's end.
pub(super) struct Gate {
    lines: Lines<BufReader<OwnedReadHalf>>,
    words: OwnedWriteHalf,
    /// Frames that have come and have not been released; a channel has at most a window of them.
    held: BTreeMap<ChannelId, VecDeque<(Generation, Frame)>>,
    /// What was said to be possible last.
    said: String,
    now_ms: u64,
}

impl Gate {
    /// The gate of the job in this directory, if it has one.
    pub(super) async fn find(dir: Option<&Path>, process: &str) -> io::Result<Option<Self>> {
        let Some(path) = dir.map(gate_path).filter(|path| path.exists()) else {
            return Ok(None);
        };
        let (from, mut words) = UnixStream::connect(path).await?.into_split();
        let name = format!("process {process}\n");
        words.write_all(name.as_bytes()).await?;
        Ok(Some(Self {
            lines: BufReader::new(from).lines(),
            words,
            held: BTreeMap::new(),
            said: String::new(),
            now_ms: 0,
        }))
    }

    /// A frame has come: it waits.
    pub(super) fn hold(&mut self, channel: ChannelId, generation: Generation, frame: Frame) {
        let held = self.held.entry(channel).or_default();
        held.push_back((generation, frame));
    }

    /// The next frame of a channel that waits.
    pub(super) fn arrive(&mut self, channel: ChannelId) -> Option<(Generation, Frame)> {
        self.held.get_mut(&channel)?.pop_front()
    }

    /// The channels of which a frame waits.
    pub(super) fn arrived(&self) -> impl Iterator<Item = ChannelId> + '_ {
        let held = self.held.iter().filter(|(_, frames)| !frames.is_empty());
        held.map(|(&channel, _)| channel)
    }

    /// Everything that waits, for it no longer has to.
    pub(super) fn empty(&mut self) -> Vec<(ChannelId, Generation, Frame)> {
        let held = std::mem::take(&mut self.held).into_iter();
        let all = held.flat_map(|(channel, frames)| {
            let frames = frames.into_iter();
            frames.map(move |(generation, frame)| (channel, generation, frame))
        });
        all.collect()
    }

    /// Time passes; answers how late it is now.
    pub(super) fn pass(&mut self, time_ms: u64) -> u64 {
        self.now_ms = self.now_ms.saturating_add(time_ms);
        self.now_ms
    }

    /// The next deed that is released; an error if nobody releases anything any more.
    pub(super) async fn released(&mut self) -> io::Result<Deed> {
        loop {
            let line = self.lines.next_line().await?;
            let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
            if let Some(deed) = Deed::read(&line) {
                return Ok(deed);
            }
            tracing::warn!(line, "no deed to release");
        }
    }

    /// Says what is possible, if that is not what was said last; after a deed, that it is done.
    pub(super) async fn say(&mut self, can: &[Deed], is_done: bool) -> io::Result<()> {
        let mut text = String::new();
        let can: Vec<_> = can.iter().map(|deed| deed.line()).collect();
        let can = format!("can {}\n", can.join(", "));
        if can != self.said {
            text.push_str(&can);
            self.said = can;
        }
        if is_done {
            text.push_str("done\n");
        }
        self.words.write_all(text.as_bytes()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deed_reads_back_from_its_line() {
        let channel: ChannelId = "p1→p2#2".parse().unwrap();
        let deeds = [
            Deed::Send(channel),
            Deed::Arrive(channel),
            Deed::Take(channel),
            Deed::Tick,
            Deed::Time(5),
            Deed::Open,
        ];
        for deed in deeds {
            assert_eq!(Deed::read(&deed.line()), Some(deed));
        }
        for line in ["", "send", "send p0", "tick p1", "time", "dance"] {
            assert_eq!(Deed::read(line), None, "{line}");
        }
    }
}
