//! Which of a job's programs: the collector, or the node of one process.

use std::fmt;

use serde::{Serialize, Serializer};

/// The name the collector goes by on the command line, in `run/` and in `logs/`.
pub const COLLECTOR: &str = "collector";

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

    /// The name as part of a file's name. Ids from imported files may hold anything; what could
    /// mean something to a file system is written as `%XX`.
    pub fn file_name(&self) -> String {
        match self {
            Self::Collector => COLLECTOR.to_owned(),
            Self::Process(name) => encode(name),
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

fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        // A process that is called as the collector is must not share its files.
        let taken = name == COLLECTOR && at == 0;
        if (byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') && !taken {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_leads_nowhere_else_and_is_never_the_collectors() {
        let file_name = |name: &str| Who::Process(name.to_owned()).file_name();
        assert_eq!(file_name("N10"), "N10");
        assert_eq!(file_name("../a.b"), "%2E%2E%2Fa%2Eb");
        assert_ne!(file_name("collector"), Who::Collector.file_name());
    }
}
