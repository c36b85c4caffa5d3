//! `cargo xtask lint`: `docs/dependencies.md` has a line for every direct dependency, and none for others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

/// The document, with a section and a table per crate.
const DOCUMENT: &str = "docs/dependencies.md";
/// Workspaces of their own, which `cargo metadata` does not list.
const OTHER_WORKSPACES: &[&str] = &["tests/fuzz/Cargo.toml"];

/// Names of dependencies, by crate.
type Dependencies = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut declared = workspace.dependencies();
    for manifest in OTHER_WORKSPACES {
        declared.extend(Workspace::read_manifest(&workspace.root.join(manifest))?.dependencies());
    }
    let text = fs::read_to_string(workspace.root.join(DOCUMENT))
        .map_err(|error| Failure::new(format!("{DOCUMENT}: {error}")))?;
    let differences = differences(&declared, &documented(&text));
    if differences.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("{DOCUMENT}:\n{}", differences.join("\n"))))
    }
}

/// The crates and dependencies of the document: each heading with a crate's name, and the first cell of each row below it.
fn documented(text: &str) -> Dependencies {
    let mut found = Dependencies::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            let name = heading.trim_start_matches('#').trim().strip_prefix('`');
            current = name.and_then(|name| name.strip_suffix('`')).map(str::to_owned);
        }
        let row = line.strip_prefix("| `").and_then(|row| row.split_once('`'));
        if let (Some(name), Some((dependency, _))) = (&current, row) {
            found.entry(name.clone()).or_default().insert(dependency.to_owned());
        }
    }
    found
}

/// What the document lacks, and what it has too much.
fn differences(declared: &Dependencies, documented: &Dependencies) -> Vec<String> {
    let none = BTreeSet::new();
    let names: BTreeSet<&String> = declared.keys().chain(documented.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let (wanted, given) = (declared.get(name).unwrap_or(&none), documented.get(name).unwrap_or(&none));
        found.extend(wanted.difference(given).map(|one| format!("{name}: add a line for `{one}`")));
        found.extend(
            given
                .difference(wanted)
                .map(|one| format!("{name}: remove the line of `{one}`, which it does not use")),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependencies(all: &[(&str, &[&str])]) -> Dependencies {
        let owned = |(name, of): &(&str, &[&str])| {
            ((*name).to_owned(), of.iter().map(|one| (*one).to_owned()).collect())
        };
        all.iter().map(owned).collect()
    }

    #[test]
    fn tables_are_read_below_the_heading_of_their_crate() {
        let text = "# Dependencies\n| `lost` | no crate |\n### `a`\n| dependency |\n| --- |\n| `x` | `y` |\n## Tests\n### `b`\n";
        assert_eq!(documented(text), dependencies(&[("a", &["x"])]));
    }

    #[test]
    fn missing_and_superfluous_lines_are_reported() {
        let declared = dependencies(&[("a", &["x", "y"]), ("b", &["z"]), ("c", &[])]);
        assert_eq!(differences(&declared, &declared), Vec::<String>::new());
        let documented = dependencies(&[("a", &["x", "old"]), ("gone", &["w"])]);
        let expected = [
            "a: add a line for `y`",
            "a: remove the line of `old`, which it does not use",
            "b: add a line for `z`",
            "gone: remove the line of `w`, which it does not use",
        ];
        assert_eq!(differences(&declared, &documented), expected);
    }
}
