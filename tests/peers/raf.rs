//! Snapshots that students of RAF in Belgrade have published: every total is right, and yet some
//! cuts are impossible.

use std::collections::BTreeMap;
use std::fs;

use cutline::audit::{Form, Snapshot};
use cutline::check::Answer;

use crate::peers;

/// How many snapshots of a run contain a channel on which more was received than sent, as was
/// found by looking; none in all other runs.
const IMPOSSIBLE: [(&str, usize); 3] = [
    ("mmilunovic-ly_snapshot", 3),
    ("PetarRandjelovic-ly_snapshot", 2),
    ("PetarRandjelovic-ly_snapshot_4", 4),
];

/// Published in all, and how many of them are impossible.
const PUBLISHED: (usize, usize) = (28, 9);

#[test]
fn every_total_is_right_and_the_impossible_cuts_are_rejected() {
    let Some(folder) = peers("kids-raf") else {
        return;
    };
    let mut runs: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
    for run in entries.filter(|entry| entry.path().is_dir()) {
        let name = run.file_name().into_string().unwrap();
        let found = runs.entry(name).or_default();
        let files = fs::read_dir(run.path()).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        for path in paths.filter(|path| path.to_string_lossy().ends_with(".snapshots.txt")) {
            let snapshots = Snapshot::load(&path, Form::Raf).unwrap();
            for audited in snapshots.iter().map(Snapshot::audit) {
                let holds = |name: &str| audited.verdicts.get(name).unwrap().holds;
                let place = format!("{} {}", path.display(), audited.snapshot);
                assert_eq!(holds("conserved"), Answer::Yes, "{place}");
                for untold in ["complete", "exact", "causal"] {
                    assert_eq!(holds(untold), Answer::Unknown, "{place}: {untold}");
                }
                // Nothing but the channels' contents can give these away.
                assert_eq!(
                    holds("non-negative") == Answer::No,
                    !audited.holds,
                    "{place}"
                );
                found.0 += 1;
                found.1 += usize::from(!audited.holds);
            }
        }
    }
    let expected: BTreeMap<_, _> = IMPOSSIBLE.into();
    for (run, &(_, rejected)) in &runs {
        assert_eq!(
            rejected,
            expected.get(run.as_str()).copied().unwrap_or(0),
            "{run}"
        );
    }
    let count = |of: fn(&(usize, usize)) -> usize| runs.values().map(of).sum::<usize>();
    let (all, rejected) = (count(|run| run.0), count(|run| run.1));
    println!(
        "{all} of {} published snapshots, {rejected} of them rejected",
        PUBLISHED.0
    );
    assert!(all > rejected && rejected > 0, "both kinds occur");
    assert!(all < PUBLISHED.0 || (all, rejected) == PUBLISHED);
}
