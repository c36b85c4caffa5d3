//! What identifies everything outside a source that compiled code depends on.
//!
//! Core keeps compiled code under it: a change that is missing here means that old code is loaded. Whatever may read a
//! file that is not listed here is refused; such code is compiled at every load.

mod environment;
mod flags;
mod joints;
mod preprocessed;
mod remembered;
mod twins;

use std::fmt::Write as _;
use std::path::Path;

use runtime_core::backend::{Notes, Source, read_file};
use runtime_core::{Error, Result};

use crate::options::check_options;
use crate::{compiler, platform, toolchain};

/// The identity of what compiles `source`; for lowered code, which is empty here, without included files.
///
/// Lowered code includes one header, glibc's `features.h`, to ask for its version: the version of the C library covers it.
///
/// # Errors
/// `Unsupported` for a shared object, for code that may read unknown files, and without a compiler; `Io`.
pub(crate) fn of(source: &Source<'_>) -> Result<String> {
    of_with(source, &Notes::from_environment())
}

/// As [`of`], with the notes of earlier runs of the preprocessor.
fn of_with(source: &Source<'_>, notes: &Notes) -> Result<String> {
    check_options(source)?;
    if source.format == "shared-object" {
        return Err(Error::unsupported("a shared object is native code already"));
    }
    // Loading the code then reports which compiler is missing.
    let compiler = compiler::identity(source.options)
        .ok_or_else(|| Error::unsupported("the compiler is not installed, so it has no identity"))?;
    flags::check(source.options)?;
    let mut identity = format!(
        "{compiler}\n{}\n{}\n{}",
        platform::processor(),
        platform::c_library(),
        environment::of(std::env::var_os)
    );
    let inputs = preprocessed::files(source)?;
    let preprocessed = preprocessed::of(source, &inputs, &identity, notes)?;
    let mut add = |what: &str, state: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(identity, "{what}: {state}");
    };
    if let Some(hash) = preprocessed {
        add("preprocessed", hash);
    }
    for input in &inputs {
        add(&format!("{input:?}"), content(input)?);
    }
    for library in toolchain::linked_libraries(source)? {
        add(&format!("{library:?}"), state(&library));
    }
    Ok(identity)
}

/// A hash of a file's content.
fn content(path: &Path) -> Result<String> {
    Ok(blake3::hash(&read_file(path)?).to_hex().to_string())
}

/// The state of a library, which may be large: what changes with its content.
fn state(path: &Path) -> String {
    compiler::file_state(path).unwrap_or_else(|| "absent".to_owned())
}

#[cfg(test)]
mod remembered_tests;
#[cfg(test)]
mod tests;
