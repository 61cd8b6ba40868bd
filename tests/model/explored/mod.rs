//! Small worlds, every interleaving of them: what is explored, and what must hold in every state.
//!
//! A [`Case`] is a world: processes, channels, a script of sends, how many snapshots are taken, in
//! which mode, and the one kind of fault that may happen. A [`State`] is that world at a moment,
//! with what may still happen to it. [`Explored`] is the model that the checker walks through.
//!
//! # What is not explored, and why nothing is missed
//!
//! - **The start.** A case begins when everyone runs, every stream is open and the first snapshot
//!   is asked for; how a job comes to run is explored where it is restored.
//! - **Acknowledgement and credit.** The windows here are wider than all messages together, so a
//!   receiver's word changes nothing but what its sender keeps to send again; that is looked at
//!   only when a stream is opened anew. So these words are left out, but for the answer to a hello,
//!   where no stream breaks.
//! - **Steps that commute with all others.** When no fault can strike any more, some steps only
//!   enable others: a node starts, a hello is answered, a part is loaded, a prepared process
//!   hears `Run`. Nothing that any other step does depends on whether they are done, and nothing
//!   can undo them; so they are done at once, alone (`State::is_eager`). In a world that has no
//!   faults at all and whose snapshots do not end one another, that is true of everything that
//!   happens between nodes, collector and store, but for the trigger: it parts what a process
//!   did before from what it does after. The rest comes after a process's part is whole and
//!   meets nothing that is still on its way.
//! - **Time** passes only where a world has a use for it: when a limit may strike, and when nothing
//!   else can happen and the collector waits before it tries again.

pub(crate) mod case;
pub(crate) mod findings;
pub(crate) mod list;
pub(crate) mod model;
pub(crate) mod rare;
pub(crate) mod script;
pub(crate) mod state;
pub(crate) mod undisturbed;

pub(crate) use case::Case;
pub(crate) use list::CASES;
pub(crate) use model::Explored;
