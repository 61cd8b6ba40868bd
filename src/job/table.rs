//! A TOML document read field by field, so that every refusal names its line and one reading
//! finds many. (A derived reader stops at the first, and forgets the lines of what it took.)

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::refusal::{Refusal, Refusals, list};
use super::value::{bytes, duration, json, not, number};

/// A file's name, where its lines begin, and what has been found wrong in it.
#[derive(Debug)]
pub(crate) struct Document {
    origin: String,
    line_starts: Vec<usize>,
    refusals: RefCell<Refusals>,
}

impl Document {
    pub(crate) fn new(origin: impl Into<String>, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Self {
            origin: origin.into(),
            line_starts: std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
            refusals: RefCell::default(),
        }
    }

    /// Parses the text this document was made for; what is no TOML is refused.
    pub(crate) fn parse<'t>(&self, text: &'t str) -> Spanned<DeTable<'t>> {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = error.span().map(|span| self.line(&span));
            let message = error.message().replace('\n', ", ");
            self.refuse(
                line,
                format!("this is not TOML: {message}"),
                "correct the syntax",
            );
        }
        table
    }

    pub(crate) fn line(&self, span: &Range<usize>) -> u32 {
        let line = self
            .line_starts
            .partition_point(|&start| start <= span.start);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    pub(crate) fn refuse(
        &self,
        line: Option<u32>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.refusals.borrow_mut().add(Refusal {
            origin: self.origin.clone(),
            line,
            problem: problem.into(),
            remedy: remedy.into(),
        });
    }

    /// Takes over what was found wrong in another file.
    pub(crate) fn adopt(&self, others: Refusals) {
        let mut refusals = self.refusals.borrow_mut();
        others.into_iter().for_each(|refusal| refusals.add(refusal));
    }

    pub(crate) fn is_refused(&self) -> bool {
        !self.refusals.borrow().is_empty()
    }

    /// Everything that was found, or nothing.
    pub(crate) fn verdict(&self) -> Result<(), Refusals> {
        match self.refusals.take() {
            none if none.is_empty() => Ok(()),
            some => Err(some.sorted()),
        }
    }
}

/// A value and the line it stands on; none for a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) line: Option<u32>,
}

/// One table of a document, laid over the table of the defaults.
#[derive(Debug)]
pub(crate) struct Section<'d> {
    document: &'d Document,
    title: String,
    line: Option<u32>,
    own: Option<&'d DeTable<'d>>,
    base: Option<&'d DeTable<'d>>,
    asked: Vec<&'static str>,
}

impl<'d> Section<'d> {
    pub(crate) fn new(
        document: &'d Document,
        title: impl Into<String>,
        own: Option<Placed<&'d DeTable<'d>>>,
        base: Option<&'d DeTable<'d>>,
    ) -> Self {
        Self {
            document,
            title: title.into(),
            line: own.as_ref().and_then(|own| own.line),
            own: own.map(|own| own.value),
            base,
            asked: Vec::new(),
        }
    }

    pub(crate) fn document(&self) -> &'d Document {
        self.document
    }

    /// Where the section begins, if the file has it.
    pub(crate) fn line(&self) -> Option<u32> {
        self.line
    }

    pub(crate) fn refuse(
        &self,
        line: Option<u32>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.document.refuse(line.or(self.line), problem, remedy);
    }

    /// The value as it stands in the file; defaults do not count.
    pub(crate) fn own(&mut self, key: &'static str) -> Option<Placed<&'d DeValue<'d>>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        let value = self.own?.get(key)?;
        Some(self.placed(value))
    }

    fn placed(&self, value: &'d Spanned<DeValue<'d>>) -> Placed<&'d DeValue<'d>> {
        let line = Some(self.document.line(&value.span()));
        Placed {
            value: value.get_ref(),
            line,
        }
    }

    /// Reads a field, or its default where the file has none or has one that is refused.
    pub(crate) fn read<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&'d DeValue<'d>) -> Result<T, (String, String)>,
    ) -> Option<Placed<T>> {
        if let Some(found) = self.own(key) {
            match read(found.value) {
                Ok(value) => {
                    return Some(Placed {
                        value,
                        line: found.line,
                    });
                }
                Err((problem, remedy)) => {
                    self.refuse(found.line, format!("{key} {problem}"), remedy);
                }
            }
        }
        let value = read(self.base?.get(key)?.get_ref());
        value.ok().map(|value| Placed { value, line: None })
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Option<Placed<String>> {
        self.read(key, |value| match value.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(not(value, "a text in quotes")),
        })
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> Option<Placed<bool>> {
        self.read(key, |value| {
            value.as_bool().ok_or_else(|| not(value, "true or false"))
        })
    }

    /// A number that is not negative.
    pub(crate) fn number<T: TryFrom<u64>>(&mut self, key: &'static str) -> Option<Placed<T>> {
        self.read(key, |value| {
            let number = number(value).and_then(|number| T::try_from(number).ok());
            let bits = 8 * size_of::<T>();
            number.ok_or_else(|| not(value, &format!("a whole number from 0, below 2^{bits}")))
        })
    }

    /// A number of bytes: `65536` or `"64KiB"`.
    pub(crate) fn bytes(&mut self, key: &'static str) -> Option<Placed<u64>> {
        self.read(key, |value| {
            let read = number(value).or_else(|| value.as_str().and_then(bytes));
            read.ok_or_else(|| not(value, "a number of bytes such as 65536 or \"64KiB\""))
        })
    }

    /// A duration in whole milliseconds: `"300ms"`, `"1m 30s"`.
    pub(crate) fn duration(&mut self, key: &'static str) -> Option<Placed<Duration>> {
        self.read(key, |value| {
            let text = value
                .as_str()
                .ok_or_else(|| not(value, "a duration such as \"300ms\""))?;
            duration(text).map_err(|problem| {
                (
                    problem,
                    "give a duration such as \"300ms\" or \"10s\"".into(),
                )
            })
        })
    }

    /// Texts in a list; a single text counts as a list of one. None if the field is missing or
    /// one of them is refused.
    pub(crate) fn texts(&mut self, key: &'static str) -> Option<Vec<Placed<String>>> {
        let found = self.own(key)?;
        let Some(array) = found.value.as_array() else {
            let one = self.read(key, |value| match value.as_str() {
                Some(text) => Ok(text.to_owned()),
                None => Err(not(value, "a list of texts in quotes")),
            });
            return one.map(|one| vec![one]);
        };
        let mut texts = Vec::with_capacity(array.len());
        for element in array {
            let element = self.placed(element);
            match element.value.as_str() {
                Some(text) => texts.push(Placed {
                    value: text.to_owned(),
                    line: element.line,
                }),
                None => {
                    let (problem, remedy) = not(element.value, "a text in quotes");
                    self.refuse(
                        element.line,
                        format!("an element of {key} {problem}"),
                        remedy,
                    );
                }
            }
        }
        (texts.len() == array.len()).then_some(texts)
    }

    /// A table within this one; where the file has none, one that has only defaults.
    pub(crate) fn table(&mut self, key: &'static str) -> Self {
        let base = self
            .base
            .and_then(|base| base.get(key)?.get_ref().as_table());
        let own = self
            .own(key)
            .and_then(|found| match found.value.as_table() {
                Some(table) => Some(Placed {
                    value: table,
                    line: found.line,
                }),
                None => {
                    let (problem, remedy) = not(found.value, &format!("a table [{key}]"));
                    self.refuse(found.line, format!("{key} {problem}"), remedy);
                    None
                }
            });
        Section::new(self.document, format!("[{key}]"), own, base)
    }

    /// The tables of a list `[[key]]`, named by their place in it.
    pub(crate) fn tables(&mut self, key: &'static str) -> Vec<Self> {
        let Some(found) = self.own(key) else {
            return Vec::new();
        };
        let Some(array) = found.value.as_array() else {
            let (problem, remedy) = not(found.value, &format!("a list of tables [[{key}]]"));
            self.refuse(found.line, format!("{key} {problem}"), remedy);
            return Vec::new();
        };
        let mut tables = Vec::with_capacity(array.len());
        for (place, element) in (1..).zip(array) {
            let element = self.placed(element);
            match element.value.as_table() {
                Some(value) => {
                    let own = Some(Placed {
                        value,
                        line: element.line,
                    });
                    let title = format!("[[{key}]] number {place}");
                    tables.push(Section::new(self.document, title, own, None));
                }
                None => {
                    let (problem, remedy) = not(element.value, &format!("a table [[{key}]]"));
                    self.refuse(
                        element.line,
                        format!("an element of {key} {problem}"),
                        remedy,
                    );
                }
            }
        }
        tables
    }

    /// What a step or a section cannot do without.
    pub(crate) fn need<T>(
        &mut self,
        key: &'static str,
        found: Option<T>,
        remedy: &str,
    ) -> Option<T> {
        if found.is_none() && self.own(key).is_none() {
            self.refuse(None, format!("{} has no field '{key}'", self.title), remedy);
        }
        found
    }

    /// Everything that is left in the table, as it is: for what others give a meaning to.
    pub(crate) fn rest(&mut self) -> serde_json::Map<String, serde_json::Value> {
        let mut rest = serde_json::Map::new();
        let own = self.own.take();
        for (key, value) in own.into_iter().flatten() {
            if self.asked.contains(&key.get_ref().as_ref()) {
                continue;
            }
            match json(value.get_ref()) {
                Some(read) => drop(rest.insert(key.get_ref().to_string(), read)),
                None => self.refuse(
                    Some(self.document.line(&value.span())),
                    format!("{key} holds a number that does not fit"),
                    "give a finite number below 2^63",
                ),
            }
        }
        rest
    }

    /// Whether the file has the table, with nothing in it.
    pub(crate) fn is_empty_in_file(&self) -> bool {
        self.own.is_some_and(DeTable::is_empty)
    }

    /// The fields that were asked for, for messages.
    pub(crate) fn known(&self) -> String {
        list(&self.asked)
    }

    /// Refuses what nobody has asked for.
    pub(crate) fn finish(self) {
        let own = self.own.into_iter().flatten();
        for (key, _) in own.filter(|(key, _)| !self.asked.contains(&key.get_ref().as_ref())) {
            self.refuse(
                Some(self.document.line(&key.span())),
                format!("unknown field '{key}' in {}", self.title),
                format!("take it out or use one of {}", self.known()),
            );
        }
    }
}
