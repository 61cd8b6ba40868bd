//! From what the parts say to the verdicts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::causal::causal;
use super::exact;
use super::verdict::{Verdict, Verdicts};
use crate::protocol::application::Quantities;
use crate::protocol::cut::{ChannelFacts, Facts};
use crate::protocol::ids::{ChannelId, MessageNumber, ProcessId};
use crate::protocol::mode::Mode;
use crate::protocol::records::{End, Manifest};
use crate::protocol::topology::Topology;

/// What is known of a snapshot when it is judged.
#[derive(Clone, Debug)]
pub struct Cut<'a> {
    /// The processes and channels it must cover.
    pub topology: &'a Topology,
    /// The fingerprint of the topology it was taken of.
    pub fingerprint: u32,
    /// How it was taken.
    pub mode: Mode,
    /// What each part says, in any order.
    pub facts: Vec<&'a Facts>,
    /// What the quantities must add up to.
    pub expected: &'a Quantities,
    /// What is known of the part files.
    pub files: Files,
}

/// What is known of the part files of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// Nobody has looked.
    Unread,
    /// All have been read.
    Read {
        /// The bytes of those that are sound.
        bytes: u64,
        /// Those that are not there, each with its name.
        missing: Vec<String>,
        /// What is wrong with others, each with its name.
        damaged: Vec<String>,
    },
}

/// Where one quantity is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// In the local states.
    pub in_states: i128,
    /// In the channels.
    pub in_channels: i128,
    /// In the initial states.
    pub initial: i128,
    /// What the manifest says there must be.
    pub expected: i128,
}

/// The verdicts on a snapshot.
pub fn judge(cut: &Cut<'_>) -> Verdicts {
    let ends = Ends::of(cut);
    let mut verdicts = vec![
        complete(cut, &ends),
        intact(cut),
        non_negative(cut, &ends),
        exact(cut, &ends),
    ];
    verdicts.extend(causal(cut.topology, &cut.facts));
    verdicts.push(conserved(cut));
    Verdicts(verdicts)
}

/// The verdicts on what a manifest says, without a look at the parts.
pub fn judge_manifest(topology: &Topology, manifest: &Manifest) -> Verdicts {
    let (parts, expected) = match &manifest.end {
        End::Complete {
            parts, expected, ..
        } => (parts, expected),
        End::Aborted { reason } => return aborted(reason),
    };
    judge(&Cut {
        topology,
        fingerprint: manifest.topology,
        mode: manifest.mode,
        facts: parts.iter().map(|part| &part.facts).collect(),
        expected,
        files: Files::Unread,
    })
}

/// The verdicts on a snapshot that was aborted: it is not complete, and nothing more is known.
pub(super) fn aborted(reason: &str) -> Verdicts {
    let mut verdicts = vec![Verdict::no("complete", format!("aborted: {reason}"))];
    for name in ["intact", "non-negative", "exact", "conserved"] {
        verdicts.push(Verdict::unknown(name, "the snapshot was aborted"));
    }
    Verdicts(verdicts)
}

/// Where each quantity of a snapshot is, by what its parts say and what there must be.
pub fn totals(parts: &[&Facts], expected: &Quantities) -> BTreeMap<String, Totals> {
    // Wide sums: a manifest from elsewhere may say anything.
    let mut totals: BTreeMap<String, Totals> = BTreeMap::new();
    let mut add = |quantities: &Quantities, place: fn(&mut Totals) -> &mut i128| {
        for (name, &amount) in quantities {
            *place(totals.entry(name.clone()).or_default()) += i128::from(amount);
        }
    };
    add(expected, |totals| &mut totals.expected);
    for facts in parts {
        add(&facts.in_state, |totals| &mut totals.in_states);
        add(&facts.in_channels, |totals| &mut totals.in_channels);
        add(&facts.initial, |totals| &mut totals.initial);
    }
    totals
}

/// The two ends of every channel, as the parts tell of them.
struct Ends<'a> {
    both: BTreeMap<ChannelId, (&'a ChannelFacts, &'a ChannelFacts)>,
    findings: Vec<String>,
}

impl<'a> Ends<'a> {
    fn of(cut: &Cut<'a>) -> Self {
        let mut findings = Vec::new();
        let senders = Self::side(cut, "sender", |facts| &facts.outputs, &mut findings);
        let receivers = Self::side(cut, "receiver", |facts| &facts.inputs, &mut findings);
        let mut both = BTreeMap::new();
        for &channel in cut.topology.channels() {
            if let (Some(&sender), Some(&receiver)) =
                (senders.get(&channel), receivers.get(&channel))
            {
                both.insert(channel, (sender, receiver));
            }
        }
        Self { both, findings }
    }

    fn side(
        cut: &Cut<'a>,
        side: &str,
        of: impl Fn(&'a Facts) -> &'a Vec<ChannelFacts>,
        findings: &mut Vec<String>,
    ) -> BTreeMap<ChannelId, &'a ChannelFacts> {
        let mut found = BTreeMap::new();
        for &facts in &cut.facts {
            for end in of(facts) {
                let channel = end.channel;
                let owner = if side == "sender" {
                    channel.from
                } else {
                    channel.to
                };
                if !cut.topology.contains(channel) {
                    findings.push(format!("channel {channel} is none of the topology's"));
                } else if owner != facts.process {
                    let process = process_name(cut.topology, facts.process);
                    let channel = cut.topology.channel_name(channel);
                    findings.push(format!("{process} is not the {side} of {channel}"));
                } else if found.insert(channel, end).is_some() {
                    let channel = cut.topology.channel_name(channel);
                    findings.push(format!("{channel} has its {side}'s end twice"));
                }
            }
        }
        let there: BTreeSet<ProcessId> = cut.facts.iter().map(|facts| facts.process).collect();
        for &channel in cut.topology.channels() {
            let owner = if side == "sender" {
                channel.from
            } else {
                channel.to
            };
            // A part that is missing altogether is one finding, not one for each of its channels.
            if !found.contains_key(&channel) && there.contains(&owner) {
                let channel = cut.topology.channel_name(channel);
                findings.push(format!("{channel} lacks its {side}'s end"));
            }
        }
        found
    }

    /// What to answer if nothing was found: yes, unless there are channels nothing is known of.
    fn otherwise(&self, cut: &Cut<'_>, name: &'static str, evidence: String) -> Verdict {
        let (known, all) = (self.both.len(), cut.topology.channels().len());
        if known == all {
            return Verdict::yes(name, evidence);
        }
        let reason = format!("only {known} of {} have both ends", count(all, "channel"));
        Verdict::unknown(name, reason)
    }
}

fn complete(cut: &Cut<'_>, ends: &Ends<'_>) -> Verdict {
    let mut findings = Vec::new();
    if cut.fingerprint != cut.topology.fingerprint() {
        let (of, this) = (cut.fingerprint, cut.topology.fingerprint());
        findings.push(format!(
            "it is a snapshot of topology {of:08x}, not of {this:08x}"
        ));
    }
    let mut parts: BTreeMap<ProcessId, u32> = BTreeMap::new();
    for facts in &cut.facts {
        *parts.entry(facts.process).or_default() += 1;
    }
    for process in cut.topology.processes() {
        match parts.remove(&process) {
            None => findings.push(format!(
                "{} has no part",
                process_name(cut.topology, process)
            )),
            Some(1) => {}
            Some(more) => {
                findings.push(format!(
                    "{} has {more} parts",
                    process_name(cut.topology, process)
                ));
            }
        }
    }
    for process in parts.into_keys() {
        findings.push(format!(
            "{process} has a part but is no process of the topology"
        ));
    }
    findings.extend_from_slice(&ends.findings);
    if let Files::Read { missing, .. } = &cut.files {
        findings.extend_from_slice(missing);
    }
    Verdict::unless("complete", &findings, || {
        let parts = count(cut.facts.len(), "part");
        let channels = count(ends.both.len(), "channel");
        Verdict::yes("complete", format!("{parts}, {channels} with both ends"))
    })
}

fn intact(cut: &Cut<'_>) -> Verdict {
    match &cut.files {
        Files::Unread => Verdict::unknown("intact", "the part files were not read"),
        Files::Read {
            bytes,
            missing,
            damaged,
        } => Verdict::unless("intact", damaged, || {
            let read = count(cut.facts.len().saturating_sub(missing.len()), "file");
            let evidence = format!("{read} of {bytes} bytes as their checksums say");
            Verdict::yes("intact", evidence)
        }),
    }
}

fn non_negative(cut: &Cut<'_>, ends: &Ends<'_>) -> Verdict {
    let findings: Vec<_> = ends
        .both
        .iter()
        .filter_map(|(&channel, (sent, handled))| {
            negative(cut.topology, channel, sent.number, handled.number)
        })
        .collect();
    Verdict::unless("non-negative", &excused(cut, findings), || {
        let handled = ends
            .both
            .values()
            .map(|(_, end)| u128::from(end.number.get()));
        let sent = ends
            .both
            .values()
            .map(|(end, _)| u128::from(end.number.get()));
        let (handled, sent) = (handled.sum::<u128>(), sent.sum::<u128>());
        ends.otherwise(
            cut,
            "non-negative",
            format!("{handled} handled of {sent} sent"),
        )
    })
}

/// What is wrong if a channel handled more than was sent on it.
pub(super) fn negative(
    topology: &Topology,
    channel: ChannelId,
    sent: MessageNumber,
    handled: MessageNumber,
) -> Option<String> {
    let channel = topology.channel_name(channel);
    (handled > sent).then(|| format!("{channel} handled up to {handled}, sent up to {sent}"))
}

fn exact(cut: &Cut<'_>, ends: &Ends<'_>) -> Verdict {
    let mut findings = Vec::new();
    let (mut messages, mut filled) = (0, 0);
    for (&channel, (sender, receiver)) in &ends.both {
        // What overtaking markers left with the receiver was sent before what they overtook.
        let recorded = [&receiver.share[..], &sender.share[..]].concat();
        let mut faults = exact::faults(receiver.number, sender.number, &recorded);
        if cut.mode.is_consistent() {
            faults.extend(exact::unmet(sender, receiver));
        } else if receiver.number > sender.number {
            let (handled, sent) = (receiver.number, sender.number);
            faults.push(format!("handled up to {handled}, sent up to {sent}"));
        }
        for fault in faults {
            findings.push(format!("{}: {fault}", cut.topology.channel_name(channel)));
        }
        let state = sender.number.get().saturating_sub(receiver.number.get());
        messages += u128::from(state);
        filled += usize::from(state > 0);
    }
    Verdict::unless("exact", &excused(cut, findings), || {
        ends.otherwise(cut, "exact", contents(messages, filled))
    })
}

/// How much is in how many channels.
pub(super) fn contents(messages: u128, filled: usize) -> String {
    let messages = match messages {
        1 => "1 message".to_owned(),
        _ => format!("{messages} messages"),
    };
    format!("{messages} in {}", count(filled, "channel"))
}

fn conserved(cut: &Cut<'_>) -> Verdict {
    let totals = totals(&cut.facts, cut.expected);
    if totals.is_empty() {
        return Verdict::unknown("conserved", "the application names no quantity");
    }
    let there: BTreeSet<ProcessId> = cut.facts.iter().map(|facts| facts.process).collect();
    if !cut
        .topology
        .processes()
        .all(|process| there.contains(&process))
    {
        return Verdict::unknown("conserved", "not every process has a part");
    }
    let (findings, evidence) = balance(&totals);
    Verdict::unless("conserved", &excused(cut, findings), || {
        Verdict::yes("conserved", evidence)
    })
}

/// Whether each quantity, in states plus in channels, is what it was at first: what was found
/// wrong, and the evidence for the rest.
pub(super) fn balance(totals: &BTreeMap<String, Totals>) -> (Vec<String>, String) {
    let mut findings = Vec::new();
    let mut evidence = Vec::new();
    for (name, totals) in totals {
        let Totals {
            in_states,
            in_channels,
            initial,
            expected,
        } = totals;
        let found = in_states + in_channels;
        let sum = format!("{name}: {in_states} in states + {in_channels} in channels = {found}");
        if found != *expected {
            findings.push(format!("{sum}, not {expected}"));
        } else if initial != expected {
            findings.push(format!("{sum}, but the initial states hold {initial}"));
        } else {
            evidence.push(sum);
        }
    }
    (findings, evidence.join("; "))
}

/// What a mode does not promise is no fault of whoever took the snapshot; that it is so stands
/// first.
fn excused(cut: &Cut<'_>, mut findings: Vec<String>) -> Vec<String> {
    if !findings.is_empty() && !cut.mode.is_consistent() {
        findings.insert(0, inconsistent(cut.mode));
    }
    findings
}

/// What is to be said of a snapshot that was taken by a mode without consistent cuts.
pub(crate) fn inconsistent(mode: Mode) -> String {
    format!("{mode}: not a consistent cut")
}

/// The name of a process, or its id if the topology has no such process.
pub(crate) fn process_name(topology: &Topology, process: ProcessId) -> String {
    if process.index() < topology.processes().len() {
        topology.name(process).to_owned()
    } else {
        process.to_string()
    }
}

pub(super) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
