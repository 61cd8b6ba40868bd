//! Backpressure without deadlock (design section 3): off cycles a full output stops taking and
//! granting credit, markers pass all the same, on cycles handling goes on and only new work waits,
//! and what grows without end ends the node by name.

use std::collections::BTreeSet;

use cutline::protocol::collector::Request;
use cutline::protocol::ids::ChannelId;
use cutline::protocol::link::Limits;
use cutline::world::{Choice, Notice, World};

use crate::diary::{Conduct, Diary};
use crate::solo::{ch, s};
use crate::worlds::{assert_delivered, assert_exact, job, manifest, p, run_without, started};

/// Outboxes of a few messages, inboxes of four.
fn tight() -> Limits {
    Limits {
        window_messages: 4,
        outbox_bytes: 60,
        ..Limits::default()
    }
}

fn queued(world: &World<Diary>, on: &str) -> u64 {
    let mut outboxes = world.process(ch(on).from).unwrap().outboxes().iter();
    outboxes
        .find(|outbox| outbox.channel() == ch(on))
        .unwrap()
        .queued_bytes()
}

fn takable(world: &World<Diary>, on: &str) -> bool {
    let receiver = world.process(ch(on).to).unwrap();
    receiver.takable().any(|channel| channel == ch(on))
}

fn take(on: &str) -> impl Fn(&Choice) -> bool {
    let channel: ChannelId = ch(on);
    move |choice| *choice == Choice::Take(channel)
}

fn send(on: &str) -> impl Fn(&Choice) -> bool {
    let channel: ChannelId = ch(on);
    move |choice| *choice == Choice::Send(channel)
}

fn nothing(_: &Choice) -> bool {
    false
}

/// p1 → p2 → p3, where p1 has a hundred messages for p2, each to be sent on to p3.
fn chain() -> World<Diary> {
    let conduct = Conduct {
        budget: 100,
        burst: 1,
        hops: 1,
        copies: 1,
        bytes: 9,
    };
    let mut job = job(3, &["p1→p2", "p2→p3"], tight(), &conduct);
    job.policy.initiators = BTreeSet::from([p(1), p(2), p(3)]);
    started(job)
}

#[test]
fn a_full_output_stops_taking_and_granting_credit_all_the_way_up_a_chain() {
    let mut world = chain();
    run_without(&mut world, take("p2→p3"));
    let bound = tight().outbox_bytes;
    assert!(
        queued(&world, "p2→p3") > bound,
        "p3 takes nothing, so p2 is full"
    );
    assert!(!takable(&world, "p1→p2"), "and takes nothing itself");
    assert!(
        queued(&world, "p1→p2") > bound,
        "so it grants nothing, and p1 is full"
    );
    assert_eq!(
        world.process(p(1)).unwrap().pace(),
        None,
        "p1 starts no new work"
    );
    let sent = world.process(p(1)).unwrap().sent();
    assert!(sent < 30, "all of it within the bounds: {sent}");
    run_without(&mut world, nothing);
    assert_delivered(&world);
    assert_eq!(
        world
            .process(p(3))
            .unwrap()
            .application()
            .unwrap()
            .handled_of(ch("p2→p3")),
        200
    );
}

#[test]
fn a_snapshot_waits_behind_messages_without_credit_and_completes_when_they_move() {
    let mut world = chain();
    run_without(&mut world, take("p2→p3"));
    world.ask(crate::worlds::snapshot());
    run_without(&mut world, take("p2→p3"));
    let waiting: Vec<_> = world.process(p(2)).unwrap().recordings().collect();
    assert_eq!(
        waiting,
        [(s(1), vec![ch("p1→p2"), ch("p2→p3")])],
        "it has recorded"
    );
    assert!(manifest(&world, 1).is_none());
    run_without(&mut world, nothing);
    assert!(manifest(&world, 1).unwrap().is_complete());
    let (complete, in_flight) = assert_exact(&world);
    assert!(
        complete == 1 && in_flight > 8,
        "what was stuck is in the channels: {in_flight}"
    );
}

/// p1 and p4 send to p2, which sends on to p3.
fn fan_in(limits: Limits) -> World<Diary> {
    let channels = ["p1→p2", "p4→p2", "p2→p3"];
    let conduct = Conduct {
        hops: 0,
        ..Conduct::default()
    };
    started(job(4, &channels, limits, &conduct))
}

#[test]
fn markers_are_taken_while_messages_are_not() {
    let limits = Limits {
        outbox_bytes: 60,
        ..Limits::default()
    };
    let mut world = fan_in(limits);
    for _ in 0..10 {
        world.command(p(2), "send p2→p3 9");
    }
    world.command(p(1), "send p1→p2 9");
    world.ask(Request::snapshot(BTreeSet::from([p(1), p(4)])));
    run_without(&mut world, send("p2→p3"));
    assert!(
        !takable(&world, "p1→p2"),
        "a message is at its head and p2's output is full"
    );
    assert!(!takable(&world, "p4→p2"), "a marker was at this one's");
    let recordings: Vec<_> = world.process(p(2)).unwrap().recordings().collect();
    assert_eq!(
        recordings,
        [(s(1), vec![ch("p2→p3")])],
        "which p2 has taken"
    );
    // What is ahead of the marker needs credit and no more: p3 need not have handled it.
    let held = |choice: &Choice| take("p2→p3")(choice);
    run_without(&mut world, held);
    assert!(
        world
            .process(p(2))
            .unwrap()
            .recordings()
            .all(|(_, waits)| waits.is_empty())
    );
    run_without(&mut world, nothing);
    assert!(manifest(&world, 1).unwrap().is_complete());
    assert_exact(&world);
}

#[test]
fn one_full_output_stops_every_input_that_is_not_on_a_cycle_with_it() {
    let channels = ["p1→p2", "p2→p1", "p2→p3"];
    let mut world = started(job(3, &channels, tight(), &Conduct::default()));
    for _ in 0..10 {
        world.command(p(2), "send p2→p3 9");
    }
    world.command(p(1), "send p1→p2 9");
    run_without(&mut world, send("p2→p3"));
    assert!(!takable(&world, "p1→p2"), "p2→p3 leads out of the cycle");
    run_without(&mut world, nothing);
    assert_delivered(&world);
}

#[test]
fn on_a_cycle_handling_goes_on_behind_a_full_output_and_only_new_work_waits() {
    let conduct = Conduct {
        budget: 50,
        burst: 10,
        hops: 2,
        copies: 1,
        bytes: 9,
    };
    let mut world = started(job(2, &["p1→p2", "p2→p1"], tight(), &conduct));
    run_without(&mut world, send("p1→p2"));
    let bound = tight().outbox_bytes;
    assert!(queued(&world, "p1→p2") > bound);
    assert!(!takable(&world, "p2→p1"), "there is nothing left to handle");
    let handled = world.process(p(1)).unwrap().handled();
    assert!(handled >= 10, "p1 has handled all that came: {handled}");
    assert_eq!(
        world.process(p(1)).unwrap().pace(),
        None,
        "but starts nothing new"
    );
    run_without(&mut world, nothing);
    assert_delivered(&world);
}

#[test]
fn an_application_that_sends_more_on_a_cycle_than_it_takes_in_ends_its_node_by_name() {
    let conduct = Conduct {
        budget: 4,
        burst: 4,
        hops: 40,
        copies: 2,
        bytes: 9,
    };
    let limits = Limits {
        outbox_bytes_max: 2_000,
        ..tight()
    };
    let mut world = started(job(2, &["p1→p2", "p2→p1"], limits, &conduct));
    let mut failed = None;
    for _ in 0..100_000 {
        let choices = world.choices();
        let next = choices
            .iter()
            .find(|choice| !matches!(choice, Choice::Start(_)))
            .unwrap();
        world.apply(next);
        failed = world
            .take_notices()
            .into_iter()
            .find_map(|notice| match notice {
                Notice::Failed(process, reason) => Some((process, reason)),
                _ => None,
            });
        if failed.is_some() {
            break;
        }
    }
    let (process, reason) = failed.expect("a queue that grows without end ends the node");
    let channel = world.job().topology.outputs(process)[0].to_string();
    assert!(
        reason.contains(&format!("the outbox of {channel} holds")),
        "{reason}"
    );
    assert!(reason.contains("over outbox_bytes_max = 2000"), "{reason}");
    assert!(world.process(process).is_none(), "the node is gone");
}

#[test]
fn a_ring_in_which_everyone_sends_more_than_the_bounds_does_not_deadlock() {
    let conduct = Conduct {
        budget: 200,
        burst: 50,
        hops: 3,
        copies: 1,
        bytes: 9,
    };
    let limits = Limits {
        window_messages: 2,
        outbox_bytes: 30,
        ..Limits::default()
    };
    let ring = ["p1→p2", "p2→p3", "p3→p4", "p4→p1"];
    let mut world = started(job(4, &ring, limits, &conduct));
    run_without(&mut world, nothing);
    assert_delivered(&world);
    for process in world.job().topology.processes() {
        assert_eq!(world.process(process).unwrap().handled(), 200 * 4);
    }
}

#[test]
fn two_that_send_a_hundred_thousand_at_once_do_not_deadlock() {
    let conduct = Conduct {
        budget: 100_000,
        burst: 100_000,
        hops: 0,
        copies: 0,
        bytes: 9,
    };
    let mut world = started(job(2, &["p1→p2", "p2→p1"], Limits::default(), &conduct));
    run_without(&mut world, |choice| !matches!(choice, Choice::Tick(_)));
    let full = queued(&world, "p1→p2").min(queued(&world, "p2→p1"));
    assert!(
        full > Limits::default().outbox_bytes,
        "both are over their bounds: {full}"
    );
    let mut turns = 0;
    while [p(1), p(2)]
        .iter()
        .any(|&id| world.process(id).unwrap().handled() < 100_000)
    {
        for channel in [ch("p1→p2"), ch("p2→p1")] {
            for step in [
                Choice::Send,
                Choice::Arrive,
                Choice::Acknowledge,
                Choice::Hear,
            ] {
                world.apply(&step(channel));
            }
            while world
                .process(channel.to)
                .unwrap()
                .takable()
                .any(|input| input == channel)
            {
                world.apply(&Choice::Take(channel));
            }
        }
        turns += 1;
        assert!(turns < 1_000, "it does not move");
    }
    assert_delivered(&world);
}
