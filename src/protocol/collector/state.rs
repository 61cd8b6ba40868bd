//! When two collectors are the same: what decides what each does next, and nothing else.

use std::hash::{Hash, Hasher};

use super::Collector;

impl Collector {
    /// What decides the future. The rest is what a collector is started with and never changes,
    /// so that collectors of one job need not be compared by it.
    fn decisive(&self) -> impl Hash + Eq + '_ {
        let Self {
            topology: _,
            application: _,
            policy: _,
            nonce,
            job,
            phase,
            term,
            logged,
            generation,
            origins,
            unusable,
            members,
            collection,
            wanted,
            restoring,
            stopping,
            log_retry,
            reread,
            to_replace,
            before_restore,
            hangs,
            said_ms,
            now_ms,
        } = self;
        (
            (nonce, job, phase, term, logged, generation, reread),
            (origins, unusable, members, collection, wanted),
            (restoring, stopping, log_retry, to_replace, before_restore),
            (hangs, said_ms, now_ms),
        )
    }
}

/// Of collectors of one job; others are not to be compared.
impl PartialEq for Collector {
    fn eq(&self, other: &Self) -> bool {
        self.decisive() == other.decisive()
    }
}

impl Eq for Collector {}

impl Hash for Collector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.decisive().hash(state);
    }
}
