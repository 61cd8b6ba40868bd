//! An order of what all processes did, from what each wrote down.

use cutline::check::linearise;
use cutline::protocol::ids::ProcessId;
use cutline::protocol::trace::Event;

use crate::stage::{bank, events, logged, run};

/// Every event follows what it knows of, which is all of it there.
fn assert_causal(order: &[Event]) {
    let first = |process| {
        let mut own = order.iter().filter(|event| event.process == process);
        own.next().map_or(0, |event| event.clock.of(process) - 1)
    };
    let mut placed: Vec<u64> = (0..3).map(|index| first(ProcessId::new(index))).collect();
    for event in order {
        placed[event.process.index()] += 1;
        let known = event.clock.counts().iter().zip(&placed);
        assert!(
            known.clone().all(|(known, placed)| known <= placed),
            "{event:?}"
        );
        assert_eq!(event.clock.of(event.process), placed[event.process.index()]);
    }
}

#[test]
fn true_times_give_the_true_order() {
    let world = run(bank(11), true);
    for generation in [1, 2] {
        let events = events(&world, generation);
        let order = linearise(&logged(&events, |place, _| place as u64));
        assert_eq!(order.events, events);
        assert!(order.left.is_empty());
    }
}

#[test]
fn whatever_the_clocks_of_the_hosts_say_causes_come_first() {
    let world = run(bank(12), false);
    let events = events(&world, 1);
    let skewed =
        |place: usize, event: &Event| place as u64 + [400, 0, 100_000][event.process.index()];
    let order = linearise(&logged(&events, skewed));
    assert_eq!(order.events.len(), events.len());
    assert_ne!(order.events, events, "the times are wrong, and that shows");
    assert_causal(&order.events);
}

#[test]
fn a_lost_tail_takes_with_it_what_knows_of_it_and_nothing_else() {
    let world = run(bank(13), false);
    let events = events(&world, 1);
    let mut torn = logged(&events, |place, _| place as u64);
    let kept = torn[1].len() / 2;
    torn[1].truncate(kept);
    let order = linearise(&torn);
    assert_causal(&order.events);
    let two = ProcessId::new(1);
    let last = torn[1].last().unwrap().event.clock.of(two);
    for process in [0, 2].map(ProcessId::new) {
        let all = torn[process.index()].iter().map(|logged| &logged.event);
        let knows_more = |event: &&Event| event.clock.of(two) > last;
        let left = order
            .left
            .iter()
            .find(|left| left.process == process)
            .unwrap();
        assert_eq!((left.missing, left.written), (two, last));
        assert_eq!(
            left.events,
            all.clone().count() - all.take_while(|e| !knows_more(e)).count()
        );
    }
}
