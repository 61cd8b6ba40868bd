//! The verdicts on what a simulation left in its store, by the same judge as for files.

use crate::check::{PartState, Verified, VerifiedPart, process_name};
use crate::protocol::application::Application;
use crate::protocol::cut::Facts;
use crate::protocol::events::StoredPart;
use crate::protocol::records::{End, Manifest};
use crate::store::Store;
use crate::world::World;

/// The verdicts on every complete snapshot.
pub(super) fn all<A: Application>(world: &World<A>) -> Vec<Verified> {
    let manifests = world.manifests();
    manifests
        .filter_map(|manifest| one(world, manifest))
        .collect()
}

fn one<A: Application>(world: &World<A>, manifest: &Manifest) -> Option<Verified> {
    let End::Complete {
        parts: stored,
        expected,
        ..
    } = &manifest.end
    else {
        return None;
    };
    let looked = stored.iter().map(|stored| examine(world, manifest, stored));
    let topology = &world.job().topology;
    Some(Verified::complete(
        topology,
        manifest,
        expected,
        looked.collect(),
    ))
}

/// Looks at one part, and answers with what was found and what it says.
fn examine<A: Application>(
    world: &World<A>,
    manifest: &Manifest,
    stored: &StoredPart,
) -> (VerifiedPart, Facts) {
    let topology = &world.job().topology;
    let facts = stored.facts.clone();
    let process = process_name(topology, facts.process);
    let file = Store::part_file(manifest.snapshot, &process);
    let mut verified = VerifiedPart::intact(topology, stored, file.clone());
    let Some(restored) = world.part(manifest.snapshot, facts.process) else {
        verified.found(PartState::Missing, format!("{file} is missing"));
        return (verified, facts);
    };
    let setup = world.setup(facts.process);
    let part = &restored.part;
    let says = Facts::of::<A>(&setup, part, &restored.state);
    let fault = if says != facts {
        Some("says other than its manifest")
    } else if part.generation != manifest.generation {
        Some("is of another generation than its manifest")
    } else {
        None
    };
    if let Some(fault) = fault {
        verified.found(PartState::Damaged, format!("{file} {fault}"));
    }
    (verified, says)
}
