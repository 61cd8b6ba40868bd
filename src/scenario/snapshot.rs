//! The step `snapshot` as it stands in the file: who initiates it, and how it is taken.

use std::collections::BTreeSet;

use super::Step;
use crate::job::{Job, Placed, Section, mode, unreached, untriggered};
use crate::protocol::ids::ProcessId;
use crate::protocol::mode::Mode;

/// Reads the step. None if an initiator is no process of the job.
pub(super) fn snapshot(
    table: &mut Section<'_>,
    job: &Job,
    process: impl Fn(&Section<'_>, &Placed<String>) -> Option<ProcessId>,
) -> Option<Step> {
    let names = table.texts("from").unwrap_or_default();
    let wait = table.flag("wait").is_some_and(|wait| wait.value);
    let own_mode = table.read("mode", mode);
    let alignment_timeout = table.duration("alignment_timeout");
    let found = names.iter().map(|name| process(table, name));
    let from: Vec<Option<ProcessId>> = found.collect();
    let from: BTreeSet<ProcessId> = from.into_iter().collect::<Option<_>>()?;
    let topology = job.topology();
    if !from.is_empty()
        && let Some((problem, remedy)) = unreached(topology, &from)
    {
        table.refuse(names[0].line, problem, remedy);
    }
    let line = own_mode.as_ref().map(|mode| mode.line);
    let taken = own_mode.map_or(job.policy().mode, |mode| mode.value);
    let initiators = if from.is_empty() {
        job.initiators()
    } else {
        &from
    };
    if let Some((problem, remedy)) = untriggered(topology, taken, initiators) {
        let line = line.or(names.first().map(|name| name.line)).flatten();
        table.refuse(line, problem, remedy);
    }
    if let Some(limit) = alignment_timeout
        .as_ref()
        .filter(|_| taken != Mode::Aligned)
    {
        let problem = format!("{taken} snapshots have no alignment timeout");
        table.refuse(
            limit.line,
            problem,
            "take it out, or give mode = \"aligned\"",
        );
    }
    Some(Step::Snapshot {
        from,
        mode: line.map(|_| taken),
        alignment_timeout: alignment_timeout.map(|limit| limit.value),
        wait,
    })
}
