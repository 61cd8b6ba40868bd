//! The log of a servent of RAF's course on concurrent and distributed systems ("KiDS"), homework 2:
//! what it says of the snapshots that it began.
//!
//! Three kinds of line are read, whatever stands before and behind; all others are passed over:
//!
//! ```text
//! Recorded bitcake amount for 0 = 169
//! Unreceived bitcake amount: 280 from servent 0 to servent 7
//! System bitcake count: 8000
//! ```
//!
//! The last of them ends a snapshot. These programs know of no message in a channel, only how
//! much was sent on it by one account and received by the other, and print the difference where
//! there is one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::Snapshot;
use crate::check::{Account, Content, State};
use crate::job::{Document, Refusals};
use crate::protocol::Topology;
use crate::protocol::application::Quantities;
use crate::protocol::ids::{ChannelId, ProcessId};

/// What every servent begins with.
const BEGINS_WITH: i64 = 1000;

/// Servents that a log may tell of: more than any run of the course has, and few enough to keep
/// every sum far from overflow.
const SERVENTS_MAX: usize = 10_000;

/// The most that one line may say, for the same reason.
const AMOUNT_MAX: i64 = 1_000_000_000;

const STATE: &str = "Recorded bitcake amount for ";
const CONTENT: &str = "Unreceived bitcake amount: ";
const TOTAL: &str = "System bitcake count: ";

pub(super) fn read(text: &str, origin: &Path) -> Result<Vec<Snapshot>, Refusals> {
    let document = Document::new(origin.to_string_lossy(), text);
    let mut snapshots = Vec::new();
    let mut report = Report::default();
    for (line, words) in (1..).zip(text.lines()) {
        match report.take(words) {
            Ok(None) => {}
            Ok(Some(total)) => {
                let report = std::mem::take(&mut report);
                if report.sum() != total {
                    let (sum, what) = (report.sum(), "are its lines all there?");
                    let problem = format!("the snapshot's lines make {sum}, not {total}");
                    document.refuse(Some(line), problem, what);
                }
                match report.snapshot(snapshots.len() + 1, words) {
                    Some(snapshot) => snapshots.push(snapshot),
                    None => document.refuse(
                        Some(line),
                        "a total without a recorded amount",
                        "give the log from its beginning",
                    ),
                }
            }
            Err(problem) => {
                let remedy = "give the log as the servent wrote it";
                document.refuse(Some(line), problem, remedy);
            }
        }
    }
    if !report.is_empty() {
        let problem = "the last snapshot has no total";
        document.refuse(None, problem, "give the log to its end");
    } else if snapshots.is_empty() {
        let remedy = "give the log of a servent that began one";
        document.refuse(None, "there is no snapshot in this log", remedy);
    }
    document.verdict()?;
    Ok(snapshots)
}

/// What a log has said of the snapshot that is not ended yet.
#[derive(Default)]
struct Report {
    recorded: BTreeMap<u32, i64>,
    /// A pair may be reported more than once: each report stands for itself, lest one that is
    /// negative vanish in a sum.
    unreceived: Vec<(u32, u32, i64)>,
}

impl Report {
    fn is_empty(&self) -> bool {
        self.recorded.is_empty() && self.unreceived.is_empty()
    }

    /// Takes one line. The total, if that is what it says.
    fn take(&mut self, line: &str) -> Result<Option<i64>, String> {
        let bad = || format!("'{}' cannot be understood", line.trim());
        let behind = |words: &str| Some(line.split_once(words)?.1);
        if let Some(rest) = behind(STATE) {
            let fields: Vec<_> = rest.split_whitespace().collect();
            let [servent, "=", held, ..] = fields[..] else {
                return Err(bad());
            };
            let servent = servent.parse().map_err(|_| bad())?;
            let held = amount(held).ok_or_else(bad)?;
            if self.recorded.insert(servent, held).is_some() {
                return Err(format!("servent {servent} recorded twice"));
            }
            if self.recorded.len() > SERVENTS_MAX {
                return Err(format!("more than {SERVENTS_MAX} servents recorded"));
            }
        } else if let Some(rest) = behind(CONTENT) {
            let fields: Vec<_> = rest.split_whitespace().collect();
            let [held, "from", "servent", from, "to", "servent", to, ..] = fields[..] else {
                return Err(bad());
            };
            let end = |text: &str| text.trim_end_matches('.').parse().map_err(|_| bad());
            let (from, to): (u32, u32) = (end(from)?, end(to)?);
            if from == to {
                return Err(format!("servent {from} sends to itself"));
            }
            self.unreceived
                .push((from, to, amount(held).ok_or_else(bad)?));
        } else if let Some(rest) = behind(TOTAL) {
            return rest.trim().parse().map(Some).map_err(|_| bad());
        }
        Ok(None)
    }

    fn sum(&self) -> i64 {
        let unreceived = self.unreceived.iter().map(|&(_, _, amount)| amount);
        self.recorded.values().copied().chain(unreceived).sum()
    }

    /// The snapshot; none, if nobody recorded.
    fn snapshot(self, number: usize, last: &str) -> Option<Snapshot> {
        let ends = self.unreceived.iter().flat_map(|&(from, to, _)| [from, to]);
        let servents: BTreeSet<u32> = self.recorded.keys().copied().chain(ends).collect();
        let places = (0..).map(ProcessId::new).zip(&servents);
        let places: BTreeMap<u32, ProcessId> = places.map(|(id, &servent)| (servent, id)).collect();
        let mut contents = BTreeMap::new();
        let mut parallel: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for &(from, to, held) in &self.unreceived {
            let nth = parallel.entry((from, to)).or_default();
            *nth += 1;
            let channel = ChannelId {
                nth: *nth,
                ..ChannelId::new(places[&from], places[&to])
            };
            let content = Content {
                messages: None,
                quantities: Some(bitcakes(held)),
            };
            contents.insert(channel, content);
        }
        let names = servents.iter().map(ToString::to_string).collect();
        let topology = Topology::new(names, contents.keys().copied()).ok()?;
        let states = self.recorded.iter().map(|(servent, &held)| {
            let state = State {
                quantities: Some(bitcakes(held)),
                ..State::default()
            };
            (places[servent], state)
        });
        let time = last
            .split_whitespace()
            .next()
            .filter(|word| word.contains(':'));
        let begun_with = i64::try_from(self.recorded.len()).ok()? * BEGINS_WITH;
        Some(Snapshot {
            name: match time {
                Some(time) => format!("{number} at {time}"),
                None => number.to_string(),
            },
            account: Account {
                topology: Arc::new(topology),
                is_stated: false,
                states: states.collect(),
                contents,
                expected: Some(bitcakes(begun_with)),
            },
        })
    }
}

fn amount(text: &str) -> Option<i64> {
    let amount: i64 = text.trim_end_matches('.').parse().ok()?;
    (-AMOUNT_MAX..=AMOUNT_MAX)
        .contains(&amount)
        .then_some(amount)
}

fn bitcakes(amount: i64) -> Quantities {
    [("bitcakes".to_owned(), amount)].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Answer;

    /// A snapshot as a servent's log has it: two servents, one channel.
    const LOG: &str = "\
12:00:01 - Got a message
12:00:02 - Recorded bitcake amount for 0 = 900
12:00:02 - Recorded bitcake amount for 1 = 1040 versionid 1
12:00:02 - Unreceived bitcake amount: 60 from servent 0 to servent 1 in snapshot version 0.
12:00:02 - System bitcake count: 2000
";

    fn log(text: &str) -> Result<Vec<Snapshot>, String> {
        read(text, Path::new("log.txt")).map_err(|refusals| refusals.to_string())
    }

    #[test]
    fn a_servents_log_tells_of_amounts_only() {
        let audited = log(LOG).unwrap()[0].audit();
        assert_eq!(audited.snapshot, "1 at 12:00:02");
        let yes = audited
            .verdicts
            .0
            .iter()
            .filter(|each| each.holds == Answer::Yes);
        assert_eq!(yes.map(|each| each.name).collect::<Vec<_>>(), ["conserved"]);
        assert!(audited.holds);
        let two = log(&LOG.repeat(2)).unwrap();
        assert_eq!(two[1].name, "2 at 12:00:02");
    }

    #[test]
    fn a_servents_log_with_a_negative_channel_does_not_hold_though_it_balances() {
        let log = log(&LOG.replace("1040", "1110").replace(": 60", ": -10")).unwrap();
        let audited = log[0].audit();
        assert_eq!(audited.verdicts.failing(), ["non-negative"]);
        assert_eq!(
            audited.verdicts.get("conserved").unwrap().holds,
            Answer::Yes
        );
        let evidence = &audited.verdicts.get("non-negative").unwrap().evidence;
        assert!(evidence.starts_with("0→1 holds -10 bitcakes"), "{evidence}");
    }

    #[test]
    fn a_servents_log_that_is_torn_is_refused_with_its_line() {
        let refused = |from: &str, to: &str, word: &str| {
            let refusal = log(&LOG.replace(from, to)).unwrap_err();
            assert!(refusal.contains(word), "{refusal}");
        };
        refused("= 900", "=", "log.txt:2: ");
        refused("for 1 ", "for 0 ", "log.txt:3: servent 0 recorded twice");
        refused(
            "to servent 1",
            "to servent 0",
            "log.txt:4: servent 0 sends to itself",
        );
        refused(
            ": 60 ",
            ": 70 ",
            "log.txt:5: the snapshot's lines make 2010, not 2000",
        );
        refused(
            "12:00:02 - System bitcake count: 2000\n",
            "",
            "log.txt: the last snapshot has no total",
        );
        assert!(
            log("12:00:01 - Got a message\n")
                .unwrap_err()
                .contains("no snapshot")
        );
    }
}
