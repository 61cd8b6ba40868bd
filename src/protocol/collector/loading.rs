//! Waiting for parts to be loaded: users are told for whom, and a node that hangs is replaced.

use super::recovery::Phase;
use super::{Announcement, Collector, CollectorEffect};

/// After this without any part loaded, the nodes that are waited for hang. Well above what an
/// honest one needs: it reads a store that does not answer for about eight minutes, and then says
/// that it cannot. Every part that is loaded sets it anew: there may be many, from one store.
const LOAD_MS: u64 = 600_000;

/// Hangs in a row after which it is not the nodes: none in their places could load it either.
const HANGS_MAX: u32 = 3;

/// How long parts have been waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Loading {
    /// Since everyone was told to prepare, or the last part was loaded.
    since_ms: u64,
    /// The wait after which it is pointed out who is waited for; then twice as long, and so on.
    pointed_out_ms: u64,
}

impl Collector {
    /// The wait begins, or begins again.
    pub(super) fn loading(&self) -> Loading {
        Loading {
            since_ms: self.now_ms,
            pointed_out_ms: self.policy.silence_ms,
        }
    }

    /// Points out who is waited for, and replaces nodes that hang: they may be alive otherwise,
    /// and then nothing else ends the wait.
    pub(super) fn look_for_hangs(&mut self, effects: &mut Vec<CollectorEffect>) {
        let Phase::Preparing(loading) = &mut self.phase else {
            return;
        };
        let waited_ms = self.now_ms - loading.since_ms;
        let hang = waited_ms >= LOAD_MS;
        if !hang && waited_ms < loading.pointed_out_ms {
            return;
        }
        loading.pointed_out_ms = loading.pointed_out_ms.max(waited_ms) * 2;
        let waited_for = self.members.unprepared(self.generation);
        if waited_for.is_empty() {
            // Someone is away, which settles itself sooner.
            return;
        }
        let names = self.names(waited_for.iter().map(|(process, _)| *process).collect());
        if !hang {
            let snapshot = self.restored();
            let warning = format!(
                "restoring {snapshot} waits for {names}: no part was loaded for {waited_ms} ms"
            );
            effects.push(CollectorEffect::Announce(Announcement::Warned(warning)));
            return;
        }
        self.hangs += 1;
        if self.hangs >= HANGS_MAX {
            let reason = format!(
                "{names}: no word for {LOAD_MS} ms that the part is loaded, {HANGS_MAX} times in a \
                 row"
            );
            self.cannot_restore(&reason, effects);
        }
        if self.phase == Phase::Over {
            return;
        }
        for (process, incarnation) in waited_for {
            let reason = "this node did not load its part in time and was declared lost";
            self.lose(process, incarnation, reason, effects);
        }
    }
}
