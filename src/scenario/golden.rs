//! Golden snapshots of the COS418 form: what a snapshot of a scripted run must hold.

use std::collections::BTreeMap;

use super::cos418::lines;
use super::{ScenarioError, Text};
use crate::job::Document;

/// A snapshot as a `.snap` file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldenSnapshot {
    /// Its number, from 0 in the order of the file of events.
    pub id: u64,
    /// What each process had.
    pub tokens: BTreeMap<String, u64>,
    /// What was in the channels. The order counts for messages to the same process.
    pub messages: Vec<GoldenMessage>,
}

/// A message in a channel of a golden snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldenMessage {
    /// Who sent it.
    pub from: String,
    /// To whom.
    pub to: String,
    /// How many tokens it carries.
    pub amount: u64,
}

impl GoldenSnapshot {
    /// Reads a `.snap` file.
    ///
    /// # Errors
    /// With every line that is not of the form, or speaks of a process that has no tokens.
    pub fn parse(file: Text<'_>) -> Result<Self, ScenarioError> {
        let document = Document::new(file.origin.to_string_lossy(), file.text);
        let mut id = None;
        let mut tokens = BTreeMap::new();
        let mut messages = Vec::new();
        for (line, fields) in lines(file.text) {
            match fields[..] {
                [number] if id.is_none() => id = number.parse().ok(),
                [process, amount] => match amount.parse() {
                    Ok(amount) => drop(tokens.insert(process.to_owned(), amount)),
                    Err(_) => refuse(&document, line, &fields),
                },
                [from, to, token] => {
                    let amount = token
                        .strip_prefix("token(")
                        .and_then(|t| t.strip_suffix(')'));
                    match amount.and_then(|amount| amount.parse().ok()) {
                        Some(amount) => messages.push((
                            line,
                            GoldenMessage {
                                from: from.to_owned(),
                                to: to.to_owned(),
                                amount,
                            },
                        )),
                        None => refuse(&document, line, &fields),
                    }
                }
                _ => refuse(&document, line, &fields),
            }
        }
        for (line, message) in &messages {
            for end in [&message.from, &message.to] {
                if !tokens.contains_key(end) {
                    let problem = format!("'{end}' has no line of its own");
                    document.refuse(Some(*line), problem, "add its tokens, or correct the id");
                }
            }
        }
        if id.is_none() {
            document.refuse(None, "the file has no number", "put it into the first line");
        }
        document.verdict().map_err(ScenarioError::Refused)?;
        let messages = messages.into_iter().map(|(_, message)| message).collect();
        Ok(Self {
            id: id.expect("refused above"),
            tokens,
            messages,
        })
    }

    /// The amounts in each channel that is not empty, in order.
    pub fn channels(&self) -> BTreeMap<(&str, &str), Vec<u64>> {
        let mut channels: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for message in &self.messages {
            let channel = (message.from.as_str(), message.to.as_str());
            channels.entry(channel).or_default().push(message.amount);
        }
        channels
    }

    /// All tokens, in processes and channels.
    pub fn total(&self) -> u64 {
        let carried = self.messages.iter().map(|message| message.amount);
        self.tokens
            .values()
            .copied()
            .chain(carried)
            .fold(0, u64::saturating_add)
    }
}

fn refuse(document: &Document, line: u32, fields: &[&str]) {
    let problem = format!("'{}' is no line of a golden snapshot", fields.join(" "));
    let remedy = "write an id, a process and its tokens, or from, to and token(n)";
    document.refuse(Some(line), problem, remedy);
}
