//! From the table of a job file to the job's parts, and the lines they stand on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use url::Url;

use super::graph::{Kind, Link};
use super::parts::{Parts, Store};
use super::restarts::Restarts;
use super::snapshots;
use super::table::{Document, Placed, Section};
use super::value::{not, number};
use crate::protocol::link::Limits;

/// Processes a job may have. A machine runs some tens, a simulation some thousands; what is far
/// beyond is a mistake.
pub(super) const PROCESSES_MAX: u64 = 16_384;

/// The default of every field that has one.
pub(super) const DEFAULT_TOML: &str = include_str!("default.toml");

static DEFAULT: LazyLock<Spanned<DeTable<'static>>> =
    LazyLock::new(|| DeTable::parse(DEFAULT_TOML).expect("default.toml is a part of the program"));

/// The defaults, for the section that a job is read from.
pub(crate) fn default_table() -> &'static DeTable<'static> {
    DEFAULT.get_ref()
}

/// The parts of a job whose file says nothing.
pub(super) fn defaults() -> Parts {
    let nothing = Document::new("", "");
    let root = Section::new(&nothing, "", None, Some(default_table()));
    let (parts, _) = read(root, Path::new(""));
    parts
}

/// On which lines of the file things stand.
#[derive(Debug, Default)]
pub(super) struct Places {
    fields: BTreeMap<&'static str, u32>,
    pub(super) processes: Vec<Option<u32>>,
    pub(super) channels: Vec<Option<u32>>,
    pub(super) initiators: Vec<Option<u32>>,
    pub(super) back_edges: Vec<Option<u32>>,
    /// The processes were refused: nothing that builds on them is worth a word.
    pub(super) processes_refused: bool,
    /// So were channels: who reaches whom is not known.
    pub(super) channels_refused: bool,
}

impl Places {
    pub(super) fn note<T>(&mut self, field: &'static str, found: Option<Placed<T>>) -> Option<T> {
        let found = found?;
        if let Some(line) = found.line {
            self.fields.insert(field, line);
        }
        Some(found.value)
    }

    pub(super) fn note_section(&mut self, field: &'static str, section: &Section<'_>) {
        self.fields.extend(section.line().map(|line| (field, line)));
    }

    /// Whether the file gives the field itself.
    pub(super) fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// The line of a field, else of its section.
    pub(super) fn of(&self, field: &str) -> Option<u32> {
        let section = || self.fields.get(field.split_once('.')?.0);
        self.fields.get(field).or_else(section).copied()
    }
}

/// Reads a job. `file` is what its paths are relative to, and where its name comes from.
pub(super) fn read(mut root: Section<'_>, file: &Path) -> (Parts, Places) {
    let mut places = Places::default();
    let stem = file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let own_directory = file.with_file_name(format!("{stem}.cutline"));
    let beside = |text: &String| normal(&super::beside(file, text));

    let name = places.note("name", root.text("name")).unwrap_or(stem);
    let imported = places
        .note("imported", root.flag("imported"))
        .unwrap_or_default();
    let seed = places.note("seed", root.number("seed")).unwrap_or_default();
    let silence = places
        .note("silence", root.duration("silence"))
        .unwrap_or_default();
    let delay = places
        .note("delay", root.duration("delay"))
        .unwrap_or_default();
    let trace = places.note("trace", root.flag("trace")).unwrap_or_default();
    let program = places.note("program", root.text("program"));
    let directory = places.note("directory", root.text("directory"));
    let processes = read_processes(&mut root, &mut places);
    let channels = read_channels(&mut root, &mut places, &processes, seed);
    let (application, settings) = read_application(&mut root, &mut places);
    let parts = Parts {
        name,
        imported,
        processes,
        channels,
        application,
        settings,
        program: program.as_ref().map(beside),
        seed,
        snapshots: snapshots::read(&mut root, &mut places),
        store: read_store(&mut root, &mut places, file),
        restarts: read_restarts(&mut root, &mut places),
        limits: read_limits(&mut root, &mut places),
        silence,
        delay,
        trace,
        directory: directory.as_ref().map_or(own_directory, beside),
    };
    root.finish();
    (parts, places)
}

fn read_processes(root: &mut Section<'_>, places: &mut Places) -> Vec<String> {
    let mut listed_count = 0;
    if let Some(found) = root.own("processes") {
        places
            .fields
            .extend(found.line.map(|line| ("processes", line)));
        if let Some(count) = number(found.value) {
            if count > PROCESSES_MAX {
                let problem = format!("processes = {count}, over {PROCESSES_MAX}");
                root.refuse(found.line, problem, "take fewer");
                places.processes_refused = true;
                return Vec::new();
            }
            return (1..=count).map(|number| format!("p{number}")).collect();
        }
        let Some(listed) = found.value.as_array() else {
            let (problem, remedy) = not(found.value, "a number, or a list of names in quotes");
            root.refuse(found.line, format!("processes {problem}"), remedy);
            places.processes_refused = true;
            return Vec::new();
        };
        listed_count = listed.len();
    }
    let mut names = Vec::new();
    for name in root.texts("processes").unwrap_or_default() {
        places.processes.push(name.line);
        names.push(name.value);
    }
    places.processes_refused = names.len() < listed_count;
    names
}

fn read_channels(
    root: &mut Section<'_>,
    places: &mut Places,
    processes: &[String],
    seed: u64,
) -> Vec<Link> {
    let listed = root.own("channels");
    let texts = root.texts("channels").unwrap_or_default();
    let listed_count = listed
        .as_ref()
        .and_then(|found| Some(found.value.as_array()?.len()));
    places.channels_refused = texts.len() < listed_count.unwrap_or(0);
    let named = root.own("topology");
    if let (Some(_), Some(topology)) = (&listed, &named) {
        let problem = "both channels and topology are given";
        root.refuse(topology.line, problem, "take one of them out");
    }
    if let Some(topology) = named {
        places
            .fields
            .extend(topology.line.map(|line| ("channels", line)));
        // A name that is given twice is refused where it stands, not in every channel.
        let mut distinct = processes.to_vec();
        let mut seen = BTreeSet::new();
        distinct.retain(|name| seen.insert(name.clone()));
        let links = read_topology(root, &topology, seed).and_then(|kind| kind.links(&distinct));
        return links.unwrap_or_else(|(problem, remedy)| {
            root.refuse(topology.line, problem, remedy);
            places.channels_refused = true;
            Vec::new()
        });
    }
    if listed.is_none() && processes.len() > 1 {
        let remedy = "give topology = \"mesh\", or channels = [\"p1 -> p2\", …]";
        root.refuse(None, "nothing says how the processes are connected", remedy);
        places.channels_refused = true;
    }
    places
        .fields
        .extend(listed.and_then(|found| Some(("channels", found.line?))));
    let mut links = Vec::new();
    for text in texts {
        let Some(read) = read_link(root, &text) else {
            places.channels_refused = true;
            continue;
        };
        places.channels.extend(read.iter().map(|_| text.line));
        links.extend(read);
    }
    links
}

/// The channels that a text names, which are two where the arrow has two heads.
pub(super) fn read_link(section: &Section<'_>, text: &Placed<String>) -> Option<Vec<Link>> {
    let read = Link::parse(&text.value);
    if read.is_none() {
        let problem = format!("'{}' is no channel", text.value);
        let remedy = "write p1 -> p2, p1 -> p2#2 or p1 <-> p2";
        section.refuse(text.line, problem, remedy);
    }
    read
}

/// `topology = "ring"`, or `topology = { kind = "random", seed = 7, edges = 3 }`.
fn read_topology<'d>(
    root: &Section<'d>,
    found: &Placed<&'d DeValue<'d>>,
    seed: u64,
) -> Result<Kind, (String, String)> {
    if let Some(word) = found.value.as_str() {
        return Kind::named(word, seed, None);
    }
    let Some(value) = found.value.as_table() else {
        return Err(not(
            found.value,
            "a topology such as \"ring\" or { kind = \"ring\" }",
        ));
    };
    let own = Placed {
        value,
        line: found.line,
    };
    let mut table = Section::new(root.document(), "topology", Some(own), None);
    let kind = table.text("kind");
    let own_seed = table.number("seed").map(|seed| seed.value);
    let edges = table.number("edges").map(|edges| edges.value);
    table.finish();
    let kind = kind.ok_or_else(|| {
        let remedy = "give kind = \"random\" or another topology".to_owned();
        ("the topology has no kind".to_owned(), remedy)
    })?;
    if kind.value != "random" && (own_seed.is_some() || edges.is_some()) {
        let problem = format!("topology '{}' has neither seed nor edges", kind.value);
        return Err((problem, "take them out, or use kind = \"random\"".into()));
    }
    Kind::named(&kind.value, own_seed.unwrap_or(seed), edges)
}

fn read_application(
    root: &mut Section<'_>,
    places: &mut Places,
) -> (String, serde_json::Map<String, serde_json::Value>) {
    let mut section = root.table("application");
    places.note_section("application", &section);
    let name = places
        .note("application.name", section.text("name"))
        .unwrap_or_default();
    (name, section.rest())
}

fn read_store(root: &mut Section<'_>, places: &mut Places, file: &Path) -> Store {
    let mut section = root.table("store");
    places.note_section("store", &section);
    let url = section.read("url", |value| {
        let text = value
            .as_str()
            .ok_or_else(|| not(value, "a URL or a path in quotes"))?;
        store_url(text, file).ok_or_else(|| not(value, "a URL or a path"))
    });
    let store = Store {
        url: places.note("store.url", url),
        retain: places
            .note("store.retain", section.number("retain"))
            .unwrap_or_default(),
        fall_back: section.flag("fall_back").is_some_and(|flag| flag.value),
    };
    section.finish();
    store
}

fn store_url(text: &str, file: &Path) -> Option<Url> {
    match Url::parse(text) {
        Ok(url) => Some(url),
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            Url::from_directory_path(normal(&super::beside(file, text))).ok()
        }
        Err(_) => None,
    }
}

fn read_restarts(root: &mut Section<'_>, places: &mut Places) -> Restarts {
    let mut section = root.table("restarts");
    places.note_section("restarts", &section);
    let restarts = Restarts {
        max: places
            .note("restarts.max", section.number("max"))
            .unwrap_or_default(),
        window: places
            .note("restarts.window", section.duration("window"))
            .unwrap_or_default(),
        backoff: places
            .note("restarts.backoff", section.duration("backoff"))
            .unwrap_or_default(),
    };
    section.finish();
    restarts
}

fn read_limits(root: &mut Section<'_>, places: &mut Places) -> Limits {
    let mut section = root.table("limits");
    places.note_section("limits", &section);
    let messages = section.number("window_messages");
    let window_messages = places
        .note("limits.window_messages", messages)
        .unwrap_or_default();
    let mut bytes = |key, field| places.note(field, section.bytes(key)).unwrap_or_default();
    let limits = Limits {
        window_messages,
        window_bytes: bytes("window_bytes", "limits.window_bytes"),
        message_bytes_max: bytes("message_bytes_max", "limits.message_bytes_max"),
        outbox_bytes: bytes("outbox_bytes", "limits.outbox_bytes"),
        outbox_bytes_max: bytes("outbox_bytes_max", "limits.outbox_bytes_max"),
        recording_bytes_max: bytes("recording_bytes_max", "limits.recording_bytes_max"),
    };
    section.finish();
    limits
}

/// The path without `.` and `..`, which no store's URL may hold.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}
