//! `cargo xtask install [PREFIX] [--debug]`: the command, the backends, the C header and a pkg-config file.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::built;
use crate::placed_file::{Content, PlacedFile, check_writable, write_all};
use crate::process::{Failure, Outcome, output, run};
use crate::workspace::{Profile, Target, Workspace};

/// Where backends belong below a prefix: one of the places that `runtime-core` searches.
pub(crate) const BACKENDS: &str = "lib/runtime";
/// The prefix of a user without further rights, relative to the home directory.
const USER_PREFIX: &str = ".local";
/// Other prefixes whose backends every program finds.
const SYSTEM_PREFIXES: &[&str] = &["/usr/local", "/usr"];

/// Installs what the tests have built, as `cargo install` does.
const DEBUG: &str = "--debug";

/// The profile that the arguments of a task choose, and the others.
///
/// # Errors
/// For any other option, with the usage of the task.
pub(crate) fn profile<'a>(arguments: &'a [String], usage: &str) -> Outcome<(Profile, Vec<&'a str>)> {
    let (options, others): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|argument| argument.starts_with('-'));
    match *options {
        [] => Ok((Profile::Release, others)),
        [DEBUG] => Ok((Profile::Debug, others)),
        _ => Err(Failure::new(format!("unknown option: {usage}"))),
    }
}

/// Installs below a prefix, by default `$HOME/.local`, and prints what was written.
pub(crate) fn install(arguments: &[String]) -> Outcome {
    const USAGE: &str = "cargo xtask install [PREFIX] [--debug]";
    let (profile, arguments) = profile(arguments, USAGE)?;
    let prefix = match *arguments {
        [] => None,
        [prefix] => Some(prefix),
        _ => return Err(Failure::new(format!("`install` takes one prefix to install below: {USAGE}"))),
    };
    let user_prefix = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(USER_PREFIX));
    let prefix = match (prefix, &user_prefix) {
        (Some(prefix), _) => std::path::absolute(prefix)?,
        (None, Some(prefix)) if prefix.is_absolute() => prefix.clone(),
        _ => return Err(Failure::new("HOME is not set; name a prefix: cargo xtask install PREFIX")),
    };
    let workspace = Workspace::read()?;
    let files = files(&workspace, profile, &prefix);
    // Before the build, which takes minutes.
    check_places(&files)?;
    build(&workspace, profile, &workspace.device_backends())?;
    write_all(&files)?;
    check_finds_backends(&prefix, &workspace.device_backends())?;
    for file in &files {
        println!("{}", file.to.display());
    }
    if !SYSTEM_PREFIXES.iter().any(|known| prefix == Path::new(known))
        && Some(&prefix) != user_prefix.as_ref()
    {
        println!("{}", hint(&prefix));
    }
    Ok(())
}

/// How other programs find backends in an unusual place.
fn hint(prefix: &Path) -> String {
    let backends = prefix.join(BACKENDS);
    format!(
        "programs outside `{}` do not search there: export RUNTIME_BACKEND_PATH={}",
        prefix.join("bin").display(),
        backends.display()
    )
}

/// Everything that an installation below `prefix` consists of.
pub(crate) fn files(workspace: &Workspace, profile: Profile, prefix: &Path) -> Vec<PlacedFile> {
    let built = workspace.built(profile);
    let mut files = vec![program(&built, "runtime", prefix)];
    files.extend(backends(&built, &workspace.device_backends(), prefix));
    let header = workspace.root.join("runtime-core/include/runtime.h");
    files.push(PlacedFile::new(Content::Copy(header), prefix.join("include/runtime.h")));
    let description = Content::Text(pkg_config(&workspace.version));
    files.push(PlacedFile::new(description, prefix.join("lib/pkgconfig/runtime.pc")));
    files
}

/// An executable in the folder `built`, for `bin`.
pub(crate) fn program(built: &Path, name: &str, prefix: &Path) -> PlacedFile {
    PlacedFile::new(Content::Program(built.join(name)), prefix.join("bin").join(name))
}

/// Backend libraries in the folder `built`.
pub(crate) fn backends(built: &Path, backends: &[Target], prefix: &Path) -> Vec<PlacedFile> {
    let place = |library: String| {
        PlacedFile::new(Content::Library(built.join(&library)), prefix.join(BACKENDS).join(&library))
    };
    backends.iter().map(|backend| place(backend.library())).collect()
}

/// Builds the command and backends.
pub(crate) fn build(workspace: &Workspace, profile: Profile, backends: &[Target]) -> Outcome {
    if profile == Profile::Debug {
        // With the same features as the tests', so that nothing is compiled again.
        return run(&mut workspace.cargo(&built::WORKSPACE));
    }
    let mut build =
        workspace.cargo(&["build", "--profile", profile.name(), "--quiet", "--package", "runtime-cli"]);
    for backend in backends {
        build.args(["--package", &backend.package]);
    }
    // Reports name the commit that the command was built from. An archive of the sources has none.
    let describe = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
    if let Ok(commit) = output(Command::new("git").current_dir(&workspace.root).args(describe)) {
        build.env("RUNTIME_BUILD_COMMIT", commit.trim());
    }
    run(&mut build)
}

/// Fails if one of the files could not be written.
pub(crate) fn check_places(files: &[PlacedFile]) -> Outcome {
    let mut folders: Vec<_> = files.iter().filter_map(|file| file.to.parent()).collect();
    folders.dedup();
    folders.into_iter().try_for_each(check_writable)
}

/// Runs the installed command from another directory with an empty environment; it must find every backend beside it.
pub(crate) fn check_finds_backends(prefix: &Path, backends: &[Target]) -> Outcome {
    // The command resolves links in its own path.
    let prefix = prefix.canonicalize()?;
    let mut doctor = Command::new(prefix.join("bin/runtime"));
    let report = output(doctor.arg("doctor").env_clear().current_dir(std::env::temp_dir()))?;
    for backend in backends {
        let library = prefix.join(BACKENDS).join(backend.library());
        let loaded = |line: &str| line.contains("loaded") && line.contains(&*library.to_string_lossy());
        if !report.lines().any(loaded) {
            return Err(Failure::new(format!(
                "`{}` does not find `{}`:\n{report}",
                prefix.join("bin/runtime").display(),
                library.display()
            )));
        }
    }
    Ok(())
}

/// The pkg-config file. Its paths follow from where it lies, so that the tree can be moved.
fn pkg_config(version: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..
includedir=${{prefix}}/include
backenddir=${{prefix}}/{BACKENDS}

Name: runtime
Description: C ABI of compute backends
Version: {version}
Cflags: -I${{includedir}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pkg_config_file_has_relative_paths_only() {
        let text = pkg_config("1.2.3");
        assert!(text.starts_with("prefix=${pcfiledir}/../..\nincludedir=${prefix}/include\n"), "{text}");
        assert!(text.contains("\nVersion: 1.2.3\n") && !text.contains("=/"), "{text}");
    }

    #[test]
    fn another_prefix_is_given_the_variable_that_finds_its_backends() {
        assert!(hint(Path::new("/opt/r")).ends_with("export RUNTIME_BACKEND_PATH=/opt/r/lib/runtime"));
    }
}
