//! `cargo xtask install`.

use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Completion, Failed};

use crate::machine::{Machine, check, check_files, missing, run};

/// A prefix that is a file is refused before anything is built.
pub(crate) fn unwritable() -> Result<Completion, Failed> {
    let machine = Machine::new();
    let file = machine.path("work/file");
    fs::write(&file, "").unwrap();
    let failure = machine.xtask(&["install", &file.to_string_lossy()]).expect_err("it is a file");
    let text = failure.message().unwrap_or_default().to_owned();
    check(text.contains("file`: it is not a directory") && !text.contains("cargo build"), &text)?;
    Ok(Completion::Completed)
}

/// After an installation with the default prefix the command works, programs find the backends, and C programs the header;
/// the tree can be moved, and installed again.
pub(crate) fn works() -> Result<Completion, Failed> {
    if let Some(reason) = missing() {
        return Ok(Completion::ignored_with(reason));
    }
    let machine = Machine::new();
    let prefix = machine.path("home/.local");
    for _ in 0..2 {
        let written = machine.xtask(&["install"])?;
        check_files(
            &files(&prefix, &written)?,
            &["bin/runtime", "include/runtime.h", "lib/pkgconfig/runtime.pc"],
        )?;
    }
    machine.check_command(&prefix.join("bin/runtime"))?;
    machine.check_program_finds(&prefix.join("lib/runtime"))?;
    check_header(&machine, &prefix)?;
    let moved = machine.path("moved");
    fs::rename(&prefix, &moved).unwrap();
    machine.check_command(&moved.join("bin/runtime"))?;
    check_header(&machine, &moved)?;
    Ok(Completion::Completed)
}

/// The files below `prefix`, which must be those that were printed.
fn files(prefix: &Path, printed: &str) -> Result<Vec<String>, Failed> {
    let found = run(Command::new("find").arg(prefix).args(["-type", "f", "-printf", "%P\n"]))?;
    let mut found: Vec<_> = found.lines().map(str::to_owned).collect();
    found.sort();
    let mut printed: Vec<_> = printed.lines().collect();
    printed.sort_unstable();
    let paths: Vec<_> = found.iter().map(|file| prefix.join(file).display().to_string()).collect();
    check(paths == printed, &format!("{paths:#?} is installed, {printed:#?} was printed"))?;
    Ok(found)
}

/// Compiles a file that includes the header, with what pkg-config says.
fn check_header(machine: &Machine, prefix: &Path) -> Result<(), Failed> {
    let source = machine.path("work/backend.c");
    fs::write(&source, "#include <runtime.h>\nint major = RT_MAJOR;\n").unwrap();
    let mut pkg_config = machine.command("pkg-config");
    pkg_config.args(["--cflags", "runtime"]).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = run(&mut pkg_config)?;
    run(machine.command("cc").arg("-fsyntax-only").args(flags.split_whitespace()).arg(source)).map(|_| ())
}
