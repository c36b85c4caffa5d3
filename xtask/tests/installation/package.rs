//! `cargo xtask package`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use libtest_mimic::{Completion, Failed};

use crate::machine::{Machine, check, check_files, missing, run};

/// The name of the package.
const NAME: &str = "runtime";

/// The path of the package, built once.
fn package(machine: &Machine) -> Result<&'static str, Failed> {
    static PATH: OnceLock<String> = OnceLock::new();
    match PATH.get() {
        Some(path) => Ok(path),
        None => {
            let path = machine.xtask(&["package"])?.trim().to_owned();
            Ok(PATH.get_or_init(|| path))
        }
    }
}

/// It has the files of an installation and a copyright, needs nothing but the C library, and works from another root.
pub(crate) fn unpacked() -> Result<Completion, Failed> {
    if let Some(reason) = missing() {
        return Ok(Completion::ignored_with(reason));
    }
    let machine = Machine::new();
    let package = package(&machine)?;
    check_files(
        &contents(package)?,
        &["bin/runtime", "include/runtime.h", "lib/pkgconfig/runtime.pc", "share/doc/runtime/copyright"],
    )?;
    let depends = run(Command::new("dpkg-deb").args(["--field", package, "Depends"]))?;
    check(depends.split(',').all(|needed| needed.trim().starts_with("libc6 ")), &depends)?;
    let root = machine.path("root");
    run(Command::new("dpkg-deb").args(["--extract", package]).arg(&root))?;
    machine.check_command(&root.join("usr/bin/runtime"))?;
    Ok(Completion::Completed)
}

/// The files of the package, relative to `/usr` and sorted.
fn contents(package: &str) -> Result<Vec<String>, Failed> {
    let listed = run(Command::new("dpkg-deb").args(["--contents", package]))?;
    let files = listed.lines().filter(|line| !line.ends_with('/'));
    let mut files: Vec<_> = files.filter_map(|line| line.split("./usr/").nth(1)).map(str::to_owned).collect();
    files.sort();
    Ok(files)
}

/// The real thing, which changes the machine: command and programs work, and nothing is left after the removal.
pub(crate) fn installed() -> Result<Completion, Failed> {
    if !test_process::required("package") {
        return Ok(Completion::ignored_with("installs a package on this machine: RUNTIME_REQUIRE=package"));
    }
    let is_root = run(Command::new("id").arg("--user"))?.trim() == "0";
    if !is_root {
        return Ok(Completion::ignored_with("only the superuser installs packages"));
    }
    let machine = Machine::new();
    let package = package(&machine)?;
    let files = contents(package)?;
    let present: Vec<_> = files.iter().filter(|file| Path::new("/usr").join(file).exists()).collect();
    check(present.is_empty(), &format!("remove these files first, which are not of this test: {present:?}"))?;
    let removal = Removal;
    run(dpkg().args(["--install", package]))?;
    machine.check_command(Path::new("/usr/bin/runtime"))?;
    machine.check_program_finds(Path::new("/usr/lib/runtime"))?;
    drop(removal);
    let left: Vec<_> =
        files.iter().filter(|file| fs::metadata(Path::new("/usr").join(file)).is_ok()).collect();
    check(left.is_empty(), &format!("left after the removal: {left:?}"))?;
    Ok(Completion::Completed)
}

fn dpkg() -> Command {
    let mut dpkg = Command::new("dpkg");
    dpkg.env("DEBIAN_FRONTEND", "noninteractive");
    dpkg
}

/// Removes the package when it is dropped, so that a failed test does not leave it on the machine.
struct Removal;

impl Drop for Removal {
    fn drop(&mut self) {
        // The files that are left are what the test checks.
        let _ = run(dpkg().args(["--remove", NAME]));
    }
}
