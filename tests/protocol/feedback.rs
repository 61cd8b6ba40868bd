//! When a receiver tells its sender what it has: what presses goes at once, the rest when there is
//! time, and neither stalls the sender nor has it keep more than a window.

use cutline::protocol::ids::ChannelId;
use cutline::protocol::link::{Limits, Outbox};
use cutline::world::{Choice, World};

use crate::diary::{Conduct, Diary};
use crate::solo::{Solo, batch, ch, marker, topology};
use crate::worlds::{STEPS_MAX, assert_delivered, job, p, run_without, started};

const ON: &str = "p1→p2";

/// A window of forty messages, and bytes for two of the longest.
fn limits() -> Limits {
    Limits {
        window_messages: 40,
        window_bytes: 1000,
        message_bytes_max: 400,
        ..Limits::default()
    }
}

/// A receiver, its input's stream open.
fn receiver(limits: Limits) -> Solo {
    let mut solo = Solo::running(&topology(2, &[ON]), 2, limits);
    solo.opened(ON);
    solo
}

fn presses(solo: &Solo) -> bool {
    solo.process.pressing().any(|channel| channel == ch(ON))
}

fn has_news(solo: &Solo) -> bool {
    solo.process.writable().any(|channel| channel == ch(ON))
}

#[test]
fn acknowledgement_of_a_few_messages_waits_until_there_is_time() {
    let mut solo = receiver(limits());
    solo.arrived(ON, batch(1, &[9; 9]));
    assert!(!presses(&solo) && !has_news(&solo), "it is being handled");
    solo.take_all();
    assert!(!presses(&solo), "nine of forty");
    assert!(has_news(&solo), "but worth a word when there is time");
    let (_, said) = solo.write_all(ON);
    assert_eq!(said.len(), 1);
    assert!(!has_news(&solo), "said once");
}

#[test]
fn a_quarter_of_the_window_presses_whether_it_has_come_or_been_handled() {
    let mut solo = receiver(limits());
    solo.arrived(ON, batch(1, &[9; 10]));
    assert!(presses(&solo), "ten of forty have come");
    solo.write_all(ON);
    assert!(!presses(&solo));
    solo.take_all();
    assert!(presses(&solo), "ten of forty may be sent again");
}

#[test]
fn a_marker_presses() {
    let mut solo = receiver(limits());
    solo.arrived(ON, marker(1, 1, 0));
    assert!(presses(&solo));
    solo.take_all();
    solo.write_all(ON);
    assert!(!presses(&solo) && !has_news(&solo));
}

#[test]
fn credit_that_the_longest_message_might_not_fit_into_presses() {
    // The longest takes 404 bytes, the shortest 13: behind it the longest does not fit.
    let narrow = Limits {
        window_bytes: 404 + 12,
        ..limits()
    };
    for (limits, is_short) in [(limits(), false), (narrow, true)] {
        let mut solo = receiver(limits);
        solo.arrived(ON, batch(1, &[9]));
        assert!(!presses(&solo), "it is still to be handled");
        solo.take_all();
        assert_eq!(presses(&solo), is_short);
    }
}

fn outbox(world: &World<Diary>) -> &Outbox {
    &world.process(p(1)).unwrap().outboxes()[0]
}

fn does_not_press(world: &World<Diary>, choice: &Choice) -> bool {
    let Choice::Acknowledge(channel) = *choice else {
        return false;
    };
    let receiver = world.process(channel.to).unwrap();
    !receiver.pressing().any(|pressing| pressing == channel)
}

#[test]
fn who_says_only_what_presses_stalls_no_sender_and_a_window_is_all_that_is_kept() {
    let conduct = Conduct {
        budget: 500,
        burst: 3,
        bytes: 60,
        ..Conduct::default()
    };
    let on: ChannelId = ch(ON);
    let mut world = started(job(2, &[ON], limits(), &conduct));
    let (mut held_back, mut said, mut most) = (0, 0, 0);
    for _ in 0..STEPS_MAX {
        let choices = world.choices();
        let Some(choice) = choices
            .iter()
            .find(|choice| !does_not_press(&world, choice))
        else {
            break;
        };
        match *choice == Choice::Acknowledge(on) {
            true => said += 1,
            false => held_back += usize::from(choices.contains(&Choice::Acknowledge(on))),
        }
        world.apply(choice);
        most = most.max(outbox(&world).unacknowledged());
    }
    assert_delivered(&world);
    assert_eq!(world.process(p(2)).unwrap().handled(), 500);
    assert!(most <= 15, "as many as the window's bytes hold: {most}");
    assert!(
        (1..250).contains(&said),
        "few words for many messages: {said}"
    );
    assert!(
        held_back > 100,
        "there was more that could have been said: {held_back}"
    );
}

#[test]
fn what_did_not_press_is_said_in_the_end_and_nothing_is_kept() {
    let mut world = started(job(2, &[ON], limits(), &Conduct::default()));
    for _ in 0..3 {
        world.command(p(1), "send p1→p2 9");
    }
    run_without(&mut world, |choice| {
        matches!(choice, Choice::Acknowledge(_))
    });
    assert_delivered(&world);
    assert_eq!(outbox(&world).unacknowledged(), 3);
    assert!(world.stabilize(STEPS_MAX));
    assert_eq!(outbox(&world).unacknowledged(), 0);
}
