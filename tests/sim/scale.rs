//! How a snapshot grows with the job; `docs/scale.md` has the large ones.

use cutline::sim::part_bytes;

use super::{Ran, parsed, run};

/// One snapshot of a bank with this topology.
fn snapshot(topology: &str, processes: u32) -> Ran {
    let text = format!(
        "timeout = \"600s\"\n[job]\nprocesses = {processes}\ntopology = {topology}\n\
         [job.application]\nname = \"bank\"\nevery_ms = 1000\n\
         [job.snapshots]\ninterval = \"0s\"\n\
         [[step]]\ndo = \"wait\"\nfor = {{ running = true, time = \"1s\" }}\n\
         [[step]]\ndo = \"snapshot\"\nfrom = \"p1\"\nwait = true\n\
         [[step]]\ndo = \"expect\"\nthat = {{ snapshots = 1, verdicts = \"hold\" }}\n"
    );
    run(&parsed(&text).scenario(None).unwrap()).ok()
}

#[test]
fn a_snapshot_takes_one_marker_for_each_channel_and_as_long_as_the_longest_way() {
    let mut latencies = Vec::new();
    for (topology, degree) in [("ring", 1), ("star", 2), ("random", 4)] {
        for size in [20_u32, 80] {
            let word = match topology {
                "random" => format!("{{ kind = \"random\", edges = {}, seed = 1 }}", 3 * size),
                word => format!("\"{word}\""),
            };
            let ran = snapshot(&word, size);
            let figures = &ran.outcome.figures;
            let (id, taken) = figures.taken.iter().next().unwrap();
            let channels = match topology {
                "star" => degree * (u64::from(size) - 1),
                _ => degree * u64::from(size),
            };
            assert_eq!(taken.markers, channels, "{word} of {size}");
            assert!(taken.marker_bytes < 64 * taken.markers);
            assert!(part_bytes(&ran.outcome.world, *id) > u64::from(size) * 100);
            latencies.push(taken.latency_us);
        }
    }
    let [ring, large_ring, star, large_star, random, large_random] = latencies[..] else {
        panic!("two of each: {latencies:?}");
    };
    // A ring of four times as many takes about four times as long; the others hardly longer.
    assert!(large_ring > 2 * ring, "{latencies:?}");
    assert!(
        large_star < 2 * star && large_random < 2 * random,
        "{latencies:?}"
    );
}

/// A process that looked at each of its channels whenever something happens on one would be at
/// this for minutes.
#[test]
fn the_centre_of_a_large_star_takes_part_as_everyone_does() {
    let ran = snapshot("\"star\"", 2_000);
    let figures = &ran.outcome.figures;
    let (id, taken) = figures.taken.iter().next().unwrap();
    assert_eq!(taken.markers, 3_998);
    assert!(part_bytes(&ran.outcome.world, *id) > 2_000 * 100);
    // To the centre and back to everyone, and three operations of the store.
    assert!(taken.latency_us < 100_000, "{taken:?}");
}
