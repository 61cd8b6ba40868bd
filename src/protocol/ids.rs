//! Identifiers as newtypes that print as people write them: `p3`, `p1→p2`, `s42`, `g7`.
//!
//! Names of processes live in [`Topology`](super::Topology); an id is a position in it, so that
//! comparing and storing ids is cheap. `FromStr` is the inverse of `Display`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not an identifier of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {kind}")]
pub struct ParseIdError {
    text: String,
    kind: &'static str,
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// The identifier with this number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The bare number, for what is stored or sent.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The one that follows.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let number = text.strip_prefix($prefix).and_then(|digits| digits.parse().ok());
                number.map(Self).ok_or_else(|| ParseIdError { text: text.to_owned(), kind: $kind })
            }
        }
    };
}

number_id!(
    /// One snapshot; given out by the collector, never twice. `s0` is the initial state.
    SnapshotId, "s", "a snapshot id such as s42"
);
number_id!(
    /// Which start of the whole job, from which snapshot.
    Generation, "g", "a generation such as g7"
);
number_id!(
    /// One collector's leadership.
    Term, "t", "a term such as t2"
);
number_id!(
    /// The number of a message on its channel; the first is 1, 0 means none yet.
    MessageNumber, "m", "a message number such as m12"
);
number_id!(
    /// The number of a marker on its channel; the first of a generation is 1, 0 means none yet.
    MarkerOrdinal, "k", "a marker ordinal such as k3"
);
number_id!(
    /// One job, whatever file it was made from: random, the nonce of its first term. `j0` is not
    /// known yet.
    JobId, "j", "a job id such as j58"
);
number_id!(
    /// One start of one node: random, compared for equality only.
    Incarnation, "i", "an incarnation such as i93"
);

/// A process: its place in the topology, printed from 1 (`p1` is the first).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(u32);

impl ProcessId {
    /// The process at this place of the topology, counted from 0.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The place in the topology, counted from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The place in the topology, for what is stored or sent.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", u64::from(self.0) + 1)
    }
}

impl FromStr for ProcessId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix('p')
            .and_then(|digits| digits.parse::<u32>().ok())
            .and_then(|number| number.checked_sub(1))
            .map(Self)
            .ok_or_else(|| ParseIdError {
                text: text.to_owned(),
                kind: "a process id such as p3",
            })
    }
}

/// A directed channel; parallel channels are told apart by `nth`, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChannelId {
    /// The process that sends.
    pub from: ProcessId,
    /// The process that receives.
    pub to: ProcessId,
    /// Which of the parallel channels, from 1.
    pub nth: u32,
}

impl ChannelId {
    /// The first (mostly the only) channel between two processes.
    pub const fn new(from: ProcessId, to: ProcessId) -> Self {
        Self { from, to, nth: 1 }
    }

    /// Writes the channel with the given names for its ends.
    pub fn named(self, from: &str, to: &str) -> String {
        match self.nth {
            1 => format!("{from}→{to}"),
            nth => format!("{from}→{to}#{nth}"),
        }
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&self.from.to_string(), &self.to.to_string()))
    }
}

impl FromStr for ChannelId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || ParseIdError {
            text: text.to_owned(),
            kind: "a channel id such as p1→p2 or p1→p2#2",
        };
        let (from, rest) = text.split_once('→').ok_or_else(bad)?;
        let (to, nth) = match rest.split_once('#') {
            None => (rest, 1),
            Some((to, nth)) => (to, nth.parse().map_err(|_| bad())?),
        };
        if nth == 0 {
            return Err(bad());
        }
        let end = |name: &str| name.parse().map_err(|_| bad());
        Ok(Self {
            from: end(from)?,
            to: end(to)?,
            nth,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips<T>(text: &str)
    where
        T: FromStr<Err = ParseIdError> + fmt::Display,
    {
        let id: T = text.parse().expect(text);
        assert_eq!(id.to_string(), text);
    }

    #[test]
    fn ids_print_as_people_write_them_and_read_back() {
        round_trips::<ProcessId>("p3");
        round_trips::<ChannelId>("p1→p2");
        round_trips::<ChannelId>("p1→p2#2");
        round_trips::<SnapshotId>("s42");
        round_trips::<Generation>("g7");
        round_trips::<Term>("t1");
        round_trips::<MessageNumber>("m12");
        round_trips::<MarkerOrdinal>("k3");
    }

    #[test]
    fn what_is_not_an_id_is_refused_with_an_example() {
        let error = "p0".parse::<ProcessId>().unwrap_err();
        assert_eq!(error.to_string(), "'p0' is not a process id such as p3");
        assert!("p1->p2".parse::<ChannelId>().is_err());
        assert!("p1→p2#0".parse::<ChannelId>().is_err());
        assert!("g7".parse::<SnapshotId>().is_err());
    }
}
