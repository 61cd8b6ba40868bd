//! Words of the past. What a process is told by an older term, or what comes on streams of an
//! older generation, changes nothing in it: a node that was paused is a zombie, and so is a
//! collector.

use cutline::protocol::events::{Holding, Order, Report};
use cutline::protocol::frame::{Feedback, Greeting};
use cutline::protocol::ids::{Generation, JobId};
use cutline::protocol::link::Limits;
use cutline::protocol::mode::Mode;
use cutline::protocol::{Effect, Input};

use crate::solo::{
    G1, G2, PEER, Solo, T1, T2, batch, captured, ch, declined, expects, marker, on_disk, read_back,
    s, standing, stored, topology,
};

pub(crate) const IN: &str = "p1→p2";
pub(crate) const OUT: &str = "p2→p1";
const G3: Generation = Generation::new(3);

fn fresh() -> Solo {
    Solo::new(&topology(2, &[IN, OUT]), 2, Limits::default())
}

/// p2 in the first generation, its streams open.
pub(crate) fn running() -> Solo {
    let mut solo = Solo::running(&topology(2, &[IN, OUT]), 2, Limits::default());
    solo.opened(IN);
    solo.welcomed(OUT, expects(1, 1));
    solo
}

/// p2 taken back: in the second generation, in the second term, from s7, its streams open.
fn taken_back() -> Solo {
    let mut solo = running();
    solo.told(T2, Order::Prepare(G2, s(7)));
    let part = read_back(&topology(2, &[IN, OUT]), 2, 7);
    solo.step(Input::Loaded(G2, Ok(part)));
    solo.told(T2, Order::Run(G2));
    assert_eq!(solo.process.holding(), Holding::Running(G2));
    assert!(matches!(
        solo.dialled(IN, G2, PEER),
        Greeting::Welcome { .. }
    ));
    let greeting = Greeting::Welcome {
        incarnation: PEER,
        feedback: expects(1, 1),
    };
    solo.step(Input::Greeted(ch(OUT), G2, greeting));
    solo
}

#[test]
fn frames_and_words_of_an_older_generation_change_nothing() {
    let mut solo = taken_back();
    let refused = Greeting::Refused("no".to_owned());
    let welcome = Greeting::Welcome {
        incarnation: PEER,
        feedback: expects(1, 1),
    };
    let zombies = [
        Input::Arrived(ch(IN), G1, batch(1, &[9])),
        Input::Arrived(ch(IN), G1, marker(8, 1, 0)),
        Input::Heard(ch(OUT), G1, expects(1, 1)),
        Input::Greeted(ch(OUT), G1, welcome),
        Input::Greeted(ch(OUT), G1, refused),
    ];
    for zombie in zombies {
        assert!(solo.is_unmoved_by(zombie.clone()), "{zombie:?}");
    }
    let own = solo.step(Input::Arrived(ch(IN), G2, marker(8, 1, 0)));
    assert!(
        own.is_empty() && captured(&solo.take_all()),
        "on its own streams they do"
    );
}

#[test]
fn frames_and_words_of_a_newer_generation_change_nothing_either() {
    let mut solo = running();
    assert!(solo.is_unmoved_by(Input::Arrived(ch(IN), G2, batch(1, &[9]))));
    assert!(solo.is_unmoved_by(Input::Heard(ch(OUT), G2, expects(1, 1))));
}

#[test]
fn parts_loaded_or_stored_for_an_older_generation_change_nothing() {
    let mut solo = running();
    solo.trigger(1);
    solo.write_all(OUT);
    let effects = solo.arrived(IN, marker(1, 1, 0));
    let part = stored(&effects).expect("whole").clone();
    solo.told(T2, Order::Prepare(G2, s(7)));
    let graph = topology(2, &[IN, OUT]);
    assert!(
        solo.is_unmoved_by(Input::Stored(s(1), Ok(on_disk(&part)))),
        "while loading"
    );
    let zombie = Input::Loaded(G1, Ok(read_back(&graph, 2, 3)));
    assert!(
        solo.is_unmoved_by(zombie),
        "nor is the part of another generation taken"
    );
    solo.step(Input::Loaded(G2, Ok(read_back(&graph, 2, 7))));
    solo.told(T2, Order::Run(G2));
    assert!(solo.is_unmoved_by(Input::Stored(s(1), Ok(on_disk(&part)))));
    assert!(solo.is_unmoved_by(Input::Stored(s(1), Err("late".to_owned()))));
    assert!(solo.is_unmoved_by(Input::Loaded(G2, Ok(read_back(&graph, 2, 7)))));
    assert!(solo.is_unmoved_by(Input::Loaded(G1, Err("late".to_owned()))));
}

#[test]
fn orders_about_a_generation_that_is_over_change_nothing() {
    let mut solo = taken_back();
    for order in [
        Order::Prepare(G1, s(3)),
        Order::Prepare(G2, s(7)),
        Order::Run(G1),
        Order::Run(G2),
        Order::Run(G3),
    ] {
        let directive = cutline::protocol::events::Directive { term: T2, order };
        assert!(
            solo.is_unmoved_by(Input::Directive(directive.clone())),
            "{directive:?}"
        );
    }
}

/// A node of job j57, in the second term.
fn of_a_job() -> Solo {
    let mut solo = taken_back();
    let Order::Welcome(mut welcome) = standing(G2, 0, &[]) else {
        unreachable!("it is one");
    };
    welcome.job = JobId::new(57);
    solo.told(T2, Order::Welcome(welcome));
    solo
}

fn refused(job: u64) -> Order {
    Order::Refused {
        job: JobId::new(job),
        reason: "no".to_owned(),
    }
}

/// Its own collector's address may be another job's by now, and terms are counted in each job
/// anew. A collector of its own job that was paused says the same in vain.
#[test]
fn the_refusal_of_another_jobs_collector_counts_in_any_term() {
    let ends = |solo: &mut Solo, term, job| {
        let effects = solo.told(term, refused(job));
        matches!(&effects[..], [Effect::Fail(reason)] if reason.ends_with(": no"))
    };
    for (term, job, wanted) in [
        (T1, 58, true),
        (T1, 57, false),
        (T1, 0, false),
        (T2, 58, true),
        (T2, 57, true),
        (T2, 0, true),
    ] {
        assert_eq!(ends(&mut of_a_job(), term, job), wanted, "{term} {job}");
    }
    assert!(!ends(&mut taken_back(), T1, 58), "one that knows of no job");
}

#[test]
fn the_word_of_an_older_term_changes_nothing() {
    let mut solo = of_a_job();
    for order in [
        Order::Trigger(s(8), Mode::Classic.into()),
        Order::Prepare(G3, s(0)),
        Order::Ended {
            snapshot: s(9),
            complete: false,
            low: s(9),
        },
        standing(G2, 9, &[]),
        refused(0),
        refused(57),
        Order::Halt,
    ] {
        let directive = cutline::protocol::events::Directive { term: T1, order };
        assert!(
            solo.is_unmoved_by(Input::Directive(directive.clone())),
            "{directive:?}"
        );
    }
    assert!(
        captured(&solo.told(T2, Order::Trigger(s(8), Mode::Classic.into()))),
        "of its own it does"
    );
}

#[test]
fn a_run_counts_only_for_what_is_prepared() {
    let mut solo = fresh();
    solo.told(T1, Order::Run(G1));
    assert_eq!(solo.process.holding(), Holding::Nothing);
    solo.told(T1, Order::Prepare(G2, s(0)));
    solo.told(T1, Order::Run(G1));
    assert_eq!(solo.process.holding(), Holding::Prepared(G2));
}

#[test]
fn an_older_hello_is_refused_for_good_and_a_newer_one_is_asked_to_wait() {
    let refused = Greeting::Refused("generation g1 is over".to_owned());
    let mut solo = fresh();
    assert_eq!(
        solo.dialled(IN, G1, PEER),
        Greeting::NotYet,
        "it has none yet"
    );
    let mut solo = running();
    assert_eq!(solo.dialled(IN, G2, PEER), Greeting::NotYet);
    assert!(solo.arrived(IN, batch(1, &[9])).is_empty());
    assert_eq!(solo.take_all().len(), 0);
    assert_eq!(solo.handled(IN), 1, "the stream there is goes on");
    solo.told(T2, Order::Prepare(G2, s(7)));
    assert_eq!(solo.dialled(IN, G1, PEER), refused, "while it loads");
    assert_eq!(solo.dialled(IN, G2, PEER), Greeting::NotYet);
    solo.step(Input::Loaded(
        G2,
        Ok(read_back(&topology(2, &[IN, OUT]), 2, 7)),
    ));
    assert_eq!(solo.dialled(IN, G1, PEER), refused, "when it is prepared");
    assert!(matches!(
        solo.dialled(IN, G2, PEER),
        Greeting::Welcome { .. }
    ));
    assert_eq!(solo.dialled(IN, G3, PEER), Greeting::NotYet);
    assert_eq!(taken_back().dialled(IN, G1, PEER), refused, "when it runs");
}

#[test]
fn a_hello_for_another_job_or_another_place_is_refused_by_name() {
    let mut solo = running();
    let mut hello = solo.hello(G1, PEER);
    hello.topology ^= 1;
    let effects = solo.step(Input::Dialled(ch(IN), hello));
    let [Effect::Greet(_, Greeting::Refused(reason))] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert!(
        reason.contains("topology") && reason.contains("job file"),
        "{reason}"
    );
    let mut hello = solo.hello(G1, PEER);
    hello.job = JobId::new(58);
    let effects = solo.step(Input::Dialled(ch(IN), hello));
    let welcomed = matches!(
        effects.as_slice(),
        [Effect::Greet(_, Greeting::Welcome { .. })]
    );
    assert!(
        welcomed,
        "whose collector's word is on its way: {effects:?}"
    );
    let Order::Welcome(mut standing) = standing(G1, 0, &[]) else {
        unreachable!("a welcome");
    };
    standing.job = JobId::new(57);
    solo.told(T1, Order::Welcome(standing));
    let effects = solo.step(Input::Dialled(ch(IN), hello));
    let [Effect::Greet(_, Greeting::Refused(reason))] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert!(reason.contains("of job j58"), "{reason}");
    for wrong in ["p2→p1", "p1→p2#2", "p1→p3"] {
        let hello = solo.hello(G1, PEER);
        let effects = solo.step(Input::Dialled(ch(wrong), hello));
        let [Effect::Greet(_, Greeting::Refused(reason))] = effects.as_slice() else {
            panic!("{effects:?}");
        };
        assert_eq!(*reason, format!("{wrong} does not lead here"));
    }
}

#[test]
fn preparing_drops_queues_streams_and_recordings_of_the_generation_before() {
    let mut solo = running();
    solo.send(OUT, 9);
    solo.arrived(IN, batch(1, &[9]));
    solo.trigger(1);
    let effects = solo.told(T1, Order::Prepare(G2, s(7)));
    let hung_up = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Hangup(_, None)));
    assert_eq!(hung_up.count(), 2);
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Forget(id) if *id == s(1)))
    );
    assert!(matches!(
        effects.last(),
        Some(Effect::Load(generation, id)) if (*generation, *id) == (G2, s(7))
    ));
    solo.step(Input::Loaded(
        G2,
        Ok(read_back(&topology(2, &[IN, OUT]), 2, 7)),
    ));
    solo.told(T1, Order::Run(G2));
    assert_eq!(solo.take_all().len(), 0, "nothing of it is handled");
    assert_eq!(solo.process.outboxes()[0].queued_bytes(), 0, "nor sent");
    assert!(!captured(&solo.trigger(1)), "nor recorded");
}

#[test]
fn until_run_frames_are_queued_and_nothing_is_handled() {
    let mut solo = fresh();
    let effects = solo.told(T1, Order::Prepare(G1, s(0)));
    assert!(matches!(
        effects.last(),
        Some(Effect::Report(Report::Ready(generation))) if *generation == G1
    ));
    solo.opened(IN);
    solo.arrived(IN, batch(1, &[9]));
    solo.arrived(IN, marker(1, 1, 1));
    assert!(solo.take_all().is_empty());
    assert!(solo.step(Input::Take(ch(IN), 9)).is_empty());
    assert_eq!((solo.handled(IN), solo.process.pace()), (0, None));
    let refused = solo.step(Input::Command(format!("send {OUT} 9")));
    assert!(matches!(refused.as_slice(), [Effect::Commanded(Err(_))]));
    let (id, reason) = declined(&solo.trigger(2))
        .map(|(id, why)| (id, why.to_owned()))
        .unwrap();
    assert_eq!((id, reason.as_str()), (s(2), "the process is not running"));
    solo.told(T1, Order::Run(G1));
    assert!(captured(&solo.take_all()), "now the marker counts");
    assert_eq!(solo.handled(IN), 1);
}

#[test]
fn a_prepare_that_is_repeated_is_answered_again() {
    let mut solo = fresh();
    solo.told(T1, Order::Prepare(G1, s(7)));
    let effects = solo.step(Input::Loaded(G1, Err("checksum".to_owned())));
    let [Effect::Report(Report::Unready(generation, reason))] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!((*generation, reason.as_str()), (G1, "checksum"));
    assert_eq!(solo.process.holding(), Holding::Nothing, "never half of it");
    // Nobody may have heard that: the control stream broke.
    let effects = solo.told(T1, Order::Prepare(G1, s(7)));
    assert!(matches!(effects.as_slice(), [Effect::Load(generation, _)] if *generation == G1));
    solo.step(Input::Loaded(
        G1,
        Ok(read_back(&topology(2, &[IN, OUT]), 2, 7)),
    ));
    let effects = solo.told(T1, Order::Prepare(G1, s(7)));
    assert!(
        matches!(effects.as_slice(), [Effect::Report(Report::Ready(_))]),
        "{effects:?}"
    );
}

#[test]
fn a_part_that_is_not_this_ones_is_not_restored() {
    let graph = topology(2, &[IN, OUT]);
    let other = topology(2, &[IN]);
    let mut gap = read_back(&graph, 2, 7);
    let cutline::protocol::frame::Frame::Messages(share) = batch(2, &[9]) else {
        unreachable!("a batch is one of messages");
    };
    gap.part.inputs[0].share.push(share);
    for (part, why) in [
        (
            read_back(&graph, 1, 7),
            "the part is of p1 in s7, not of p2 in s7",
        ),
        (
            read_back(&graph, 2, 6),
            "the part is of p2 in s6, not of p2 in s7",
        ),
        (read_back(&other, 2, 7), "other channels than the topology"),
        (gap, "what it recorded on p1→p2 has gaps"),
    ] {
        let mut solo = fresh();
        solo.told(T1, Order::Prepare(G1, s(7)));
        let effects = solo.step(Input::Loaded(G1, Ok(part)));
        let [Effect::Report(Report::Unready(_, reason))] = effects.as_slice() else {
            panic!("{effects:?}");
        };
        assert!(reason.contains(why), "{reason}");
        assert_eq!(solo.process.holding(), Holding::Nothing);
    }
}

#[test]
fn what_a_closed_stream_leaves_behind_changes_nothing() {
    let mut solo = running();
    solo.step(Input::Broken(ch(IN)));
    solo.step(Input::Broken(ch(OUT)));
    assert!(solo.is_unmoved_by(Input::Arrived(ch(IN), G1, batch(1, &[9]))));
    let nonsense = Feedback { ..expects(99, 99) };
    assert!(solo.is_unmoved_by(Input::Heard(ch(OUT), G1, nonsense)));
}
