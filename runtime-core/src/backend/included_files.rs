//! Finds the files that code in a C dialect includes, without a preprocessor.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::platform::read_regular_file;

/// Files beyond this number are not followed.
const MAX_FILES: usize = 10_000;
/// Files with more bytes than this together are not read.
const MAX_BYTES: u64 = 1 << 30;

/// Describes every file that `text` may include: a line per file, with a hash of its content, or that it does not exist.
/// Two equal descriptions mean that a compiler reads the same text.
///
/// `own_folder` is the folder of the file that `text` comes from. `folders` are the other folders that the compiler
/// searches, in order. An included file is looked for in all of them, and in the folder of the file that includes it:
/// a file that appears in an earlier folder changes the description. Files are followed whether their line is in use or
/// not, so one that no folder has is no error; it is the compiler's own, or not needed.
///
/// Returns `None` if the files cannot be known: the name of one is computed by a macro, the text imports modules,
/// embeds data or contains the time of its compilation, or there are too many.
#[must_use]
pub fn included_files(text: &str, own_folder: Option<&Path>, folders: &[PathBuf]) -> Option<String> {
    let mut search = Search { folders, found: BTreeMap::new(), waiting: Vec::new(), bytes: 0 };
    search.look_for(&names(text.as_bytes())?, own_folder);
    while let Some((path, content)) = search.waiting.pop() {
        search.look_for(&names(&content)?, path.parent());
        if search.found.len() > MAX_FILES || search.bytes > MAX_BYTES {
            return None;
        }
    }
    let mut lines = String::new();
    for (path, state) in &search.found {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{path:?} {state}");
    }
    Some(lines)
}

/// What is never accepted: `??=` is `#`, and `??/` joins lines; an assembler reads files, too; and what a compiler reads
/// includes the time.
const UNKNOWN: [&str; 7] = ["??=", "??/", "incbin", ".include", "__DATE__", "__TIME__", "__TIMESTAMP__"];

struct Search<'a> {
    folders: &'a [PathBuf],
    /// What is known of each place where a file was looked for.
    found: BTreeMap<PathBuf, String>,
    /// Files that were read, and not searched for further names yet.
    waiting: Vec<(PathBuf, Vec<u8>)>,
    bytes: u64,
}

impl Search<'_> {
    /// Looks for files of these names, which a file in `including` includes, in every folder.
    fn look_for(&mut self, names: &[PathBuf], including: Option<&Path>) {
        for name in names {
            for folder in including.into_iter().chain(self.folders.iter().map(PathBuf::as_path)) {
                let place = resolved(&folder.join(name));
                if !self.found.contains_key(&place) {
                    let state = self.read(&place);
                    self.found.insert(place, state);
                }
            }
        }
    }

    /// The state of a file. One that can be read is searched later.
    fn read(&mut self, place: &Path) -> String {
        let Ok(metadata) = place.metadata() else { return "absent".to_owned() };
        self.bytes = self.bytes.saturating_add(metadata.len());
        if !metadata.is_file() || self.bytes > MAX_BYTES {
            return "not a file".to_owned();
        }
        match read_regular_file(place) {
            Ok(content) => {
                let hash = blake3::hash(&content).to_hex();
                self.waiting.push((place.to_owned(), content));
                hash.to_string()
            }
            Err(error) => error.kind().to_string(),
        }
    }
}

/// The path with its folder resolved, so that a file that includes itself by way of `..` has one path.
fn resolved(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

/// The names in a text's `#include` directives and `__has_include` conditions, also in comments; `None` if one cannot be
/// known.
fn names(text: &[u8]) -> Option<Vec<PathBuf>> {
    if UNKNOWN.iter().any(|word| contains(text, word.as_bytes())) {
        return None;
    }
    let text = joined_lines(text);
    let mut names = Vec::new();
    let mut at = 0;
    while let Some(word) = next_identifier(&text, at) {
        at = word.end;
        let (before, name, rest) = (trimmed(&text[..word.start]), &text[word.clone()], &text[word.end..]);
        let is_directive = before.ends_with(b"#") || before.ends_with(b"%:");
        match name {
            b"include" | b"import" if is_directive => names.push(operand(rest)?),
            b"__has_include" if is_tested_for(before) => {}
            b"__has_include" => names.push(operand(trimmed_start(rest).strip_prefix(b"(")?)?),
            b"include" if !before.ends_with(b"*/") => {}
            // A module, unless it is the middle of a sentence.
            b"import" if !before.is_empty() && !before.ends_with(b"\n") && !before.ends_with(b"export") => {}
            b"include" | b"import" | b"include_next" | b"include_alias" | b"include_macros" => return None,
            b"__has_include_next" | b"__has_embed" => return None,
            b"embed" if is_directive => return None,
            _ => {}
        }
    }
    Some(names)
}

/// The next identifier from `at` on that is about other files.
fn next_identifier(text: &[u8], mut at: usize) -> Option<std::ops::Range<usize>> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    loop {
        let start = at + text.get(at..)?.iter().position(is_part)?;
        let end = text[start..].iter().position(|byte| !is_part(byte)).map_or(text.len(), |end| start + end);
        let word = &text[start..end];
        if [&b"include"[..], b"import", b"embed"].iter().any(|about| contains(word, about)) {
            return Some(start..end);
        }
        at = end;
    }
}

/// The file name behind a directive: `"name"` or `<name>`.
fn operand(rest: &[u8]) -> Option<PathBuf> {
    let (open, rest) = trimmed_start(rest).split_first()?;
    let close = match open {
        b'"' => b'"',
        b'<' => b'>',
        _ => return None,
    };
    let line = rest.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    let name = &line[..line.iter().position(|byte| *byte == close)?];
    Some(PathBuf::from(std::str::from_utf8(name).ok()?))
}

/// Whether the text before a word asks whether the word is defined.
fn is_tested_for(before: &[u8]) -> bool {
    let before = before.strip_suffix(b"(").map_or(before, trimmed);
    before.ends_with(b"defined") || before.ends_with(b"ifdef") || before.ends_with(b"ifndef")
}

/// The text with lines joined where one ends in a backslash, as compilers do; they ignore spaces behind it.
fn joined_lines(text: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (line, after) = (&rest[..at], trimmed_start(&rest[at + 1..]));
        joined.extend_from_slice(line);
        let after = after.strip_prefix(b"\r").unwrap_or(after);
        match after.strip_prefix(b"\n") {
            Some(next) => rest = next,
            None => {
                joined.push(b'\\');
                rest = &rest[at + 1..];
            }
        }
    }
    joined.extend_from_slice(rest);
    joined
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)
}

/// Without spaces at the end, within the line.
fn trimmed(text: &[u8]) -> &[u8] {
    &text[..text.iter().rposition(|byte| !is_space(byte)).map_or(0, |last| last + 1)]
}

/// Without spaces at the beginning, within the line.
fn trimmed_start(text: &[u8]) -> &[u8] {
    &text[text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len())..]
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests;
