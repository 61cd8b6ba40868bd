//! A stop asked for at any point of whatever is going on: the job ends with one last snapshot that
//! can be restored, or goes on and says why.

use std::cell::Cell;

use cutline::protocol::collector::{Answer, Request};
use cutline::protocol::link::Limits;
use cutline::world::{Choice, Fate, Fault, World};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::diary::{Conduct, Diary};
use crate::worlds::{STEPS_MAX, assert_exact, for_all, job, p, snapshot, started};

fn pick(world: &mut World<Diary>, kind: u8, pick: usize) {
    match kind {
        0..20 => drop(world.ask(snapshot())),
        20..24 => world.apply(&Choice::Fault(Fault::Crash(p(pick as u32 % 3 + 1)))),
        24..26 => world.apply(&Choice::Fault(Fault::CrashCollector)),
        26..28 => world.apply(&Choice::Fault(Fault::BreakControl(p(pick as u32 % 3 + 1)))),
        28..30 if world.is_running() => world.apply(&Choice::Store(0, Fate::Failed)),
        30..32 if world.is_running() => world.apply(&Choice::Store(0, Fate::Unknown)),
        32..34 => drop(world.ask(Request::Restore(None))),
        _ => {
            let choices = world.choices();
            if !choices.is_empty() {
                world.apply(&choices[pick % choices.len()]);
            }
        }
    }
}

#[test]
fn a_stop_at_any_point_ends_the_job_with_a_last_snapshot_or_is_refused_and_the_job_goes_on() {
    let picks = || vec((any::<u8>(), any::<u16>()), 0..120);
    let (ended, refused, unheard) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for_all(300, &(picks(), picks()), |(before, after)| {
        let conduct = Conduct {
            budget: 20,
            burst: 1,
            hops: 2,
            copies: 1,
            bytes: 9,
        };
        let ring = ["p1→p2", "p2→p3", "p3→p1", "p1→p3"];
        let mut world = started(job(3, &ring, Limits::default(), &conduct));
        for (kind, at) in before {
            pick(&mut world, kind, usize::from(at));
        }
        let asker = world.ask(Request::Stop);
        for (kind, at) in after {
            if world.ended.is_none() {
                pick(&mut world, kind, usize::from(at));
            }
        }
        assert!(world.stabilize(STEPS_MAX));
        // What was lost on a broken control stream is made up for by the deadline, what could not
        // be written by the next try.
        world.apply(&Choice::Fault(Fault::Pass(20_000)));
        assert!(world.stabilize(STEPS_MAX));
        let running = world.is_running();
        match (world.ended.clone(), world.answer(asker)) {
            (Some(Ok(())), Some(Ok(Answer::Stopped(last)))) => {
                let mut manifests = world.manifests();
                let stands = manifests.find(|manifest| manifest.snapshot == *last);
                assert!(stands.unwrap().is_complete(), "{last} can be restored");
                ended.set(ended.get() + 1);
            }
            (None, Some(Err(reason))) => {
                assert!(running && !reason.is_empty(), "{reason}");
                refused.set(refused.get() + 1);
            }
            // The collector that was asked is gone, and whoever asked knows.
            (None, None) => {
                assert!(running);
                unheard.set(unheard.get() + 1);
            }
            other => panic!("{other:?}"),
        }
        assert_exact(&world);
    });
    let seen = (ended.get(), refused.get(), unheard.get());
    assert!(
        seen.0 > 100 && seen.1 > 20,
        "ended, refused, not heard of: {seen:?}"
    );
}
