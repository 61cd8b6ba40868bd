//! Names of jobs and processes: what they may be, and how they are written in paths.

/// The longest name, in bytes. Escaped it is three times as long, which with what is put around
/// it is still within the 255 bytes that file systems allow.
pub const NAME_BYTES_MAX: usize = 64;

/// The name that scenarios, logs and commands give to what is no process.
pub const COLLECTOR: &str = "collector";

/// Whether a name needs no escape.
pub(crate) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

/// Why this cannot be a name of a job or a process, with the remedy.
pub(crate) fn refusal(name: &str) -> Option<(String, &'static str)> {
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain) {
        return None;
    }
    let remedy = "use 1 to 64 of the characters a-z, 0-9 and -";
    Some((format!("'{name}' is no name"), remedy))
}

/// The same for a name that comes from somebody else's file. It keeps its case, but must not
/// look like a channel, which is written with the names of its ends.
pub(crate) fn imported_refusal(name: &str) -> Option<(String, &'static str)> {
    let unfit = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '#' | '→' | '↔');
    let fits = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(unfit)
        && !name.contains("->");
    let remedy = "use 1 to 64 bytes without white space, '#', '→', '↔' and '->'";
    (!fits).then(|| (format!("'{}' is no id", name.escape_debug()), remedy))
}

/// A name for a job, made of what somebody called a file.
pub(crate) fn plain(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let kept = lower.bytes().map(|byte| {
        if is_plain(byte) {
            char::from(byte)
        } else {
            '-'
        }
    });
    kept.take(NAME_BYTES_MAX).collect()
}

/// A name as it is written in paths: `a-z`, `0-9` and `-` stay, every other byte becomes `_` and
/// two hexadecimal digits. Unlike `%`, `_` means nothing to object stores and URLs; and names
/// that differ in case only still differ where a file system ignores it.
pub fn encode_name(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("_{byte:02x}"));
        }
    }
    encoded
}

/// The inverse of [`encode_name`]; none for what it never writes.
pub fn decode_name(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some(first) = rest.bytes().next() {
        if first == b'_' {
            bytes.push(u8::from_str_radix(rest.get(1..3)?, 16).ok()?);
            rest = &rest[3..];
        } else {
            bytes.push(first);
            rest = rest.get(1..)?;
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    (encode_name(&name) == encoded).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_name_is_written_as_it_is_and_others_are_escaped() {
        assert_eq!(encode_name("p-12"), "p-12");
        assert_eq!(encode_name("N1"), "_4e1");
        assert_eq!(encode_name("a/b_é"), "a_2fb_5f_c3_a9");
    }

    #[test]
    fn what_encode_name_never_writes_is_not_decoded() {
        for text in ["N1", "_4E1", "_61", "_4", "_", "_zz", "_+1", "é", "_ff"] {
            assert_eq!(decode_name(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_that_could_be_a_channel_is_no_id() {
        for name in ["", "N 1", "a->b", "a→b", "a#2", "a\n", &"n".repeat(65)] {
            assert!(imported_refusal(name).is_some(), "{name:?}");
        }
        for name in ["N1", "Zürich", "a_b", "x.y:80", "-", ">"] {
            assert!(imported_refusal(name).is_none(), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_back_from_its_encoding(name in ".*") {
            let encoded = encode_name(&name);
            prop_assert!(encoded.bytes().all(|byte| is_plain(byte) || byte == b'_'));
            prop_assert_eq!(decode_name(&encoded), Some(name));
        }
    }
}
