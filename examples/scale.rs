//! How a snapshot grows with the job: simulates one for each topology and size, and prints the
//! table of `docs/scale.md`.
//!
//! `cargo run --release --example scale [PROCESSES …]`; by default 1000 and 10000.

#![allow(clippy::print_stdout, reason = "the answer goes to stdout")]

use std::process::ExitCode;
use std::time::Instant;

use cutline::apps::BuiltIn;
use cutline::scenario::Scenario;
use cutline::sim::{self, Delays, Outcome, Settings, part_bytes};

/// As many channels as a ring has, and three times as many more: four for each process.
const TOPOLOGIES: [(&str, &str); 3] = [
    ("ring", "\"ring\""),
    (
        "random, degree 4",
        "{ kind = \"random\", edges = EDGES, seed = 1 }",
    ),
    ("star", "\"star\""),
];

fn main() -> ExitCode {
    let sizes: Option<Vec<u64>> = std::env::args()
        .skip(1)
        .map(|size| size.parse().ok())
        .collect();
    let Some(mut sizes) = sizes else {
        eprintln!("scale: give numbers of processes, such as 100 1000");
        return ExitCode::from(2);
    };
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000];
    }
    println!("| topology | processes | channels | markers | marker bytes | part bytes | latency |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (name, topology) in TOPOLOGIES {
        for &size in &sizes {
            let begin = Instant::now();
            match row(name, topology, size) {
                Ok(row) => println!("{row}"),
                Err(error) => {
                    eprintln!("scale: {name} of {size}: {error}");
                    return ExitCode::FAILURE;
                }
            }
            eprintln!(
                "{name} of {size} took {:.1} s",
                begin.elapsed().as_secs_f64()
            );
        }
    }
    ExitCode::SUCCESS
}

fn row(name: &str, topology: &str, size: u64) -> Result<String, String> {
    let topology = topology.replace("EDGES", &(3 * size).to_string());
    let text = format!(
        "timeout = \"600s\"\n[job]\nprocesses = {size}\ntopology = {topology}\nsilence = \"60s\"\n\
         [job.application]\nname = \"bank\"\nevery_ms = 1000\n\
         [job.snapshots]\ninterval = \"0s\"\ntimeout = \"300s\"\n\
         [[step]]\ndo = \"wait\"\nfor = {{ running = true, time = \"2s\" }}\ntimeout = \"100s\"\n\
         [[step]]\ndo = \"snapshot\"\nfrom = \"p1\"\nwait = true\n\
         [[step]]\ndo = \"expect\"\nthat = {{ snapshots = 1, verdicts = \"hold\" }}\n"
    );
    let origin = std::path::Path::new("scale.toml");
    let scenario = Scenario::parse(&text, origin).map_err(|error| error.to_string())?;
    let settings = Settings {
        delays: Delays {
            clock_us: 250_000,
            ..Delays::default()
        },
        ..Settings::default()
    };
    let ran: Result<Outcome<BuiltIn>, _> = sim::run(&scenario, &settings, &mut |_, _| {});
    let outcome = ran.map_err(|refusal| refusal.to_string())?;
    if let Some(failure) = outcome.failures.first() {
        return Err(failure.clone());
    }
    let taken = outcome.figures.taken.iter().next();
    let (snapshot, taken) = taken.ok_or("no snapshot")?;
    let channels = scenario.job.topology().channels().len();
    let parts = part_bytes(&outcome.world, *snapshot);
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let latency_ms = taken.latency_us as f64 / 1000.0;
    Ok(format!(
        "| {name} | {size} | {channels} | {} | {} | {parts} | {latency_ms:.1} ms |",
        taken.markers, taken.marker_bytes
    ))
}
