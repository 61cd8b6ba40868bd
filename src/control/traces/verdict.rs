//! The verdict `replayed` on snapshots of a traced job, from its store and its traces.

use std::collections::BTreeMap;
use std::path::Path;

use super::generation::{Written, own_code};
use crate::apps::BuiltIn;
use crate::check::{Origin, Verdict, replayed};
use crate::job::Job;
use crate::protocol::application::Application;
use crate::protocol::ids::{Generation, ProcessId, SnapshotId};
use crate::store::Store;
use crate::trace::Traces;
use crate::wire::part::PartFile;

/// Judges one snapshot of a traced job; none where the job is not traced.
pub async fn verdict<A: Application>(
    job: &Job,
    directory: &Path,
    store: &Store,
    (snapshot, generation): (SnapshotId, Generation),
) -> Option<Verdict> {
    if !job.trace() {
        return None;
    }
    let found = match find(job, directory, store, generation).await {
        Ok(found) => found,
        Err(reason) => return Some(Verdict::unknown("replayed", reason)),
    };
    let (written, origin) = found;
    let mut states = BTreeMap::new();
    for process in job.topology().processes() {
        // One that cannot be read is a matter of `complete` and `intact`.
        if let Some(part) = part(job, store, snapshot, process).await {
            states.insert(process, part.state);
        }
    }
    let judging = tokio::task::spawn_blocking(move || {
        replayed::<A>(&origin, &written.processes, snapshot, &states)
    });
    let judged = judging.await;
    Some(judged.unwrap_or_else(|error| Verdict::unknown("replayed", error.to_string())))
}

/// The same where nobody but `cutline` itself is there to do the events again.
pub(in crate::control) async fn verdict_of_built_in(
    job: &Job,
    store: &Store,
    judged: (SnapshotId, Generation),
) -> Option<Verdict> {
    match own_code(job) {
        Err(reason) if job.trace() => Some(Verdict::unknown("replayed", reason)),
        _ => verdict::<BuiltIn>(job, job.directory(), store, judged).await,
    }
}

async fn find(
    job: &Job,
    directory: &Path,
    store: &Store,
    generation: Generation,
) -> Result<(Written, Origin), String> {
    let traces = Traces::open(directory, job.topology().clone());
    let written = traces.and_then(|traces| Written::read(&traces, generation));
    let written = written.map_err(|error| error.to_string())?;
    let origin = written.origin(job, Some(store), &BTreeMap::new()).await;
    Ok((written, origin.map_err(|error| error.to_string())?))
}

async fn part(
    job: &Job,
    store: &Store,
    snapshot: SnapshotId,
    process: ProcessId,
) -> Option<crate::protocol::cut::Restored> {
    let name = job.topology().name(process);
    let file = store.get_part(snapshot, name).await.ok()?;
    PartFile::decode(file).ok().map(PartFile::into_restored)
}
