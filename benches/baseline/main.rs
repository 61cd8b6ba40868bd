//! What cutline's channels are measured against: raw TCP, and plain tonic the usual way.
//!
//! Each case runs a sender and a receiver in two processes on loopback; the program starts itself
//! again as the receiver. The receiver checks the order and does nothing else with a message. One
//! object in JSON a line:
//!
//! ```text
//! baseline [--case CASE]… [--bytes N]… [--messages N] [--rounds N]
//! {"case":"raw","bytes":32,"messages":20000000,"wall_s":…,"sender_cpu_s":…,"receiver_cpu_s":…}
//! {"case":"round-trip","bytes":32,"rounds":20000,"p50_us":…}
//! ```
//!
//! The cases: `raw` (TCP), `plain` (tonic the usual way), `streams` (cutline's streams without its
//! core), `round-trip` (TCP), `streams-trip`. Cases and sizes are interleaved: compare within a
//! round, or by CPU; never across machines.

#![allow(clippy::print_stdout, reason = "the answer goes to stdout")]
#![allow(
    clippy::unwrap_used,
    reason = "whatever fails here, there is nothing to measure"
)]

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::time::{ClockId, clock_gettime};
use serde_json::json;

mod plain;
mod raw;
mod round_trip;
mod streams;
mod streams_trip;

/// One measurement.
#[derive(Clone, Copy)]
struct Plan {
    case: Case,
    bytes: usize,
    messages: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Case {
    Raw,
    Plain,
    Streams,
    RoundTrip,
    StreamsTrip,
}

const CASES: [(Case, &str); 5] = [
    (Case::Raw, "raw"),
    (Case::Plain, "plain"),
    (Case::Streams, "streams"),
    (Case::RoundTrip, "round-trip"),
    (Case::StreamsTrip, "streams-trip"),
];

impl Case {
    fn named(name: &str) -> Self {
        let found = CASES.iter().find(|(_, known)| *known == name);
        found.unwrap_or_else(|| panic!("no case '{name}'")).0
    }

    fn name(self) -> &'static str {
        CASES.iter().find(|(case, _)| *case == self).unwrap().1
    }

    /// Enough messages for about half a second.
    fn messages(self, bytes: usize) -> u64 {
        match self {
            Self::Raw | Self::Streams => 640_000_000 / (bytes as u64 + 8),
            Self::Plain => 2_000_000,
            Self::RoundTrip | Self::StreamsTrip => 20_000,
        }
    }

    fn receive(self, listener: TcpListener, plan: Plan) {
        match self {
            Self::Raw => raw::receive(&listener, plan),
            Self::Plain => plain::receive(listener, plan),
            Self::Streams => streams::receive(listener, plan),
            Self::RoundTrip => round_trip::receive(&listener, plan),
            Self::StreamsTrip => streams_trip::receive(listener, plan),
        }
    }

    /// Returns the receiver's CPU time in nanoseconds, or the median of the round trips.
    fn send(self, address: SocketAddr, plan: Plan) -> Sent {
        match self {
            Self::Raw => raw::send(address, plan),
            Self::Plain => plain::send(address, plan),
            Self::Streams => streams::send(address, plan),
            Self::RoundTrip => round_trip::send(address, plan),
            Self::StreamsTrip => streams_trip::send(address, plan),
        }
    }
}

/// What the sender knows in the end.
struct Sent {
    began: Mark,
    /// The receiver's CPU time for the messages; or the median round trip.
    answer_ns: u64,
}

/// A point in time.
struct Mark {
    wall: Instant,
    cpu_ns: u64,
}

impl Mark {
    fn now() -> Self {
        Self {
            wall: Instant::now(),
            cpu_ns: cpu_ns(),
        }
    }
}

/// The CPU time of this process so far, of all its threads, in it and in the system for it.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap();
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// A message with its number in its first bytes.
fn fill(message: &mut [u8], number: u64) {
    message[..8].copy_from_slice(&number.to_le_bytes());
}

/// Checks that a message is the next.
fn check(message: &[u8], bytes: usize, number: u64) {
    assert_eq!(message.len(), bytes);
    assert_eq!(message[..8], number.to_le_bytes(), "out of order");
}

/// Runs a program on one thread. It is a task like those of its streams: the runtime's outermost
/// future costs one more system call each time it is woken.
fn run<T: Send + 'static>(program: impl Future<Output = T> + Send + 'static) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(async { tokio::spawn(program).await.unwrap() })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, parent, case, bytes, messages] = &arguments[..]
        && role == "receive"
    {
        // No thread that waits for the parent's end: a second one makes all of them slower.
        cutline::parent::die_with(parent.parse().unwrap()).unwrap();
        return receive(Plan {
            case: Case::named(case),
            bytes: bytes.parse().unwrap(),
            messages: messages.parse().unwrap(),
        });
    }
    let (mut cases, mut sizes, mut messages, mut rounds) = (vec![], vec![], None, 1);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value");
        match argument.as_str() {
            "--case" => cases.push(Case::named(value())),
            "--bytes" => sizes.push(value().parse().unwrap()),
            "--messages" => messages = Some(value().parse().unwrap()),
            "--rounds" => rounds = value().parse().unwrap(),
            "--bench" => {}
            other => panic!("unknown argument '{other}'"),
        }
    }
    if cases.is_empty() {
        cases.extend(CASES.map(|(case, _)| case));
    }
    if sizes.is_empty() {
        sizes.extend([32, 256]);
    }
    for _ in 0..rounds {
        for &bytes in &sizes {
            for &case in &cases {
                let messages = messages.unwrap_or(case.messages(bytes));
                measure(Plan {
                    case,
                    bytes,
                    messages,
                });
            }
        }
    }
}

/// Runs one case, with a child as the receiver.
fn measure(plan: Plan) {
    let (mut receiver, address) = start_receiver(plan);
    let sent = plan.case.send(address, plan);
    let wall_s = sent.began.wall.elapsed().as_secs_f64();
    let sender_cpu_s = seconds(cpu_ns() - sent.began.cpu_ns);
    assert!(receiver.wait().unwrap().success());
    let (case, bytes) = (plan.case.name(), plan.bytes);
    let line = if matches!(plan.case, Case::RoundTrip | Case::StreamsTrip) {
        let p50_us = sent.answer_ns as f64 / 1e3;
        json!({ "case": case, "bytes": bytes, "rounds": plan.messages, "p50_us": p50_us })
    } else {
        let per_message =
            |seconds: f64| (seconds * 1e9 / plan.messages as f64 * 10.0).round() / 10.0;
        let receiver_cpu_s = seconds(sent.answer_ns);
        json!({
            "case": case,
            "bytes": bytes,
            "messages": plan.messages,
            "wall_s": wall_s,
            "sender_cpu_s": sender_cpu_s,
            "receiver_cpu_s": receiver_cpu_s,
            "sender_ns": per_message(sender_cpu_s),
            "receiver_ns": per_message(receiver_cpu_s),
        })
    };
    println!("{line}");
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn start_receiver(plan: Plan) -> (Child, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["receive", &std::process::id().to_string(), plan.case.name()])
        .args([plan.bytes.to_string(), plan.messages.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    (child, line.trim().parse().unwrap())
}

/// The child: says where it listens.
fn receive(plan: Plan) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    plan.case.receive(listener, plan);
}
