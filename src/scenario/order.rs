//! Which steps of those that begin together keep their order: those that are about the same
//! process.

use std::collections::BTreeSet;

use super::{Scheduled, Step, Target};
use crate::protocol::ids::ProcessId;

impl Step {
    /// Whether it does something to the job.
    pub const fn is_deed(&self) -> bool {
        !matches!(self, Self::Wait { .. } | Self::Expect { .. })
    }

    /// The programs it is about; `initiators` are the job's.
    fn concerned(&self, initiators: &BTreeSet<ProcessId>) -> BTreeSet<Target> {
        let nodes = |processes: &BTreeSet<ProcessId>| -> BTreeSet<Target> {
            processes.iter().copied().map(Target::Node).collect()
        };
        match self {
            Self::Send { process, .. } => BTreeSet::from([Target::Node(*process)]),
            Self::Snapshot { from, .. } if from.is_empty() => nodes(initiators),
            Self::Snapshot { from, .. } => nodes(from),
            Self::Kill { targets, .. }
            | Self::Pause { targets }
            | Self::Resume { targets }
            | Self::Restart { targets } => targets.clone(),
            Self::Break { channel } => [channel.from, channel.to].map(Target::Node).into(),
            Self::Restore { .. } | Self::Wait { .. } | Self::Expect { .. } => BTreeSet::new(),
        }
    }
}

/// Steps that begin together, parted so that those about the same process keep their order.
pub fn chains<'s>(
    group: &'s [Scheduled],
    initiators: &BTreeSet<ProcessId>,
) -> Vec<Vec<&'s Scheduled>> {
    let mut chains: Vec<(BTreeSet<Target>, Vec<&Scheduled>)> = Vec::new();
    for scheduled in group {
        let mut about = scheduled.step.concerned(initiators);
        let (shared, apart): (Vec<_>, Vec<_>) = chains
            .into_iter()
            .partition(|(others, _)| !others.is_disjoint(&about));
        let mut chain = Vec::new();
        for (others, steps) in shared {
            about.extend(others);
            chain.extend(steps);
        }
        // Two chains that meet here have kept apart so far; by line they are in order again.
        chain.sort_by_key(|scheduled: &&Scheduled| scheduled.line);
        chain.push(scheduled);
        chains = apart;
        chains.push((about, chain));
    }
    chains.into_iter().map(|(_, chain)| chain).collect()
}
