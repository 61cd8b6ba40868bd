//! Configurations of a project of UT Dallas (CS 6378) on snapshots, as jobs.
//!
//! The course's rules: only lines that begin with an unsigned number are valid, all others say
//! nothing; on a valid line nothing behind `#` counts. There are 2n+1 valid lines: six parameters,
//! n times a node with its host and port, and n times the neighbours of one node, from 0. Channels
//! lead both ways, so each neighbour must be told of at both ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Map;

use super::graph::Link;
use super::parts::Parts;
use super::read::PROCESSES_MAX;
use super::refusal::JobError;
use super::table::Document;
use super::{Job, list, read_text};
use crate::name::plain;

/// The largest file that the rules allow.
const BYTES_MAX: usize = 100_000;

/// The six parameters, in order.
const PARAMETERS: &str = "n, minPerActive, maxPerActive, minSendDelay, snapshotDelay and maxNumber";

impl Job {
    /// Reads such a configuration, with notes of what is left out. Each node becomes a process
    /// that is called by its number; hosts and ports are dropped, as cutline finds its own.
    ///
    /// # Errors
    /// If the file cannot be read, or with every line that does not keep the rules.
    pub fn load_utd(path: &Path) -> Result<(Self, Vec<String>), JobError> {
        let failed = |source| JobError::Read {
            path: path.to_owned(),
            source,
        };
        let text = read_text(path).map_err(failed)?;
        Self::from_utd(&text, path)
    }

    /// Reads the text of such a configuration; the file gives the job its name and directory.
    ///
    /// # Errors
    /// With every line that does not keep the rules.
    pub fn from_utd(text: &str, origin: &Path) -> Result<(Self, Vec<String>), JobError> {
        let document = Document::new(origin.to_string_lossy(), text);
        if text.len() > BYTES_MAX {
            let problem = format!("it is over {BYTES_MAX} bytes");
            document.refuse(None, problem, "the rules allow no more: take fewer nodes");
        }
        let mut config = Config {
            document: &document,
            origin: document_name(origin),
            count: 0,
            parameters: [0; 6],
            neighbours: BTreeMap::new(),
            notes: Vec::new(),
        };
        config.lines(text);
        config.both_ways();
        let (parts, notes) = config.parts(origin);
        document.verdict().map_err(JobError::Refused)?;
        Self::new(parts).map(|job| (job, notes))
    }
}

fn document_name(origin: &Path) -> String {
    origin.to_string_lossy().into_owned()
}

/// A configuration that is being read.
struct Config<'d> {
    document: &'d Document,
    origin: String,
    /// The number of nodes.
    count: u32,
    parameters: [u32; 6],
    /// The neighbours of each node, and the line they stand on.
    neighbours: BTreeMap<u32, (u32, BTreeSet<u32>)>,
    notes: Vec<String>,
}

impl Config<'_> {
    fn refuse(&self, line: u32, problem: String, remedy: &str) {
        self.document.refuse(Some(line), problem, remedy);
    }

    fn lines(&mut self, text: &str) {
        let numbered = (1..).zip(text.lines());
        let content = numbered.map(|(line, text)| (line, text.split('#').next().unwrap_or("")));
        let fields = content.map(|(line, text)| (line, text.split_whitespace().collect()));
        let mut valid = fields.filter(|(_, fields): &(u32, Vec<&str>)| {
            let first = fields.first();
            first.is_some_and(|first| first.starts_with(|c: char| c.is_ascii_digit()))
        });
        let Some((first, fields)) = valid.next() else {
            let problem = "no line begins with a number";
            return self
                .document
                .refuse(None, problem, format!("begin with {PARAMETERS}"));
        };
        self.parameters(first, &fields);
        if self.document.is_refused() {
            return;
        }
        let mut hosts = BTreeSet::new();
        let mut last = first;
        for (line, fields) in valid.by_ref().take(self.count as usize) {
            self.node(line, &fields, &mut hosts);
            last = line;
        }
        for (node, (line, fields)) in (0..self.count).zip(valid.by_ref()) {
            self.row(node, line, &fields);
            last = line;
        }
        let (count, rows) = (self.count, self.neighbours.len());
        if rows < count as usize {
            let problem = format!("{count} nodes, and after here only {rows} have neighbours");
            self.refuse(
                last,
                problem,
                "give each node a line, or correct the number of nodes",
            );
        }
        if let Some((line, _)) = valid.next() {
            let problem = format!("a valid line behind the last of {count} nodes");
            self.refuse(line, problem, "take it out, or correct the number of nodes");
        }
    }

    fn parameters(&mut self, line: u32, fields: &[&str]) {
        let numbers: Option<Vec<u32>> = fields.iter().map(|field| field.parse().ok()).collect();
        let numbers = numbers.and_then(|numbers| <[u32; 6]>::try_from(numbers).ok());
        let Some(numbers) = numbers else {
            let problem = format!("'{}' are not the six parameters", fields.join(" "));
            return self.refuse(line, problem, &format!("give {PARAMETERS}"));
        };
        let [count, least, most, ..] = numbers;
        if count == 0 || u64::from(count) > PROCESSES_MAX {
            let problem = format!("{count} nodes");
            self.refuse(line, problem, &format!("give from 1 to {PROCESSES_MAX}"));
        }
        if least > most {
            let problem = format!("minPerActive {least} is over maxPerActive {most}");
            self.refuse(line, problem, "exchange them");
        }
        (self.count, self.parameters) = (count, numbers);
    }

    fn node(&self, line: u32, fields: &[&str], seen: &mut BTreeSet<u32>) {
        let node = match fields {
            [node, _, port] => node.parse().ok().zip(port.parse::<u16>().ok()),
            _ => None,
        };
        match node {
            Some((node, 1..)) if node >= self.count => {
                let problem = format!("node {node} of {} nodes", self.count);
                self.refuse(line, problem, "number them from 0");
            }
            Some((node, 1..)) if !seen.insert(node) => {
                self.refuse(line, format!("node {node} is given twice"), "take one out");
            }
            Some((_, 1..)) => {}
            _ => {
                let problem = format!("'{}' is no node", fields.join(" "));
                self.refuse(line, problem, "write its number, its host and its port");
            }
        }
    }

    fn row(&mut self, node: u32, line: u32, fields: &[&str]) {
        let mut row = BTreeSet::new();
        for field in fields {
            match field.parse::<u32>() {
                Ok(other) if other == node => self.notes.push(format!(
                    "{}:{line}: node {node} is its own neighbour, which is left out",
                    self.origin
                )),
                Ok(other) if other < self.count => {
                    if !row.insert(other) {
                        let origin = &self.origin;
                        self.notes.push(format!(
                            "{origin}:{line}: node {other} is given twice and taken once"
                        ));
                    }
                }
                _ => {
                    let problem = format!("'{field}' is none of the {} nodes", self.count);
                    self.refuse(line, problem, "number them from 0");
                }
            }
        }
        self.neighbours.insert(node, (line, row));
    }

    /// Channels lead both ways.
    fn both_ways(&self) {
        for (node, (line, row)) in &self.neighbours {
            let one_way = row.iter().filter(|other| {
                let back = self.neighbours.get(other);
                back.is_some_and(|(_, row)| !row.contains(node))
            });
            let one_way: Vec<_> = one_way.collect();
            if !one_way.is_empty() {
                let others = list(one_way);
                let problem =
                    format!("node {node} has the neighbour {others}, but not the reverse");
                let remedy = "channels lead both ways: name each at the other, too";
                self.refuse(*line, problem, remedy);
            }
        }
    }

    /// The job: what comes nearest to messages at random are transfers at random.
    fn parts(self, origin: &Path) -> (Parts, Vec<String>) {
        let file = std::path::absolute(origin).unwrap_or_else(|_| origin.to_owned());
        let stem = origin.file_stem().unwrap_or_default().to_string_lossy();
        let mut parts = Parts::new(plain(&stem), file.with_extension("cutline"));
        parts.processes = (0..self.count).map(|node| node.to_string()).collect();
        for (node, (_, row)) in &self.neighbours {
            let links = row
                .iter()
                .map(|other| Link::new(node.to_string(), other.to_string()));
            parts.channels.extend(links);
        }
        let [_, _, _, send_delay_ms, snapshot_delay_ms, _] = self.parameters;
        parts.application = "bank".to_owned();
        parts.settings = Map::from_iter([("every_ms".to_owned(), send_delay_ms.into())]);
        parts.snapshots.interval = Duration::from_millis(snapshot_delay_ms.into());
        // Node 0 starts every snapshot.
        parts.snapshots.initiators = vec!["0".to_owned()];
        (parts, self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three nodes in a line, with everything that the rules let stand there.
    const LINE: &str = "\
# n minPerActive maxPerActive minSendDelay snapshotDelay maxNumber
  3 1 4 20 500 10 # six

0 here.edu 5000
#1 nowhere.edu 5000
1 there.edu 5001   # by the window
2 there.edu 5002
names are no numbers
1
0 2 # the middle
1";

    fn read(text: &str) -> Result<(Job, Vec<String>), String> {
        let read = Job::from_utd(text, Path::new("/configs/Line.one.txt"));
        read.map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(from: &str, to: &str, words: &[&str]) {
        assert!(LINE.contains(from), "{from}");
        let refusal = read(&LINE.replacen(from, to, 1)).expect_err("refused");
        for word in words {
            assert!(refusal.contains(word), "'{word}' is not in {refusal}");
        }
    }

    #[test]
    fn only_what_begins_with_a_number_counts_and_nothing_behind_a_hash() {
        let (job, notes) = read(LINE).unwrap();
        assert_eq!((job.name(), notes.len()), ("line-one", 0));
        let topology = job.topology();
        let channels = topology.channels().iter();
        let channels: Vec<_> = channels
            .map(|&channel| topology.channel_name(channel))
            .collect();
        assert_eq!(channels, ["0→1", "1→0", "1→2", "2→1"]);
        assert_eq!(job.policy().interval_ms, 500);
        assert_eq!(job.parts().settings["every_ms"], 20);
        assert_eq!(job.initiators().len(), 1);
    }

    #[test]
    fn a_node_that_is_its_own_neighbour_or_is_named_twice_is_noted() {
        let (job, notes) = read(&LINE.replace("0 2 #", "0 1 2 2 #")).unwrap();
        assert_eq!(job.topology().channels().len(), 4);
        assert!(
            notes[0].contains("Line.one.txt:10: node 1 is its own neighbour"),
            "{notes:?}"
        );
        assert!(notes[1].contains(":10: node 2 is given twice"), "{notes:?}");
    }

    #[test]
    fn a_line_that_breaks_a_rule_is_named() {
        refused(
            "3 1 4 20 500 10",
            "3 1 4 20 500",
            &[":2: ", "six parameters"],
        );
        refused("3 1 4 20", "3 5 4 20", &[":2: ", "minPerActive 5 is over"]);
        refused("3 1 4 20", "0 1 4 20", &[":2: ", "0 nodes"]);
        refused("there.edu 5001", "there.edu 0", &[":6: ", "is no node"]);
        refused(
            "2 there.edu",
            "1 there.edu",
            &[":7: ", "node 1 is given twice"],
        );
        refused("2 there.edu", "3 there.edu", &[":7: ", "node 3 of 3 nodes"]);
        refused("0 2 #", "0 3 #", &[":10: ", "'3' is none of the 3 nodes"]);
        refused("0 2 #", "0 -2 #", &[":10: ", "'-2' is none"]);
        refused(
            "0 2 #",
            "0 #",
            &[":11: ", "node 2 has the neighbour 1, but not the reverse"],
        );
        refused(
            "\n0 2 # the middle",
            "",
            &[":10: ", "only 2 have neighbours"],
        );
        refused(
            "0 2 #",
            "0 2\n1\n1 #",
            &[":12: ", "behind the last of 3 nodes"],
        );
        assert!(
            read("# nothing\n")
                .unwrap_err()
                .contains("no line begins with a number")
        );
        let long = format!("{LINE}\n#{}", " ".repeat(BYTES_MAX));
        assert!(read(&long).unwrap_err().contains("over 100000 bytes"));
    }
}
