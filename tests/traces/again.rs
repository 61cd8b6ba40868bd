//! Traces done again by the machines: they come out as they were written down, or show where not.

use std::collections::{BTreeMap, BTreeSet};

use cutline::apps::Bank;
use cutline::check::{Answer, replayed};
use cutline::protocol::ids::{ChannelId, MessageNumber};
use cutline::protocol::trace::{Event, What};
use cutline::trace::{Names, Replayed, replay, unlike_stored};
use cutline::world::World;

use crate::stage::{bank, complete, events, logged, origin, parts, run};

fn again(world: &World<Bank>, generation: u64, events: &[Event]) -> Replayed {
    let names = Names::new(world.job().topology.clone());
    replay::<Bank>(&origin(world, generation), &names, events).unwrap()
}

#[test]
fn every_generation_comes_out_event_for_event_with_all_its_snapshots() {
    let (mut snapshots, mut in_channels) = (0, 0);
    for seed in 30..36 {
        let world = run(bank(seed), true);
        for generation in [1, 2] {
            let events = events(&world, generation);
            let again = again(&world, generation, &events);
            assert_eq!(again.difference, None, "seed {seed}");
            assert_eq!(again.events, events.len());
            for snapshot in complete(&world, generation) {
                let mut taken = again.snapshots.iter();
                let (_, taken) = taken.find(|(id, _)| *id == snapshot).unwrap();
                let stored = parts(&world, snapshot);
                let unlike = unlike_stored(&world.job().topology, &stored, taken);
                assert!(unlike.is_empty(), "seed {seed}, {snapshot}: {unlike:?}");
                snapshots += 1;
                let recorded = stored.iter().flat_map(|part| part.part.recorded());
                in_channels += recorded.map(|batch| batch.count()).sum::<u32>();
            }
        }
    }
    assert!(
        snapshots > 20 && in_channels > 20,
        "{snapshots}, {in_channels}"
    );
}

#[test]
fn a_snapshot_that_not_everyone_recorded_is_done_again_as_well() {
    let world = run(bank(31), false);
    let snapshot = complete(&world, 1)[2];
    let mut events = events(&world, 1);
    let missing = |event: &Event| event.what.records(snapshot) && event.process.index() == 2;
    let at = events.iter().position(missing).unwrap();
    // The process is killed just before it records.
    let killed = events[at].process;
    let cut = events[at].clock.of(killed);
    events.retain(|event| event.clock.of(killed) < cut);
    let again = again(&world, 1, &events);
    assert_eq!((again.difference, again.events), (None, events.len()));
    assert!(again.snapshots.iter().all(|(id, _)| *id != snapshot));
}

#[test]
fn a_changed_input_is_shown_at_its_event() {
    let world = run(bank(32), false);
    let right = events(&world, 1);
    let is_handle = |event: &&mut Event| matches!(event.what, What::Handle { .. });
    let mut wrong = right.clone();
    let handle = wrong.iter_mut().filter(is_handle).nth(10).unwrap();
    let (process, own) = (handle.process, handle.clock.of(handle.process));
    if let What::Handle { message, .. } = &mut handle.what {
        let mut bytes = message.to_vec();
        bytes[0] ^= 1;
        *message = bytes.into();
    }
    let again = again(&world, 1, &wrong);
    let difference = again.difference.unwrap();
    assert_eq!(
        (difference.process, difference.event as u64),
        (process, own)
    );
    let (expected, got) = (&difference.expected, &difference.got);
    assert!(expected.starts_with("message \"") && got.starts_with("message \""));
    assert_ne!(expected, got);
}

#[test]
fn an_input_left_out_is_shown_at_the_first_event_that_misses_it() {
    let world = run(bank(33), false);
    let mut wrong = events(&world, 1);
    let tick = wrong
        .iter()
        .position(|event| !event.sends.is_empty())
        .unwrap();
    let lost = wrong.remove(tick);
    let again = again(&world, 1, &wrong);
    let difference = again.difference.unwrap();
    let own = wrong
        .iter()
        .filter(|event| event.process == difference.process);
    let shown = own.collect::<Vec<_>>()[difference.event - 1];
    let of_lost = lost.clock.of(lost.process);
    assert!(
        shown.clock.of(lost.process) >= of_lost,
        "it knows of what is missing"
    );
    let at = wrong
        .iter()
        .position(|event| event.clock.of(lost.process) >= of_lost);
    assert_eq!(wrong[at.unwrap()], *shown, "and is the first that does");
}

#[test]
fn a_message_that_was_in_a_channel_before_is_held_against_what_was_handled() {
    let (world, mut events, at) = (40..60)
        .find_map(|seed| {
            let world = run(bank(seed), true);
            let before = in_channels(&world);
            let events = events(&world, 2);
            let at = events.iter().position(|event| match event.what {
                What::Handle {
                    channel, number, ..
                } => before.contains(&(channel, number)),
                _ => false,
            });
            at.map(|at| (world, events, at))
        })
        .expect("a restored message is handled");
    let snapshot = *complete(&world, 2).last().unwrap();
    let judged = |events: &[Event]| {
        let traces = logged(events, |place, _| place as u64);
        replayed::<Bank>(&origin(&world, 2), &traces, snapshot, &BTreeMap::new())
    };
    assert_eq!(judged(&events).holds, Answer::Yes);
    let What::Handle { message, .. } = &mut events[at].what else {
        unreachable!("it was looked for");
    };
    *message = 77u64.to_le_bytes().to_vec().into();
    let verdict = judged(&events);
    let evidence = "0x4d00000000000000 handled, got another sent";
    assert!(verdict.evidence.contains(evidence), "{}", verdict.evidence);
}

/// The messages that were in the channels when the second generation began.
fn in_channels(world: &World<Bank>) -> BTreeSet<(ChannelId, MessageNumber)> {
    let parts = origin(world, 2).parts;
    let inputs = parts.iter().flat_map(|part| &part.part.inputs);
    let messages = inputs.flat_map(|input| {
        let each = input.share.iter().flat_map(|batch| batch.messages());
        each.map(|(number, _)| (input.channel, number))
    });
    messages.collect()
}
