//! Many snapshots, as fast as they go and nobody killed: the memory of nodes and collector does
//! not grow with them, nor does the store.
//!
//! `CUTLINE_FLAT_SNAPSHOTS`, or `scripts/soak.sh --flat N`, takes another number of them.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cutline::control::client::JobClient;
use tokio::time::timeout;

use crate::running::Up;
use crate::stage::{Stage, block_on};

const JOB: &str = r#"
processes = 3
topology = "ring"
[application]
name = "token-ring"
hold_ms = 2
[snapshots]
interval = "1ms"
open_max = 8
[store]
retain = 10
"#;

const PROGRAMS: [&str; 4] = ["collector", "p1", "p2", "p3"];

/// What a program may have more at the end than after the first fifth. What it really holds is the
/// same at any time (half a megabyte, says heaptrack); what the allocator has from the system
/// still grows by some hundred kilobytes over thousands of snapshots, ever more slowly. Whoever
/// kept two hundred bytes for each, be it the shortest of records, would be found.
const NOISE_KB: u64 = 1536;

/// All of it takes two minutes on a machine that has nothing else to do.
const PATIENCE: Duration = Duration::from_secs(420);

/// Between two looks at how far it is.
const LOOK: Duration = Duration::from_millis(100);

#[test]
fn soak_flat() {
    let snapshots =
        std::env::var("CUTLINE_FLAT_SNAPSHOTS").map_or(10_000, |text| text.parse().unwrap());
    let stage = Stage::alone();
    let mut up = stage.up("flat", JOB);
    up.runs();
    let begin = Instant::now();
    let mut measured = Vec::new();
    for fifth in 1..=5 {
        let count = snapshots * fifth / 5;
        let reached = block_on(async { timeout(PATIENCE, reach(count, up.root())).await });
        assert!(
            reached.is_ok(),
            "not in {PATIENCE:?}: {count} snapshots\n{}",
            up.story()
        );
        measured.push(memory(&up));
        println!(
            "after {count} in {:.0} s: {:?} kB",
            begin.elapsed().as_secs_f64(),
            measured.last().unwrap()
        );
    }
    let (first, last) = (measured[0], measured[4]);
    for (program, (first, last)) in PROGRAMS.iter().zip(first.iter().zip(last)) {
        assert!(
            last <= first + NOISE_KB,
            "{program} grew from {first} to {last} kB"
        );
    }
    // What retention keeps, what is open, and what is just being deleted.
    let kept = fs::read_dir(up.root().join("store/snapshots"))
        .unwrap()
        .count();
    assert!(kept <= 10 + 8 + 16, "{kept} snapshots are in the store");
    assert_eq!(
        (up.count("aborted"), up.count("died"), up.count("failed")),
        (0, 0, 0)
    );
    up.ask(&["verify", "--all"]).yes();
    up.interrupt();
}

/// Waits for so many complete snapshots, over one connection: what is measured is the snapshots.
async fn reach(count: u64, root: &Path) {
    let mut client = JobClient::connect(root).await.unwrap();
    loop {
        // One that is busy may be late with its answer; how long is borne is for the caller to say.
        let status = client.status().await;
        if status.is_ok_and(|status| status.complete_count >= count) {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The resident memory of each program.
fn memory(up: &Up<'_>) -> [u64; 4] {
    PROGRAMS.map(|program| {
        let status = Path::new("/proc")
            .join(up.program(program).pid.to_string())
            .join("status");
        let text = fs::read_to_string(status).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    })
}
