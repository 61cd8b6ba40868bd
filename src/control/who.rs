//! Which of a job's programs: the collector, or the node of one process.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::job::{COLLECTOR, encode_name};

/// One of the programs a job consists of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// The collector.
    Collector,
    /// The node that hosts the process with this name.
    Process(String),
}

impl Who {
    /// What a user means by a name: `collector`, or a process.
    pub fn named(name: &str) -> Self {
        if name == COLLECTOR {
            Self::Collector
        } else {
            Self::Process(name.to_owned())
        }
    }

    /// The name as part of a file's name, as in the store.
    pub fn file_name(&self) -> String {
        match self {
            Self::Collector => COLLECTOR.to_owned(),
            Self::Process(name) => encode_name(name),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collector => f.write_str(COLLECTOR),
            Self::Process(name) => f.write_str(name),
        }
    }
}

impl Serialize for Who {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
