//! How large what a simulation has stored would be on a disk, and its markers on a wire.

use crate::protocol::application::Application;
use crate::protocol::cut::Facts;
use crate::protocol::frame::{Frame, Marker};
use crate::protocol::ids::SnapshotId;
use crate::wire::channel::frame_word;
use crate::wire::part::PartFile;
use crate::world::World;

/// The length of all part files of a snapshot, as nodes would write them.
#[must_use]
pub fn part_bytes<A: Application>(world: &World<A>, snapshot: SnapshotId) -> u64 {
    let topology = &world.job().topology;
    let fingerprint = topology.fingerprint();
    let parts = topology.processes().filter_map(|process| {
        let restored = world.part(snapshot, process)?;
        let setup = world.setup(process);
        let facts = Facts::of::<A>(&setup, &restored.part, &restored.state);
        let file = PartFile {
            part: restored.part.clone(),
            topology: fingerprint,
            application: setup.application.clone(),
            state_version: A::state_version(&setup),
            state: restored.state.clone(),
            in_state: facts.in_state,
            in_channels: facts.in_channels,
        };
        Some(file.encode().len() as u64)
    });
    parts.sum()
}

/// The length of a marker in its stream, without what HTTP/2 puts around it.
pub(super) fn marker_bytes(marker: Marker) -> u64 {
    let word = frame_word(Frame::Marker(marker));
    prost::Message::encoded_len(&word) as u64
}
