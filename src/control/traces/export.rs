//! `cutline trace` and `cutline topology`: for other programs.

use std::path::Path;

use super::Picture;
use super::generation::{Written, generation};
use crate::control::command::{CommandError, Reply};
use crate::control::place::Place;
use crate::job::Job;
use crate::trace::{self, Traces};

/// Writes the trace of a job, or of one generation.
///
/// # Errors
/// If there is no such job or trace.
pub fn trace(place: &Place, picture: Picture, only: Option<&str>) -> Result<Reply, CommandError> {
    let only = only.map(generation).transpose()?;
    let (job, directory) = place.job()?;
    let topology = job.topology().clone();
    let traces = Traces::open(directory.root(), topology.clone())?;
    let newest = traces.generations().last().copied();
    let chosen = match (only, picture) {
        (Some(only), _) => vec![only],
        (None, Picture::Mermaid) => newest.into_iter().collect(),
        (None, Picture::Shiviz | Picture::Ndjson) => traces.generations().to_vec(),
    };
    let mut orders = Vec::new();
    let mut lines = String::new();
    for generation in chosen {
        let written = Written::read(&traces, generation)?;
        let events = written.order().events;
        if picture == Picture::Ndjson {
            // An order takes each process's events as they come.
            let mut next = vec![0; written.processes.len()];
            let timed = events.iter().map(|event| {
                let index = event.process.index();
                next[index] += 1;
                (event, written.processes[index][next[index] - 1].at_us)
            });
            lines.push_str(&trace::lines(traces.names(), timed));
        }
        orders.push(events);
    }
    let text = match picture {
        Picture::Ndjson => lines,
        Picture::Shiviz => trace::shiviz(&topology, &orders),
        Picture::Mermaid => {
            let of = |events: &Vec<_>| trace::mermaid(&topology, events);
            orders.iter().map(of).collect()
        }
    };
    Ok(Reply { text, yes: true })
}

/// Writes the graph of a job file.
///
/// # Errors
/// If it cannot be read or makes no sense.
pub fn topology(file: &Path) -> Result<Reply, CommandError> {
    let job = Job::load(file)?;
    Ok(Reply {
        text: trace::dot(job.name(), job.topology()),
        yes: true,
    })
}
