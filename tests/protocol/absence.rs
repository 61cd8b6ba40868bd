//! Time that passes without a word: whose fault it is, and who is pointed out.

use cutline::protocol::collector::{CollectorInput, Policy};
use cutline::protocol::events::Holding;
use cutline::protocol::ids::Incarnation;

use crate::desk::{Desk, g, holds};
use crate::membership::running;
use crate::store::Store;
use crate::worlds::{p, policy, snapshot};

#[test]
fn a_process_whose_node_never_joins_is_pointed_out_again_and_again() {
    let (_, mut store) = running();
    let mut second = Desk::new(2, policy(), 2);
    second.pass(60_000);
    assert_eq!(second.absent, [], "it does not lead yet");
    second.settle(&mut store);
    second.join(2, 1, holds(1));
    second.pass(4_950);
    assert_eq!(second.absent, []);
    second.pass(50);
    assert_eq!(second.absent, [p(1)]);
    second.pass(5_000);
    assert_eq!(second.absent, [p(1), p(1)]);
    second.join(1, 7, Holding::Nothing);
    second.obey(&mut store);
    assert_eq!((second.phase(), second.generation()), ("running", g(2)));
    second.pass(60_000);
    assert_eq!(second.absent, [p(1), p(1)]);
}

#[test]
fn a_lost_process_is_absent_only_after_its_replacement_had_its_time() {
    let (mut desk, mut store) = running();
    desk.gone(1, 1);
    desk.pass(550);
    assert_eq!(desk.lost(), [p(1)]);
    desk.pass(10_000);
    assert_eq!(desk.absent, [], "before the next generation is on record");
    desk.settle(&mut store);
    assert_eq!(desk.replaced, [(p(1), Incarnation::new(1))]);
    desk.pass(4_950);
    assert_eq!(desk.absent, []);
    desk.pass(50);
    assert_eq!(desk.absent, [p(1)]);
}

#[test]
fn a_collector_that_slept_blames_nobody() {
    let (mut desk, mut store) = running();
    desk.join(2, 9, Holding::Nothing);
    desk.ask(snapshot());
    desk.settle(&mut store);
    desk.part(1, 1, 1, g(1));
    desk.gone(1, 1);
    desk.sleep(3_600_000);
    assert_eq!(desk.lost(), [], "nobody is lost");
    assert!(desk.dismissed.is_empty(), "no claimant has waited in vain");
    assert_eq!(
        desk.failures(),
        Vec::<&str>::new(),
        "and no snapshot is late"
    );
    // What was in the sockets is heard now.
    desk.join(1, 1, holds(1));
    desk.part(2, 1, 1, g(1));
    desk.settle(&mut store);
    assert_eq!(store.complete(1), Some(true));
    assert_eq!((desk.phase(), desk.generation()), ("running", g(1)));
    // Awake, it waits no longer than ever.
    desk.pass_in_silence(5_050);
    assert_eq!(desk.lost(), [p(1), p(2)]);
}

#[test]
fn a_collector_that_is_starved_still_gets_to_its_deadlines() {
    let (mut desk, _) = running();
    for _ in 0..100 {
        desk.sleep(1_000);
    }
    assert_eq!(desk.lost(), [p(1), p(2)]);
}

/// The shortest that a job file may ask for: nodes say that they live four times in it.
#[test]
fn a_starved_collector_blames_nobody_however_short_its_deadlines_are() {
    let policy = Policy {
        silence_ms: 100,
        timeout_ms: 100,
        ..policy()
    };
    let mut store = Store::default();
    let mut desk = Desk::running(2, policy, &mut store);
    desk.ask(snapshot());
    desk.settle(&mut store);
    for _ in 0..10 {
        // What was said meanwhile is heard only after the time.
        desk.sleep(1_000);
        assert_eq!(
            (desk.lost(), desk.collector.status().failures_in_row),
            (vec![], 0)
        );
        desk.parts(desk.open()[0].get());
        desk.settle(&mut store);
        for process in [1, 2] {
            let beat = CollectorInput::Heartbeat(p(process), Incarnation::new(1));
            desk.step(beat);
        }
        desk.ask(snapshot());
        desk.settle(&mut store);
    }
    desk.sleep(1_000);
    desk.sleep(1_000);
    assert_eq!(desk.lost(), [p(1), p(2)], "of whom nothing was heard");
}
