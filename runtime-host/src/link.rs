//! Links objects and whole archives into a shared object.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runtime_core::Result;
use runtime_core::backend::{Log, Source};

use crate::architecture::Architecture;
use crate::toolchain::{self, Build, Built, existing};

/// Links all members of an archive, although nothing refers to them.
const WHOLE: [&str; 2] = ["-Wl,--whole-archive", "-Wl,--no-whole-archive"];

/// Links an `object` or `archive`.
///
/// # Errors
/// `CompileFailed` with the linker's output and the command; `Unavailable` without a compiler, which does the
/// linking; `InvalidArgument` and `Io` for missing files.
pub(crate) fn link(source: &Source<'_>, architecture: Architecture, log: Log) -> Result<Built> {
    let build = Build::new(source, architecture, log)?;
    let file = file(source, &build)?;
    let mut arguments: Vec<OsString> = vec!["-shared".into()];
    arguments.extend(toolchain::flags(source.options));
    arguments.push("-o".into());
    arguments.push(build.library().into());
    arguments.push(WHOLE[0].into());
    arguments.push(file.into());
    arguments.push(WHOLE[1].into());
    arguments.extend(build.origin.link_arguments(source.options)?);
    arguments.push("-lm".into());
    build.run(&arguments)
}

fn file(source: &Source<'_>, build: &Build<'_>) -> Result<PathBuf> {
    let Some(code) = source.code else { return existing(Path::new(source.path), "path") };
    build.write(if source.format == "archive" { "module.a" } else { "module.o" }, code)
}
