//! A verdict with its evidence, and the table they are printed in.

use std::fmt;

use serde::Serialize;

/// Findings that are printed of one verdict. A broken snapshot of a large job breaks in hundreds
/// of places, and the first few tell what kind of fault it is.
const FINDINGS_MAX: usize = 5;

/// Whether a verdict holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It holds.
    Yes,
    /// It does not.
    No,
    /// It cannot be told from what there is; the evidence says why.
    Unknown,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        })
    }
}

/// One statement about a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What is stated: `complete`, `intact`, `non-negative`, `exact`, `causal`, `conserved` or
    /// `replayed`.
    pub name: &'static str,
    /// Whether it is so.
    pub holds: Answer,
    /// What that rests on.
    pub evidence: String,
}

impl Verdict {
    pub(super) fn yes(name: &'static str, evidence: String) -> Self {
        Self::new(name, Answer::Yes, evidence)
    }

    pub(super) fn no(name: &'static str, evidence: String) -> Self {
        Self::new(name, Answer::No, evidence)
    }

    pub(crate) fn unknown(name: &'static str, reason: impl Into<String>) -> Self {
        Self::new(name, Answer::Unknown, reason.into())
    }

    /// No, if anything was found; else what `otherwise` says.
    pub(super) fn unless(
        name: &'static str,
        findings: &[String],
        otherwise: impl FnOnce() -> Self,
    ) -> Self {
        if findings.is_empty() {
            return otherwise();
        }
        let mut evidence = findings[..findings.len().min(FINDINGS_MAX)].join("; ");
        if let Some(more @ 1..) = findings.len().checked_sub(FINDINGS_MAX) {
            evidence.push_str(&format!("; and {more} more"));
        }
        Self::no(name, evidence)
    }

    fn new(name: &'static str, holds: Answer, evidence: String) -> Self {
        Self {
            name,
            holds,
            evidence,
        }
    }
}

/// All verdicts on one snapshot. Prints as a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Verdicts(pub Vec<Verdict>);

impl Verdicts {
    /// Whether no verdict fails. One that cannot be told (`conserved` of an application that
    /// names no quantity) is no failure.
    pub fn hold(&self) -> bool {
        self.0.iter().all(|verdict| verdict.holds != Answer::No)
    }

    /// The verdict with this name.
    pub fn get(&self, name: &str) -> Option<&Verdict> {
        self.0.iter().find(|verdict| verdict.name == name)
    }

    /// The names of the verdicts that fail.
    pub fn failing(&self) -> Vec<&'static str> {
        let failing = self.0.iter().filter(|verdict| verdict.holds == Answer::No);
        failing.map(|verdict| verdict.name).collect()
    }
}

impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<14}{:<9}evidence", "verdict", "holds")?;
        for verdict in &self.0 {
            write!(
                f,
                "\n{:<14}{:<9}{}",
                verdict.name, verdict.holds, verdict.evidence
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_verdict() {
        let verdicts = Verdicts(vec![
            Verdict::yes("complete", "2 parts".to_owned()),
            Verdict::unless("exact", &["m3 is missing".to_owned()], || unreachable!()),
        ]);
        let table = "\
verdict       holds    evidence
complete      yes      2 parts
exact         no       m3 is missing";
        assert_eq!(verdicts.to_string(), table);
        assert_eq!(verdicts.failing(), ["exact"]);
        assert!(!verdicts.hold());
    }

    #[test]
    fn a_long_list_of_findings_is_cut_and_counted() {
        let findings: Vec<_> = (0..7).map(|number| number.to_string()).collect();
        let verdict = Verdict::unless("exact", &findings, || unreachable!());
        assert_eq!(verdict.evidence, "0; 1; 2; 3; 4; and 2 more");
        let verdict = Verdict::unless("exact", &findings[..5], || unreachable!());
        assert_eq!(verdict.evidence, "0; 1; 2; 3; 4");
    }
}
