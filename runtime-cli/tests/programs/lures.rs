//! Programs and libraries that say so when they run.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// The names by which programs are looked for in `PATH`.
const PROGRAMS: [&str; 15] = [
    "cc",
    "gcc",
    "clang",
    "as",
    "ld",
    "ptxas",
    "nvdisasm",
    "objdump",
    "spirv-dis",
    "offline-compiler",
    "ssh",
    "kvx-board-diag",
    "riscv64-unknown-elf-gcc",
    "qemu-system-riscv64",
    "qemu-system-riscv32",
];
/// The libraries that variables name.
const LIBRARIES: [&str; 5] =
    ["libnvrtc.so.12", "libnvJitLink.so.12", "libcupti.so.12", "libOpenCL.so.1", "libruntime_lure.so"];
const LIBRARY: &str = r#"#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void caught(void) {
    int file = open(MARKER, O_WRONLY | O_APPEND);
    if (write(file, "a library\n", 10) < 0) _exit(1);
}
"#;

/// Fills `folder/bin` and `folder/lib64`. What runs writes a line to the file `marker`.
pub(crate) fn lay(folder: &Path, marker: &Path) {
    let (programs, libraries) = (folder.join("bin"), folder.join("lib64"));
    for folder in [&programs, &libraries] {
        std::fs::create_dir_all(folder).unwrap();
    }
    for name in PROGRAMS {
        write_program(
            &programs.join(name),
            &format!("echo \"$0 $(id --user)\" >> {}\nexit 1", marker.display()),
        );
    }
    let (source, first) = (folder.join("lure.c"), libraries.join(LIBRARIES[0]));
    std::fs::write(&source, LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&first).arg(&source);
    compiler.arg(format!("-DMARKER=\"{}\"", marker.display()));
    assert!(compiler.status().unwrap().success());
    for name in &LIBRARIES[1..] {
        std::fs::copy(&first, libraries.join(name)).unwrap();
    }
}

/// Writes a shell script that can be run.
pub(crate) fn write_program(path: &Path, script: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
