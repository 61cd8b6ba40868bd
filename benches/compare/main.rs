//! Measures the whole of cutline beside what it could be at best and what people do.
//!
//! `cutline up` starts a real collector and real nodes, whose program is this one with the
//! application [`meter::Meter`]; beside them run the cases of the program `baseline`. What is
//! compared takes turns in one run (A B C A B C …), and ratios are taken within a turn, since
//! other programs use the machine too. `docs/performance.md` says what each figure is.
//!
//! ```text
//! compare --baseline PROGRAM [--quick] [--json FILE] [--only CASE]
//! ```
//!
//! `--only` measures one case again and again and prints each figure: for whoever makes it faster.
//! Exit status: 0 measured, whatever came of the aims; 1 the run is void; 2 it could not be done.

#![allow(clippy::print_stdout, reason = "the answer goes to stdout")]
#![allow(clippy::print_stderr, reason = "and everything else to stderr")]

mod baseline;
mod carried;
mod clock;
mod cluster;
mod findings;
mod meter;
mod report;
mod restore;
mod snapshots;
mod statistics;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::json;

use baseline::Baseline;
use findings::{CASES, KNOWN_CPU_NS, Measured, NODES, Round, SIZES};
use statistics::{median, quantile};

/// How much is measured.
#[derive(Clone, Copy)]
struct Extent {
    rounds: usize,
    markers: usize,
    snapshots: usize,
    /// Seconds without, with one and with ten snapshots.
    turns: usize,
    kills: usize,
    /// How often in the run a round may begin anew, about a second each: some minutes in which a
    /// machine that is shared may come to itself. After that the rounds are taken as they come.
    disturbed_max: usize,
}

const WHOLE: Extent = Extent {
    rounds: 5,
    markers: 150,
    snapshots: 15,
    turns: 36,
    kills: 11,
    disturbed_max: 400,
};

/// For seeing that it works: too little to say anything.
const QUICK: Extent = Extent {
    rounds: 2,
    markers: 40,
    snapshots: 5,
    turns: 3,
    kills: 3,
    disturbed_max: 10,
};

struct Arguments {
    baseline: Baseline,
    extent: Extent,
    json: Option<PathBuf>,
    only: Option<String>,
}

fn main() -> ExitCode {
    clock::note_program_start();
    if std::env::args().any(|argument| argument == "--process") {
        return cutline::node::main::<meter::Meter>();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ran = runtime.context("starting the runtime").and_then(|runtime| {
        let arguments = arguments()?;
        match &arguments.only {
            Some(case) => runtime
                .block_on(again_and_again(case, &arguments))
                .map(|()| true),
            None => runtime.block_on(compare(&arguments)),
        }
    });
    match ran {
        Ok(is_valid) => ExitCode::from(u8::from(!is_valid)),
        Err(error) => {
            eprintln!("compare: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn arguments() -> anyhow::Result<Arguments> {
    let (mut baseline, mut extent, mut json, mut only) = (None, WHOLE, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("{argument}: of what?"))
        };
        match argument.as_str() {
            "--baseline" => baseline = Some(Baseline(value()?.into())),
            "--json" => json = Some(value()?.into()),
            "--only" => only = Some(value()?),
            "--quick" => extent = QUICK,
            // What cargo says to every benchmark.
            "--bench" => {}
            other => bail!("unknown argument '{other}'"),
        }
    }
    let baseline = baseline.context("where is the program baseline? scripts/bench.sh knows")?;
    Ok(Arguments {
        baseline,
        extent,
        json,
        only,
    })
}

/// Measures everything and prints it; whether the run is valid.
async fn compare(arguments: &Arguments) -> anyhow::Result<bool> {
    let Arguments {
        baseline,
        extent,
        json,
        ..
    } = arguments;
    let load_before = load();
    let mut measured = Measured::default();
    for number in 1..=extent.rounds {
        eprintln!("round {number} of {}", extent.rounds);
        let mut round = begin(baseline)?;
        while round.is_disturbed() && measured.disturbed < extent.disturbed_max {
            measured.disturbed += 1;
            round = begin(baseline)?;
        }
        measured.rounds.push(go_on(round, baseline, *extent).await?);
    }
    eprintln!(
        "{} times a second without snapshots, one with one, one with ten",
        extent.turns
    );
    measured.price = snapshots::price(extent.turns).await?;
    eprintln!("{} kills", extent.kills);
    measured.kills = restore::kills(extent.kills).await?;

    let (findings, known) = (measured.findings(), measured.known());
    let is_valid = known.iter().all(|known| !known.is_void);
    println!("{}", table::table(&measured, &findings, &known));
    let load = (load_before, load());
    println!("load before and after: {} and {}", load.0, load.1);
    println!(
        "rounds begun anew, as a baseline was off: {}",
        measured.disturbed
    );
    for known in known.iter().filter(|known| known.is_void) {
        println!("{}", table::void(known));
    }
    if let Some(path) = json {
        let answer = json!({
            "valid": is_valid,
            "load": { "before": load.0, "after": load.1 },
            "findings": findings,
            "baselines": known,
            "measured": measured,
        });
        let text = serde_json::to_string_pretty(&answer)?;
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(is_valid)
}

/// A round begins with what is known of the machine: the baselines with messages of 32 bytes.
fn begin(baseline: &Baseline) -> anyhow::Result<Round> {
    let mut round = Round::default();
    for (case, _) in KNOWN_CPU_NS {
        round.flows.push((32, case, baseline.flow(case, 32)?));
    }
    Ok(round)
}

async fn go_on(mut round: Round, baseline: &Baseline, extent: Extent) -> anyhow::Result<Round> {
    for bytes in SIZES {
        for case in CASES {
            if round.measured(bytes, case).is_some() {
                continue;
            }
            let flow = match case {
                "cutline" => carried::channel(bytes).await?,
                case => baseline.flow(case, bytes)?,
            };
            round.flows.push((bytes, case, flow));
        }
    }
    round.tcp_trip_us = baseline.trip_us("round-trip", 32)?;
    round.streams_trip_us = baseline.trip_us("streams-trip", 32)?;
    round.trip_us = carried::round_trip(32).await?;
    round.mesh = carried::mesh().await?;
    round.markers_ms = snapshots::markers_ms(32, extent.markers).await?;
    for nodes in NODES {
        let latencies_ms = snapshots::latencies_ms(nodes, extent.snapshots).await?;
        round.latencies_ms.push(median(&latencies_ms));
    }
    Ok(round)
}

/// The system's own word on how busy it has been.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

/// One case, until it is interrupted, or as many rounds as a whole run has.
async fn again_and_again(case: &str, arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments {
        baseline, extent, ..
    } = arguments;
    for _ in 0..extent.rounds {
        match case {
            "trip" => {
                println!(
                    "TCP {:.1} µs, streams {:.1} µs, cutline {:.1?} µs",
                    baseline.trip_us("round-trip", 32)?,
                    baseline.trip_us("streams-trip", 32)?,
                    carried::round_trip(32).await?
                );
            }
            "mesh" => println!("{:.1?}", carried::mesh().await?),
            "marker" => {
                let markers_ms = snapshots::markers_ms(32, extent.markers).await?;
                let at = |share| quantile(&markers_ms, share);
                println!("p50 {:.3} ms, p99 {:.3} ms", at(0.5), at(0.99));
            }
            "latency" => {
                for nodes in NODES {
                    let latencies_ms = snapshots::latencies_ms(nodes, extent.snapshots).await?;
                    let at = |share| quantile(&latencies_ms, share);
                    println!(
                        "{nodes} nodes: p50 {:.1} ms, most {:.1} ms",
                        at(0.5),
                        at(1.0)
                    );
                }
            }
            "price" => {
                for finding in findings::price(&snapshots::price(extent.turns).await?) {
                    let (value, spread) = (finding.value, finding.spread);
                    println!("{}: {value:.2} %, 95 % {spread:.2?}", finding.what);
                }
                return Ok(());
            }
            "kill" => println!("{:.1?}", restore::kills(extent.kills).await?),
            _ => {
                let (case, bytes) = case.split_once('-').context("such as cutline-32")?;
                let bytes = bytes.parse().context("such as cutline-32")?;
                let flow = match case {
                    "cutline" => carried::channel(bytes).await?,
                    case => baseline.flow(case, bytes)?,
                };
                println!(
                    "{case} {bytes}: {:.2} M/s, {:.1} + {:.1} ns",
                    flow.messages_per_s / 1e6,
                    flow.sender_ns,
                    flow.receiver_ns
                );
            }
        }
    }
    Ok(())
}
