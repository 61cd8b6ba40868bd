//! Small worlds, every interleaving of them: what is explored, and what must hold in every state.
//!
//! A [`Case`] is a world: processes, channels, a script of sends, how many snapshots are taken, in
//! which mode, and the one kind of fault that may happen. A [`State`](state::State) is that world
//! at a moment, with what may still happen to it; [`Rules`](rules::Rules) say what may happen
//! next. [`Explored`] is the model that the checker walks through.
//!
//! # What is not explored, and why nothing is missed
//!
//! - **The start.** A case begins when everyone runs, every stream is open, and snapshots are
//!   asked for and begun; how a job comes to run is explored where it is taken back.
//! - **Credit.** The windows here are wider than all messages together. So a receiver's word
//!   changes only what its sender keeps to send again, and that is asked for only when a stream
//!   has broken: of a channel that does not break, such words are left out, but for the answer to
//!   a hello.
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
//! - **A marker is taken** off an inbox when it is at the head and nothing comes of it, as the
//!   local state was taken before or the snapshot has ended: then all that is done is to remove
//!   it. What stands behind it, and what arrives, may be taken later.
//! - **A frame goes on the wire** when it is in the outbox, where a receiver cannot tell: where
//!   markers overtake nothing, on a channel that never carries a second message, so that none can
//!   be packed together; and a marker that has overtaken what there was, with no snapshot to come
//!   whose own might overtake it. Not on a channel that may break: otherwise a wire loses what it
//!   has only with one of its ends, and the outbox is lost then too. To arrive later is explored,
//!   and that a part is complete later, as all its markers must be on the wire, is for it to be
//!   stored later.
//!
//! When no fault can strike any more, these too, as nothing can come between or undo them:
//!
//! - a node starts, a part is loaded, a prepared process hears `Run`, a process that has nothing
//!   to send finds that out; a hello is answered, but on a channel that has broken, since what is
//!   to be sent again stands elsewhere until then: each only makes other steps possible;
//! - a record is created, if it is the only one: of the log, since a real collector is found by
//!   nobody before it leads; of a snapshot's begin, since it could be asked for later; of its end,
//!   since that is decided. Of two, either may be the first;
//! - a part is stored where that cannot count, as the end of its snapshot is on record;
//! - **the rest**: when all run, no snapshot is open or to come and nothing is left but messages
//!   that are sent, arrive and are handled, they come in one order. That each comes once and in
//!   its place is seen in that one: a number that is wrong on a channel, or a message that is not
//!   there, stays so in every order.
//!
//! In a world whose faults end no snapshot, and once all are asked for, all that happens between
//! nodes, collector and store is taken at once. Not the trigger, which parts what a process did
//! before from what it does after; not the word that a snapshot is aborted as a newer one has
//! begun, which a marker of either may precede; and not one of two records.
//!
//! That these worlds have the same cuts without what is said here of markers, frames and the rest
//! was seen: where both could be explored, the complete snapshots were the same, message for
//! message.

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
