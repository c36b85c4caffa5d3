//! `cargo xtask lint`: something reads each tracked file.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

/// Files that nothing names: how their paths begin and end, and what reads them.
const READ: &[(&str, &str, &str)] = &[
    (".cargo/", ".toml", "cargo"),
    (".ci/run", "", "the build machine"),
    (".gitignore", "", "git"),
    ("LICENSE-", "", "people"),
    ("clippy.toml", "", "clippy"),
    ("kernels/", ".toml", "users; tests evaluate all specs"),
    ("runtime-kernel/tests/shaders/", ".wgsl", "a test lists them"),
    ("runtime-vulkan/src/builtin/", ".comp", "whoever compiles the SPIR-V beside them anew"),
    ("rustfmt.toml", "", "rustfmt"),
    ("tests/attacks/", ".c", "a test lists them"),
    ("tests/attacks/device/", ".cl", "a test lists them"),
    ("tests/attacks/device/", ".wgsl", "a test lists them"),
    ("tests/fuzz/.gitignore", "", "git"),
    ("tests/fuzz/seeds/", "", "the fuzzer of each target"),
    ("tests/interop/python/", ".py", "a test lists them"),
    ("tests/kernel-fuzz/cases/", ".wgsl", "a test lists them"),
    ("tests/vulkan/shaders/", "", "a test compiles them"),
];

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut files = BTreeMap::new();
    for name in workspace.tracked_files()? {
        // A tracked file that does not exist was deleted without a commit yet.
        if let Ok(content) = fs::read(workspace.root.join(&name)) {
            files.insert(name, String::from_utf8_lossy(&content).into_owned());
        }
    }
    let is_gone = |(begin, end, _): &&(&str, &str, &str)| {
        !files.keys().any(|name| name.starts_with(begin) && name.ends_with(end))
    };
    if let Some((begin, end, _)) = READ.iter().find(is_gone) {
        return Err(Failure::new(format!("no file is named {begin}…{end}: remove it from the table")));
    }
    let unread = unread(&files);
    if unread.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("no tracked file names or declares: {}", unread.join(", "))))
    }
}

/// The files that no other file declares as a module or names.
fn unread(files: &BTreeMap<String, String>) -> Vec<&str> {
    let mut named: HashMap<&str, Vec<&str>> =
        files.keys().map(|name| (file_name(name), Vec::new())).collect();
    for (by, text) in files {
        for word in text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-')) {
            if let Some(namers) =
                named.get_mut(word.trim_end_matches('.')).filter(|namers| namers.last() != Some(&&**by))
            {
                namers.push(by);
            }
        }
    }
    let is_named = |name: &str| match name.rsplit('/').next() {
        // Other words than file names have no dot.
        Some(last) if last.contains('.') => named[last].iter().any(|by| *by != name && may_read(by, name)),
        _ => files.iter().any(|(by, text)| by != name && name.contains('/') && text.contains(name)),
    };
    let is_listed =
        |name: &str| READ.iter().any(|(begin, end, _)| name.starts_with(begin) && name.ends_with(end));
    let is_read =
        |name: &str| is_listed(name) || is_target(files, name) || is_module(files, name) || is_named(name);
    files.keys().map(|name| &**name).filter(|name| !is_read(name)).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Documents mention Rust files without reading them.
fn may_read(by: &str, name: &str) -> bool {
    !(name.ends_with(".rs") && by.ends_with(".md"))
}

/// Whether cargo finds the file on its own: a program, a test, an example or a benchmark of a package.
fn is_target(files: &BTreeMap<String, String>, name: &str) -> bool {
    let targets = |kind: &str| name.rsplit_once(&format!("/{kind}/"));
    ["tests", "examples", "benches", "src/bin"].iter().filter_map(|kind| targets(kind)).any(
        |(package, file)| {
            let is_root = !file.contains('/') || file.ends_with("/main.rs");
            is_root && file.ends_with(".rs") && files.contains_key(&format!("{package}/Cargo.toml"))
        },
    )
}

/// Whether a Rust file in the same folder, or the one named after the folder, declares the file as its module.
fn is_module(files: &BTreeMap<String, String>, name: &str) -> bool {
    let Some(path) = name.strip_suffix(".rs") else { return false };
    let Some((folder, module)) = path.strip_suffix("/mod").unwrap_or(path).rsplit_once('/') else {
        return false;
    };
    let declaration = format!("mod {module};");
    let inside = format!("{folder}/");
    let beside = files.range(inside.clone()..).take_while(|(file, _)| file.starts_with(&inside));
    let beside = beside.filter(|(file, _)| file.ends_with(".rs") && !file[inside.len()..].contains('/'));
    let parent = files.get(&format!("{folder}.rs"));
    beside.map(|(_, text)| text).chain(parent).any(|text| text.contains(&declaration))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread_of(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        unread(&files).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn files_that_nothing_reads_are_reported() {
        let files = [
            (" match", ""),
            ("match", ""),
            ("a/Cargo.toml", "a/src/lib.rs"),
            ("a/src/lib.rs", "match x { _ => 1 }; mod room;"),
            ("a/src/room.rs", "mod roomy;"),
            ("a/src/cellar/room.rs", ""),
            ("a/src/roof.rs", "//! Not roof.rs."),
            ("a/tests/x/y.rs", ""),
            ("doc.md", "Cargo.toml, `roof.rs` and table.csv; doc.md"),
            ("table.csv", ""),
            ("table.cs", ""),
        ];
        let expected = [
            " match",
            "a/src/cellar/room.rs",
            "a/src/roof.rs",
            "a/tests/x/y.rs",
            "doc.md",
            "match",
            "table.cs",
        ];
        assert_eq!(unread_of(&files), expected);
    }

    #[test]
    fn modules_targets_and_named_files_are_read() {
        let files = [
            ("a/Cargo.toml", "path = \"src/lib.rs\""),
            ("a/src/lib.rs", "mod room; mod hall; include_str!(\"table.csv\"); run(\"a/tool\")"),
            ("a/src/room.rs", "mod door;"),
            ("a/src/room/door.rs", ""),
            ("a/src/hall/mod.rs", "#[path = \"other_door.rs\"] mod door; // Cargo.toml"),
            ("a/src/hall/other_door.rs", ""),
            ("a/src/table.csv", ""),
            ("a/tests/one.rs", ""),
            ("a/tests/two/main.rs", ""),
            ("a/tool", ""),
            ("kernels/matmul.toml", ""),
        ];
        assert_eq!(unread_of(&files), [""; 0]);
    }
}
