//! As much of Rust's grammar as the rules need: what is code and what is not, where functions
//! begin and end, which modules are named.

pub(super) fn line_of(text: &str, place: usize) -> usize {
    1 + text[..place].matches('\n').count()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character| !is_word(character))
}

/// The names that follow `prefix`, with their places; of a group in braces, each of its names.
pub(super) fn cited<'a>(code: &'a str, prefix: &str) -> impl Iterator<Item = (usize, &'a str)> {
    let starts = code.match_indices(prefix).filter(|(place, _)| {
        let before = code[..*place].chars().next_back();
        !before.is_some_and(|before| is_word(before) || before == ':')
    });
    let ends: Vec<usize> = starts.map(|(place, prefix)| place + prefix.len()).collect();
    ends.into_iter().flat_map(|end| names_at(code, end))
}

fn names_at(code: &str, start: usize) -> Vec<(usize, &str)> {
    let name_at = |start: usize| {
        let end = code[start..].find(|character| !is_word(character));
        &code[start..end.map_or(code.len(), |end| start + end)]
    };
    if !code[start..].starts_with('{') {
        return vec![(start, name_at(start))];
    }
    let (mut names, mut depth, mut is_due) = (Vec::new(), 0, false);
    for (offset, character) in code[start..].char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        is_due |= depth == 1 && "{,".contains(character);
        if is_due && is_word(character) {
            names.push((start + offset, name_at(start + offset)));
            is_due = false;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// Names cited by climbing up to the root of the crate with `super`.
pub(super) fn cited_from_root<'a>(code: &'a str, path: &str) -> Vec<(usize, &'a str)> {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    let depth = if path == "lib" {
        0
    } else {
        path.split('/').count()
    };
    let tests = code.find("\nmod tests {").unwrap_or(code.len());
    let mut names = Vec::new();
    let mut place = 0;
    while let Some(found) = code[place..].find("super::") {
        let start = place + found;
        place = start;
        while code[place..].starts_with("super::") {
            place += "super::".len();
        }
        let climbed = (place - start) / "super::".len();
        if climbed == depth + usize::from(start > tests) {
            names.extend(names_at(code, place));
        }
    }
    names
}

/// Each function with a body: where it starts, and how many lines it takes.
pub(super) fn functions(code: &str) -> impl Iterator<Item = (usize, usize)> {
    let starts = code.match_indices("fn ").filter(|(place, _)| {
        let before = code[..*place].chars().next_back();
        !before.is_some_and(is_word)
    });
    starts.filter_map(|(start, _)| {
        let (mut round, mut braces) = (0, 0);
        for (offset, character) in code[start..].char_indices() {
            match character {
                '(' | '[' => round += 1,
                ')' | ']' => round -= 1,
                '{' => braces += 1,
                '}' => braces -= 1,
                ';' if round == 0 && braces == 0 => return None,
                _ => {}
            }
            if character == '}' && braces == 0 {
                let lines = 1 + code[start..start + offset].matches('\n').count();
                return Some((start, lines));
            }
        }
        None
    })
}

/// The text with comments and what is in quotes blanked out; lines stay where they are.
pub(super) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_inside_word = code.chars().next_back().is_some_and(is_word);
        let taken = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest),
            'r' | 'b' if !is_inside_word => raw(rest).unwrap_or(0),
            '\'' => character(rest).unwrap_or(0),
            _ => 0,
        };
        let (gone, behind) = rest.split_at(taken.max(first.len_utf8()));
        match taken {
            0 => code.push(first),
            _ => code.extend(
                gone.chars()
                    .map(|gone| if gone == '\n' { '\n' } else { ' ' }),
            ),
        }
        rest = behind;
    }
    code
}

/// The length of the string in quotes that begins here.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            '"' if !is_escaped => return place + 1,
            _ => is_escaped = character == '\\' && !is_escaped,
        }
    }
    text.len()
}

/// The length of the raw string that begins here, if one does.
fn raw(text: &str) -> Option<usize> {
    let opening = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = opening.len() - opening.trim_start_matches('#').len();
    opening[hashes..].strip_prefix('"')?;
    let start = text.len() - opening.len() + hashes + 1;
    let closing = format!("\"{}", "#".repeat(hashes));
    let end = text[start..].find(&closing);
    Some(end.map_or(text.len(), |end| start + end + closing.len()))
}

/// The length of the character in quotes that begins here, if it is not a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut inside = text[1..].char_indices();
    match inside.next()?.1 {
        '\\' => text[3..].find('\'').map(|end| 3 + end + 1),
        _ => (inside.next()?.1 == '\'').then(|| 1 + text[1..].find('\'').unwrap_or(0) + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_what_is_quoted_are_no_code() {
        let text = r##"let a = "crate::b // {"; // crate::c
let d = '{'; let e: &'static str = r#"crate::"f" {"#; /* crate::
g */ let h = b'\''; let i = "\"{";"##;
        let code = code_of(text);
        assert_eq!(code.lines().count(), text.lines().count());
        let used: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = "let a = ; let d = ; let e: &'static str = ; let h = b ; let i = ;";
        assert_eq!(used, expected);
    }

    #[test]
    fn functions_reach_from_their_name_to_their_last_brace() {
        let code =
            "trait T {\n fn a(&self) -> [u8; 3];\n}\nfn b() {\n if c {\n }\n}\nlet f: fn(u8);";
        let found: Vec<_> = functions(code)
            .map(|(at, lines)| (line_of(code, at), lines))
            .collect();
        assert_eq!(found, [(4, 4)]);
    }

    #[test]
    fn names_are_found_in_paths_and_groups() {
        let code = "use crate::a::b; use crate::{c::{d, e}, f}; mycrate::g; pub(in crate::h) i";
        let names: Vec<_> = cited(code, "crate::").map(|(_, name)| name).collect();
        assert_eq!(names, ["a", "c", "f", "h"]);
    }

    #[test]
    fn climbing_counts_as_naming_only_at_the_root() {
        let code =
            "use super::a;\nuse super::super::b;\nmod tests {\n use super::super::super::c;\n}";
        let names = |path| {
            cited_from_root(code, path)
                .into_iter()
                .map(|(_, name)| name)
                .collect()
        };
        let found: [Vec<&str>; 3] = [names("x.rs"), names("x/y.rs"), names("x/mod.rs")];
        assert_eq!(found, [vec!["a"], vec!["b", "c"], vec!["a"]]);
    }
}
