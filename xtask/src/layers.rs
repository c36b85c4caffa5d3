//! `cargo xtask lint`: the folders of a crate import downwards only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

/// The layers of a crate, the lowest first. A module that is not listed is not checked.
struct Layers {
    source: &'static str,
    order: &'static [&'static str],
    /// Files that import a module from above, each with that module.
    exceptions: &'static [(&'static str, &'static str)],
}

const CRATES: &[Layers] = &[
    Layers {
        source: "runtime-core/src",
        order: &[
            "abi", "error", "platform", "process", "model", "plugin", "timeline", "memory", "tensor", "code",
            "queue", "graph", "evaluate", "device", "backend", "runtime",
        ],
        exceptions: &[],
    },
    Layers {
        source: "runtime-kernel/src",
        order: &["ir", "parse", "analysis", "check", "transform", "print"],
        // A kernel whose functions cannot be judged on their own is inlined first.
        exceptions: &[("check/barriers.rs", "transform")],
    },
    Layers {
        source: "runtime-harness/src",
        order: &[
            "platform",
            "random",
            "text_file",
            "describe",
            "crash_context",
            "release",
            "settings",
            "spec",
            "job",
            "row",
            "report",
            "compare",
            "candidate",
            "device",
            "evaluate",
            "worker",
            "pool",
            "server",
        ],
        exceptions: &[],
    },
];

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut wrong = Vec::new();
    for layers in CRATES {
        let root = workspace.root.join(layers.source);
        let exported = exports(&read(&root.join("lib.rs"))?);
        for file in sources(&root)?.into_iter().filter(|file| !is_test(file)) {
            let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().into_owned();
            let upward = upward(layers, &name, &read(&file)?, &exported);
            wrong.extend(upward.into_iter().map(|what| format!("{}/{name}: {what}", layers.source)));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("imports upwards:\n{}", wrong.join("\n"))))
    }
}

/// The modules above its own that a file imports.
fn upward(layers: &Layers, name: &str, text: &str, exported: &BTreeMap<String, String>) -> Vec<String> {
    let rank = |module: &str| layers.order.iter().position(|layer| *layer == module);
    let own = name.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let Some(own_rank) = rank(own) else { return Vec::new() };
    let mut found = Vec::new();
    for segment in crate_paths(&without_comments_and_tests(text)) {
        let module = exported.get(&segment).unwrap_or(&segment);
        let excepted = layers.exceptions.contains(&(name, module.as_str()));
        if rank(module).is_some_and(|rank| rank > own_rank) && !excepted {
            found.push(format!("`{own}` imports `crate::{segment}` of `{module}`, which is above it"));
        }
    }
    found
}

/// What `lib.rs` exports at its root, by the module that it comes from.
fn exports(lib: &str) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for statement in lib.split(';').filter_map(|statement| statement.trim().strip_prefix("pub use ")) {
        let (module, names) = statement.split_once("::").unwrap_or((statement, ""));
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            exported.insert(name.to_owned(), module.to_owned());
        }
    }
    exported
}

/// The first segment of every path that begins with `crate::`.
fn crate_paths(text: &str) -> BTreeSet<String> {
    let mut segments = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(group) => {
                segments.extend(members(group).into_iter().filter_map(|member| first_word(member.trim())));
            }
            None => segments.extend(first_word(rest)),
        }
    }
    segments
}

/// The members of a group, up to its closing brace.
pub(crate) fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&group[begin..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

fn first_word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

pub(crate) fn without_comments_and_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether a file holds the unit tests of the module that it lies beside.
pub(crate) fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "tests" || stem.to_string_lossy().ends_with("_tests"))
}

pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

pub(crate) fn sources(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries =
        fs::read_dir(folder).map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: Layers = Layers {
        source: "",
        order: &["cellar", "kitchen", "roof"],
        exceptions: &[("cellar/chimney.rs", "roof")],
    };

    fn imports(name: &str, text: &str) -> Vec<String> {
        upward(&HOUSE, name, text, &exports("mod roof;\npub use roof::tiles::{Tile, Gutter};\n"))
    }

    #[test]
    fn an_import_from_above_is_reported() {
        for text in
            ["use crate::roof::Tile;", "use crate::{kitchen::Pan, Tile};", "fn f(x: &crate::Gutter) {}"]
        {
            assert_eq!(imports("kitchen/mod.rs", text).len(), 1, "{text}");
        }
        assert!(imports("cellar.rs", "use crate::kitchen;")[0].contains("`cellar` imports `crate::kitchen`"));
    }

    #[test]
    fn imports_from_below_beside_or_excepted_are_accepted() {
        assert!(imports("roof/mod.rs", "use crate::{cellar::{a, b}, kitchen};").is_empty());
        assert!(
            imports("kitchen/pan.rs", "use crate::kitchen::Pan; // crate::roof\n/// [`crate::roof`]")
                .is_empty()
        );
        assert!(imports("kitchen/pan.rs", "#[cfg(test)]\nmod tests { use crate::roof; }").is_empty());
        assert!(imports("cellar/chimney.rs", "use crate::roof::Tile;").is_empty());
        assert!(imports("garden.rs", "use crate::roof::Tile;").is_empty());
    }
}
