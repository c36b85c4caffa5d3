//! Runs the commands of the README's "Add a backend in six steps" verbatim, in a copy of the tree.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use test_process::{copy_built, copy_file, copy_time};

const HEADING: &str = "## Add a backend in six steps";

/// The lines of the section's `sh` blocks, in order.
fn script(readme: &str) -> String {
    let section = readme.split(HEADING).nth(1).unwrap_or_default();
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Copies all files that git tracks or does not ignore, with the times by which cargo knows what it has built of them.
fn copy_tree(to: &Path) {
    let root = root();
    let listed = Command::new("git")
        .current_dir(&root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .unwrap();
    assert!(listed.status.success(), "git lists the files");
    let mut folders = BTreeSet::new();
    for name in String::from_utf8(listed.stdout).unwrap().split('\0').filter(|name| !name.is_empty()) {
        if root.join(name).is_file() {
            fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
            copy_file(&root.join(name), &to.join(name)).unwrap();
            folders.extend(Path::new(name).ancestors().skip(1).map(Path::to_owned));
        }
    }
    for folder in folders {
        copy_time(&root.join(&folder), &to.join(&folder)).unwrap();
    }
}

#[test]
fn the_six_steps_make_a_backend_that_passes_the_suite() {
    let script = script(&fs::read_to_string(root().join("README.md")).unwrap());
    assert!(
        script.contains("members") && script.contains("conformance mine"),
        "the section lacks its blocks: {script}"
    );

    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("six-steps");
    let tree = folder.join("tree");
    let _ = fs::remove_dir_all(&folder);
    copy_tree(&tree);
    copy_built(&tree.join("target")).unwrap();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-x", "-c", &script])
        .current_dir(&tree)
        .env_remove("RUNTIME_BACKENDS")
        .env_remove("RUNTIME_BACKEND_PATH")
        .env_remove("RUNTIME_REQUIRE")
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
}
