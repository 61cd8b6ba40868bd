//! The answer for people.

use std::fmt::Write as _;

use crate::findings::{Aim, CASES, Finding, Known, Measured, SIZES};
use crate::statistics::median;

/// The whole of it.
pub(crate) fn table(measured: &Measured, findings: &[Finding], known: &[Known]) -> String {
    let mut out = String::new();
    flows(&mut out, measured).expect("a string takes everything");
    baselines(&mut out, known).expect("a string takes everything");
    aims(&mut out, findings).expect("a string takes everything");
    out
}

fn flows(out: &mut String, measured: &Measured) -> std::fmt::Result {
    let rounds = &measured.rounds;
    writeln!(out, "One channel, median of {} rounds\n", rounds.len())?;
    writeln!(
        out,
        "{:<34}{:>6}{:>14}{:>8}{:>8}{:>24}",
        "", "bytes", "M messages/s", "× (a)", "× (b)", "CPU ns, send + receive"
    )?;
    for bytes in SIZES {
        for case in CASES {
            let name = match case {
                "raw" => "(a) raw TCP, 64 KiB writes",
                "plain" => "(b) plain tonic, mpsc(1024)",
                "streams" => "cutline's streams, without its core",
                _ => "cutline, the whole",
            };
            let of = |figure: &dyn Fn(&crate::findings::Round) -> f64| {
                median(&rounds.iter().map(figure).collect::<Vec<_>>())
            };
            let rate = |other: &'static str| {
                of(&|round| {
                    let rate = round.flow(bytes, case).messages_per_s;
                    rate / round.flow(bytes, other).messages_per_s
                })
            };
            writeln!(
                out,
                "{name:<34}{bytes:>6}{:>14.2}{:>8.2}{:>8.2}{:>16.1} + {:>5.1}",
                of(&|round| round.flow(bytes, case).messages_per_s) / 1e6,
                rate("raw"),
                rate("plain"),
                of(&|round| round.flow(bytes, case).sender_ns),
                of(&|round| round.flow(bytes, case).receiver_ns),
            )?;
        }
    }
    Ok(())
}

fn baselines(out: &mut String, known: &[Known]) -> std::fmt::Result {
    writeln!(out, "\nBaselines at 32 bytes, CPU ns per message\n")?;
    for Known {
        case,
        cpu_ns,
        known_cpu_ns,
        ratio,
        is_void,
    } in known
    {
        let verdict = match (is_void, *ratio < 1.0 / 1.3) {
            (true, _) => "VOID: disturbed, or badly made",
            (_, true) => "cheaper than known: the aims beside it are harder",
            _ => "as known",
        };
        writeln!(
            out,
            "{case:<8}{cpu_ns:>8.1}, known {known_cpu_ns:>6.1}: {ratio:.2} times; {verdict}"
        )?;
    }
    Ok(())
}

fn aims(out: &mut String, findings: &[Finding]) -> std::fmt::Result {
    writeln!(
        out,
        "\n{:<46}{:>9} {:<13}{:>21}{:>10}",
        "", "", "", "least–most, or 95 %", "aim"
    )?;
    for Finding {
        what,
        value,
        unit,
        spread,
        aim,
        reached,
    } in findings
    {
        let spread = spread.map(|(least, most)| format!("{least:.2} – {most:.2}"));
        let reached = match (aim, reached) {
            (None, _) => "",
            (Some(_), Some(true)) => "reached",
            (Some(_), Some(false)) => "MISSED",
            (Some(_), None) => "not told apart",
        };
        let aim = match aim {
            Some(Aim::AtLeast(least)) => format!("≥ {least:.2}"),
            Some(Aim::AtMost(most)) => format!("≤ {most:.2}"),
            None => String::new(),
        };
        writeln!(
            out,
            "{what:<46}{value:>9.2} {unit:<13}{:>21}{aim:>10} {reached}",
            spread.unwrap_or_default()
        )?;
    }
    Ok(())
}

/// Why a run says nothing.
pub(crate) fn void(known: &Known) -> String {
    let Known {
        case,
        cpu_ns,
        known_cpu_ns,
        ratio,
        ..
    } = known;
    format!(
        "this run is VOID: the baseline '{case}' cost {cpu_ns:.0} ns of CPU a message, {ratio:.2} \
         times the {known_cpu_ns:.0} ns that are known of it: the machine was busy, or is another"
    )
}
