//! The text after preprocessing, which has every included file in it.

use std::path::PathBuf;
use std::time::SystemTime;

use runtime_core::backend::{Notes, Source, read_file};
use runtime_core::{Error, Result};

use super::joints::without_joints;
use super::remembered;
use crate::{compile, compiler};

/// Words without which a text reads no file. A trigraph may be part of `#include`.
const READING: [&str; 5] = ["include", "import", "embed", ASSEMBLER, "??"];
/// Words of which the value changes at every compilation.
const CHANGING: [&str; 3] = ["__DATE__", "__TIME__", "__TIMESTAMP__"];
/// What an assembler reads files with.
const ASSEMBLER: &str = ".inc";

/// The files of the option `source`, which are compiled along with the source.
pub(super) fn files(source: &Source<'_>) -> Result<Vec<PathBuf>> {
    if source.format == "c" { compile::further_files(source) } else { Ok(Vec::new()) }
}

/// A hash of the preprocessed text of a source and of `files`; `None` if nothing includes a file. `base` identifies the compiler.
///
/// # Errors
/// `Unsupported` for a text that is not the same at every compilation, or whose assembly reads files; `CompileFailed`.
pub(super) fn of(
    source: &Source<'_>,
    files: &[PathBuf],
    base: &str,
    notes: &Notes,
) -> Result<Option<String>> {
    if source.format != "c" {
        return Ok(None);
    }
    let mut texts = vec![source.bytes()?.into_owned()];
    for file in files {
        texts.push(read_file(file)?);
    }
    let texts = texts.iter().map(|text| without_joints(text)).collect::<Vec<_>>();
    let mentions = |words: &[&str]| texts.iter().any(|text| words.iter().any(|word| text.contains(word)));
    if mentions(&CHANGING) {
        return Err(Error::unsupported("code with the time of its compilation is not kept"));
    }
    if !mentions(&READING) {
        return Ok(None);
    }
    // A script may give other options each time, which only its result tells.
    let nowhere = Notes::default();
    let notes = if compiler::is_script(source.options) { &nowhere } else { notes };
    let text = source.bytes()?;
    let key = remembered::key(base, source, &text);
    if let Some(hash) = remembered::find(notes, &key) {
        return Ok(Some(hash));
    }
    let started = SystemTime::now();
    let run = compile::preprocess(source)?;
    if asks_assembler(&run.text) {
        return Err(Error::unsupported("code whose assembly may include files is not kept"));
    }
    let hash = blake3::hash(&run.text).to_hex().to_string();
    remembered::keep(notes, &key, &hash, (&text, &run), started);
    Ok(Some(hash))
}

/// Whether preprocessed text, without the lines that name its files, has a directive of the assembler that reads a file.
fn asks_assembler(text: &[u8]) -> bool {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#"));
    lines.into_iter().any(|line| line.windows(ASSEMBLER.len()).any(|word| word == ASSEMBLER.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directives_of_the_assembler_count() {
        assert!(asks_assembler(b"__asm__(\".incbin \\\"a\\\"\");"));
        assert!(!asks_assembler(b"# 1 \"a.inc\" 2\nint a;"));
    }
}
