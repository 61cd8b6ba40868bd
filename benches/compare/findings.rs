//! What was found, beside what was aimed at.

use serde::Serialize;

use crate::baseline::Flow;
use crate::restore::Back;
use crate::snapshots::{SNAPSHOTS, Turn};
use crate::statistics::{median, median_interval, quantile};

/// What the baselines cost per message of 32 bytes, sender and receiver, when the building blocks
/// were measured on their own. A baseline that costs this much more was disturbed or is badly
/// made: it would flatter whatever stands beside it. A round that finds one begins anew; a run that
/// does in most of its rounds is void.
pub(crate) const KNOWN_CPU_NS: [(&str, f64); 2] = [("raw", 19.0 + 9.0), ("plain", 156.0 + 117.0)];
const VOID_RATIO: f64 = 1.3;

/// Percent.
const PRICE_MAX: f64 = 2.0;

pub(crate) const SIZES: [usize; 2] = [32, 256];
pub(crate) const CASES: [&str; 4] = ["raw", "plain", "streams", "cutline"];
pub(crate) const NODES: [usize; 3] = [4, 16, 32];

/// One round of everything that takes turns.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Round {
    pub(crate) flows: Vec<(usize, &'static str, Flow)>,
    pub(crate) tcp_trip_us: f64,
    /// Cutline's streams without its core.
    pub(crate) streams_trip_us: f64,
    /// Median and 99th percentile.
    pub(crate) trip_us: (f64, f64),
    /// Messages a second and CPU time per message.
    pub(crate) mesh: (f64, f64),
    pub(crate) markers_ms: Vec<f64>,
    /// The median for each of [`NODES`].
    pub(crate) latencies_ms: Vec<f64>,
}

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Measured {
    pub(crate) rounds: Vec<Round>,
    /// How often a round began anew.
    pub(crate) disturbed: usize,
    pub(crate) price: Vec<Turn>,
    pub(crate) kills: Vec<Back>,
}

/// A line of the answer.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The least and the most of all rounds; of a price, the 95 % confidence interval.
    pub(crate) spread: Option<(f64, f64)>,
    pub(crate) aim: Option<Aim>,
    /// Unknown where the interval holds the aim.
    pub(crate) reached: Option<bool>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Aim {
    AtLeast(f64),
    AtMost(f64),
}

/// A baseline beside what is known of it.
#[derive(Debug, Serialize)]
pub(crate) struct Known {
    pub(crate) case: &'static str,
    pub(crate) cpu_ns: f64,
    pub(crate) known_cpu_ns: f64,
    pub(crate) ratio: f64,
    pub(crate) is_void: bool,
}

impl Finding {
    /// The median over the rounds.
    fn of(what: impl Into<String>, unit: &'static str, values: &[f64]) -> Self {
        let most = values.iter().copied().fold(f64::MIN, f64::max);
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        Self {
            what: what.into(),
            value: median(values),
            unit,
            spread: Some((least, most)),
            aim: None,
            reached: None,
        }
    }

    fn aiming(mut self, aim: Aim) -> Self {
        self.aim = Some(aim);
        self.reached = Some(match aim {
            Aim::AtLeast(least) => self.value >= least,
            Aim::AtMost(most) => self.value <= most,
        });
        self
    }
}

impl Round {
    pub(crate) fn flow(&self, bytes: usize, case: &str) -> Flow {
        let flow = self.measured(bytes, case);
        flow.expect("every round measures all")
    }

    pub(crate) fn measured(&self, bytes: usize, case: &str) -> Option<Flow> {
        let mut flows = self.flows.iter();
        let found = flows.find(|flow| (flow.0, flow.1) == (bytes, case));
        found.map(|flow| flow.2)
    }

    /// Whether a baseline costs more than it can if nothing disturbs it. Only baselines are looked
    /// at: whatever that does to the ratios, it does not flatter cutline.
    pub(crate) fn is_disturbed(&self) -> bool {
        let mut known = KNOWN_CPU_NS.iter();
        known.any(|(case, cpu_ns)| self.flow(32, case).cpu_ns() > cpu_ns * VOID_RATIO)
    }
}

impl Measured {
    /// The baselines beside what is known of them.
    pub(crate) fn known(&self) -> Vec<Known> {
        let known = KNOWN_CPU_NS.map(|(case, known_cpu_ns)| {
            let cpu_ns = self
                .rounds
                .iter()
                .map(|round| round.flow(32, case).cpu_ns());
            let cpu_ns = median(&cpu_ns.collect::<Vec<_>>());
            let ratio = cpu_ns / known_cpu_ns;
            let is_void = ratio > VOID_RATIO;
            Known {
                case,
                cpu_ns,
                known_cpu_ns,
                ratio,
                is_void,
            }
        });
        known.into()
    }

    /// The figures, in the order of the aims.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut findings = self.channel();
        findings.extend(self.others());
        findings.extend(self.snapshots());
        findings
    }

    fn each(&self, figure: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(figure).collect()
    }

    fn channel(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for bytes in SIZES {
            for (beside, name, aim) in [
                (
                    "plain",
                    "(b) plain tonic",
                    Some(if bytes == 32 { 3.0 } else { 1.6 }),
                ),
                ("raw", "(a) raw TCP", (bytes == 32).then_some(1.0 / 3.0)),
            ] {
                let ratio = self.each(|round| {
                    let cutline = round.flow(bytes, "cutline").messages_per_s;
                    cutline / round.flow(bytes, beside).messages_per_s
                });
                let what = format!("one channel, {bytes} bytes, to {name}");
                let finding = Finding::of(what, "×", &ratio);
                findings.push(match aim {
                    Some(least) => finding.aiming(Aim::AtLeast(least)),
                    None => finding,
                });
            }
        }
        findings
    }

    fn others(&self) -> Vec<Finding> {
        let trip = self.each(|round| round.trip_us.0 / round.tcp_trip_us);
        let mesh_per_s = self.each(|round| round.mesh.0 / 1e6);
        vec![
            Finding::of("round trip p50, to std TCP", "×", &trip).aiming(Aim::AtMost(2.0)),
            Finding::of(
                "round trip p50, std TCP",
                "µs",
                &self.each(|round| round.tcp_trip_us),
            ),
            Finding::of(
                "round trip p50, the streams without the core",
                "µs",
                &self.each(|round| round.streams_trip_us),
            ),
            Finding::of("round trip p50", "µs", &self.each(|round| round.trip_us.0)),
            Finding::of("round trip p99", "µs", &self.each(|round| round.trip_us.1)),
            Finding::of("mesh of four, 32 bytes", "M messages/s", &mesh_per_s),
            Finding::of(
                "mesh of four, CPU",
                "ns/message",
                &self.each(|round| round.mesh.1),
            ),
        ]
    }

    fn snapshots(&self) -> Vec<Finding> {
        let markers_ms = |share| self.each(|round| quantile(&round.markers_ms, share));
        let mut findings = vec![
            Finding::of("marker through a busy channel, p50", "ms", &markers_ms(0.5))
                .aiming(Aim::AtMost(0.5)),
            Finding::of(
                "marker through a busy channel, p99",
                "ms",
                &markers_ms(0.99),
            ),
        ];
        findings.extend(price(&self.price));
        for (place, nodes) in NODES.iter().enumerate() {
            let latencies_ms = self.each(|round| round.latencies_ms[place]);
            let what = format!("snapshot of a mesh of {nodes}, until complete");
            findings.push(Finding::of(what, "ms", &latencies_ms));
        }
        let kills = |since: fn(&Back) -> f64| self.kills.iter().map(since).collect::<Vec<_>>();
        findings.push(Finding::of(
            "SIGKILL until a new message is handled",
            "ms",
            &kills(|back| back.from_kill_ms),
        ));
        let from_start = Finding::of(
            "the same from the process being back",
            "ms",
            &kills(|back| back.from_start_ms),
        );
        findings.push(from_start.aiming(Aim::AtMost(1000.0)));
        findings
    }
}

/// What a message took in one of a turn's seconds.
type Cost = fn(&Turn, usize) -> f64;

/// What a snapshot a second costs, in percent of what a message takes, from seconds next to each
/// other. A tenth of what ten a second cost is the same figure with a tenth of the noise, as long
/// as none waits for the one before it.
pub(crate) fn price(turns: &[Turn]) -> Vec<Finding> {
    let costs: [(&str, Cost); 2] = [
        ("time", |turn, place| 1.0 / turn.messages_per_ns[place]),
        ("CPU", |turn, place| turn.cpu_ns[place]),
    ];
    let mut findings = Vec::new();
    for (place, per) in [(1, "a snapshot a second"), (2, "a tenth of ten a second")] {
        for (name, cost) in costs {
            let extra = |turn: &Turn| cost(turn, place) / cost(turn, 0) - 1.0;
            let percent = 100.0 / f64::from(SNAPSHOTS[place]);
            let values: Vec<_> = turns.iter().map(|turn| extra(turn) * percent).collect();
            let what = format!("{per}: {name} per message");
            let mut finding = Finding::of(what, "%", &values);
            finding.spread = median_interval(&values);
            finding.aim = Some(Aim::AtMost(PRICE_MAX));
            // Said only where chance does not explain it.
            finding.reached = finding.spread.and_then(|(least, most)| {
                let is_told = most <= PRICE_MAX || least > PRICE_MAX;
                is_told.then_some(most <= PRICE_MAX)
            });
            findings.push(finding);
        }
    }
    findings
}
