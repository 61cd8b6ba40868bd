//! When two processes are the same: what decides what each does next, and nothing else.

use std::hash::{Hash, Hasher};

use super::{Process, Recording};

/// Channels that a test build looks at after every step.
const LOOKED_AT_MAX: usize = 16;

impl<A> Process<A> {
    /// Whether what is kept of all channels together is what a look at each finds. Where there
    /// are many, a look after every step is what it is there to save.
    pub(super) fn is_kept_right(&self) -> bool {
        let mut recordings = self.recordings.values();
        self.inboxes.len() + self.outboxes.len() > LOOKED_AT_MAX
            || self.inboxes.is_kept_right()
                && self.outboxes.is_kept_right()
                && recordings.all(Recording::is_kept_right)
    }

    /// What decides the future. The rest is what a process is started with and never changes, so
    /// that processes of one job and one place need not be compared by it.
    fn decisive(&self) -> impl Hash + Eq + '_
    where
        A: Hash + Eq,
    {
        let Self {
            setup: _,
            settings: _,
            initial: _,
            // It only writes down.
            tracer: _,
            incarnation,
            job,
            term,
            phase,
            application,
            pace,
            inboxes,
            outboxes,
            recordings,
            ended,
            now_ms,
        } = self;
        (
            (incarnation, job, term, phase, now_ms),
            // What is kept of all of them follows from each.
            (application, pace, &inboxes[..], &outboxes[..]),
            (recordings, ended),
        )
    }
}

/// Of processes with one setup and the same settings; others are not to be compared.
impl<A: Eq + Hash> PartialEq for Process<A> {
    fn eq(&self, other: &Self) -> bool {
        self.decisive() == other.decisive()
    }
}

impl<A: Eq + Hash> Eq for Process<A> {}

impl<A: Eq + Hash> Hash for Process<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.decisive().hash(state);
    }
}
