//! Streams that carry channels between nodes, driven by the one loop of a node.
//!
//! Nothing is decided here. A stream is opened, its words are moved, and what happens is told, in
//! order; what it means is the core's business ([`crate::protocol`]). The loop owns [`Streams`]:
//!
//! ```text
//!   loop ── write ──► outlet ─► tonic ─► one TCP connection a channel ─► task ─► queue ─► loop
//!   loop ◄─ queue ◄── task ◄─── tonic ◄─────────────────────────────── outlet ◄─ feedback ── loop
//! ```
//!
//! An *outlet* holds two words: what waits does so in the core's outbox, where a snapshot sees it.
//! The queue towards the loop is bounded and shared by all streams; see [`streams`] for why that
//! cannot deadlock. Words stay in order within a stream, and nothing is promised between streams.

pub mod streams;

mod inbound;
mod memory;
mod outbound;
mod outlet;
mod pauses;
mod socket;
mod tasks;

pub use inbound::SPARE_CONNECTIONS;
pub use streams::{Event, Streams};
pub use tasks::Timing;
