//! A job in a few lines, for people.

use std::fmt;
use std::time::Duration;

use super::Job;
use super::refusal::list;

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = self.topology();
        let processes = topology.processes().map(|process| topology.name(process));
        let channels = topology
            .channels()
            .iter()
            .map(|&channel| topology.channel_name(channel));
        let initiators = self
            .initiators()
            .iter()
            .map(|&process| topology.name(process));
        let parts = self.parts();
        let chosen = match parts.snapshots.initiators.is_empty() {
            true => " (one in each root component)",
            false => "",
        };
        writeln!(f, "job {}", self.name())?;
        writeln!(f, "  processes    {}: {}", processes.len(), list(processes))?;
        writeln!(f, "  channels     {}: {}", channels.len(), list(channels))?;
        writeln!(f, "  initiators   {}{chosen}", list(initiators))?;
        write!(f, "  application  {}", self.application())?;
        for (name, value) in &parts.settings {
            write!(f, ", {name} = {value}")?;
        }
        match self.program() {
            Some(program) => writeln!(f, "\n  program      {}", program.display())?,
            None => writeln!(f)?,
        }
        writeln!(f, "  snapshots    {}", snapshots(self))?;
        let fall_back = match parts.store.fall_back {
            true => ", an older one if the newest cannot be read",
            false => "",
        };
        let retain = parts.store.retain;
        writeln!(
            f,
            "  store        {}, {retain} kept{fall_back}",
            self.store_url()
        )?;
        let restarts = parts.restarts;
        let window = in_words(restarts.window);
        writeln!(f, "  restarts     at most {} within {window}", restarts.max)?;
        write!(f, "  directory    {}", self.directory().display())
    }
}

fn snapshots(job: &Job) -> String {
    let snapshots = &job.parts().snapshots;
    let every = match snapshots.interval {
        Duration::ZERO => "on demand only".to_owned(),
        interval => format!("every {}", in_words(interval)),
    };
    let timeout = in_words(snapshots.timeout);
    let open = snapshots.open_max;
    let failures = snapshots.failures_tolerated;
    format!("{every}, timeout {timeout}, {open} open at once, {failures} failures tolerated")
}

fn in_words(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}
