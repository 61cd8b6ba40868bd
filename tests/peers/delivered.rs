//! The scripts of a project of the University of Texas (CS 380D): each delivery is a command, so
//! what is printed does not depend on timing.

use std::fmt::Write as _;
use std::path::Path;

use cutline::job::Link;
use cutline::protocol::ids::{ChannelId, SnapshotId};

use crate::stage::{Delivered, Stage};
use crate::{file, peers};

/// A script under way: what it has printed, and the snapshot it began last.
struct Script {
    stage: Stage,
    printed: String,
    snapshot: Option<SnapshotId>,
}

/// Runs a script and gives what it prints, in the form of the published outputs.
fn run(script: &str) -> Script {
    let lines: Vec<Vec<&str>> = script
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let nodes = lines
        .iter()
        .filter(|line| line.first() == Some(&"CreateNode"));
    let nodes: Vec<_> = nodes
        .map(|line| (line[1].to_owned(), line[2].parse().unwrap()))
        .collect();
    let mut channels = Vec::new();
    for (from, _) in &nodes {
        let others = nodes.iter().filter(|(to, _)| to != from);
        channels.extend(others.map(|(to, _)| Link::new(from, to)));
    }
    let mut script = Script {
        stage: Stage::new(&nodes, channels),
        printed: String::new(),
        snapshot: None,
    };
    for line in &lines {
        script.line(line);
    }
    script
}

impl Script {
    fn line(&mut self, line: &[&str]) {
        match *line {
            [] | ["StartMaster" | "KillAll" | "CollectState"] | ["CreateNode", ..] => {}
            ["Send", from, to, amount] => {
                let channel = self.stage.channel(from, to);
                if !self.stage.send(channel, amount.parse().unwrap()) {
                    self.print("ERR_SEND");
                }
            }
            ["Receive", to, from] => self.receive(self.stage.channel(from, to)),
            ["Receive", to] => {
                let to = self.stage.process(to);
                let mut inputs = self.stage.topology().inputs(to).into_iter();
                let first = inputs.find(|&input| self.stage.waiting(input) > 0);
                self.receive(first.expect("something to receive"));
            }
            ["ReceiveAll"] => {
                while let Some(channel) = self.waiting() {
                    self.stage.deliver(channel);
                }
            }
            ["BeginSnapshot", node] => {
                let process = self.stage.process(node);
                self.snapshot = Some(self.stage.snapshot(process));
                self.print(&format!("Started by Node {node}"));
            }
            ["PrintSnapshot"] => self.print_snapshot(),
            _ => panic!("{line:?} is no command"),
        }
    }

    fn print(&mut self, line: &str) {
        self.printed.push_str(line);
        self.printed.push('\n');
    }

    fn waiting(&self) -> Option<ChannelId> {
        let mut channels = self.stage.topology().channels().iter().copied();
        channels.find(|&channel| self.stage.waiting(channel) > 0)
    }

    fn receive(&mut self, channel: ChannelId) {
        let delivered = self.stage.deliver(channel);
        let from = self.stage.topology().name(channel.from).to_owned();
        self.print(&match delivered {
            Delivered::Message(amount) => format!("{from} Transfer {amount}"),
            Delivered::Marker => format!("{from} SnapshotToken -1"),
        });
    }

    fn print_snapshot(&mut self) {
        let recorded = self
            .stage
            .recorded(self.snapshot.unwrap())
            .expect("complete");
        let topology = self.stage.topology();
        let mut text = String::from("---Node states\n");
        for (&process, held) in &recorded.balances {
            let _ = writeln!(text, "node {} = {held}", topology.name(process));
        }
        text.push_str("---Channel states\n");
        for (channel, amounts) in &recorded.channels {
            let (from, to) = (topology.name(channel.from), topology.name(channel.to));
            let sum: u64 = amounts.iter().sum();
            let _ = writeln!(text, "channel ({from} -> {to}) = {sum}");
        }
        self.printed.push_str(&text);
    }
}

/// The lines of an output, in an order that does not depend on that of the channels.
fn lines(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim_end);
    lines.filter(|line| !line.is_empty()).collect()
}

fn prints(folder: &Path, name: &str) {
    let script = file(folder, &format!("{name}.test"));
    let expected = file(folder, &format!("{name}.out"));
    if let (Some(script), Some(expected)) = (script, expected) {
        let ran = run(&script);
        assert_eq!(lines(&ran.printed), lines(&expected), "{name}");
        let recorded = ran.stage.recorded(SnapshotId::new(1)).unwrap();
        assert_eq!((recorded.total(), recorded.messages()), (1500, 1), "{name}");
    }
}

#[test]
fn the_sample_cases_print_what_the_course_expects() {
    let Some(folder) = peers("utexas380d") else {
        return;
    };
    for name in ["0", "1", "2"] {
        prints(&folder, name);
    }
}

/// The students' own case has no published output: three nodes, two snapshots. What can be said
/// beforehand is what each of them must hold in all.
#[test]
fn the_case_of_three_nodes_keeps_its_money_in_both_snapshots() {
    let Some(folder) = peers("utexas380d") else {
        return;
    };
    let Some(script) = file(&folder, "3.test") else {
        return;
    };
    let ran = run(&script);
    for id in [1, 2] {
        let recorded = ran.stage.recorded(SnapshotId::new(id)).expect("complete");
        assert_eq!(recorded.total(), 3000);
        assert_eq!(recorded.balances.len(), 3);
    }
    assert_eq!(ran.printed.matches("Started by Node").count(), 2);
}

#[test]
fn a_node_that_has_too_little_sends_nothing() {
    let ran = run("CreateNode 1 10\nCreateNode 2 0\nSend 2 1 1\nSend 1 2 4\nReceive 2");
    assert_eq!(lines(&ran.printed), ["ERR_SEND", "1 Transfer 4"]);
}
