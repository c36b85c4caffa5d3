//! Rejects output files that would overwrite an input or another output.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use runtime_core::{Error, Result};
use runtime_harness::Spec;

/// The outputs that were asked for, each with its option.
pub(crate) fn given<'a, const N: usize>(
    all: [(&'static str, &'a Option<PathBuf>); N],
) -> Vec<(&'static str, &'a Path)> {
    all.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?))).collect()
}

/// Checks outputs, each given with its option, against each other and against every file that the specs use.
///
/// # Errors
/// `InvalidArgument` that names both files.
pub(crate) fn check(outputs: &[(&str, &Path)], specs: &[Spec]) -> Result<()> {
    let inputs: Vec<PathBuf> = specs.iter().flat_map(Spec::files).collect();
    check_against(outputs, &inputs)
}

/// As [`check`], with the input files listed.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_against(outputs: &[(&str, &Path)], inputs: &[PathBuf]) -> Result<()> {
    for (at, (flag, path)) in outputs.iter().enumerate() {
        if let Some((other, _)) = outputs[..at].iter().find(|(_, other)| is_same(other, path)) {
            let place = if *path == Path::new("-") { "standard output" } else { "one file" };
            return Err(Error::invalid(format!(
                "{other} {0} and {flag} {0}: only one output can go to {place}",
                path.display()
            )));
        }
        if let Some(input) = inputs.iter().find(|input| is_same(input, path)) {
            return Err(Error::invalid(format!(
                "{flag} {}: would overwrite {}, which is an input; choose another file",
                path.display(),
                input.display()
            )));
        }
    }
    Ok(())
}

/// Whether both paths name the same regular file, also through links. Devices may be used several times.
fn is_same(one: &Path, other: &Path) -> bool {
    if one == other {
        return !one.metadata().is_ok_and(|metadata| !metadata.is_file());
    }
    let (Ok(one), Ok(other)) = (resolved(one), resolved(other)) else { return false };
    match (one.metadata(), other.metadata()) {
        (Ok(known), Ok(_)) if !known.is_file() => false,
        (Ok(known), Ok(also)) => (known.dev(), known.ino()) == (also.dev(), also.ino()),
        _ => one == other,
    }
}

/// The path with all links resolved; the last component need not exist.
fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    if let Ok(path) = path.canonicalize() {
        return Ok(path);
    }
    let path = std::path::absolute(path)?;
    let folder = path.parent().unwrap_or(Path::new("/")).canonicalize()?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}
