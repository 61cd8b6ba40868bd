//! Two machines joined by streams that break everywhere: what is sent is handled once, in order,
//! markers keep their place, credit is never exceeded, and after the last break nothing is stuck.

use std::cell::Cell;

use cutline::protocol::link::Limits;
use cutline::world::{Choice, Fault, World};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::diary::{Conduct, Diary, MESSAGE_BYTES_MIN};
use crate::solo::ch;
use crate::worlds::{
    STEPS_MAX, assert_delivered, assert_exact, breaches, for_all, job, p, snapshot, started,
};

const CHANNELS: [&str; 3] = ["p1→p2", "p1→p2#2", "p2→p1"];

/// One random run of two processes.
#[derive(Clone, Debug)]
struct Plan {
    window_messages: u64,
    /// The longest message, and how many bytes the window has beyond what it takes.
    bytes_max: usize,
    slack: u64,
    picks: Vec<(u8, u16)>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let windows = prop_oneof![Just(1_u64), Just(2), Just(5), Just(1_000)];
    let lengths = prop_oneof![Just(MESSAGE_BYTES_MIN), Just(40), Just(3_000)];
    let slack = prop_oneof![Just(0_u64), Just(1), Just(60), Just(1 << 20)];
    let picks = vec((any::<u8>(), any::<u16>()), 20..300);
    (windows, lengths, slack, picks).prop_map(|(window_messages, bytes_max, slack, picks)| Plan {
        window_messages,
        bytes_max,
        slack,
        picks,
    })
}

impl Plan {
    fn world(&self) -> World<Diary> {
        let limits = Limits {
            window_messages: self.window_messages,
            // As long as the message, and not a byte more, is still enough.
            window_bytes: self.bytes_max as u64 + self.slack,
            message_bytes_max: self.bytes_max as u64,
            ..Limits::default()
        };
        started(job(2, &CHANNELS, limits, &Conduct::default()))
    }

    fn pick(&self, world: &mut World<Diary>, kind: u8, pick: usize, lost: &Cell<usize>) {
        let channel = ch(CHANNELS[pick % CHANNELS.len()]);
        match kind {
            0..60 => {
                let bytes = MESSAGE_BYTES_MIN + pick % (self.bytes_max - MESSAGE_BYTES_MIN + 1);
                world.command(channel.from, &format!("send {channel} {bytes}"));
            }
            60..70 => {
                world.ask(snapshot());
            }
            70..90 => {
                lost.set(lost.get() + world.on_the_wire(channel));
                world.apply(&Choice::Fault(Fault::Break(channel)));
            }
            // Sooner than the receiver would of itself.
            90..100 => world.apply(&Choice::Acknowledge(channel)),
            _ => {
                let choices = world.choices();
                if !choices.is_empty() {
                    world.apply(&choices[pick % choices.len()]);
                }
            }
        }
    }
}

#[test]
fn everything_is_handled_once_in_order_however_often_streams_break() {
    let (lost, complete, in_flight) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for_all(400, &plans(), |plan| {
        let mut world = plan.world();
        for &(kind, pick) in &plan.picks {
            plan.pick(&mut world, kind, usize::from(pick), &lost);
        }
        assert!(world.stabilize(STEPS_MAX), "it comes to rest");
        assert_delivered(&world);
        assert_eq!(breaches(&world.take_notices()), 0);
        let status = world.collector().unwrap().status();
        assert_eq!((status.phase, status.open), ("running", Vec::new()));
        assert_eq!(status.aborted_count, 0, "breaks abort nothing");
        let (whole, recorded) = assert_exact(&world);
        complete.set(complete.get() + whole);
        in_flight.set(in_flight.get() + recorded);
    });
    let seen = (lost.get(), complete.get(), in_flight.get());
    assert!(
        seen.0 > 1_000,
        "frames are lost on broken streams: {seen:?}"
    );
    assert!(seen.1 > 500, "markers go between the messages: {seen:?}");
    assert!(seen.2 > 500, "and cut some of them off: {seen:?}");
}

#[test]
fn a_message_as_long_as_the_window_gets_through() {
    let limits = Limits {
        window_messages: 1,
        window_bytes: 100,
        message_bytes_max: 100,
        ..Limits::default()
    };
    let mut world = started(job(2, &CHANNELS, limits, &Conduct::default()));
    for _ in 0..3 {
        world.command(p(1), "send p1→p2 100");
    }
    assert!(world.stabilize(STEPS_MAX));
    assert_delivered(&world);
    assert_eq!(world.process(p(2)).unwrap().handled(), 3);
}

#[test]
fn a_frame_carries_what_is_queued_and_a_resent_one_is_cut_anew_by_the_credit() {
    let limits = Limits {
        window_messages: 2,
        ..Limits::default()
    };
    let mut world = started(job(2, &CHANNELS, limits, &Conduct::default()));
    let channel = ch("p1→p2");
    for _ in 0..5 {
        world.command(p(1), "send p1→p2 9");
    }
    world.apply(&Choice::Send(channel));
    assert_eq!(world.on_the_wire(channel), 1, "one frame");
    let outbox = |world: &World<Diary>| {
        let mut outboxes = world.process(p(1)).unwrap().outboxes().iter();
        outboxes
            .find(|outbox| outbox.channel() == channel)
            .unwrap()
            .unacknowledged()
    };
    assert_eq!(outbox(&world), 2, "as many messages as the window holds");
    world.apply(&Choice::Send(channel));
    assert_eq!(world.on_the_wire(channel), 1, "and no more without credit");
    world.apply(&Choice::Fault(Fault::Break(channel)));
    world.apply(&Choice::Open(channel));
    world.apply(&Choice::Hear(channel));
    assert_eq!(outbox(&world), 0, "what was lost waits again");
    assert!(world.stabilize(STEPS_MAX));
    assert_delivered(&world);
}
