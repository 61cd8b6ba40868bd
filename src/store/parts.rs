//! Reading every part of a snapshot back, messages and states included.

use tokio::task::spawn_blocking;

use super::{Store, StoreError, paths};
use crate::protocol::cut::Restored;
use crate::protocol::ids::SnapshotId;
use crate::protocol::topology::Topology;
use crate::wire::part::PartFile;

/// The parts of a complete snapshot, in the order of the processes.
///
/// # Errors
/// If it is not complete, or a part is missing or damaged; the file is named.
pub async fn read_parts(
    store: &Store,
    topology: &Topology,
    snapshot: SnapshotId,
) -> Result<Vec<Restored>, StoreError> {
    let manifest = store.manifest(snapshot).await?;
    let mut parts = Vec::with_capacity(topology.processes().len());
    for process in topology.processes() {
        let name = topology.name(process);
        let path = paths::part(snapshot, name);
        let file = path.to_string();
        let Some(stored) = manifest.part_of(process).cloned() else {
            return Err(StoreError::Missing { file });
        };
        let bytes = store.get_part(snapshot, name).await?;
        let reading = spawn_blocking(move || PartFile::decode_noted(bytes, &stored));
        let read = reading
            .await
            .map_err(|error| StoreError::failed("read", &path, &error))?;
        let part = read.map_err(|error| StoreError::Damaged {
            file,
            cause: error.to_string(),
        })?;
        parts.push(part.into_restored());
    }
    Ok(parts)
}
