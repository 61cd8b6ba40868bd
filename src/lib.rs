//! Takes a consistent cut of a running distributed program without stopping it, proves the cut
//! right, and restarts from it.
//!
//! Chandy and Lamport's algorithm (*Distributed Snapshots*, 1985) over gRPC streams between
//! programs of their own, with everything that the paper leaves out: channels that survive broken
//! connections, parts on disk, restarts after kills, and verdicts on what was stored.
//!
//! Most people start with the programs (`cutline`, `cutline-node`, `cutline-collector`; see the
//! README). As a library the crate is three things:
//!
//! - **A trait to write.** [`Application`](protocol::application::Application) is a deterministic
//!   state machine that is given messages and answers by sending. [`node::main`] makes a program of
//!   it, which a job file names. `docs/applications.md` shows one with its test.
//! - **A protocol to read.** [`protocol`] is the manual and the machines: no IO, no clock, no
//!   threads.
//! - **A world to try it in.** [`world::World`] is a whole job in memory, where every send,
//!   arrival, crash and disk write is a choice of the caller's.
//!
//! # A snapshot in memory
//!
//! Two processes hold ten tokens each. While a snapshot is taken four of them are on their way;
//! afterwards one process dies.
//!
//! ```
//! use std::path::Path;
//!
//! use cutline::apps::BuiltIn;
//! use cutline::job::Job;
//! use cutline::protocol::collector::Request;
//! use cutline::protocol::ids::{Generation, ProcessId, SnapshotId};
//! use cutline::protocol::process::Settings;
//! use cutline::protocol::records::End;
//! use cutline::world::{self, Choice, Fault, Notice, World};
//!
//! let text = r#"
//!     processes = 2
//!     topology = "mesh"
//!     snapshots = { interval = "0s" }
//!     application = { name = "token", balance = 10 }
//! "#;
//! let job = Job::parse(text, Path::new("two.toml"))?;
//! let mut world = World::<BuiltIn>::new(world::Job {
//!     topology: job.topology().clone(),
//!     application: job.application().to_owned(),
//!     settings: job.setup(ProcessId::new(0)).settings,
//!     seed: job.seed(),
//!     process: Settings { limits: job.limits(), snapshot_timeout_ms: 10_000, trace: false },
//!     policy: job.policy(),
//! })?;
//! assert!(world.stabilize(1_000), "everything that can happen has happened");
//! assert!(world.is_running());
//!
//! let (p1, p2) = (ProcessId::new(0), ProcessId::new(1));
//! world.ask(Request::snapshot([p2].into()));
//! while !world.take_notices().contains(&Notice::Recorded(p2, SnapshotId::new(1))) {
//!     let choice = world.choices()[0];
//!     world.apply(&choice);
//! }
//! world.command(p1, "send p2 4"); // p1 has not met the marker yet
//! world.stabilize(1_000);
//!
//! let manifest = world.manifests().next().expect("s1 has ended");
//! let End::Complete { parts, expected, .. } = &manifest.end else { panic!("aborted") };
//! assert_eq!(parts[0].facts.in_state["tokens"], 6);
//! assert_eq!(parts[1].facts.in_state["tokens"], 10, "p2 recorded before they came");
//! assert_eq!(parts[1].facts.in_channels["tokens"], 4, "so they are in the channel");
//! assert_eq!(expected["tokens"], 20);
//!
//! world.apply(&Choice::Fault(Fault::Crash(p1)));
//! world.stabilize(1_000);
//! let status = world.collector().expect("it is up").status();
//! assert_eq!(status.generation, Generation::new(2));
//! assert_eq!(status.restored, SnapshotId::new(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Floors
//!
//! A module imports only what stands below it; `tests/tidy.rs` sees to that. From the ground up:
//!
//! 1. [`protocol`]: the machines. They import nothing of the crate.
//! 2. [`world`] (a job in memory), [`check`] (the verdicts), [`apps`] (the applications that come
//!    with the crate).
//! 3. [`wire`] (protobuf to and from the protocol's types, part files), then [`store`] (records and
//!    parts on disk).
//! 4. [`net`]: the streams that carry channels. It sees the protocol and the wire. [`trace`]: what
//!    traced processes did, as files; it sees the protocol and the verdicts.
//! 5. [`job`], [`scenario`] and [`audit`] read their files; [`hold`], [`name`], [`parent`] and
//!    [`program`] are what the programs share.
//! 6. [`sim`]: a scenario in virtual time, on a world.
//! 7. [`node`], [`collector`], [`control`]: the programs, as functions.

pub mod apps;
pub mod audit;
pub mod check;
pub mod collector;
pub mod control;
pub mod hold;
pub mod job;
pub mod name;
pub mod net;
pub mod node;
pub mod parent;
pub mod program;
pub mod protocol;
pub mod scenario;
pub mod sim;
pub mod store;
pub mod trace;
pub mod wire;
pub mod world;
