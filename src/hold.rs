//! Stopping a program at a named point, so that a scenario can kill it exactly there.
//!
//! In the same way a scenario orders the sender of a channel to drop the channel's stream: it
//! writes the channel into `run/break/<who>`, and the node takes the order away when it has.
//!
//! A scenario writes the name of a point into `run/hold/<who>` in the job's directory. When the
//! program gets to that point it says so in `run/held/<who>`, takes the order away and stops
//! itself with SIGSTOP; it does not go on, whatever wakes it. Where nobody ordered anything a
//! point costs one look at the file system.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::sys::signal::{Signal, raise};

use crate::name::encode_name;
use crate::protocol::ids::ChannelId;

/// A place in a program's life that a kill must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Node: the local state has been taken.
    Recorded,
    /// Node: the part is being written.
    Uploading,
    /// Node: the part is on disk, and the collector has not been told.
    Stored,
    /// Node: a `Prepare` has come, and its part is not loaded.
    Prepared,
    /// Node: the part is loaded, and the collector has been told so.
    Ready,
    /// Collector: all parts are in, and the complete manifest has not been created.
    PartsIn,
    /// Collector: the complete manifest is created, and nobody has been told.
    Manifest,
    /// Collector: a generation's record is created, and nobody has been told to prepare.
    Generation,
    /// Collector: the first of several nodes has been told that a snapshot has ended.
    Notice,
}

impl Point {
    /// Every point, the nodes' first.
    pub const ALL: [Self; 9] = [
        Self::Recorded,
        Self::Uploading,
        Self::Stored,
        Self::Prepared,
        Self::Ready,
        Self::PartsIn,
        Self::Manifest,
        Self::Generation,
        Self::Notice,
    ];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Uploading => "uploading",
            Self::Stored => "stored",
            Self::Prepared => "prepared",
            Self::Ready => "ready",
            Self::PartsIn => "parts-in",
            Self::Manifest => "manifest",
            Self::Generation => "generation",
            Self::Notice => "notice",
        }
    }

    /// Whether it is the collector that comes by here; else it is a node.
    pub const fn is_of_collector(self) -> bool {
        matches!(
            self,
            Self::PartsIn | Self::Manifest | Self::Generation | Self::Notice
        )
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no [`Point`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no point to stop at, such as recorded or manifest")]
pub struct UnknownPoint(String);

impl FromStr for Point {
    type Err = UnknownPoint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|point| point.name() == text)
            .ok_or_else(|| UnknownPoint(text.to_owned()))
    }
}

/// Where one program looks for orders to stop.
#[derive(Clone, Debug)]
pub struct Hold {
    files: Option<Files>,
}

#[derive(Clone, Debug)]
struct Files {
    order: PathBuf,
    held: PathBuf,
    broken: PathBuf,
}

impl Hold {
    /// For the program called `who`, which is a process's name or `collector`, of the job in
    /// `dir`. Without a directory nothing ever stops.
    pub fn new(dir: Option<PathBuf>, who: &str) -> Self {
        let files = dir.map(|dir| Files {
            order: order_path(&dir, who),
            held: held_path(&dir, who),
            broken: break_path(&dir, who),
        });
        Self { files }
    }

    /// A channel whose stream is to be dropped, if that was ordered.
    pub fn to_break(&self) -> Option<ChannelId> {
        let order = fs::read_to_string(&self.files.as_ref()?.broken).ok()?;
        order.trim().parse().ok()
    }

    /// The stream has been dropped: takes the order away.
    pub fn has_broken(&self) {
        if let Some(files) = &self.files {
            // An order that stays is carried out once more, which is no harm.
            let _ = fs::remove_file(&files.broken);
        }
    }

    /// Whether the program is to stop at this point.
    pub fn armed(&self, point: Point) -> bool {
        let Some(files) = &self.files else {
            return false;
        };
        let order = fs::read_to_string(&files.order);
        order.is_ok_and(|text| text.trim().parse() == Ok(point))
    }

    /// The program is at this point: goes on, or stops for good if it was told to.
    pub fn at(&self, point: Point) {
        let Some(files) = self.files.as_ref().filter(|_| self.armed(point)) else {
            return;
        };
        if let Err(error) = files.report(point) {
            // Whoever waits for the report sees in its own time limit that none came.
            tracing::error!(%point, "stopped here, but cannot say so: {error}");
        }
        loop {
            // A stopped program may be woken, by `cutline down` for one. It must not go on.
            let _ = raise(Signal::SIGSTOP);
        }
    }
}

impl Files {
    /// Whole before it is seen: the scenario kills as soon as it sees the file.
    fn report(&self, point: Point) -> io::Result<()> {
        if let Some(parent) = self.held.parent() {
            fs::create_dir_all(parent)?;
        }
        let unfinished = self.held.with_extension("new");
        fs::write(&unfinished, format!("{point} {}\n", std::process::id()))?;
        fs::remove_file(&self.order)?;
        fs::rename(&unfinished, &self.held)
    }
}

/// The file that orders a program to stop; its content is the name of the point.
pub fn order_path(dir: &Path, who: &str) -> PathBuf {
    dir.join("run/hold").join(encode_name(who))
}

/// The file that orders a node to drop a stream; its content is the channel.
pub fn break_path(dir: &Path, who: &str) -> PathBuf {
    dir.join("run/break").join(encode_name(who))
}

/// The file in which a stopped program says at which point, and its process id.
pub fn held_path(dir: &Path, who: &str) -> PathBuf {
    dir.join("run/held").join(encode_name(who))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_reads_back_from_its_name() {
        for point in Point::ALL {
            assert_eq!(point.to_string().parse(), Ok(point));
        }
        assert!("halfway".parse::<Point>().is_err());
    }

    #[test]
    fn only_the_point_that_was_ordered_stops_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let hold = Hold::new(Some(dir.path().to_owned()), "alice");
        assert!(!hold.armed(Point::Stored));
        let order = order_path(dir.path(), "alice");
        fs::create_dir_all(order.parent().unwrap()).unwrap();
        fs::write(&order, "stored\n").unwrap();
        assert!(hold.armed(Point::Stored));
        assert!(!hold.armed(Point::Recorded));
        assert!(!Hold::new(Some(dir.path().to_owned()), "bob").armed(Point::Stored));
        assert!(!Hold::new(None, "alice").armed(Point::Stored));
        hold.at(Point::Recorded);
        assert!(order.exists());
    }
}
