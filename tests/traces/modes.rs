//! Traced jobs whose snapshots are taken by other modes than `classic`, with a restore in between.

use std::collections::{BTreeMap, BTreeSet};

use cutline::apps::Bank;
use cutline::check::{Answer, Recorded, Witness, judge_manifest, linearise, replayed, witness};
use cutline::protocol::collector::Request;
use cutline::protocol::cut::Restored;
use cutline::protocol::frame::Batch;
use cutline::protocol::ids::{ProcessId, SnapshotId};
use cutline::protocol::mode::Mode;
use cutline::protocol::trace::{Event, What};
use cutline::trace::{Names, replay, unlike_stored};
use cutline::world::World;

use crate::stage::{bank, complete, events, logged, origin, parts, run_by};

/// A limit that strikes in some of the snapshots, and comes too late in others.
const LIMIT_MS: u64 = 7;

/// Enough for a handful of snapshots, each of which takes some hundred steps.
const STEPS: u32 = 3000;

/// Snapshots of a mode, in a generation that began anew and one that began from a snapshot.
fn ran(seed: u64, mode: Mode, limit_ms: Option<u64>) -> World<Bank> {
    // Not one after the other: a newer one would end the older.
    let is_open = |world: &World<Bank>| {
        let collector = world.collector().map(|collector| collector.status());
        collector.is_none_or(|status| !status.open.is_empty())
    };
    let snapshot = |process| Request::Snapshot {
        // The others wait for inputs: only some processes may initiate.
        initiators: match mode.aligns() {
            true => BTreeSet::new(),
            false => BTreeSet::from([process]),
        },
        mode: Some(mode),
        alignment_timeout_ms: limit_ms,
    };
    run_by(bank(seed), (STEPS, true), |world, process| {
        (!is_open(world)).then(|| snapshot(process))
    })
}

/// How often what was seen.
#[derive(Debug, Default)]
struct Seen {
    snapshots: usize,
    /// Of those, the ones with messages in each kind of share.
    with_sender_share: usize,
    with_receiver_share: usize,
    without_sender_share: usize,
    /// Generations that began with messages in each.
    from_sender_share: usize,
    from_receiver_share: usize,
    /// Recorded states that never were.
    never: usize,
}

fn count<'a>(shares: impl Iterator<Item = &'a Batch>) -> u32 {
    shares.map(Batch::count).sum()
}

/// The messages in the shares of the senders, and of the receivers.
fn shares(parts: &[Restored]) -> (u32, u32) {
    let outputs = parts.iter().flat_map(|part| &part.part.outputs);
    let inputs = parts.iter().flat_map(|part| &part.part.inputs);
    (
        count(outputs.flat_map(|output| &output.share)),
        count(inputs.flat_map(|input| &input.share)),
    )
}

fn witness_of(world: &World<Bank>, generation: u64, snapshot: SnapshotId) -> Witness {
    let recorded = Recorded::of(&world.job().topology, &parts(world, snapshot));
    let events = events(world, generation);
    witness::<Bank>(&origin(world, generation), &events, snapshot, &recorded).unwrap()
}

/// The verdicts `causal` and `replayed`.
fn verdicts(world: &World<Bank>, generation: u64, snapshot: SnapshotId) -> [Answer; 2] {
    let mut manifests = world.manifests();
    let manifest = manifests.find(|manifest| manifest.snapshot == snapshot);
    let verdicts = judge_manifest(&world.job().topology, manifest.unwrap());
    let own = logged(&events(world, generation), |_, _| 0);
    let states = parts(world, snapshot).into_iter();
    let states: BTreeMap<_, _> = states.map(|part| (part.part.process, part.state)).collect();
    let replayed = replayed::<Bank>(&origin(world, generation), &own, snapshot, &states);
    [verdicts.get("causal").unwrap().holds, replayed.holds]
}

/// Judges, witnesses and does again everything that a run left.
fn look(world: &World<Bank>, seen: &mut Seen) {
    let names = Names::new(world.job().topology.clone());
    for generation in [1, 2] {
        let events = events(world, generation);
        let origin = origin(world, generation);
        let (sender, receiver) = shares(&origin.parts);
        seen.from_sender_share += usize::from(sender > 0);
        seen.from_receiver_share += usize::from(receiver > 0);
        let again = replay::<Bank>(&origin, &names, &events).unwrap();
        assert_eq!((again.difference, again.events), (None, events.len()));
        let again: BTreeMap<_, _> = again.snapshots.into_iter().collect();
        for snapshot in complete(world, generation) {
            let stored = parts(world, snapshot);
            let unlike = unlike_stored(&world.job().topology, &stored, &again[&snapshot]);
            assert!(unlike.is_empty(), "{snapshot}: {unlike:?}");
            let made = witness_of(world, generation, snapshot);
            assert!(
                made.holds(),
                "{snapshot}: {:?} {:?}",
                made.broken,
                made.unlike
            );
            assert_eq!(verdicts(world, generation, snapshot), [Answer::Yes; 2]);
            let (sender, receiver) = shares(&stored);
            seen.snapshots += 1;
            seen.with_sender_share += usize::from(sender > 0);
            seen.without_sender_share += usize::from(sender == 0);
            seen.with_receiver_share += usize::from(receiver > 0);
            seen.never += usize::from(made.occurred.is_none());
        }
    }
}

fn seen(mode: Mode, limit_ms: Option<u64>) -> Seen {
    let mut seen = Seen::default();
    for seed in 40..46 {
        look(&ran(seed, mode, limit_ms), &mut seen);
    }
    assert!(seen.snapshots > 20, "{seen:?}");
    assert!(seen.never > 0, "{seen:?}");
    seen
}

#[test]
fn an_aligned_snapshot_is_judged_witnessed_and_done_again_with_what_its_back_edges_logged() {
    let seen = seen(Mode::Aligned, None);
    assert_eq!(seen.with_sender_share, 0, "nothing was overtaken: {seen:?}");
    assert!(
        seen.with_receiver_share > 0 && seen.from_receiver_share > 0,
        "{seen:?}"
    );
}

#[test]
fn an_unaligned_snapshot_is_judged_witnessed_and_done_again_with_both_its_shares() {
    let seen = seen(Mode::Unaligned, None);
    assert!(
        seen.with_sender_share > 0 && seen.with_receiver_share > 0,
        "{seen:?}"
    );
    assert!(
        seen.from_sender_share > 0 && seen.from_receiver_share > 0,
        "{seen:?}"
    );
}

#[test]
fn an_aligned_snapshot_with_a_limit_is_done_again_whether_the_limit_struck_or_not() {
    let seen = seen(Mode::Aligned, Some(LIMIT_MS));
    assert!(
        seen.with_sender_share > 0 && seen.without_sender_share > 0,
        "{seen:?}"
    );
    assert!(seen.from_sender_share > 0, "{seen:?}");
}

#[test]
fn an_at_least_once_snapshot_is_called_inconsistent_and_its_events_are_done_again_all_the_same() {
    let (mut inconsistent, mut from_one) = (0, 0);
    for seed in 40..46 {
        let world = ran(seed, Mode::AtLeastOnce, None);
        let names = Names::new(world.job().topology.clone());
        for generation in [1, 2] {
            let events = events(&world, generation);
            let origin = origin(&world, generation);
            from_one += usize::from(!origin.parts.is_empty());
            let again = replay::<Bank>(&origin, &names, &events).unwrap();
            assert_eq!((again.difference, again.events), (None, events.len()));
            assert!(again.snapshots.is_empty(), "each took its state by itself");
            for snapshot in complete(&world, generation) {
                let [causal, replayed] = verdicts(&world, generation, snapshot);
                assert_eq!(
                    replayed,
                    Answer::Yes,
                    "the states are those that were there"
                );
                let made = witness_of(&world, generation, snapshot);
                if causal == Answer::No {
                    assert!(!made.holds(), "seed {seed}, {snapshot}");
                    inconsistent += 1;
                }
            }
        }
    }
    assert!(inconsistent > 5, "{inconsistent}");
    assert!(from_one > 0);
}

/// On real nodes the sender's word that it runs may come later than what its share brought about
/// elsewhere: a process that is prepared sends, and does not handle.
#[test]
fn what_a_sender_share_brings_may_be_handled_before_its_sender_runs() {
    let mut early = 0;
    for seed in 40..46 {
        let world = ran(seed, Mode::Unaligned, None);
        let names = Names::new(world.job().topology.clone());
        let origin = origin(&world, 2);
        let events = events(&world, 2);
        for last in world.job().topology.processes() {
            // By its clock this one started long after the others.
            let late = |place: usize, event: &Event| {
                place as u64 + 100_000 * u64::from(event.process == last)
            };
            let order = linearise(&logged(&events, late)).events;
            assert_eq!(order.len(), events.len());
            early += usize::from(is_handled_early(&order, last));
            let again = replay::<Bank>(&origin, &names, &order).unwrap();
            assert_eq!((again.difference, again.events), (None, order.len()));
        }
    }
    assert!(early > 0);
}

/// Whether something on a channel of this process is handled before it starts.
fn is_handled_early(events: &[Event], sender: ProcessId) -> bool {
    let ahead = events.iter().take_while(|event| event.process != sender);
    let mut handled = ahead.filter_map(|event| match event.what {
        What::Handle { channel, .. } => Some(channel),
        _ => None,
    });
    handled.any(|channel| channel.from == sender)
}
