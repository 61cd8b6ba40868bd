//! Single values of a file: numbers, bytes, durations.

use std::time::Duration;

use toml::de::DeValue;

/// No duration may be longer: "never" has words of its own, and sums stay far from overflow.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The problem and the remedy where a value has the wrong form.
pub(crate) fn not(value: &DeValue<'_>, form: &str) -> (String, String) {
    let found = match value {
        DeValue::Integer(number) => format!("is {number}"),
        DeValue::Float(number) => format!("is {number}"),
        DeValue::String(text) => format!("is \"{text}\""),
        DeValue::Boolean(flag) => format!("is {flag}"),
        other => format!("is of type {}", other.type_str()),
    };
    (found, format!("give {form}"))
}

/// A whole number from 0.
pub(crate) fn number(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A whole number.
pub(crate) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A duration as people write it; else what is wrong with it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|_| format!("is \"{text}\""))?;
    match unfit(duration) {
        Some(problem) => Err(format!("is \"{text}\", {problem}")),
        None => Ok(duration),
    }
}

/// Why nothing here can last so long.
pub(crate) fn unfit(duration: Duration) -> Option<&'static str> {
    if !duration.subsec_nanos().is_multiple_of(1_000_000) {
        Some("no whole number of milliseconds")
    } else if duration > DURATION_MAX {
        Some("more than a year")
    } else {
        None
    }
}

/// `65536`, `64KiB`, `1 MiB`.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(unit)
}

/// The value for those who know no TOML; none for a number that does not fit.
pub(super) fn json(value: &DeValue<'_>) -> Option<serde_json::Value> {
    Some(match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Integer(_) => integer(value)?.into(),
        DeValue::Float(float) => serde_json::Number::from_f64(float.as_str().parse().ok()?)?.into(),
        DeValue::Datetime(datetime) => datetime.to_string().into(),
        DeValue::Array(array) => {
            let elements = array.iter().map(|element| json(element.get_ref()));
            serde_json::Value::Array(elements.collect::<Option<_>>()?)
        }
        DeValue::Table(table) => {
            let entries = table.iter();
            let entries = entries.map(|(key, v)| Some((key.to_string(), json(v.get_ref())?)));
            serde_json::Value::Object(entries.collect::<Option<_>>()?)
        }
    })
}
