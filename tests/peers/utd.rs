//! Configurations of a project of UT Dallas (CS 6378): which keep the rules, and which line of the
//! others does not.

use cutline::job::Job;

use crate::{file, peers};

/// What becomes of a configuration.
enum Fate {
    /// It is read, with so many nodes, channels, and nodes that name themselves.
    Read(usize, usize, usize),
    /// It is refused, in these lines.
    Refused(&'static [u32]),
}
use Fate::{Read, Refused};

const CONFIGS: [(&str, Fate); 12] = [
    ("chaitanya-basava.config.txt", Read(5, 12, 0)),
    ("chaitanya-basava.config1.txt", Refused(&[7, 9])),
    ("chaitanya-basava.config2.txt", Read(9, 24, 0)),
    ("gskpsrikar.config.txt", Read(4, 8, 0)),
    ("hanusri.config.txt", Read(9, 24, 0)),
    ("leukelele.config.txt", Read(5, 12, 0)),
    ("minhhuy24072002.config.txt", Refused(&[8])),
    ("RG7138.config.txt", Read(4, 10, 4)),
    ("viveknr92.config.txt", Read(4, 10, 4)),
    ("viveknr92.config1.txt", Read(10, 90, 10)),
    ("viveknr92.config2.txt", Read(20, 380, 20)),
    ("viveknr92.config3.txt", Read(30, 870, 30)),
];

#[test]
fn configurations_are_read_by_their_rules_or_refused_naming_the_line() {
    let Some(folder) = peers("utd6378") else {
        return;
    };
    let (mut read, mut refused) = (0, 0);
    for (name, fate) in CONFIGS {
        let Some(text) = file(&folder, name) else {
            continue;
        };
        match (Job::from_utd(&text, &folder.join(name)), fate) {
            (Ok((job, notes)), Read(nodes, channels, own)) => {
                let topology = job.topology();
                let found = (topology.processes().len(), topology.channels().len());
                assert_eq!(found, (nodes, channels), "{name}");
                assert_eq!(notes.len(), own, "{name}: {notes:?}");
                read += 1;
            }
            (Err(error), Refused(lines)) => {
                let error = error.to_string();
                let places = error.lines().map(|refusal| {
                    let rest = refusal.split_once(&format!("{name}:")).unwrap().1;
                    rest.split(':').next().unwrap().parse::<u32>().unwrap()
                });
                assert_eq!(places.collect::<Vec<_>>(), lines, "{error}");
                assert!(error.contains("but not the reverse"), "{error}");
                refused += 1;
            }
            (Ok(_), Refused(_)) => panic!("{name} is read"),
            (Err(error), Read(..)) => panic!("{name} is refused: {error}"),
        }
    }
    println!(
        "{read} configurations read, {refused} refused, of {}",
        CONFIGS.len()
    );
    assert!(read > 0 && refused > 0, "both kinds occur");
}
