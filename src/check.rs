//! The verdicts: what a snapshot is worth, judged after the fact from what its parts say.
//!
//! Conservation is not proof: a program that computes a channel's state as sent minus received
//! balances on any cut. So each verdict stands alone, with its evidence, and fails for its own
//! reason only. This module judges; reading the parts is the store's ([`verify`]).
//!
//! | verdict | it holds if |
//! |---|---|
//! | `complete` | every process has one part, and every channel both its ends |
//! | `intact` | every part file is as the manifest notes it: length, checksum, facts |
//! | `non-negative` | no channel handled more messages than were sent on it |
//! | `exact` | a channel's state is precisely the messages last handled+1 … last sent |
//! | `causal` | no process knew, when it recorded, of an event behind another's recording |
//! | `conserved` | every quantity, in states plus in channels, is what the job began with |
//!
//! `causal` is there only where the job is traced: it needs the processes' vector clocks.
//!
//! What is known of a snapshot of somebody else's program ([`Account`]) is less, and each of it may
//! be missing; the verdicts are the same, and say where they cannot be told.
//!
//! [`verify`]: crate::store::verify

mod account;
mod causal;
mod exact;
mod expected;
mod judge;
mod order;
mod replayed;
mod rerun;
mod verdict;
mod verified;
mod witness;

pub use account::{Account, Content, Message, State, judge_account};
pub use expected::{unless_held, unless_right};
pub use judge::{Cut, Files, Totals, judge, judge_manifest, totals};
pub(crate) use judge::{inconsistent, process_name};
pub use order::{Left, Logged, Order, linearise};
pub use replayed::{ProcessTrace, replayed};
pub use rerun::{Difference, Origin, Rerun, RerunError};
pub use verdict::{Answer, Verdict, Verdicts};
pub use verified::{PartState, Verified, VerifiedPart};
pub use witness::{NoWitness, Recorded, Step, Witness, witness};
