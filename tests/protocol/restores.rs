//! What the job is taken back to: the newest complete snapshot of its own line, never one of a
//! branch that was left, never silently nothing.

use cutline::protocol::collector::{Answer, Policy, Request};
use cutline::protocol::events::{Holding, Order, Report};
use cutline::protocol::ids::{Incarnation, SnapshotId};
use cutline::world::Fate;

use crate::desk::{Desk, Over, abort_reason, g, holds};
use crate::solo::s;
use crate::store::Store;
use crate::worlds::{p, policy, snapshot};

/// A job whose p1 has been lost so often.
pub(crate) struct Job {
    pub(crate) store: Store,
    pub(crate) desk: Desk,
    losses: u64,
}

impl Job {
    pub(crate) fn new(policy: Policy) -> Self {
        let mut store = Store::default();
        let desk = Desk::running(2, policy, &mut store);
        Self {
            store,
            desk,
            losses: 0,
        }
    }

    pub(crate) fn complete(&mut self) -> u64 {
        self.desk.complete_one(&mut self.store)
    }

    /// p1 is lost and comes back; what the job was taken back to.
    fn lose(&mut self) -> SnapshotId {
        self.crash();
        self.desk.obey(&mut self.store);
        assert_eq!(self.desk.phase(), "running");
        self.store.last_origin().unwrap()
    }

    fn crash(&mut self) {
        self.losses += 1;
        self.desk.told.clear();
        self.desk.gone(1, self.losses);
        self.desk.join(1, self.losses + 1, Holding::Nothing);
    }

    /// A user restores this one.
    pub(crate) fn restore(&mut self, snapshot: Option<u64>) {
        self.desk.told.clear();
        let asker = self.desk.ask(Request::Restore(snapshot.map(s)));
        self.desk.obey(&mut self.store);
        let running = Answer::Running(self.desk.generation(), self.store.last_origin().unwrap());
        assert_eq!(self.desk.answer(asker), Some(&Ok(running)));
    }

    /// Everyone prepares but p2, who cannot.
    fn unready(&mut self) {
        self.desk.settle(&mut self.store);
        let generation = self.desk.generation();
        let incarnation = Incarnation::new(self.losses + 1);
        self.desk.say(p(1), incarnation, Report::Ready(generation));
        let report = Report::Unready(generation, "checksum".to_owned());
        self.desk.say(p(2), Incarnation::new(1), report);
        self.desk.settle(&mut self.store);
    }

    fn prepared(&self) -> Option<SnapshotId> {
        let orders = self
            .desk
            .orders(|order| matches!(order, Order::Prepare(..)));
        orders.last().map(|(_, order)| match order {
            Order::Prepare(_, snapshot) => *snapshot,
            _ => unreachable!("filtered"),
        })
    }
}

#[test]
fn the_initial_state_is_taken_only_if_nothing_was_ever_complete() {
    let mut job = Job::new(policy());
    assert_eq!(job.lose(), s(0));
    let first = job.complete();
    assert_eq!(job.lose(), s(first));
}

#[test]
fn the_newest_complete_snapshot_of_the_current_generation_is_taken() {
    let mut job = Job::new(policy());
    job.complete();
    let second = job.complete();
    job.desk.ask(snapshot());
    job.desk.settle(&mut job.store);
    assert_eq!(job.lose(), s(second));
    assert_eq!(abort_reason(&job.store, second + 1), "a process was lost");
    assert_eq!(
        job.lose(),
        s(second),
        "and again, as nothing was complete since"
    );
    let newer = job.complete();
    assert_eq!(job.lose(), s(newer));
}

#[test]
fn a_branch_that_was_left_is_never_returned_to() {
    let mut job = Job::new(policy());
    let old = job.complete();
    let newer = job.complete();
    job.restore(Some(old));
    assert_eq!(job.store.last_origin(), Some(s(old)));
    assert_eq!(job.desk.collector.status().complete, s(old));
    assert_eq!(
        job.lose(),
        s(old),
        "not s{newer}, which is newer and complete"
    );
    // Nor by a collector that has only the store to go by.
    let mut desk = Desk::new(2, policy(), 2);
    desk.settle(&mut job.store);
    assert_eq!(desk.collector.status().complete, s(old));
    desk.join(1, 99, Holding::Nothing);
    desk.join(2, 1, holds(3));
    desk.obey(&mut job.store);
    assert_eq!(job.store.last_origin(), Some(s(old)));
    let branch = desk.complete_one(&mut job.store);
    assert!(branch > newer, "no id is given twice");
    desk.gone(2, 1);
    desk.join(2, 99, Holding::Nothing);
    desk.obey(&mut job.store);
    assert_eq!(job.store.last_origin(), Some(s(branch)));
}

#[test]
fn a_branch_that_was_left_can_be_taken_on_demand() {
    let mut job = Job::new(policy());
    let old = job.complete();
    let newer = job.complete();
    job.restore(Some(old));
    job.restore(Some(newer));
    assert_eq!(job.store.last_origin(), Some(s(newer)));
    assert_eq!(job.lose(), s(newer), "it is the line now");
}

#[test]
fn the_initial_state_can_be_taken_on_demand_and_then_stays_the_restore_point() {
    let mut job = Job::new(policy());
    job.complete();
    job.restore(Some(0));
    assert_eq!(job.store.last_origin(), Some(s(0)));
    assert_eq!(job.lose(), s(0));
}

#[test]
fn a_restore_without_a_name_takes_the_newest_of_the_line() {
    let mut job = Job::new(policy());
    let first = job.complete();
    job.restore(None);
    assert_eq!(job.store.last_origin(), Some(s(first)));
}

#[test]
fn a_restore_to_what_is_not_complete_is_refused() {
    let mut job = Job::new(policy());
    job.desk.ask(snapshot());
    job.desk.settle(&mut job.store);
    job.desk.decline(1, 1, "no room");
    job.desk.settle(&mut job.store);
    for id in [1, 9] {
        let asker = job.desk.ask(Request::Restore(Some(s(id))));
        let why =
            format!("there is no complete snapshot s{id}: `cutline list` shows those there are");
        assert_eq!(job.desk.refusal(asker), why);
    }
    assert_eq!(job.desk.generation(), g(1));
}

#[test]
fn a_restore_waits_until_nothing_is_open_and_takes_what_became_complete_meanwhile() {
    let mut job = Job::new(policy());
    job.complete();
    job.desk.ask(snapshot());
    job.desk.ask(snapshot());
    job.desk.settle(&mut job.store);
    job.desk.parts(2);
    // s2's manifest is under way, s3 has parts missing.
    job.crash();
    assert_eq!(job.desk.generation(), g(1));
    job.desk.obey(&mut job.store);
    assert_eq!(job.store.last_origin(), Some(s(2)));
    assert_eq!(job.store.complete(3), Some(false));
}

#[test]
fn a_snapshot_that_is_just_beginning_when_the_job_is_taken_back_is_aborted_untriggered() {
    let mut job = Job::new(policy());
    job.desk.ask(snapshot());
    job.crash();
    assert_eq!(
        job.desk.generation(),
        g(1),
        "its begin record is still under way"
    );
    job.desk.obey(&mut job.store);
    assert_eq!(job.desk.triggered(), []);
    assert_eq!(abort_reason(&job.store, 1), "the job is being restored");
    assert_eq!(job.desk.generation(), g(2));
    assert!(
        job.desk.failures().is_empty(),
        "and counts as nobody's failure"
    );
}

#[test]
fn a_snapshot_that_cannot_be_read_fails_the_job_by_name() {
    let mut job = Job::new(policy());
    job.complete();
    let newest = job.complete();
    job.crash();
    job.unready();
    let Some(Over::Failed(reason)) = &job.desk.over else {
        panic!("{:?}", job.desk.over);
    };
    assert!(
        reason.starts_with(&format!("s{newest} cannot be restored: p2: checksum")),
        "{reason}"
    );
    assert!(
        reason.contains("store.fall_back = true"),
        "the remedy: {reason}"
    );
    assert_eq!(job.desk.orders(|order| *order == Order::Halt).len(), 2);
}

#[test]
fn a_restore_that_cannot_be_read_is_refused_and_the_job_goes_on_from_where_a_loss_would_take_it() {
    let mut job = Job::new(policy());
    let older = job.complete();
    let newer = job.complete();
    job.desk.told.clear();
    let asker = job.desk.ask(Request::Restore(Some(s(older))));
    job.unready();
    let why =
        format!("s{older} cannot be restored: p2: checksum; the job goes back to s{newer} instead");
    assert_eq!(job.desk.refusal(asker), why);
    job.desk.obey(&mut job.store);
    assert_eq!(
        (job.desk.phase(), job.store.last_origin()),
        ("running", Some(s(newer)))
    );
    assert_eq!(job.lose(), s(newer));
    // If that cannot be read either, nothing is left to go on from.
    let asker = job.desk.ask(Request::Restore(Some(s(older))));
    job.unready();
    assert!(job.desk.refusal(asker).contains("instead"));
    job.unready();
    let Some(Over::Failed(reason)) = &job.desk.over else {
        panic!("{:?}", job.desk.over);
    };
    assert!(
        reason.starts_with(&format!("s{newer} cannot be restored")),
        "{reason}"
    );
}

pub(crate) fn falling_back() -> Policy {
    Policy {
        fall_back: true,
        ..policy()
    }
}

#[test]
fn an_older_one_is_taken_where_allowed_and_only_of_the_line() {
    let mut job = Job::new(falling_back());
    let first = job.complete();
    let abandoned = job.complete();
    job.restore(Some(first));
    let second = job.complete();
    let third = job.complete();
    assert!(first < abandoned && abandoned < second && second < third);
    job.crash();
    for (taken, next) in [(third, second), (second, first)] {
        job.desk.settle(&mut job.store);
        assert_eq!(job.prepared(), Some(s(taken)));
        job.unready();
        assert_eq!(
            job.prepared(),
            Some(s(next)),
            "after s{taken}; s{abandoned} was left"
        );
    }
    job.desk.obey(&mut job.store);
    assert_eq!(job.store.last_origin(), Some(s(first)));
    assert_eq!(job.desk.phase(), "running");
    assert_eq!(job.lose(), s(first), "and it is the line from now on");
}

#[test]
fn a_restore_that_falls_back_is_answered_with_the_reason_and_is_no_failed_snapshot() {
    for named in [true, false] {
        let mut job = Job::new(falling_back());
        let older = job.complete();
        let newest = job.complete();
        let target = named.then_some(s(newest));
        let asker = job.desk.ask(Request::Restore(target));
        job.unready();
        let why = format!(
            "s{newest} cannot be restored: p2: checksum; the job goes back to s{older} instead"
        );
        assert_eq!(job.desk.refusal(asker), why);
        assert_eq!(
            (job.desk.warnings(), job.desk.failures()),
            (vec![&*why], vec![])
        );
        job.desk.obey(&mut job.store);
        assert_eq!(
            (job.desk.phase(), job.store.last_origin()),
            ("running", Some(s(older)))
        );
    }
}

#[test]
fn the_initial_state_is_not_fallen_back_to() {
    let mut job = Job::new(falling_back());
    let first = job.complete();
    job.crash();
    job.unready();
    let Some(Over::Failed(reason)) = &job.desk.over else {
        panic!("{:?}", job.desk.over);
    };
    assert!(
        reason.starts_with(&format!("s{first} cannot be restored")),
        "{reason}"
    );
    assert!(reason.ends_with("there is no older one"), "{reason}");
}

#[test]
fn a_word_about_the_wrong_generation_makes_nothing_unusable() {
    let mut job = Job::new(policy());
    job.complete();
    let word = |generation| Report::Unready(g(generation), "late".to_owned());
    job.desk.say(p(2), Incarnation::new(1), word(1));
    assert_eq!(job.desk.phase(), "running", "it runs");
    job.crash();
    job.desk.settle(&mut job.store);
    job.desk.say(p(2), Incarnation::new(1), word(1));
    job.desk.say(p(2), Incarnation::new(1), word(3));
    assert_eq!(job.desk.over, None);
    job.desk.obey(&mut job.store);
    assert_eq!(job.desk.phase(), "running");
}

#[test]
fn a_collector_killed_in_any_step_of_a_restore_is_followed_by_one_that_finishes_it() {
    for steps in 0..8 {
        let mut job = Job::new(policy());
        let first = job.complete();
        job.complete();
        job.desk.ask(Request::Restore(Some(s(first))));
        for _ in 0..steps {
            if !job.desk.pending.is_empty() {
                job.desk.serve(&mut job.store, Fate::Done);
            }
        }
        let recorded = job.store.last_origin() == Some(s(first));
        let mut desk = Desk::new(2, policy(), 2);
        desk.settle(&mut job.store);
        for process in [1, 2] {
            desk.join(process, 1, holds(1));
        }
        desk.obey(&mut job.store);
        assert_eq!(desk.phase(), "running");
        let generation = if recorded { g(3) } else { g(1) };
        assert_eq!(desk.generation(), generation, "after {steps} steps");
        if recorded {
            assert_eq!(job.store.last_origin(), Some(s(first)));
        }
    }
}
