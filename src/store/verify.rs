//! Reading every part of a snapshot, to judge what is really there.

use bytes::Bytes;
use tokio::task::spawn_blocking;

use super::{Store, StoreError, paths};
use crate::check::{Cut, Files, PartState, Verified, VerifiedPart, process_name};
use crate::protocol::cut::Facts;
use crate::protocol::events::StoredPart;
use crate::protocol::ids::SnapshotId;
use crate::protocol::records::{End, Manifest};
use crate::protocol::topology::Topology;
use crate::wire::part::{PartError, PartFile, Wanted};

/// Reads every part of a snapshot that has ended, holds it against the manifest, and judges.
///
/// The verdicts rest on what the files say; where a file is missing or damaged, which is a
/// verdict of its own, on what the manifest says of it.
///
/// # Errors
/// If the records of the snapshot cannot be read; [`StoreError::Missing`] names the manifest if
/// the snapshot has not ended, or is deleted meanwhile.
pub async fn verify(
    store: &Store,
    topology: &Topology,
    snapshot: SnapshotId,
) -> Result<Verified, StoreError> {
    store.begun(snapshot).await?;
    let manifest = store.manifest(snapshot).await?;
    let (stored, expected) = match &manifest.end {
        End::Aborted { reason } => return Ok(Verified::aborted(&manifest, reason)),
        End::Complete {
            parts, expected, ..
        } => (parts, expected),
    };
    let mut parts = Vec::new();
    let mut facts = Vec::new();
    for stored in stored {
        let (part, read) = examine(store, topology, &manifest, stored).await?;
        parts.push(part);
        facts.push(read);
    }
    if parts.iter().any(|part| part.state == PartState::Missing) {
        // A deletion takes the manifest first: what is gone with it is not missing.
        store.manifest(snapshot).await?;
    }
    let faults = |state: PartState| {
        let with = parts.iter().filter(move |part| part.state == state);
        with.filter_map(|part| part.fault.clone())
            .collect::<Vec<_>>()
    };
    let intact = parts.iter().filter(|part| part.state == PartState::Intact);
    let cut = Cut {
        topology,
        fingerprint: manifest.topology,
        mode: manifest.mode,
        facts: facts.iter().collect(),
        expected,
        files: Files::Read {
            bytes: intact.map(|part| part.bytes).sum(),
            missing: faults(PartState::Missing),
            damaged: faults(PartState::Damaged),
        },
    };
    Ok(Verified::complete(&manifest, &cut, parts))
}

/// Looks at one part file, and answers with what was found and what is to be believed.
async fn examine(
    store: &Store,
    topology: &Topology,
    manifest: &Manifest,
    stored: &StoredPart,
) -> Result<(VerifiedPart, Facts), StoreError> {
    let process = process_name(topology, stored.facts.process);
    let path = paths::part(manifest.snapshot, &process);
    let mut part = VerifiedPart {
        process: process.clone(),
        file: path.to_string(),
        bytes: stored.bytes,
        state: PartState::Intact,
        fault: None,
    };
    let mut facts = stored.facts.clone();
    match store.get_part(manifest.snapshot, &process).await {
        Err(error) => {
            part.state = match error {
                StoreError::Missing { .. } => PartState::Missing,
                _ => PartState::Damaged,
            };
            part.fault = Some(error.to_string());
        }
        Ok(file) => {
            let (manifest, stored) = (manifest.clone(), stored.clone());
            let reading = spawn_blocking(move || read_part(file, &manifest, &stored));
            let read = reading
                .await
                .map_err(|error| StoreError::failed("read", &path, &error))?;
            let fault = match read {
                Ok((read, fault)) => {
                    facts = read;
                    fault
                }
                Err(error) => Some(error),
            };
            if let Some(fault) = fault {
                part.state = PartState::Damaged;
                part.fault = Some(format!("{path}: {fault}"));
            }
        }
    }
    Ok((part, facts))
}

/// What a file says, if it is sound, and what is wrong with it nevertheless. Checksums take their
/// time, so this runs on a thread that may be kept busy.
fn read_part(
    file: Bytes,
    manifest: &Manifest,
    stored: &StoredPart,
) -> Result<(Facts, Option<PartError>), PartError> {
    let file = PartFile::decode_noted(file, stored)?;
    // Whose application it is only a node can tell; here it may be any.
    file.check_for(&Wanted {
        snapshot: manifest.snapshot,
        process: stored.facts.process,
        topology: manifest.topology,
        application: &file.application,
        state_version: file.state_version,
    })?;
    if file.part.generation != manifest.generation {
        let (found, noted) = (file.part.generation, manifest.generation);
        return Err(PartError::OtherGeneration { found, noted });
    }
    Ok((file.facts(), file.check_facts(stored).err()))
}
