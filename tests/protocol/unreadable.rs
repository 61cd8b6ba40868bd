//! Snapshots of which a record cannot be read: they stand in nobody's way, and nothing older is
//! silently taken instead.

use cutline::protocol::collector::{Announcement, Policy, Request};
use cutline::protocol::events::Holding;
use cutline::protocol::ids::{Generation, SnapshotId};
use cutline::protocol::records::Unreadable;

use crate::desk::{Desk, Over, g, holds};
use crate::restores::{Job, falling_back};
use crate::solo::s;
use crate::worlds::policy;

impl Job {
    /// A record of a snapshot, of this generation as far as is known, cannot be read any more.
    fn spoil(&mut self, id: u64, generation: Option<Generation>) {
        let why = format!("snapshots/s{id}/manifest.json is torn");
        let unreadable = Unreadable { generation, why };
        self.store.unreadable.insert(s(id), unreadable);
    }

    /// Another collector, which finds everybody so far.
    fn followed(&mut self, policy: Policy, holding: Holding) -> Desk {
        let mut desk = Desk::new(2, policy, 2);
        desk.settle(&mut self.store);
        let incarnation = match holding {
            Holding::Nothing => 99,
            _ => 1,
        };
        for process in [1, 2] {
            desk.join(process, incarnation, holding);
        }
        desk.obey(&mut self.store);
        desk
    }
}

/// What a collector does that finds these snapshots complete and these unreadable, when all nodes
/// have to begin anew: the snapshot it restores, or why it gives up.
fn restarted(
    policy: Policy,
    complete: usize,
    unreadable: &[u64],
) -> (Result<SnapshotId, String>, Vec<Announcement>) {
    let mut job = Job::new(policy.clone());
    for _ in 0..complete {
        job.complete();
    }
    for &id in unreadable {
        job.spoil(id, None);
    }
    let mut desk = job.followed(policy, Holding::Nothing);
    let outcome = match &desk.over {
        Some(Over::Failed(reason)) => Err(reason.clone()),
        over => {
            assert_eq!((over, desk.phase()), (&None, "running"));
            assert!(desk.complete_one(&mut job.store) > *unreadable.last().unwrap());
            Ok(job.store.last_origin().unwrap())
        }
    };
    (outcome, desk.announced)
}

#[test]
fn a_snapshot_that_cannot_be_read_is_no_obstacle_if_it_is_not_wanted() {
    let (restored, announced) = restarted(policy(), 3, &[2]);
    assert_eq!(restored, Ok(s(3)));
    let words = "s2 cannot be read, and is passed over: snapshots/s2/manifest.json is torn";
    let warned = Announcement::Warned(words.to_owned());
    assert!(announced.contains(&warned), "{announced:?}");
}

#[test]
fn where_the_newest_cannot_be_read_an_older_one_is_taken_only_if_that_is_allowed() {
    let (refused, _) = restarted(policy(), 3, &[3]);
    let reason = refused.unwrap_err();
    let words = "s3 may be the one to restore: snapshots/s3/manifest.json is torn; allow s2, which";
    assert!(reason.starts_with(words), "{reason}");
    assert_eq!(restarted(falling_back(), 3, &[3]).0, Ok(s(2)));
    // Never the initial state.
    let reason = restarted(falling_back(), 1, &[1]).0.unwrap_err();
    assert!(reason.ends_with("there is no older one"), "{reason}");
}

#[test]
fn a_collector_that_finds_everyone_running_needs_nothing_that_cannot_be_read() {
    let mut job = Job::new(policy());
    let newest = job.complete();
    job.spoil(newest, None);
    let mut desk = job.followed(policy(), holds(1));
    assert_eq!((desk.phase(), desk.generation()), ("running", g(1)));
    // A restore that names no snapshot would have to choose, and is no reason to end a job.
    let asked = desk.ask(Request::Restore(None));
    let reason = desk.answers[&asked][0].as_ref().unwrap_err();
    assert!(reason.starts_with(&format!("s{newest} may be")), "{reason}");
    assert_eq!(desk.phase(), "running");
    assert!(desk.complete_one(&mut job.store) > newest);
}

#[test]
fn what_cannot_be_read_is_left_behind_with_its_generation() {
    let mut job = Job::new(falling_back());
    let first = job.complete();
    let newest = job.complete();
    job.spoil(newest, None);
    let mut desk = job.followed(falling_back(), holds(1));
    for (asked, process) in [(first, 1), (0, 2)] {
        desk.ask(Request::Restore(Some(s(asked))));
        desk.obey(&mut job.store);
        assert_eq!(job.store.last_origin(), Some(s(asked)));
        // From now on there is another generation, of which it cannot be.
        desk.gone(process, 1);
        desk.join(process, 50, Holding::Nothing);
        desk.obey(&mut job.store);
        assert_eq!((desk.phase(), &desk.over), ("running", &None));
        assert_eq!(job.store.last_origin(), Some(s(asked)));
    }
}

#[test]
fn a_start_needs_nothing_of_a_branch_that_was_left() {
    let mut job = Job::new(policy());
    let first = job.complete();
    let left = job.complete();
    job.restore(Some(first));
    job.spoil(left, Some(g(1)));
    let desk = job.followed(policy(), Holding::Nothing);
    assert_eq!((desk.phase(), &desk.over), ("running", &None));
    assert_eq!(job.store.last_origin(), Some(s(first)));
}
