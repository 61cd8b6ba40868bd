//! When two processes are the same: what decides what each does next, and nothing else.

use std::hash::{Hash, Hasher};

use super::Process;

impl<A> Process<A> {
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
            gates: _,
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
            (application, pace, inboxes, outboxes),
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
