//! Runs the commands of the six steps in `docs/backends.md` ("In C") verbatim.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use runtime_c_backend_tests::{profile_folder, program, root, sources};

const HEADING: &str = "## In C, in six steps";

/// The lines of the section's `sh` blocks, in order.
fn script(guide: &str) -> String {
    let section = guide.split(HEADING).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut lines = Vec::new();
    let mut inside = false;
    for line in section.lines().map(str::trim) {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside => lines.push(line),
            _ => {}
        }
    }
    lines.join("\n")
}

/// Copies what the steps need: the skeleton, the header, and the built programs.
fn copy_tree(to: &Path) {
    let (skeleton, include) = (to.join("tests/c-backend"), to.join("runtime-core/include"));
    let header = root().join("runtime-core/include/runtime.h");
    let own = sources().unwrap().into_iter().chain([root().join("tests/c-backend/backend.h")]);
    for (folder, files) in [(skeleton, own.collect::<Vec<_>>()), (include, vec![header])] {
        fs::create_dir_all(&folder).unwrap();
        for file in files {
            fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
    }
    fs::create_dir(to.join("target")).unwrap();
    std::os::unix::fs::symlink(profile_folder().unwrap(), to.join("target/debug")).unwrap();
}

#[test]
fn the_six_steps_make_a_backend_that_passes_the_suite() {
    let script = script(&fs::read_to_string(root().join("docs/backends.md")).unwrap());
    assert!(
        script.contains("runtime-core/include") && script.contains("runtime conformance mine"),
        "the section has its blocks: {script}"
    );
    program("runtime").unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy_tree(folder.path());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-x", "-c", &script])
        .current_dir(folder.path())
        .env_remove("RUNTIME_BACKEND_PATH")
        .env_remove("RUNTIME_REQUIRE")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    // The suite ran on the copy: its cases have the new name.
    assert!(text.contains("mine:0::") && text.contains("0 failed"), "{text}");
}
