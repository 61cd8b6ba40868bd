//! The events of a job in memory, and their vector clocks.

use std::collections::BTreeMap;

use cutline::check::judge_manifest;
use cutline::protocol::ids::{ChannelId, Generation, MessageNumber};
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
