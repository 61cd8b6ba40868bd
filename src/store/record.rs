//! Records as JSON: readable, and sealed by a checksum.
//!
//! The first line holds the format and the CRC-32C of everything behind that line; the whole file
//! is one JSON object:
//!
//! ```json
//! {"format":1,"crc32c":"5f2b6c1a",
//! "record":{
//!   "snapshot": 42,
//!   …
//! }}
//! ```

use bytes::Bytes;
use object_store::path::Path;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::protocol::ids::SnapshotId;
use crate::protocol::records::{Begun, LogEntry, Manifest, Record};

/// The form of records this program writes and reads.
const FORMAT: u32 = 1;

/// The first line, and what it speaks of.
#[derive(Deserialize)]
struct Sealed<T> {
    record: T,
}

/// What is to be said of a file whose first line is not ours.
#[derive(Deserialize)]
struct Foreign {
    format: u32,
}

/// The bytes of a record's file.
pub(super) fn encode(record: &Record) -> Bytes {
    match record {
        Record::Log(entry) => sealed(entry),
        Record::Begun(begun) => sealed(begun),
        Record::Manifest(manifest) => sealed(manifest),
    }
}

/// Reads a record of the kind and in the place of another.
pub(super) fn decode_like(
    record: &Record,
    path: &Path,
    bytes: &[u8],
) -> Result<Record, StoreError> {
    Ok(match record {
        Record::Log(entry) => Record::Log(log(entry.number, path, bytes)?),
        Record::Begun(record) => Record::Begun(begun(record.snapshot, path, bytes)?),
        Record::Manifest(record) => {
            Record::Manifest(Box::new(manifest(record.snapshot, path, bytes)?))
        }
    })
}

pub(super) fn log(number: u64, path: &Path, bytes: &[u8]) -> Result<LogEntry, StoreError> {
    let entry: LogEntry = opened(path, bytes)?;
    in_place(entry.number == number, path)?;
    Ok(entry)
}

pub(super) fn begun(id: SnapshotId, path: &Path, bytes: &[u8]) -> Result<Begun, StoreError> {
    let begun: Begun = opened(path, bytes)?;
    in_place(begun.snapshot == id, path)?;
    Ok(begun)
}

pub(super) fn manifest(id: SnapshotId, path: &Path, bytes: &[u8]) -> Result<Manifest, StoreError> {
    let manifest: Manifest = opened(path, bytes)?;
    in_place(manifest.snapshot == id, path)?;
    Ok(manifest)
}

fn sealed(record: &impl Serialize) -> Bytes {
    let record = serde_json::to_string_pretty(record).expect("records are plain data");
    let body = format!("\"record\":{record}}}\n");
    Bytes::from(first_line(&body) + &body)
}

fn first_line(body: &str) -> String {
    let checksum = crc32c::crc32c(body.as_bytes());
    format!("{{\"format\":{FORMAT},\"crc32c\":\"{checksum:08x}\",\n")
}

fn opened<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, StoreError> {
    let damaged = |cause: String| StoreError::Damaged {
        file: path.to_string(),
        cause,
    };
    if bytes.is_empty() {
        return Err(damaged("it is empty".to_owned()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no text".to_owned()))?;
    let body = text.split_once('\n').map_or("", |(_, body)| body);
    if text.len() == body.len() || first_line(body) != text[..text.len() - body.len()] {
        let foreign = serde_json::from_str(text)
            .ok()
            .filter(|f: &Foreign| f.format != FORMAT);
        return Err(damaged(match foreign {
            Some(Foreign { format }) => format!("it has format {format}, not {FORMAT}"),
            None => "its checksum is not that of its text".to_owned(),
        }));
    }
    let sealed: Sealed<T> = serde_json::from_str(text).map_err(|e| damaged(e.to_string()))?;
    Ok(sealed.record)
}

fn in_place(right: bool, path: &Path) -> Result<(), StoreError> {
    if right {
        return Ok(());
    }
    Err(StoreError::Damaged {
        file: path.to_string(),
        cause: "it is the record of something else".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{Generation, Term};
    use crate::protocol::mode::Mode;

    fn record() -> Record {
        Record::Begun(Begun {
            snapshot: SnapshotId::new(42),
            generation: Generation::new(7),
            mode: Mode::Classic,
            term: Term::new(2),
            nonce: u64::MAX,
        })
    }

    fn read(bytes: &[u8]) -> Result<Record, StoreError> {
        let path = Path::parse("snapshots/s42/begun.json").unwrap();
        decode_like(&record(), &path, bytes)
    }

    #[test]
    fn a_record_is_a_json_object_and_reads_back() {
        let bytes = encode(&record());
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(value["record"]["snapshot"], 42);
        assert_eq!(read(&bytes), Ok(record()));
    }

    #[test]
    fn every_truncation_and_every_flipped_bit_names_the_file() {
        let bytes = encode(&record());
        for length in 0..bytes.len() {
            let error = read(&bytes[..length]).unwrap_err().to_string();
            assert!(
                error.starts_with("snapshots/s42/begun.json is torn or damaged"),
                "{error}"
            );
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(read(&damaged), Err(StoreError::Damaged { .. })),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn another_format_and_another_place_are_told_apart_from_damage() {
        let other = String::from_utf8(encode(&record()).to_vec()).unwrap();
        let other = other.replace("\"format\":1", "\"format\":2");
        assert!(
            read(other.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("format 2, not 1")
        );
        let path = Path::parse("snapshots/s43/begun.json").unwrap();
        let error = begun(SnapshotId::new(43), &path, &encode(&record())).unwrap_err();
        assert!(error.to_string().contains("something else"), "{error}");
    }
}
