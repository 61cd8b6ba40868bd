//! Verdicts as JUnit's XML, for what grades programs by it: a test suite for each snapshot, a test
//! case for each verdict. A verdict that cannot be told is a skipped test.
//!
//! JUnit itself has never published a schema; this keeps to the one that Jenkins checks reports
//! with (`junit-10.xsd` of its xUnit plugin), which other readers accept as well.

use std::fmt::Write as _;

use super::Audited;
use crate::check::Answer;

/// The verdicts on these snapshots of a file.
pub fn junit(file: &str, audited: &[Audited]) -> String {
    let verdicts = || audited.iter().flat_map(|each| &each.verdicts.0);
    let count = |holds: Answer| verdicts().filter(|verdict| verdict.holds == holds).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        r#"<testsuites name="{}" tests="{}" failures="{}" errors="0">"#,
        escaped(file),
        verdicts().count(),
        count(Answer::No)
    );
    for each in audited {
        suite(&mut text, each);
    }
    text.push_str("</testsuites>\n");
    text
}

fn suite(text: &mut String, audited: &Audited) {
    let name = escaped(&audited.snapshot);
    let verdicts = &audited.verdicts.0;
    let count = |holds: Answer| verdicts.iter().filter(|each| each.holds == holds).count();
    let (tests, failures, skipped) = (verdicts.len(), count(Answer::No), count(Answer::Unknown));
    let _ = write!(
        text,
        r#"  <testsuite name="{name}" tests="{tests}" failures="{failures}""#
    );
    let _ = writeln!(text, r#" errors="0" skipped="{skipped}">"#);
    for verdict in verdicts {
        let evidence = escaped(&verdict.evidence);
        let case = format!(r#"<testcase name="{}" classname="{name}""#, verdict.name);
        let _ = match verdict.holds {
            Answer::Yes => writeln!(text, "    {case}/>"),
            Answer::No => writeln!(
                text,
                r#"    {case}><failure type="{}" message="{evidence}"/></testcase>"#,
                verdict.name
            ),
            Answer::Unknown => writeln!(
                text,
                r#"    {case}><skipped message="not known, because {evidence}"/></testcase>"#
            ),
        };
    }
    text.push_str("  </testsuite>\n");
}

/// A text within quotes. What XML cannot hold at all is replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            char if char.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            char => escaped.push(char),
        }
    }
    escaped
}
