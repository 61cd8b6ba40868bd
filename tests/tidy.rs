//! Reads the repository as text and holds it to its house rules: sizes, words, floors.
//!
//! A rule is a function from a file to its findings. Each has a test that shows it a made-up file
//! it must refuse, for a rule that cannot fail holds nothing.

#[path = "tidy/code.rs"]
mod code;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use code::{cited, cited_from_root, code_of, functions, line_of, words};

/// A file of the repository, by its path from the top, with forward slashes.
struct File {
    path: String,
    text: String,
    is_executable: bool,
}

/// Where, what, and what instead.
type Findings = Vec<String>;

/// Every rule. Each decides itself which files it is about.
const RULES: [fn(&File) -> Findings; 11] = [
    lines_are_short,
    files_are_short,
    functions_are_short,
    files_say_what_they_are,
    nothing_is_left_to_do,
    words_are_the_designs,
    names_say_something,
    floors_import_what_lies_below,
    the_protocol_is_pure,
    no_machine_is_named,
    scripts_are_executable,
];

const LINE_CHARS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 400;
/// A test file is a list; it is read from any place.
const TEST_FILE_LINES_MAX: usize = 600;

/// A word that is not ours, where (a start of the path), and the word that is.
const WORDS: [(&str, &str, &str); 3] = [
    ("coordinator", "", "collector"),
    ("savepoint", "", "snapshot"),
    ("checkpoint", "src/", "snapshot"),
];

const REMINDERS: [&str; 5] = ["TODO", "FIXME", "HACK", "XXX", "TBD"];

/// File and folder names under which anything can be put.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "helper", "helpers", "common", "misc"];

/// What each module of the crate may import, besides itself.
const FLOORS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("world", &["protocol"]),
    ("check", &["protocol"]),
    ("apps", &["protocol"]),
    ("dataflow", &["protocol"]),
    ("wire", &["protocol", "world", "check", "apps", "dataflow"]),
    (
        "store",
        &[
            "protocol", "world", "check", "apps", "dataflow", "wire", "name",
        ],
    ),
    ("net", &["protocol", "wire"]),
    ("trace", &["protocol", "world", "check", "name"]),
    ("hold", &["name", "protocol"]),
    ("parent", &[]),
    ("program", &[]),
    ("name", &[]),
    ("job", &["protocol", "apps", "name"]),
    ("scenario", &["protocol", "apps", "job", "hold"]),
    ("audit", &["protocol", "check", "job"]),
    (
        "sim",
        &[
            "protocol", "world", "check", "apps", "wire", "store", "hold", "name", "job",
            "scenario",
        ],
    ),
    ("node", ALL),
    ("collector", ALL),
    ("control", ALL),
    ("lib", ALL),
];
const ALL: &[&str] = &["*"];

/// What the machines that decide must not know, and what they do instead.
const IMPURE_WORDS: [(&str, &str); 10] = [
    ("tokio", "leave it to the driver, as an effect"),
    ("tonic", "leave it to the driver, as an effect"),
    ("async", "return an effect; nothing here waits"),
    ("await", "return an effect; nothing here waits"),
    ("Instant", "take the time as a number, from an input"),
    ("SystemTime", "take the time as a number, from an input"),
    ("rand", "take the choice from an input or from the state"),
    ("HashMap", "use BTreeMap: its order is always the same"),
    ("HashSet", "use BTreeSet: its order is always the same"),
    ("tracing", "return an effect and let the driver log it"),
];
const IMPURE_STD: [&str; 6] = ["time", "fs", "net", "thread", "process", "env"];

fn is_rust(file: &File) -> bool {
    file.path.ends_with(".rs")
}

/// This file names all that it forbids.
fn is_this(file: &File) -> bool {
    file.path == "tests/tidy.rs"
}

fn lines_are_short(file: &File) -> Findings {
    let long = |line: &str| line.chars().count() > LINE_CHARS_MAX;
    let lines = lines(file).filter(|(_, line)| is_rust(file) && long(line));
    lines
        .map(|(number, line)| {
            let chars = line.chars().count();
            at(
                file,
                number,
                &format!("{chars} characters; break it at {LINE_CHARS_MAX}"),
            )
        })
        .collect()
}

fn files_are_short(file: &File) -> Findings {
    let most = match file.path.starts_with("tests/") {
        true => TEST_FILE_LINES_MAX,
        false => FILE_LINES_MAX,
    };
    let count = file.text.lines().count();
    if !is_rust(file) || count <= most {
        return Vec::new();
    }
    vec![at(
        file,
        count,
        &format!("{count} lines; give a part of it, over {most}, its own file"),
    )]
}

fn functions_are_short(file: &File) -> Findings {
    if !is_rust(file) {
        return Vec::new();
    }
    let code = code_of(&file.text);
    let long = functions(&code).filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
    long.map(|(start, lines)| {
        let what = format!("a function of {lines} lines; split it under {FUNCTION_LINES_MAX}");
        at(file, line_of(&code, start), &what)
    })
    .collect()
}

fn files_say_what_they_are(file: &File) -> Findings {
    if !is_rust(file) || file.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![at(
        file,
        1,
        "no opening comment; begin with '//!' and what lives here",
    )]
}

fn nothing_is_left_to_do(file: &File) -> Findings {
    let mut findings = Vec::new();
    for (number, line) in lines(file).filter(|_| !is_this(file)) {
        if let Some(word) = words(line).find(|word| REMINDERS.contains(word)) {
            findings.push(at(
                file,
                number,
                &format!("{word}; do it, or file it as an issue"),
            ));
        }
        if is_rust(file) && line.contains("dbg!(") {
            findings.push(at(file, number, "dbg!; take it out, or use tracing"));
        }
    }
    findings
}

fn words_are_the_designs(file: &File) -> Findings {
    let mut findings = Vec::new();
    let is_code = is_rust(file) || file.path.ends_with(".proto");
    for (number, line) in lines(file).filter(|_| is_code && !is_this(file)) {
        let line = line.to_lowercase();
        for (word, place, instead) in WORDS {
            if file.path.starts_with(place) && line.contains(word) {
                findings.push(at(
                    file,
                    number,
                    &format!("'{word}'; here it is '{instead}'"),
                ));
            }
        }
    }
    findings
}

fn names_say_something(file: &File) -> Findings {
    let mut stems = file
        .path
        .split('/')
        .map(|name| name.split('.').next().unwrap_or(name));
    match stems.find(|stem| EMPTY_NAMES.contains(stem)) {
        Some(stem) => vec![at(
            file,
            1,
            &format!("'{stem}' says nothing; name what is in it"),
        )],
        None => Vec::new(),
    }
}

fn floors_import_what_lies_below(file: &File) -> Findings {
    let Some(path) = file.path.strip_prefix("src/").filter(|_| is_rust(file)) else {
        return Vec::new();
    };
    let module = path.split(['/', '.']).next().unwrap_or(path);
    let Some((_, below)) = FLOORS.iter().find(|(name, _)| *name == module) else {
        let what = format!("module '{module}' has no floor; give it one in tests/tidy.rs");
        return vec![at(file, 1, &what)];
    };
    let code = code_of(&file.text);
    let cited = cited(&code, "crate::").chain(cited_from_root(&code, path));
    let above = cited.filter(|(_, cited)| {
        let is_module = FLOORS.iter().any(|(name, _)| name == cited);
        is_module && *cited != module && *below != ALL && !below.contains(cited)
    });
    above
        .map(|(place, cited)| {
            let floors = match below.is_empty() {
                true => "nothing".to_owned(),
                false => below.join(", "),
            };
            let what = format!("{module} imports {cited}; below it: {floors}");
            at(file, line_of(&code, place), &what)
        })
        .collect()
}

fn the_protocol_is_pure(file: &File) -> Findings {
    let inside = file.path.starts_with("src/protocol/") || file.path == "src/protocol.rs";
    if !inside || !is_rust(file) {
        return Vec::new();
    }
    let code = code_of(&file.text);
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        for (word, instead) in IMPURE_WORDS {
            if words(line).any(|used| used == word) {
                findings.push(at(
                    file,
                    number,
                    &format!("'{word}' in the protocol; {instead}"),
                ));
            }
        }
    }
    for (place, module) in cited(&code, "std::").filter(|(_, name)| IMPURE_STD.contains(name)) {
        let what = format!("'std::{module}' in the protocol; leave it to the driver");
        findings.push(at(file, line_of(&code, place), &what));
    }
    findings
}

fn no_machine_is_named(file: &File) -> Findings {
    const PLACES: [&str; 2] = ["/work/", "/root/"];
    const REGISTRIES: [&str; 3] = ["replace-with", "sparse+http", "[source."];
    const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
    let mut findings = Vec::new();
    for (number, line) in lines(file).filter(|_| !is_this(file)) {
        let is_path = |(place, _): (usize, &str)| {
            let before = line[..place].chars().next_back();
            !before.is_some_and(|before| before.is_alphanumeric() || "._-}$".contains(before))
        };
        if let Some(path) = PLACES
            .iter()
            .find(|path| line.match_indices(**path).any(is_path))
        {
            let what = format!("'{path}' is a place on one machine; use a relative path");
            findings.push(at(file, number, &what));
        }
        let is_lock = file.path.ends_with("Cargo.lock") && line.starts_with("source = ");
        if REGISTRIES.iter().any(|word| line.contains(word))
            || (is_lock && !line.contains(CRATES_IO))
        {
            let what = "names a registry; crates come from crates.io, mirrors from one's own home";
            findings.push(at(file, number, what));
        }
    }
    findings
}

fn scripts_are_executable(file: &File) -> Findings {
    let is_script = file.path.starts_with("scripts/") && file.path.ends_with(".sh");
    if file.is_executable || !(is_script || file.path == ".ci/run") {
        return Vec::new();
    }
    vec![at(
        file,
        1,
        "not executable; git update-index --chmod=+x, and chmod +x",
    )]
}

/// The page shows the program word for word, as a block that doctests compile.
fn page_shows(page: &File, program: &File) -> Findings {
    let block = format!("```rust,no_run\n{}```\n", program.text);
    if page.text.contains(&block) {
        return Vec::new();
    }
    let what = format!(
        "does not show {} as it is; copy it into a block",
        program.path
    );
    vec![at(page, 1, &what)]
}

fn at(file: &File, line: usize, what: &str) -> String {
    format!("{}:{line}: {what}", file.path)
}

fn lines(file: &File) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(file.text.lines())
}

/// All text files, without what git ignores and what git keeps for itself.
fn repository() -> Vec<File> {
    let mut files = Vec::new();
    walk(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut files);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<File>) {
    const IGNORED: [&str; 3] = [".git", "target", "out"];
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let entry = entry.expect("an entry of the folder");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if IGNORED.contains(&path.as_str()) || name.ends_with(".cutline") {
            continue;
        }
        let kind = entry.metadata().expect("the kind of a file");
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), files);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            let is_executable = kind.permissions().mode() & 0o111 != 0;
            files.push(File {
                path,
                text,
                is_executable,
            });
        }
    }
}

#[test]
fn the_repository_keeps_its_rules() {
    let mut findings = Vec::new();
    for file in &repository() {
        findings.extend(RULES.iter().flat_map(|rule| rule(file)));
    }
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn the_rules_see_the_repository_and_nothing_besides() {
    let files = repository();
    let sees = |path: &str| files.iter().any(|file| file.path == path);
    for path in [
        "src/protocol/ids.rs",
        "tests/tidy.rs",
        ".ci/run",
        "Cargo.lock",
    ] {
        assert!(sees(path), "{path}");
    }
    assert!(!files.iter().any(|file| file.path.starts_with("target/")));
}

#[test]
fn the_page_on_applications_shows_the_example() {
    let files = repository();
    let read = |path: &str| {
        files
            .iter()
            .find(|file| file.path == path)
            .expect("the file")
    };
    let findings = page_shows(read("docs/applications.md"), read("examples/counter.rs"));
    assert_eq!(findings, Findings::new());
}

fn made_up(path: &str, text: &str) -> File {
    File {
        path: path.to_owned(),
        text: text.to_owned(),
        is_executable: false,
    }
}

fn findings(rule: fn(&File) -> Findings, path: &str, text: &str) -> Findings {
    rule(&made_up(path, text))
}

#[test]
fn a_long_line_is_found() {
    let text = format!("{}\n{}\n", "ä".repeat(100), "b".repeat(101));
    let found = findings(lines_are_short, "src/a.rs", &text);
    assert_eq!(found, ["src/a.rs:2: 101 characters; break it at 100"]);
    assert!(findings(lines_are_short, "README.md", &text).is_empty());
}

#[test]
fn a_long_file_is_found() {
    let found = |path, lines| findings(files_are_short, path, &"\n".repeat(lines)).len();
    assert_eq!((found("src/a.rs", 400), found("src/a.rs", 401)), (0, 1));
    assert_eq!((found("tests/a.rs", 600), found("tests/a.rs", 601)), (0, 1));
    assert_eq!(found("docs/a.md", 1000), 0);
}

#[test]
fn a_long_function_is_found() {
    let function = |lines: usize| format!("\nfn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2));
    let found = findings(functions_are_short, "src/a.rs", &function(71));
    assert_eq!(
        found,
        ["src/a.rs:2: a function of 71 lines; split it under 70"]
    );
    assert!(findings(functions_are_short, "src/a.rs", &function(70)).is_empty());
}

#[test]
fn a_file_that_does_not_say_what_it_is_is_found() {
    assert_eq!(
        findings(files_say_what_they_are, "src/a.rs", "use b;").len(),
        1
    );
    assert!(findings(files_say_what_they_are, "src/a.rs", "//! What.\n").is_empty());
}

#[test]
fn what_is_left_to_do_is_found() {
    let found = |text| findings(nothing_is_left_to_do, "src/a.rs", text).len();
    assert_eq!(found("// TODO: all\n// FIXME(me)\nlet x = dbg!(y);\n"), 3);
    assert_eq!(found("mktemp /tmp/a.XXXXXX // TODOS\n"), 0);
}

#[test]
fn a_word_that_is_not_ours_is_found() {
    let text = "struct Coordinator;\n/// A checkpoint.\n";
    let found = findings(words_are_the_designs, "src/a.rs", text);
    let expected = [
        "src/a.rs:1: 'coordinator'; here it is 'collector'",
        "src/a.rs:2: 'checkpoint'; here it is 'snapshot'",
    ];
    assert_eq!(found, expected);
    assert_eq!(findings(words_are_the_designs, "tests/a.rs", text).len(), 1);
    assert!(findings(words_are_the_designs, "docs/a.md", text).is_empty());
}

#[test]
fn a_name_that_says_nothing_is_found() {
    assert_eq!(
        findings(names_say_something, "tests/common/mod.rs", "").len(),
        1
    );
    assert_eq!(
        findings(names_say_something, "src/net/utils.rs", "").len(),
        1
    );
    assert!(findings(names_say_something, "src/net/utility.rs", "").is_empty());
}

#[test]
fn an_import_from_above_is_found() {
    let found = |path, text| findings(floors_import_what_lies_below, path, text);
    let text = "//! See [x](crate::node).\nuse crate::{net, protocol::ids};\nuse crate::job;\n";
    let expected = "src/wire/a.rs:2: wire imports net; below it: protocol, world, check";
    assert!(found("src/wire/a.rs", text)[0].starts_with(expected));
    assert_eq!(found("src/wire/a.rs", text).len(), 2);
    assert!(found("src/node/a.rs", text).is_empty());
    assert_eq!(found("src/world.rs", "use super::store::Part;\n").len(), 1);
    assert!(found("src/node/a.rs", "use super::store::Part;\n").is_empty());
    assert!(found("src/attic.rs", "")[0].contains("'attic' has no floor"));
}

#[test]
fn what_the_protocol_must_not_know_is_found() {
    let found = |text| findings(the_protocol_is_pure, "src/protocol/a.rs", text);
    let text = "use std::{fs, collections::HashMap};\nasync fn a(b: Instant) {}\n";
    assert_eq!(found(text).len(), 4, "{:?}", found(text));
    assert!(found("// async, rand, HashMap\nlet operand = \"tokio\";\n").is_empty());
    assert!(findings(the_protocol_is_pure, "src/net/a.rs", text).is_empty());
}

#[test]
fn a_named_machine_is_found() {
    let found = |path, text| findings(no_machine_is_named, path, text).len();
    assert_eq!(found("docs/a.md", "cd /work/main\nls \"/root/a\"\n"), 2);
    assert_eq!(found("docs/a.md", "see ../work/main and src/root/a\n"), 0);
    assert_eq!(
        found(".cargo/config.toml", "replace-with = \"mirror\"\n"),
        1
    );
    let lock = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
    assert_eq!(found("Cargo.lock", lock), 0);
    assert_eq!(
        found(
            "Cargo.lock",
            "source = \"registry+https://mirror.example\"\n"
        ),
        1
    );
}

#[test]
fn a_script_that_cannot_be_run_is_found() {
    assert_eq!(
        findings(scripts_are_executable, "scripts/a.sh", "").len(),
        1
    );
    assert_eq!(findings(scripts_are_executable, ".ci/run", "").len(), 1);
    assert!(findings(scripts_are_executable, "scripts/a.py", "").is_empty());
}

#[test]
fn a_page_behind_its_program_is_found() {
    let program = made_up("examples/a.rs", "fn main() {}\n");
    let page = |text| made_up("docs/a.md", text);
    let shown = page("So:\n```rust,no_run\nfn main() {}\n```\n");
    assert!(page_shows(&shown, &program).is_empty());
    let other = page("So:\n```rust,no_run\nfn main() { a() }\n```\n");
    assert_eq!(page_shows(&other, &program).len(), 1);
}
