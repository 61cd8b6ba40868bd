//! The events of a job in memory, and their vector clocks.

use std::collections::BTreeMap;

use cutline::check::judge_manifest;
use cutline::protocol::ids::{ChannelId, Generation, MessageNumber, ProcessId};
use cutline::protocol::mode::Mode;
use cutline::protocol::trace::{Event, What, checksum};

use crate::stage::{bank, run};

/// The clock with which a message was sent, and its checksum.
type SentBy<'a> = BTreeMap<(ChannelId, MessageNumber), (&'a Event, u32)>;

#[test]
fn every_handling_follows_its_sending_and_knows_what_that_knew() {
    let world = run(bank(1), false);
    let mut sent: SentBy<'_> = BTreeMap::new();
    let mut handled = 0;
    for event in world.trace() {
        if let What::Handle {
            channel,
            number,
            message,
        } = &event.what
        {
            let (by, sum) = sent[&(*channel, *number)];
            assert_eq!(checksum(message), sum);
            let (before, after) = (by.clock.counts(), event.clock.counts());
            assert!(
                before
                    .iter()
                    .zip(after)
                    .all(|(before, after)| before <= after)
            );
            handled += 1;
        }
        for each in &event.sends {
            sent.insert((each.channel, each.number), (event, each.checksum));
        }
    }
    assert!(handled > 50, "{handled} handled");
}

#[test]
fn the_own_counter_goes_up_by_one_and_goes_on_after_a_restore() {
    let world = run(bank(2), true);
    let mut last = BTreeMap::new();
    let mut starts = Vec::new();
    for event in world.trace() {
        let own = event.clock.of(event.process);
        if let What::Start { restored } = event.what {
            starts.push((event.generation, restored.get(), own));
        } else {
            let before = last[&(event.process, event.generation)];
            assert_eq!(own, before + 1, "{event:?}");
        }
        last.insert((event.process, event.generation), own);
    }
    let begun_anew = starts
        .iter()
        .filter(|(generation, ..)| *generation == Generation::new(2));
    let begun_anew: Vec<_> = begun_anew.collect();
    assert_eq!(begun_anew.len(), 3);
    for (_, restored, own) in begun_anew {
        assert!(
            *restored > 0 && *own > 1,
            "it goes on from the snapshot's clock"
        );
    }
}

/// How many events of each process there are before anyone else's next, by generation.
type Happened = BTreeMap<(Generation, ProcessId), u64>;

/// Whether an event knows of another's event that has not happened.
fn knows_the_future(event: &Event, happened: &Happened) -> bool {
    let others = happened.range((event.generation, ProcessId::new(0))..);
    let mut others = others.take_while(|((generation, _), _)| *generation == event.generation);
    others.any(|((_, other), count)| *other != event.process && event.clock.of(*other) > *count)
}

#[test]
fn nobody_knows_of_an_event_that_has_not_happened_whatever_is_restored() {
    let mut restored_inconsistent = 0;
    for (seed, mode) in (0..20).zip([Mode::Classic, Mode::AtLeastOnce].into_iter().cycle()) {
        let mut job = bank(seed);
        job.policy.mode = mode;
        let world = run(job, true);
        let mut happened = Happened::new();
        for event in world.trace() {
            if let What::Start { restored } = event.what {
                let own = event.clock.of(event.process);
                happened.insert((event.generation, event.process), own - 1);
                let manifest = world
                    .manifests()
                    .find(|manifest| manifest.snapshot == restored);
                let verdicts = manifest.map(|m| judge_manifest(&world.job().topology, m));
                let broken = verdicts.is_some_and(|verdicts| !verdicts.hold());
                restored_inconsistent += u32::from(broken);
            }
        }
        for event in world.trace() {
            assert!(!knows_the_future(event, &happened), "{seed}: {event:?}");
            let own = event.clock.of(event.process);
            happened.insert((event.generation, event.process), own);
        }
    }
    assert!(
        restored_inconsistent > 0,
        "no cut was restored that is not consistent"
    );
}

#[test]
fn every_snapshot_of_a_traced_job_is_causal_by_its_clocks() {
    let world = run(bank(3), true);
    let manifests = world.manifests().filter(|manifest| manifest.is_complete());
    let mut judged = 0;
    for manifest in manifests {
        let verdicts = judge_manifest(&world.job().topology, manifest);
        assert!(verdicts.hold(), "{verdicts}");
        let causal = verdicts.get("causal").expect("there where clocks are");
        assert_eq!(causal.holds, cutline::check::Answer::Yes, "{verdicts}");
        judged += 1;
    }
    assert!(judged > 3, "{judged} snapshots");
}

#[test]
fn a_job_that_is_not_traced_says_nothing() {
    let mut job = bank(3);
    job.process.trace = false;
    let world = run(job, true);
    assert!(world.trace().is_empty());
    for manifest in world.manifests().filter(|manifest| manifest.is_complete()) {
        let verdicts = judge_manifest(&world.job().topology, manifest);
        assert!(verdicts.hold() && verdicts.get("causal").is_none());
    }
}
