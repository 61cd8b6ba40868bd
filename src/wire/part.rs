//! A part as a file: what one process recorded, its local state, and who wrote it.
//!
//! `CUTLPART`, format (4 bytes), length of the body (8 bytes), the body (protobuf `Part`), and a
//! checksum (4 bytes) over everything before it; numbers are little endian. Whatever bytes are
//! read, the answer is a part or a [`PartError`], never a panic.
//!
//! The checksum is CRC-32C, *masked* as LevelDB does it. Unmasked, it would make the CRC of every
//! whole file the same number (a CRC run over data and its own CRC leaves a constant), and the
//! manifest, which notes the CRC of the whole file, could not tell two parts apart.

mod error;
mod recount;

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message as _;

pub use error::PartError;
pub use recount::recount;

use super::channel::clock_counts;
use super::{mode, pb};
use crate::protocol::application::Quantities;
use crate::protocol::clock::Clock;
use crate::protocol::cut::{Facts, InputPart, OutputPart, Part, Restored};
use crate::protocol::events::StoredPart;
use crate::protocol::frame::Batch;
use crate::protocol::ids::{ChannelId, Generation, MessageNumber, ProcessId, SnapshotId};

const MAGIC: &[u8; 8] = b"CUTLPART";

/// The form of part files this program writes and reads.
pub const FORMAT: u32 = 2;

const HEADER_BYTES: usize = MAGIC.len() + 4 + 8;
const CHECKSUM_BYTES: usize = 4;

/// Everything a part file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartFile {
    /// Where the channels stood and what was in them.
    pub part: Part,
    /// The fingerprint of the topology.
    pub topology: u32,
    /// The name of the application that wrote the state.
    pub application: String,
    /// The form of the state.
    pub state_version: u32,
    /// The local state.
    pub state: Bytes,
    /// What the local state holds.
    pub in_state: Quantities,
    /// What the recorded messages carry.
    pub in_channels: Quantities,
}

/// Whose part is wanted for a restore: a node refuses every other one by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The snapshot that is restored.
    pub snapshot: SnapshotId,
    /// The process it is restored in.
    pub process: ProcessId,
    /// The fingerprint of the node's topology.
    pub topology: u32,
    /// The application the node runs.
    pub application: &'a str,
}

impl PartFile {
    /// The bytes of the file.
    pub fn encode(&self) -> Bytes {
        let body = pb::Part {
            snapshot: self.part.snapshot.get(),
            generation: self.part.generation.get(),
            process: self.part.process.get(),
            mode: mode::number(self.part.mode),
            topology: self.topology,
            application: self.application.clone(),
            state_version: self.state_version,
            outputs: self.part.outputs.iter().map(output_to_pb).collect(),
            inputs: self.part.inputs.iter().map(input_to_pb).collect(),
            state: self.state.clone(),
            in_state: self.in_state.clone().into_iter().collect(),
            in_channels: self.in_channels.clone().into_iter().collect(),
            initial: self.part.initial.clone().into_iter().collect(),
            clock: self.clock_counts(),
        };
        let length = body.encoded_len();
        let mut file = BytesMut::with_capacity(HEADER_BYTES + length + CHECKSUM_BYTES);
        file.put_slice(MAGIC);
        file.put_u32_le(FORMAT);
        file.put_u64_le(length as u64);
        body.encode(&mut file).expect("the buffer grows as needed");
        let checksum = crc32c::crc32c(&file);
        file.put_u32_le(mask(checksum));
        file.freeze()
    }

    /// Reads a file back. The state and the messages share the file's buffer.
    ///
    /// # Errors
    /// If a single bit is not as it was written, or if it was never a part of this format.
    pub fn decode(file: Bytes) -> Result<Self, PartError> {
        let body = body_of(&file)?;
        let body = pb::Part::decode(body).map_err(PartError::Body)?;
        let process = ProcessId::new(body.process);
        let part = Part {
            snapshot: SnapshotId::new(body.snapshot),
            generation: Generation::new(body.generation),
            process,
            mode: mode::of(body.mode).ok_or(PartError::UnknownMode(body.mode))?,
            clock: Clock::of_counts(body.clock).map(Arc::new),
            initial: body.initial.into_iter().collect(),
            outputs: ends(
                process,
                End::Output,
                body.outputs,
                |channel, number, after, share| OutputPart {
                    channel,
                    sent: number,
                    after,
                    share,
                },
            )?,
            inputs: ends(
                process,
                End::Input,
                body.inputs,
                |channel, number, after, share| InputPart {
                    channel,
                    handled: number,
                    after,
                    share,
                },
            )?,
        };
        Ok(Self {
            part,
            topology: body.topology,
            application: body.application,
            state_version: body.state_version,
            state: body.state,
            in_state: body.in_state.into_iter().collect(),
            in_channels: body.in_channels.into_iter().collect(),
        })
    }

    /// Reads back the file that a manifest speaks of, and holds it against what is said there.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), and if the file is a sound one but another.
    pub fn decode_stored(file: Bytes, stored: &StoredPart) -> Result<Self, PartError> {
        let this = Self::decode_noted(file, stored)?;
        this.check_facts(stored)?;
        Ok(this)
    }

    /// The same without a look at what the manifest says of the contents.
    pub(crate) fn decode_noted(file: Bytes, stored: &StoredPart) -> Result<Self, PartError> {
        let bytes = file.len() as u64;
        if bytes != stored.bytes {
            let noted = stored.bytes;
            return Err(PartError::OtherLength { bytes, noted });
        }
        let checksum = crc32c::crc32c(&file);
        let this = Self::decode(file)?;
        if checksum != stored.checksum {
            let noted = stored.checksum;
            return Err(PartError::OtherChecksum { checksum, noted });
        }
        Ok(this)
    }

    pub(crate) fn check_facts(&self, stored: &StoredPart) -> Result<(), PartError> {
        if self.facts() == stored.facts {
            return Ok(());
        }
        Err(PartError::OtherFacts)
    }

    /// What a manifest is to say of the file that [`encode`](Self::encode) has made of this.
    pub fn stored(&self, file: &[u8]) -> StoredPart {
        StoredPart {
            bytes: file.len() as u64,
            checksum: crc32c::crc32c(file),
            facts: self.facts(),
        }
    }

    /// What it says, without the payloads.
    pub fn facts(&self) -> Facts {
        let (outputs, inputs) = self.part.channel_facts();
        Facts {
            process: self.part.process,
            outputs,
            inputs,
            in_state: self.in_state.clone(),
            in_channels: self.in_channels.clone(),
            initial: self.part.initial.clone(),
            clock: self.part.clock.as_deref().cloned(),
        }
    }

    fn clock_counts(&self) -> Vec<u64> {
        let counts = self.part.clock.as_ref();
        counts.map_or_else(Vec::new, |clock| clock.counts().to_vec())
    }

    /// Whether this is the part that a node is to restore.
    ///
    /// # Errors
    /// If it is another's: of another application, topology, process or snapshot. The form of the
    /// state is for the application to look at.
    pub fn check_for(&self, wanted: &Wanted<'_>) -> Result<(), PartError> {
        if self.application != wanted.application {
            return Err(PartError::OtherApplication {
                found: self.application.clone(),
                wanted: wanted.application.to_owned(),
            });
        }
        if self.topology != wanted.topology {
            let (found, wanted) = (self.topology, wanted.topology);
            return Err(PartError::OtherTopology { found, wanted });
        }
        let found = (self.part.process, self.part.snapshot);
        if found != (wanted.process, wanted.snapshot) {
            return Err(PartError::OtherPart {
                found_process: found.0,
                found_snapshot: found.1,
                process: wanted.process,
                snapshot: wanted.snapshot,
            });
        }
        Ok(())
    }

    /// What a process restores from.
    pub fn into_restored(self) -> Restored {
        Restored {
            part: self.part,
            state: self.state,
            state_version: self.state_version,
        }
    }
}

/// Checks all that stands around the body.
fn body_of(file: &Bytes) -> Result<Bytes, PartError> {
    let bytes = file.len() as u64;
    let torn = |expected: u64| PartError::Torn { bytes, expected };
    let smallest = HEADER_BYTES + CHECKSUM_BYTES;
    if !file.starts_with(&MAGIC[..MAGIC.len().min(file.len())]) {
        return Err(PartError::NoPart);
    }
    if file.len() < smallest {
        return Err(torn(smallest as u64));
    }
    let format = u32_at(file, MAGIC.len());
    if format != FORMAT {
        return Err(PartError::OtherFormat { found: format });
    }
    let length = file[MAGIC.len() + 4..HEADER_BYTES]
        .first_chunk()
        .expect("eight bytes");
    let expected = u64::from_le_bytes(*length).saturating_add(smallest as u64);
    if bytes < expected {
        return Err(torn(expected));
    }
    if bytes > expected {
        return Err(PartError::Overlong { bytes, expected });
    }
    let end = file.len() - CHECKSUM_BYTES;
    let (noted, computed) = (u32_at(file, end), mask(crc32c::crc32c(&file[..end])));
    if noted != computed {
        return Err(PartError::Checksum { noted, computed });
    }
    Ok(file.slice(HEADER_BYTES..end))
}

fn u32_at(file: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*file[at..].first_chunk().expect("the length was checked"))
}

/// Makes the checksum of a file and its own checksum differ from file to file.
fn mask(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

fn output_to_pb(output: &OutputPart) -> pb::ChannelPart {
    end_to_pb(output.channel, output.sent, output.after, &output.share)
}

fn input_to_pb(input: &InputPart) -> pb::ChannelPart {
    end_to_pb(input.channel, input.handled, input.after, &input.share)
}

fn end_to_pb(
    channel: ChannelId,
    number: MessageNumber,
    after: MessageNumber,
    share: &[Batch],
) -> pb::ChannelPart {
    let share = share.iter().map(|batch| pb::RecordedMessages {
        first: batch.first().get(),
        count: batch.count(),
        packed: batch.packed().clone(),
        clock: clock_counts(batch),
    });
    pb::ChannelPart {
        from: channel.from.get(),
        to: channel.to.get(),
        nth: channel.nth,
        number: number.get(),
        share: share.collect(),
        after: after.get(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Output,
    Input,
}

/// Reads the channels on one side of a process; they must be its own and in order.
fn ends<T>(
    process: ProcessId,
    end: End,
    read: Vec<pb::ChannelPart>,
    make: impl Fn(ChannelId, MessageNumber, MessageNumber, Vec<Batch>) -> T,
) -> Result<Vec<T>, PartError> {
    let mut last = None;
    let mut made = Vec::with_capacity(read.len());
    for channel_part in read {
        let channel = ChannelId {
            from: ProcessId::new(channel_part.from),
            to: ProcessId::new(channel_part.to),
            nth: channel_part.nth,
        };
        let malformed = |what| PartError::Channel { channel, what };
        let (here, side) = match end {
            End::Output => (channel.from, "is no output of the part's process"),
            End::Input => (channel.to, "is no input of the part's process"),
        };
        if here != process || channel.from == channel.to || channel.nth == 0 {
            return Err(malformed(side));
        }
        if last >= Some(channel) {
            return Err(malformed("is out of order or there twice"));
        }
        last = Some(channel);
        let share = channel_part
            .share
            .into_iter()
            .map(batch_of)
            .collect::<Option<Vec<_>>>();
        let share = share.ok_or_else(|| malformed("has messages that cannot be told apart"))?;
        made.push(make(
            channel,
            MessageNumber::new(channel_part.number),
            MessageNumber::new(channel_part.after),
            share,
        ));
    }
    Ok(made)
}

fn batch_of(read: pb::RecordedMessages) -> Option<Batch> {
    // The number behind the last message must exist too: it is what the next one would get.
    read.first.checked_add(u64::from(read.count))?;
    let batch = Batch::new(MessageNumber::new(read.first), read.count, read.packed).ok()?;
    Some(batch.with_clock(Clock::of_counts(read.clock).map(Arc::new)))
}

#[cfg(test)]
mod tests;
