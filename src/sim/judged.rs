//! The verdicts on what a simulation left in its store, by the same judge as for files.

use crate::check::{Cut, Files, PartState, Verified, VerifiedPart, process_name};
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
    let (parts, facts): (Vec<_>, Vec<_>) = looked.unzip();
    let faults = |state: PartState| {
        let with = parts.iter().filter(move |part| part.state == state);
        with.filter_map(|part| part.fault.clone())
            .collect::<Vec<_>>()
    };
    let intact = parts.iter().filter(|part| part.state == PartState::Intact);
    let cut = Cut {
        topology: &world.job().topology,
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
    Some(Verified::complete(manifest, &cut, parts))
}

/// Looks at one part, and answers with what was found and what it says.
fn examine<A: Application>(
    world: &World<A>,
    manifest: &Manifest,
    stored: &StoredPart,
) -> (VerifiedPart, Facts) {
    let process = process_name(&world.job().topology, stored.facts.process);
    let file = Store::part_file(manifest.snapshot, &process);
    let mut verified = VerifiedPart {
        process,
        bytes: stored.bytes,
        state: PartState::Intact,
        fault: None,
        file,
    };
    let facts = stored.facts.clone();
    let Some(restored) = world.part(manifest.snapshot, facts.process) else {
        verified.state = PartState::Missing;
        verified.fault = Some(format!("{} is missing", verified.file));
        return (verified, facts);
    };
    let setup = world.setup(facts.process);
    let part = &restored.part;
    let says = Facts::of::<A>(&setup, part, &restored.state, facts.initial.clone());
    let fault = if says != facts {
        Some("says other than its manifest")
    } else if part.generation != manifest.generation {
        Some("is of another generation than its manifest")
    } else {
        None
    };
    if let Some(fault) = fault {
        verified.state = PartState::Damaged;
        verified.fault = Some(format!("{} {fault}", verified.file));
    }
    (verified, says)
}
