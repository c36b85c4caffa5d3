//! Links objects and whole archives into a shared object.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runtime_core::Result;
use runtime_core::backend::{Log, Source};

use crate::module::{cannot_write, private_folder};
use crate::toolchain::{self, Built, Origin, existing};

/// Links all members of an archive, although nothing refers to them.
const WHOLE: [&str; 2] = if cfg!(target_vendor = "apple") {
    ["-Wl,-all_load", "-Wl,-noall_load"]
} else {
    ["-Wl,--whole-archive", "-Wl,--no-whole-archive"]
};

/// Links an `object` or `archive`.
///
/// # Errors
/// `CompileFailed` with the linker's whole output and the command; `Unavailable` without a compiler, which does the
/// linking; `InvalidArgument` and `Io` for missing files.
pub(crate) fn link(source: &Source<'_>, log: Log) -> Result<Built> {
    let private = private_folder()?;
    let origin = Origin::new(source, private.path());
    let file = file(source, private.path())?;
    let mut arguments: Vec<OsString> = vec!["-shared".into()];
    arguments.extend(toolchain::flags(source.options));
    arguments.push("-o".into());
    arguments.push(toolchain::library_in(private.path()).into());
    arguments.push(WHOLE[0].into());
    arguments.push(file.into());
    arguments.push(WHOLE[1].into());
    arguments.extend(origin.link_arguments(source.options)?);
    arguments.push("-lm".into());
    toolchain::build(source.options, &arguments, &origin, private, log)
}

fn file(source: &Source<'_>, private: &Path) -> Result<PathBuf> {
    let Some(code) = source.code else { return existing(Path::new(source.path), "path") };
    let file = private.join(if source.format == "archive" { "module.a" } else { "module.o" });
    std::fs::write(&file, code).map_err(|error| cannot_write(&file, &error))?;
    Ok(file)
}
