//! Why a file is not the part that was wanted.

use super::FORMAT;
use crate::protocol::ids::{ChannelId, Generation, ProcessId, SnapshotId};

/// Why a file is not the part that was wanted. The file's name is the caller's to add.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The end is missing.
    #[error("the part is torn: {bytes} bytes are there of {expected}")]
    Torn {
        /// What is there.
        bytes: u64,
        /// What must be there, at the least.
        expected: u64,
    },
    /// Something follows the end.
    #[error("the part is damaged: {bytes} bytes are there instead of {expected}")]
    Overlong {
        /// What is there.
        bytes: u64,
        /// What should be there.
        expected: u64,
    },
    /// Not even the first bytes are right.
    #[error("the part is damaged or no part at all: it does not begin with CUTLPART")]
    NoPart,
    /// Written by another version of this program.
    #[error("the part has format {found}, and this program reads format {FORMAT}")]
    OtherFormat {
        /// Its format.
        found: u32,
    },
    /// A bit is not as it was written.
    #[error("the part is damaged: its checksum is {computed:08x}, and it notes {noted:08x}")]
    Checksum {
        /// The checksum in the file.
        noted: u32,
        /// The checksum of the file.
        computed: u32,
    },
    /// The checksum is right, but the body was never a part.
    #[error("the part's body cannot be read: {0}")]
    Body(#[source] prost::DecodeError),
    /// The checksum is right, but a channel makes no sense.
    #[error("the part's body cannot be read: channel {channel} {what}")]
    Channel {
        /// The channel.
        channel: ChannelId,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Taken in a way this program does not know.
    #[error("the part was taken in mode {0}, which this program does not know")]
    UnknownMode(u32),
    /// Not the length that the manifest notes.
    #[error("the part is torn or another: it has {bytes} bytes, and the manifest notes {noted}")]
    OtherLength {
        /// What is there.
        bytes: u64,
        /// What the manifest says.
        noted: u64,
    },
    /// A sound part, but not the one that the manifest notes.
    #[error("the part is another: its checksum is {checksum:08x}, the manifest notes {noted:08x}")]
    OtherChecksum {
        /// The checksum of the file.
        checksum: u32,
        /// What the manifest says.
        noted: u32,
    },
    /// The manifest says of the part what is not in it.
    #[error("the part does not say what the manifest says of it")]
    OtherFacts,
    /// Recorded in another generation than the manifest is of.
    #[error("the part is of generation {found}, and the manifest of {noted}")]
    OtherGeneration {
        /// The generation it is of.
        found: Generation,
        /// What the manifest says.
        noted: Generation,
    },
    /// Written by another application.
    #[error("this is a part of '{found}', this node runs '{wanted}'")]
    OtherApplication {
        /// The application that wrote it.
        found: String,
        /// The application of the node.
        wanted: String,
    },
    /// Of a job with other processes or channels.
    #[error(
        "this is a part of topology {found:08x}, this node's is {wanted:08x}: \
         the processes or channels of the job have changed"
    )]
    OtherTopology {
        /// The topology it is of.
        found: u32,
        /// The topology of the node.
        wanted: u32,
    },
    /// Of another process or snapshot.
    #[error(
        "this is the part of {found_process} in {found_snapshot}, not of {process} in {snapshot}"
    )]
    OtherPart {
        /// The process it is of.
        found_process: ProcessId,
        /// The snapshot it is of.
        found_snapshot: SnapshotId,
        /// The process that is restored.
        process: ProcessId,
        /// The snapshot that is restored.
        snapshot: SnapshotId,
    },
}
