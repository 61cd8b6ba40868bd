//! Reading every part of a snapshot, to judge what is really there.

use bytes::Bytes;
use tokio::task::spawn_blocking;

use super::{Store, StoreError, paths};
use crate::check::{PartState, Verified, VerifiedPart, process_name};
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
    let mut looked = Vec::new();
    for stored in stored {
        looked.push(examine(store, topology, &manifest, stored).await?);
    }
    let mut states = looked.iter().map(|(part, _)| part.state);
    if states.any(|state| state == PartState::Missing) {
        // A deletion takes the manifest first: what is gone with it is not missing.
        store.manifest(snapshot).await?;
    }
    Ok(Verified::complete(topology, &manifest, expected, looked))
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
    let mut part = VerifiedPart::intact(topology, stored, path.to_string());
    let mut facts = stored.facts.clone();
    match store.get_part(manifest.snapshot, &process).await {
        Err(error) => {
            let state = match error {
                StoreError::Missing { .. } => PartState::Missing,
                _ => PartState::Damaged,
            };
            part.found(state, error.to_string());
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
                part.found(PartState::Damaged, format!("{path}: {fault}"));
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
    })?;
    if file.part.generation != manifest.generation {
        let (found, noted) = (file.part.generation, manifest.generation);
        return Err(PartError::OtherGeneration { found, noted });
    }
    Ok((file.facts(), file.check_facts(stored).err()))
}
