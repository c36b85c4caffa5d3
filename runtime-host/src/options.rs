//! The code formats of the host, and their load options.

use runtime_core::backend::{OptionSpec, Source, did_you_mean};
use runtime_core::{Error, ErrorKind, Result};

use crate::convention::Convention;
use crate::{debug, sandbox};

/// The device option of a reference for other code. Lowerings read it in `DeviceInfo::open_options`.
pub(crate) const SERIAL_ITEMS: &str = "serial_items";

/// The code formats of the host, and the load options of each.
pub(crate) const FORMATS: [(&str, &[&str]); 4] = [
    ("shared-object", &["convention", "debug", "libraries"]),
    (
        "c",
        &[
            "compiler",
            "convention",
            "debug",
            "default_flags",
            "define",
            "flags",
            "include",
            "libraries",
            "readable",
            "source",
        ],
    ),
    ("object", &["compiler", "convention", "debug", "flags", "libraries", "readable"]),
    ("archive", &["compiler", "convention", "debug", "flags", "libraries", "readable"]),
];

/// All load options.
pub(crate) fn all() -> Vec<OptionSpec> {
    vec![
        OptionSpec::device(
            SERIAL_ITEMS,
            false,
            "Run each launch on one thread, and the work-items of a portable kernel in the order of their index, each up to the next barrier.",
        ),
        Convention::option(),
        debug::option(),
        OptionSpec::module(
            "compiler",
            "",
            "C compiler, optionally with arguments, which also links; default: $CC, else cc, clang or gcc.",
        ),
        OptionSpec::module(
            "flags",
            "",
            "Compiler or linker flags, separated by spaces, after the default ones; a list.",
        ),
        OptionSpec::module(
            "libraries",
            "",
            "Library that the code needs: a path, relative to the source file's folder, or a name as after -l; a shared object's are opened first, with their symbols visible to the whole process; a list.",
        ),
        OptionSpec::module(
            sandbox::READABLE,
            "",
            "Folder that a compiler in a sandbox may read, besides the source file's; relative to that; a list.",
        ),
        OptionSpec::module(
            "default_flags",
            true,
            "Start with -O3 -march=native -std=gnu11. Format c only, like the next three options.",
        ),
        OptionSpec::module("define", "", "Macro to define, NAME or NAME=VALUE; a list."),
        OptionSpec::module("include", "", "Folder of header files, relative to the source file's; a list."),
        OptionSpec::module(
            "source",
            "",
            "Further C file to compile in, relative to the source file's folder; a list.",
        ),
    ]
}

/// Checks that the host supports the format, and the format all given options.
pub(crate) fn check_options(source: &Source<'_>) -> Result<()> {
    let Some((format, valid)) = FORMATS.iter().find(|(format, _)| *format == source.format) else {
        let formats = FORMATS.map(|(format, _)| format);
        let message = format!(
            "the host does not support format \"{}\"; {}",
            source.format,
            did_you_mean(source.format, &formats)
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    match source.options.iter().find(|(key, _)| !valid.contains(key)) {
        Some((key, _)) => Err(Error::invalid(format!(
            "option \"{key}\" does not apply to format \"{format}\", which has {}",
            valid.join(", ")
        ))),
        None => Ok(()),
    }
}

/// The name of the code in messages.
pub(crate) fn name_of<'a>(source: &Source<'a>) -> &'a str {
    if source.path.is_empty() { "the code" } else { source.path }
}
