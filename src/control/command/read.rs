//! What is read from the store, whether the job runs or not: `list`, `show`, `verify`.

use std::cell::Cell;

use super::{CommandError, Progress, Reply, id};
use crate::control::held_store::is_missing;
use crate::control::place::Place;
use crate::control::traces::verdict_of_built_in;
use crate::control::view::{Format, ListView, ShowView, VerifyView, View as _};
use crate::job::Job;
use crate::protocol::ids::SnapshotId;
use crate::protocol::records::Records;
use crate::store::{self, Store, StoreError};

/// How often snapshots to verify are looked for: a job that takes hundreds a second may have
/// retired all that a look has found before one of them has been read.
const TRIES: usize = 5;

/// Which snapshots are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Every complete one.
    All,
    /// This one.
    One(String),
}

/// The job's store; none, if it is a directory that is not there yet: opening would create it.
pub(in crate::control) async fn open(job: &Job) -> Result<Option<Store>, CommandError> {
    if is_missing(job) {
        return Ok(None);
    }
    Ok(Some(Store::open(job.store_url().as_str()).await?))
}

/// Everything that is written down in a store.
pub(in crate::control) async fn records(
    store: Option<&Store>,
    progress: Progress<'_>,
) -> Result<Records, CommandError> {
    let Some(store) = store else {
        return Ok(Records::default());
    };
    let reading = store.read_all();
    Ok(progress
        .during(|| "for the store to be read".to_owned(), reading)
        .await?)
}

/// `cutline list`: every snapshot.
///
/// # Errors
/// If there is no such job or its store cannot be read.
pub async fn list(
    place: &Place,
    format: Format,
    progress: Progress<'_>,
) -> Result<Reply, CommandError> {
    let (job, _) = place.job()?;
    let records = records(open(&job).await?.as_ref(), progress).await?;
    Ok(Reply::yes(
        ListView::new(job.name(), &records).render(format),
    ))
}

/// `cutline show`: what is in one snapshot.
///
/// # Errors
/// If there is no such job or snapshot, or the store cannot be read.
pub async fn show(
    place: &Place,
    snapshot: &str,
    format: Format,
    progress: Progress<'_>,
) -> Result<Reply, CommandError> {
    let snapshot = id(snapshot)?;
    let (job, _) = place.job()?;
    let records = records(open(&job).await?.as_ref(), progress).await?;
    let found = records
        .snapshots
        .iter()
        .find(|(begun, _)| begun.snapshot == snapshot);
    let (begun, manifest) = found.ok_or_else(|| unknown(&job, &records, snapshot))?;
    let view = ShowView::new(job.topology(), begun, manifest.as_ref());
    Ok(Reply::yes(view.render(format)))
}

/// `cutline verify`: judges snapshots from what is really in the store. No, if a verdict does not
/// hold or there is nothing to judge.
///
/// # Errors
/// If there is no such job or snapshot, or the store cannot be read.
pub async fn verify(
    place: &Place,
    which: &Which,
    format: Format,
    progress: Progress<'_>,
) -> Result<Reply, CommandError> {
    let (job, _) = place.job()?;
    let store = open(&job).await?;
    for _ in 0..TRIES {
        let records = records(store.as_ref(), progress).await?;
        let chosen = choose(&job, &records, which)?;
        let store = store.as_ref();
        let store = store.expect("a store that is not there has no snapshot to choose");
        let mut view = verify_all(&job, store, &chosen, progress).await?;
        if *which == Which::All {
            view.note(&records.unreadable);
        }
        if !view.snapshots.is_empty() || !view.unreadable.is_empty() {
            return Ok(Reply {
                text: view.render(format),
                yes: view.holds,
            });
        }
    }
    let retired = "what was to be verified has been retired meanwhile, each time: give the job a \
                   higher store.retain, or a longer snapshots.interval";
    Err(CommandError::No(retired.to_owned()))
}

/// Which are meant, of those that the store has.
fn choose(job: &Job, records: &Records, which: &Which) -> Result<Vec<SnapshotId>, CommandError> {
    let mut all = records.snapshots.iter();
    match which {
        Which::One(text) => {
            let snapshot = id(text)?;
            let (_, manifest) = all
                .find(|(begun, _)| begun.snapshot == snapshot)
                .ok_or_else(|| unknown(job, records, snapshot))?;
            match manifest {
                Some(_) => Ok(vec![snapshot]),
                None => Err(CommandError::No(format!("{snapshot} is still open"))),
            }
        }
        Which::All => {
            let manifests = all.filter_map(|(_, manifest)| manifest.as_ref());
            let complete = manifests.filter(|manifest| manifest.is_complete());
            let all: Vec<_> = complete.map(|manifest| manifest.snapshot).collect();
            if all.is_empty() && records.unreadable.is_empty() {
                let nothing = format!("{} has no complete snapshot to verify", job.name());
                return Err(CommandError::No(nothing));
            }
            Ok(all)
        }
    }
}

/// Judges these snapshots, one after the other: each may hold gigabytes. The newest is the first,
/// as those that are deleted meanwhile are passed over, and that begins with the oldest.
pub(in crate::control) async fn verify_all(
    job: &Job,
    store: &Store,
    chosen: &[SnapshotId],
    progress: Progress<'_>,
) -> Result<VerifyView, CommandError> {
    let done = Cell::new(0_usize);
    let judging = async {
        let mut judged = Vec::with_capacity(chosen.len());
        for &snapshot in chosen.iter().rev() {
            match store::verify(store, job.topology(), snapshot).await {
                Ok(verified) => {
                    let judging = (snapshot, verified.generation);
                    let replayed = match verified.outcome {
                        "complete" => verdict_of_built_in(job, store, judging).await,
                        _ => None,
                    };
                    judged.push(match replayed {
                        Some(verdict) => verified.with(verdict),
                        None => verified,
                    });
                }
                Err(StoreError::Missing { .. }) if is_retired(store, snapshot).await => {}
                Err(error) => return Err(error.into()),
            }
            done.set(done.get() + 1);
        }
        judged.reverse();
        Ok::<_, CommandError>(judged)
    };
    let state = || {
        format!(
            "for the verdicts: {} of {} snapshots",
            done.get(),
            chosen.len()
        )
    };
    let judged = progress.during(state, judging).await?;
    Ok(VerifyView::new(job.name(), judged))
}

/// Whether a snapshot that was complete has been deleted: a job that runs keeps only so many.
async fn is_retired(store: &Store, snapshot: SnapshotId) -> bool {
    matches!(
        store.manifest(snapshot).await,
        Err(StoreError::Missing { .. })
    )
}

fn unknown(job: &Job, records: &Records, snapshot: SnapshotId) -> CommandError {
    if let Some(unreadable) = records.unreadable.get(&snapshot) {
        let why = &unreadable.why;
        return CommandError::No(format!("{snapshot} cannot be read: {why}"));
    }
    CommandError::No(format!(
        "{} has no snapshot {snapshot}: 'cutline list' shows those it has",
        job.name()
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[tokio::test]
    async fn what_is_retired_while_others_are_verified_is_passed_over() {
        let text = "processes = 2\ntopology = \"ring\"\n[application]\nname = \"bank\"\n";
        let job = Job::parse(text, Path::new("/jobs/bank.toml")).unwrap();
        let store = Store::open("memory:").await.unwrap();
        let none = |_: &str| {};
        let gone = [SnapshotId::new(1), SnapshotId::new(2)];
        let view = verify_all(&job, &store, &gone, Progress(&none)).await;
        assert_eq!(view.unwrap().snapshots, []);
    }
}
