//! Small worlds, every interleaving of them: what is explored, and what must hold in every state.
//!
//! A [`Case`] is a world: processes, channels, a script of sends, how many snapshots are taken, in
//! which mode, and the one kind of fault that may happen. A [`State`] is that world at a moment,
//! with what may still happen to it. [`Explored`] is the model that the checker walks through.
//!
//! # What is not explored, and why nothing is missed
//!
//! - **The start.** A case begins when everyone runs, every stream is open, and snapshots are
//!   asked for and begun; how a job comes to run is explored where it is taken back.
//! - **Credit.** The windows here are wider than all messages together. So a receiver's word
//!   changes only what its sender keeps to send again, and that is asked for only when a stream
//!   has broken: where none does, such words are left out, but for the answer to a hello.
//! - **Time** passes only where a world has a use for it: when the limit T may strike; and when
//!   nothing else can happen and the collector waits before it tries again.
//!
//! Some steps are taken as soon as they can be, alone. Each stands for all the moments at which it
//! could have been taken, as to take it later is to have taken another step later, which is
//! explored:
//!
//! - **A sender hears** a receiver's word when it is said. To hear it later, or never, is for it
//!   to be said later, or never: nothing that the sender does meanwhile depends on it.
//! - **The collector hears** that a part is stored, or declined, when that is said. To hear it
//!   later is for the part to be stored later; and what a collector has heard when it is killed is
//!   gone with it. That a node has gone changes nothing before its successor joins, and when that
//!   is heard is explored.
//! - **A process hears** that a snapshot is complete when that is said. It has nothing open of it
//!   any more, and no marker of it is on its way.
//!
//! When no fault can strike any more, these too, as nothing can come between or undo them:
//!
//! - a node starts, a hello is answered, a part is loaded, a prepared process hears `Run`, a
//!   process that has nothing to send finds that out: each only makes other steps possible;
//! - records are created: of the log, since a real collector is found by nobody before it leads;
//!   of a snapshot's begin, since it could be asked for later; of its end, since that is decided.
//!   Parts are stored at once only where no snapshot can be aborted.
//!
//! In a world without faults whose snapshots do not end one another, all that happens between
//! nodes, collector and store is taken at once but for the trigger, which parts what a process did
//! before from what it does after.

pub(crate) mod case;
pub(crate) mod findings;
pub(crate) mod list;
pub(crate) mod model;
pub(crate) mod rare;
pub(crate) mod resent;
pub(crate) mod rules;
pub(crate) mod script;
pub(crate) mod state;
pub(crate) mod undisturbed;

pub(crate) use case::Case;
pub(crate) use list::CASES;
pub(crate) use model::Explored;
