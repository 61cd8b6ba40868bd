//! What a `wait` waits for and what an `expect` checks, as they stand in the file.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::{Bound, Condition, Expectation};
use crate::job::{Placed, Section, integer, not, number};
use crate::protocol::ids::{Generation, ProcessId};

/// Reads the table of a `wait`. None if nothing in it is left to wait for.
pub(super) fn conditions(
    mut table: Section<'_>,
    process: impl Fn(&Section<'_>, &Placed<String>) -> Option<ProcessId>,
) -> Option<Vec<Condition>> {
    let snapshots = table.number("snapshots");
    let generation = table.read("generation", |value| {
        let text = value
            .as_str()
            .and_then(|text| text.parse::<Generation>().ok());
        let read = text.or_else(|| number(value).map(Generation::new));
        read.ok_or_else(|| not(value, "a generation such as 2 or \"g2\""))
    });
    let running = only_true(&mut table, "running");
    let idle = only_true(&mut table, "idle");
    let time = table.duration("time");
    let mut named = |key| table.text(key).and_then(|name| process(&table, &name));
    let (lost, joined) = (named("lost"), named("joined"));
    let found = [
        snapshots.map(|found| Condition::Snapshots(found.value)),
        generation.map(|found| Condition::Generation(found.value)),
        running.map(|()| Condition::Running),
        lost.map(Condition::Lost),
        joined.map(Condition::Joined),
        time.map(|found| Condition::Time(found.value)),
        idle.map(|()| Condition::Idle),
    ];
    some(table, found)
}

/// Reads the table of an `expect`. None if nothing in it is left to expect.
pub(super) fn expectations(mut table: Section<'_>) -> Option<Vec<Expectation>> {
    let mut bounded = |key| table.read(key, bound).map(|found| found.value);
    let snapshots = bounded("snapshots");
    let aborted = bounded("aborted");
    let restores = bounded("restores");
    let generation = bounded("generation");
    let verdicts = table.read("verdicts", |value| match value.as_str() {
        Some("hold") => Ok(()),
        _ => Err(not(value, "verdicts = \"hold\"")),
    });
    let quantities = table.read("quantities", quantities);
    let found = [
        snapshots.map(Expectation::Snapshots),
        aborted.map(Expectation::Aborted),
        restores.map(Expectation::Restores),
        generation.map(Expectation::Generation),
        verdicts.map(|_| Expectation::Verdicts),
        quantities.map(|found| Expectation::Quantities(found.value)),
    ];
    some(table, found)
}

/// What was found, if it was anything; an empty table is a mistake.
fn some<T>(table: Section<'_>, found: impl IntoIterator<Item = Option<T>>) -> Option<Vec<T>> {
    let found: Vec<T> = found.into_iter().flatten().collect();
    if table.is_empty_in_file() {
        let known = table.known();
        table.refuse(
            None,
            "there is nothing in the table",
            format!("give one of {known}"),
        );
    }
    table.finish();
    (!found.is_empty()).then_some(found)
}

/// `running = true`; to wait for the contrary would be to wait for a moment that may be missed.
fn only_true(table: &mut Section<'_>, key: &'static str) -> Option<()> {
    let found = table.read(key, |value| match value.as_bool() {
        Some(true) => Ok(()),
        _ => Err(not(value, "true, or leave it out")),
    });
    found.map(|found| found.value)
}

/// `3` or `"== 3"`, `">= 3"`, `"<= 3"`.
fn bound(value: &DeValue<'_>) -> Result<Bound, (String, String)> {
    if let Some(number) = number(value) {
        return Ok(Bound::Exactly(number));
    }
    let text = value.as_str().unwrap_or_default();
    let (sign, digits) = text.split_at_checked(2).unwrap_or_default();
    let kind = match sign {
        "==" => Bound::Exactly,
        ">=" => Bound::AtLeast,
        "<=" => Bound::AtMost,
        _ => return Err(not(value, "a number, or a text such as \">= 3\"")),
    };
    let number = digits.trim().parse();
    number
        .map(kind)
        .map_err(|_| not(value, "a number, or a text such as \">= 3\""))
}

fn quantities(value: &DeValue<'_>) -> Result<BTreeMap<String, i64>, (String, String)> {
    let form = "a table such as { money = 4000 }";
    let table = value.as_table().ok_or_else(|| not(value, form))?;
    let mut quantities = BTreeMap::new();
    for (name, amount) in table {
        let amount = amount.get_ref();
        let amount = integer(amount).ok_or_else(|| {
            let (problem, _) = not(amount, form);
            (
                format!("hold {name}, which {problem}"),
                format!("give {form}"),
            )
        })?;
        quantities.insert(name.get_ref().to_string(), amount);
    }
    match quantities.is_empty() {
        true => Err(("is empty".into(), format!("give {form}"))),
        false => Ok(quantities),
    }
}
