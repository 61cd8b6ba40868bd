//! The machines that decide: a process and the collector. No IO, no clock, no randomness.
//!
//! This page is the manual of the protocol. Where it and the code disagree, one of them is a bug.
//!
//! # Words
//!
//! - **process**: a vertex of the topology, one instance of the application, with a name. **Node**:
//!   the program that hosts one process.
//! - **channel**: a directed FIFO path between two processes; both directions are two channels, and
//!   parallel ones are told apart (`p1→p2`, `p1→p2#2`). **Stream**: the gRPC call that carries a
//!   channel for a while; it may break and be opened again, the channel does not.
//! - **message**: what the application sends; numbered on its channel. **Marker**: the control
//!   element that parts a channel into before and after a snapshot. **Frame**: what is written at
//!   once, packed messages or one marker.
//! - **outbox**, **inbox**: a channel's two queues: sent but not on the wire; arrived but not
//!   handled.
//! - **recording**: what one process is collecting for one open snapshot.
//! - **local state**, **channel state**: what a process recorded of itself; the messages that were
//!   sent before the sender recorded and are handled after the receiver did.
//! - **snapshot**: one local state for each process and one channel state for each channel, under
//!   one id. It is open, then it *ends*: complete or aborted.
//! - **cut**: the events that a snapshot lies after. It is *consistent* if nothing is handled in it
//!   that was not sent in it.
//! - **part**: what one process contributes to a snapshot. **Manifest**: the stored record that
//!   ends it.
//! - **collector**: triggers snapshots, gathers parts, ends snapshots, orders restores.
//!   **Trigger**: its word to an *initiator* to open a snapshot. **Control stream**: a node's gRPC
//!   call to it.
//! - **generation**: which start of the whole job, from which snapshot. **Incarnation**: one start
//!   of one node. **Term**: one collector's leadership.
//!
//! # Two machines
//!
//! [`Process`] is one vertex: its application, its outboxes and inboxes, its recordings.
//! [`Collector`](collector::Collector) takes snapshots and orders restores. Each is a state
//! machine: `step(input, &mut effects)` takes one thing that has happened and appends what is to be
//! done, in order; **the order of the effects is the algorithm**. Time comes in as a number.
//! Nothing in here waits, and nothing depends on anything but the inputs, so a run can be had
//! again.
//!
//! A *driver* turns what happens into inputs and effects into deeds: the loop of a node
//! ([`crate::node`]), the loop of the collector ([`crate::collector`]), or, for tests, a whole job
//! in memory ([`crate::world`]). Drivers decide nothing. Between two steps a driver asks the
//! process what can be done ([`Process::takable`], [`Process::writable`], [`Process::pace`]) and
//! chooses what is done next; whatever it chooses, the cut is consistent. What must not wait is
//! said by [`Process::pressing`]; the rest may, but not for ever.
//!
//! # Channels
//!
//! The paper assumes channels that lose nothing and keep the order. TCP promises that only while a
//! connection lasts, so the machines see to it themselves ([`link`]).
//!
//! - **Numbers.** A message gets its channel's next number, from 1, when it is sent. The receiver
//!   accepts only the next; what it has already is dropped, and a gap is a [`Breach`](link::Breach)
//!   that closes the stream. Numbers are part of a snapshot and go on after a restore.
//! - **On the wire** is what has been handed to the driver. Until then a message is in the outbox.
//! - **Acknowledged** is what stands in the inbox of that incarnation of the receiver. What is not
//!   acknowledged is kept, and sent again on the next stream. Arrived is not handled: a message in
//!   an inbox is still in the channel.
//! - **Markers are as reliable as messages.** A marker has its own ordinal on its channel and
//!   carries `after`, the last message on the wire before it, and `sent`, the last message sent
//!   when its sender recorded. It is acknowledged and sent again as a message is, exactly between
//!   `after` and `after` + 1; a receiver that finds it elsewhere closes the stream.
//! - **Credit** says how far a sender may go: a message number and a count of bytes. Both are
//!   absolute, so a word that is lost or repeated changes nothing. Credit grows when messages are
//!   *handled*. Markers need none.
//! - **Feedback**, acknowledgement and credit in one word, presses when a marker has come, a
//!   quarter of a window has changed, or the sender might be short of credit. Else it waits until
//!   there is time, a few milliseconds: a sender keeps a window's worth at most in any case.
//! - **A message is bytes.** It is copied once, into the outbox, and packed behind the others
//!   ([`Batch`](frame::Batch), up to 64 KiB). Recordings, resends and the handler share that
//!   buffer.
//! - **Hello.** The sender dials, and names job, topology, generation and incarnation. An older
//!   generation is refused for good, a newer one is told to try again. The first incarnation of a
//!   peer that a generation meets is the only one it ever talks to: a node that has died has lost
//!   its inboxes, and nobody keeps what it had acknowledged.
//!
//! # A snapshot at one process
//!
//! In the mode `classic`; the others are below, under *Modes*.
//!
//! 1. **Open.** Snapshot *s* opens with its first marker, or with the trigger at an initiator. The
//!    marker counts when it comes to the head of its inbox.
//! 2. **Record**, in one step that nothing can come between: take the local state; put the marker
//!    at the back of every outbox (*marker-sending rule*); open the recording of every input, which
//!    begins with what stands in its inbox ahead of the marker.
//! 3. **Channel states.** What arrives on an input before its marker is appended to its recording,
//!    and handled as always (*marker-receiving rule*).
//! 4. **Close.** An input is closed when its marker arrives. The part is whole when every input is
//!    closed and every marker is on the wire. It counts when it is on disk.
//!
//! Nothing stops meanwhile. Several snapshots may be open; markers of one are never channel state
//! of another. Any process may be an initiator, and a snapshot may have several; together they must
//! reach every process.
//!
//! **Why the cut is consistent.** Let *q* handle a message from *p* before it records *s*. The
//! marker on that channel was not ahead of the message, or *q* would have recorded on meeting it.
//! The channel keeps the order, so the message went into the outbox ahead of the marker: *p* sent
//! it before it recorded.
//!
//! **Why nothing is missing or doubled.** A message that *p* sent before it recorded is ahead of
//! the marker. When *q* records, either it has handled the message, which is then in its state; or
//! the message stands in the inbox or arrives before the marker, and is then in the recording,
//! once. This is the verdict `exact`: the state of a channel is precisely the messages after the
//! last handled, up to the last sent. It is checked on what is stored, from numbers that the two
//! ends wrote down each on its own.
//!
//! **How it ends early.** A process declines if its part cannot be stored or a recording grows over
//! `recording_bytes_max`. The collector aborts what takes longer than the timeout. A node ends what
//! takes longer by its own clock: an abort that never arrives must not keep a recording for ever. A
//! marker of a snapshot that has ended is ignored and not forwarded. Which have ended is known by a
//! low watermark that only the collector moves, and by the few ids above it.
//!
//! # A snapshot at the collector
//!
//! 1. Create `begun.json`. The create is conditional, and winning it is what gives the id out.
//! 2. Trigger the initiators, and gather. A part is reported when it is on disk.
//! 3. When all parts are in, create `manifest.json`: complete. To abort, create it: aborted. **A
//!    snapshot ends by this one conditional create**: whoever comes second is told what stands
//!    there, and goes by it.
//! 4. Tell everyone that it has ended, and delete what retention no longer wants.
//!
//! Snapshots that fail in a row are counted, and one more than is tolerated ends the job. One that
//! is aborted because a process was lost, or a restore was asked for, does not count. A record that
//! cannot be written is tried again for a minute; then the job ends too.
//!
//! # Going back to a snapshot
//!
//! A lost process takes the whole job back, since the others have handled messages that it has not
//! sent yet when it starts again, and what it had acknowledged is gone. All go back to the newest
//! complete snapshot of the current generation, else to the one this generation started from; so a
//! branch that was abandoned is never returned to.
//!
//! 1. A node is *lost* when its control stream has closed and it is not back within half a second,
//!    or another incarnation joins sooner; or when it has been silent for too long (ten seconds,
//!    unless the job says otherwise). One that comes back without the current generation counts as
//!    lost too.
//! 2. Everything open is ended, as aborted. Only then is the choice final: nobody can complete
//!    anything behind it.
//! 3. The next generation is created in the log, with the snapshot it starts from.
//! 4. When every process has a node, all are told `Prepare`. Each drops its queues, streams and
//!    recordings, loads its part, fills its inboxes with the channel states, dials, and answers
//!    ready. Frames may arrive; nothing is handled. Nodes that are alive and do not get ready are
//!    lost after ten minutes in which nobody did; the third time in a row their snapshot counts as
//!    one that cannot be loaded.
//! 5. When all are ready, all are told `Run`. What was restored stands at the head of the inboxes,
//!    so it is handled before what is new.
//!
//! A loss after `Prepare` was said starts again at 2, with the generation after. Frames, parts and
//! acknowledgements of any generation but the current one are refused everywhere, so a node that
//! was paused and wakes up changes nothing. A part that is missing, damaged, or of another
//! application or state version makes its snapshot unusable, by name. The job then stops, unless it
//! may fall back to an older one; if a user had asked for that snapshot, it goes to where a loss
//! would have taken it. Nothing is ever restored by half.
//!
//! # When the collector dies
//!
//! It keeps nothing that it cannot read back. A new one reads the log and the snapshots and creates
//! the next log record, for its term. A collector whose create meets the record of another, here or
//! later, is *fenced*, and ends. Nodes refuse the word of older terms; only where the collector of
//! another job now has their collector's address do they obey its refusal in any term. Every
//! snapshot without a manifest is ended. One of which a record is damaged is passed over, and
//! nothing older taken in its place unless that is allowed. Before it first chooses what to
//! restore it looks once more, since until the nodes had left the collector before, that one may
//! have begun and completed others. If all nodes hold the current generation, they are told `Run`
//! once more, which changes nothing for those that run: the death of a collector rolls nobody
//! back. Nodes go on without one; only snapshots and restores wait.
//!
//! # Back pressure
//!
//! Handling, once begun, never waits: what it sends goes into an outbox. What can wait is the next
//! piece of work. While an outbox holds more than `outbox_bytes`, its process starts no new work
//! (ticks) and takes no message from an input, unless that input and that output lie on a common
//! cycle: there it might be waiting for itself. On cycles a last bound, `outbox_bytes_max`, ends
//! the node with a clear error. Markers are taken all the same, so a snapshot passes through a
//! process that stands still.
//!
//! # Traces
//!
//! Where the job is traced, a process says what happens in it ([`trace`]): every input of its
//! application with all that it sent meanwhile, one indivisible *event*; and when it recorded. Its
//! vector clock ([`clock`]) ticks with every event. Messages carry the clock of the event that sent
//! them, on the wire, when they are sent again and in channel states; a part has its process's. So
//! clocks go on across generations as numbers do. They decide nothing.
//!
//! # Modes
//!
//! What is said above is `classic`. A [`Mode`](mode::Mode) is its answers to three questions, which
//! one recorder asks; it travels in the marker.
//!
//! | mode | records when | holds? | overtakes? | channel state |
//! |---|---|---|---|---|
//! | `classic` | first marker | no | no | recorded by the receiver |
//! | `aligned` | all markers but back edges' | yes | no | empty; back edges are logged |
//! | `unaligned` | first marker | no | yes | receiver share, then sender share |
//! | `aligned` with a limit T | as aligned, or T | until T | after T | as one or the other |
//! | `at-least-once` | all markers but back edges' | no | no | none: not consistent |
//!
//! - **Counting.** A marker that may not overtake counts when it comes to the head of its inbox;
//!   one that may, when it comes off the wire. Either opens the snapshot when it comes off the
//!   wire, and closes its input's recording there.
//! - **Holding.** What is behind a marker was sent after the cut. So an aligned process takes
//!   nothing more from an input whose marker has counted until it has recorded. Which inputs are
//!   *held* is a question to the core ([`Process::held`]), never a flag elsewhere; a channel is
//!   held by the recording that waits, and released with it: by the local state taken, an abort, a
//!   newer snapshot, or the node's own timeout.
//! - **Back edges.** On a cycle everyone would wait for himself. The channels that close cycles are
//!   named in the job file or found by a depth-first search from the initiators
//!   ([`Topology::back_edges`]); they are not waited for, and what comes on them before their
//!   marker is logged. A process that has no other input records on the trigger, so it must be an
//!   initiator; a request that leaves one out is refused, naming it.
//! - **Overtaking.** The marker goes ahead of every message that was never on the wire. Those of
//!   them sent before the recording are the **sender share**, `after` + 1 … `sent`; what the
//!   receiver has not handled of those ahead of the marker, handled + 1 … `after`, is the
//!   **receiver share**. They meet at `after`, without gap or overlap. A message that a broken
//!   stream took back was on the wire, is sent again ahead of the marker, and is the receiver's.
//!   Markers among themselves keep the order of their ordinals.
//! - **The limit T** is of a whole snapshot. It runs from the trigger, and at every other process
//!   from the first marker off the wire, wherever that stands; the marker carries the time used so
//!   far, to which each hop adds its own, by its own monotonic clock, up to the moment the marker
//!   is handed to the driver. When T strikes at a process, markers in its inboxes count at once,
//!   held channels are released, it records if it has not, and its markers that still wait in
//!   outboxes go to the front. A marker that carries all of T strikes at its receiver.
//! - **One at a time.** Only classic snapshots overlap, and only with one another. Else a newer one
//!   ends the older, at the collector and at every process; that is no failure. Periodic ones wait
//!   for the one before instead, and so does every one where only one may be open.
//!
//! **Why aligned and unaligned cuts are consistent.** An aligned process handles nothing from
//! behind a marker before it has recorded; an unaligned one has recorded as soon as the marker is
//! there at all. Either way nothing is handled before the cut that was sent after it. And a
//! message sent before the cut is ahead of the marker, where the receiver counts it, or was
//! overtaken in the outbox, where the sender does.
//!
//! **Why at-least-once is not.** It waits like aligned and holds nothing: what comes behind the
//! first marker is handled before the last has come. The verdicts say so. A restore from such a
//! snapshot sets the receiver's count to the sender's, and warns.
//!
//! A restore fills inboxes with receiver shares and outboxes with sender shares, ahead of anything
//! new; it need not know the mode for that.
//!
//! # Where to read on
//!
//! [`process`] has the rules beside their code, [`collector`] the other half, [`link`] the
//! channels; [`cut`] and [`records`] are what is stored. The files in `tests/transcripts/data` show
//! the protocol step by step: small jobs, with everything that follows from each choice. They are
//! run as tests.

pub mod alone;
pub mod application;
pub mod clock;
pub mod collector;
pub mod cut;
pub mod events;
pub mod frame;
pub mod ids;
pub mod link;
pub mod mode;
pub mod mutant;
pub mod process;
mod recording;
pub mod records;
pub mod topology;
pub mod trace;

pub use events::{Effect, Input};
pub use process::Process;
pub use topology::Topology;
