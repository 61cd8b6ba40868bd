//! A snapshot as anyone may tell of it, and the verdicts that so much allows. What is not told is
//! not known, and the verdict says so instead of guessing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::causal::of_clocks;
use super::exact;
use super::judge::{Totals, balance, contents, count, negative};
use super::verdict::{Verdict, Verdicts};
use crate::protocol::application::Quantities;
use crate::protocol::clock::Clock;
use crate::protocol::cut::Run;
use crate::protocol::ids::{ChannelId, MessageNumber, ProcessId};
use crate::protocol::topology::Topology;

/// What is told of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The processes and channels that it must cover, or that are spoken of in it.
    pub topology: Arc<Topology>,
    /// Whether the topology is stated, so that what is not spoken of is missing.
    pub is_stated: bool,
    /// The local states.
    pub states: BTreeMap<ProcessId, State>,
    /// The channel states.
    pub contents: BTreeMap<ChannelId, Content>,
    /// What the quantities must add up to, if that is told.
    pub expected: Option<Quantities>,
}

/// What is told of a local state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// What it holds.
    pub quantities: Option<Quantities>,
    /// How many messages had been sent on outputs.
    pub sent: BTreeMap<ChannelId, MessageNumber>,
    /// How many messages had been handled from inputs.
    pub received: BTreeMap<ChannelId, MessageNumber>,
    /// The vector clock.
    pub clock: Option<Clock>,
}

/// What is told of a channel state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The messages in it, in the order they were sent.
    pub messages: Option<Vec<Message>>,
    /// What it holds as a whole, where that is told instead of what each message carries.
    pub quantities: Option<Quantities>,
}

/// What is told of a message in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Its number on the channel, from 1.
    pub number: Option<MessageNumber>,
    /// What it carries.
    pub quantities: Option<Quantities>,
}

/// The verdicts on a snapshot that is told of: all but `intact`, as there are no parts.
pub fn judge_account(account: &Account) -> Verdicts {
    let states = account.states.iter();
    let clocks = states.filter_map(|(&process, state)| Some((process, state.clock.as_ref()?)));
    let clocks: Vec<_> = clocks.collect();
    let causal = of_clocks(&account.topology, &clocks);
    Verdicts(vec![
        complete(account),
        non_negative(account),
        exact(account),
        causal.unwrap_or_else(|| Verdict::unknown("causal", "no process has a clock")),
        conserved(account),
    ])
}

impl Account {
    fn sent(&self, channel: ChannelId) -> Option<MessageNumber> {
        self.states.get(&channel.from)?.sent.get(&channel).copied()
    }

    fn received(&self, channel: ChannelId) -> Option<MessageNumber> {
        self.states
            .get(&channel.to)?
            .received
            .get(&channel)
            .copied()
    }

    /// Where each quantity is.
    ///
    /// # Errors
    /// With what is not told of it.
    pub fn totals(&self) -> Result<BTreeMap<String, Totals>, String> {
        let Some(expected) = &self.expected else {
            return Err("it is not told what the quantities must add up to".to_owned());
        };
        let mut totals: BTreeMap<String, Totals> = BTreeMap::new();
        for (name, &amount) in expected {
            let totals = totals.entry(name.clone()).or_default();
            totals.initial = amount.into();
            totals.expected = amount.into();
        }
        for process in self.topology.processes() {
            let state = self.states.get(&process);
            let held = state.and_then(|state| state.quantities.as_ref());
            let name = self.topology.name(process);
            let held = held.ok_or_else(|| format!("it is not told what {name} holds"))?;
            for (name, &amount) in held {
                totals.entry(name.clone()).or_default().in_states += i128::from(amount);
            }
        }
        for &channel in self.topology.channels() {
            let held = self.contents.get(&channel).and_then(Content::held);
            let name = self.topology.channel_name(channel);
            let held = held.ok_or_else(|| format!("it is not told what is in {name}"))?;
            for (name, &amount) in held.into_iter().flatten() {
                totals.entry(name.clone()).or_default().in_channels += i128::from(amount);
            }
        }
        match totals.keys().find(|name| !expected.contains_key(*name)) {
            Some(name) => Err(format!("it is not told what {name} must add up to")),
            None => Ok(totals),
        }
    }

    /// Why a verdict cannot be told; nothing, if it can.
    fn lacking(&self, channels: &[String], what: &str) -> Option<String> {
        match channels {
            [] if !self.is_stated && self.topology.channels().is_empty() => {
                Some("it is not told of any channel".to_owned())
            }
            [] => None,
            [only] => Some(format!("{only} lacks {what}")),
            [first, more @ ..] => {
                let more = count(more.len(), "other");
                Some(format!("{first} and {more} lack {what}"))
            }
        }
    }
}

impl Content {
    /// What is in the channel, by and by; none, if not all of it is told.
    fn held(&self) -> Option<Vec<&Quantities>> {
        if let Some(whole) = &self.quantities {
            return Some(vec![whole]);
        }
        let messages = self.messages.as_ref()?.iter();
        messages
            .map(|message| message.quantities.as_ref())
            .collect()
    }
}

fn complete(account: &Account) -> Verdict {
    let topology = &account.topology;
    let processes = topology.processes();
    let stateless = processes.filter(|process| !account.states.contains_key(process));
    let mut findings: Vec<_> = stateless
        .map(|process| format!("{} has no local state", topology.name(process)))
        .collect();
    let channels = topology.channels().iter();
    let untold = channels.filter(|channel| !account.contents.contains_key(channel));
    findings.extend(untold.map(|&channel| {
        let channel = topology.channel_name(channel);
        format!("{channel} has no channel state")
    }));
    Verdict::unless("complete", &findings, || {
        if !account.is_stated {
            let reason = "it is not stated which processes and channels there are";
            return Verdict::unknown("complete", reason);
        }
        let states = count(account.states.len(), "local state");
        let channels = count(account.contents.len(), "channel state");
        Verdict::yes("complete", format!("{states}, {channels}"))
    })
}

fn non_negative(account: &Account) -> Verdict {
    let topology = &account.topology;
    let mut findings = Vec::new();
    let mut uncounted = Vec::new();
    let (mut all_sent, mut all_handled) = (0_u128, 0_u128);
    for &channel in topology.channels() {
        match (account.sent(channel), account.received(channel)) {
            (Some(sent), Some(handled)) => {
                findings.extend(negative(topology, channel, sent, handled));
                all_sent += u128::from(sent.get());
                all_handled += u128::from(handled.get());
            }
            _ => uncounted.push(topology.channel_name(channel)),
        }
        // Of a channel as a whole, less than nothing can only be a difference: what was received
        // and had not been sent.
        let content = account.contents.get(&channel);
        let as_a_whole = content.and_then(|content| content.quantities.as_ref());
        for (name, amount) in as_a_whole.into_iter().flatten() {
            if *amount < 0 {
                let channel = topology.channel_name(channel);
                let more = "more was received than sent";
                findings.push(format!("{channel} holds {amount} {name}: {more}"));
            }
        }
    }
    Verdict::unless("non-negative", &findings, || {
        match account.lacking(&uncounted, "counts of messages sent and received") {
            Some(reason) => Verdict::unknown("non-negative", reason),
            None => {
                let evidence = format!("{all_handled} handled of {all_sent} sent");
                Verdict::yes("non-negative", evidence)
            }
        }
    })
}

fn exact(account: &Account) -> Verdict {
    let topology = &account.topology;
    let (mut findings, mut open) = (Vec::new(), Vec::new());
    let (mut messages, mut filled) = (0_u128, 0);
    for &channel in topology.channels() {
        let (sent, handled) = (account.sent(channel), account.received(channel));
        let content = account.contents.get(&channel);
        let told = content.and_then(|content| content.messages.as_deref());
        let name = topology.channel_name(channel);
        let numbers = told.and_then(|told| told.iter().map(|message| message.number).collect());
        let faults = match (told, numbers) {
            (Some(_), Some(numbers)) => numbered_faults(sent, handled, numbers),
            (Some(told), None) => unnumbered_faults(sent, handled, told.len()),
            (None, _) => Vec::new(),
        };
        findings.extend(faults.iter().map(|fault| format!("{name}: {fault}")));
        let all = told.unwrap_or_default();
        let is_numbered = all.iter().all(|message| message.number.is_some());
        if told.is_none() || sent.is_none() || handled.is_none() || !is_numbered {
            open.push(name);
        }
        messages += all.len() as u128;
        filled += usize::from(!all.is_empty());
    }
    Verdict::unless("exact", &findings, || {
        let what = "message numbers (last sent, last received, each in the channel)";
        match account.lacking(&open, what) {
            Some(reason) => Verdict::unknown("exact", reason),
            None => Verdict::yes("exact", contents(messages, filled)),
        }
    })
}

/// What is wrong with these messages in a channel. Where it is not told how many were sent or
/// received, they must follow one another nevertheless.
fn numbered_faults(
    sent: Option<MessageNumber>,
    handled: Option<MessageNumber>,
    numbers: Vec<MessageNumber>,
) -> Vec<String> {
    let (Some(&least), Some(&most)) = (numbers.iter().min(), numbers.iter().max()) else {
        return match (sent, handled) {
            (Some(sent), Some(handled)) => exact::faults(handled, sent, &[]),
            _ => Vec::new(),
        };
    };
    let before = MessageNumber::new(least.get().saturating_sub(1));
    let handled = handled.unwrap_or(before);
    let sent = sent.unwrap_or(most.max(handled));
    let runs = numbers.into_iter().map(|number| Run {
        first: number,
        last: number,
    });
    exact::faults(handled, sent, &runs.collect::<Vec<_>>())
}

/// What is wrong with so many messages in a channel.
fn unnumbered_faults(
    sent: Option<MessageNumber>,
    handled: Option<MessageNumber>,
    recorded: usize,
) -> Vec<String> {
    let (Some(sent), Some(handled)) = (sent, handled) else {
        return Vec::new();
    };
    let between = sent.get().saturating_sub(handled.get());
    if recorded as u64 == between {
        return Vec::new();
    }
    let recorded = count(recorded, "message");
    vec![format!(
        "{recorded} recorded, {between} sent and not received"
    )]
}

fn conserved(account: &Account) -> Verdict {
    match account.totals() {
        Ok(totals) if totals.is_empty() => Verdict::unknown("conserved", "no quantity is expected"),
        Ok(totals) => {
            let (findings, evidence) = balance(&totals);
            Verdict::unless("conserved", &findings, || {
                Verdict::yes("conserved", evidence)
            })
        }
        Err(reason) => Verdict::unknown("conserved", reason),
    }
}
