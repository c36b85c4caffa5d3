//! `cargo xtask package [--debug]`: a Debian package with what `install` writes, below `/usr`.

use std::fs;
use std::io;

use crate::install;
use crate::placed_file::write_all;
use crate::process::{Failure, Outcome, output};
use crate::requirements;
use crate::workspace::Workspace;

/// The tree that the assets in `runtime-cli/Cargo.toml` name, below cargo's target directory.
const TREE: &str = "release/package";

/// Builds the package and prints its path. `runtime-cli/Cargo.toml` has its description and its dependencies.
pub(crate) fn write_package(arguments: &[String]) -> Outcome {
    const USAGE: &str = "cargo xtask package [--debug]";
    let (profile, others) = install::profile(arguments, USAGE)?;
    if !others.is_empty() {
        return Err(Failure::new(format!("`package` takes no argument but --debug: {USAGE}")));
    }
    let workspace = Workspace::read()?;
    requirements::install_cargo_tool(&workspace, "cargo-deb")?;
    install::build(&workspace, profile, &workspace.device_backends())?;
    let tree = workspace.scratch(TREE);
    match fs::remove_dir_all(&tree) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    write_all(&install::files(&workspace, profile, &tree))?;
    install::check_finds_backends(&tree, &workspace.device_backends())?;
    // Stripped already. The command prints the path of the package.
    let arguments = ["deb", "--quiet", "--no-build", "--no-strip", "--package", "runtime-cli"];
    print!("{}", output(&mut workspace.cargo(&arguments))?);
    Ok(())
}
