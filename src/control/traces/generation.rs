//! One generation to be looked at: what was written down, in an order, and where it began.

use std::collections::BTreeMap;

use crate::check::{Left, Logged, Order, Origin, linearise, process_name};
use crate::control::command::CommandError;
use crate::job::Job;
use crate::protocol::cut::Restored;
use crate::protocol::ids::{Generation, SnapshotId};
use crate::protocol::topology::Topology;
use crate::protocol::trace::What;
use crate::store::{Store, StoreError, read_parts};
use crate::trace::{TraceError, Traces};

/// What each process of a generation wrote down, in the order of the processes.
pub(super) struct Written {
    pub(super) generation: Generation,
    pub(super) processes: Vec<Vec<Logged>>,
    /// Processes whose trace does not go on to the end.
    pub(super) torn: Vec<String>,
}

impl Written {
    pub(super) fn read(traces: &Traces, generation: Generation) -> Result<Self, TraceError> {
        let read = traces.read(generation)?;
        let topology = traces.names().topology();
        let torn = topology.processes().zip(&read.processes);
        let torn = torn.filter(|(_, trace)| !trace.is_whole());
        Ok(Self {
            generation,
            torn: torn
                .map(|(process, _)| topology.name(process).to_owned())
                .collect(),
            processes: read
                .processes
                .into_iter()
                .map(|trace| trace.events)
                .collect(),
        })
    }

    /// The events in an order; behind the latest consistent cut of what was written down, none.
    pub(super) fn order(&self) -> Order {
        linearise(&self.processes)
    }

    /// The snapshot that the generation started from, as far as anybody has written it down.
    pub(super) fn restored(&self) -> Option<SnapshotId> {
        let firsts = self.processes.iter().filter_map(|events| events.first());
        let mut starts = firsts.filter_map(|logged| match logged.event.what {
            What::Start { restored } => Some(restored),
            _ => None,
        });
        starts.next()
    }

    /// Where it began: from the store, or from what was taken again.
    pub(super) async fn origin(
        &self,
        job: &Job,
        store: Option<&Store>,
        again: &BTreeMap<SnapshotId, Vec<Restored>>,
    ) -> Result<Origin, CommandError> {
        let topology = job.topology();
        let setups = topology.processes().map(|process| job.setup(process));
        let restored = self.restored().unwrap_or_default();
        let parts = match (restored.get(), again.get(&restored)) {
            (0, _) => Vec::new(),
            (_, Some(parts)) => parts.clone(),
            (_, None) => self.stored(store, topology, restored).await?,
        };
        Ok(Origin {
            setups: setups.collect(),
            limits: job.limits(),
            parts,
        })
    }

    async fn stored(
        &self,
        store: Option<&Store>,
        topology: &Topology,
        restored: SnapshotId,
    ) -> Result<Vec<Restored>, CommandError> {
        let missing = |error: &dyn std::fmt::Display| {
            CommandError::No(format!(
                "{} started from {restored}, which cannot be read: {error}",
                self.generation
            ))
        };
        let Some(store) = store else {
            return Err(missing(&"there is no store"));
        };
        match read_parts(store, topology, restored).await {
            Err(error @ (StoreError::Missing { .. } | StoreError::Damaged { .. })) => {
                Err(missing(&error))
            }
            read => Ok(read?),
        }
    }
}

/// What was written down and cannot be placed, in words.
pub(super) fn left_text(topology: &Topology, left: &Left) -> String {
    let [process, missing] = [left.process, left.missing].map(|id| process_name(topology, id));
    format!(
        "{} of {process} left out: they know of event {} of {missing}, whose trace ends with {}",
        match left.events {
            1 => "1 event".to_owned(),
            more => format!("{more} events"),
        },
        left.known,
        left.written
    )
}

/// A generation as a person types it: `g3` or `3`.
pub(super) fn generation(text: &str) -> Result<Generation, CommandError> {
    let bare = || text.parse().ok().map(Generation::new);
    let read = text.parse().ok().or_else(bare);
    read.ok_or_else(|| CommandError::NoGeneration(text.to_owned()))
}

/// Only a program that has its code can do an application's events again.
pub(super) fn own_code(job: &Job) -> Result<(), String> {
    match job.program() {
        None => Ok(()),
        Some(program) => Err(format!(
            "the code of application '{}' is in {}, not in cutline: a program that has it can \
             call cutline::control::traces, see docs/trace.md",
            job.application(),
            program.display()
        )),
    }
}
