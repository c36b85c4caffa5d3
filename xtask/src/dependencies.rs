//! `cargo xtask lint`: `docs/dependencies.md` has a line for every direct dependency, and none for others.

use std::collections::BTreeSet;
use std::fs;

use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

const DOCUMENT: &str = "docs/dependencies.md";
/// Workspaces of their own, which `cargo metadata` does not list.
const OTHER_WORKSPACES: &[&str] = &["tests/fuzz/Cargo.toml"];

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

/// The names in the first cells of the rows of tables.
fn documented(text: &str) -> BTreeSet<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| name.to_owned()).collect()
}

/// What the document lacks, and what it has too much.
fn differences(declared: &BTreeSet<String>, documented: &BTreeSet<String>) -> Vec<String> {
    let missing = declared.difference(documented).map(|name| format!("add a line for `{name}`"));
    let left =
        documented.difference(declared).map(|name| format!("remove the line of `{name}`: nothing uses it"));
    missing.chain(left).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_superfluous_lines_are_reported() {
        let documented = documented("# Dependencies\n| dependency |\n| --- |\n| `x` | `y` |\n| `old` | |\n");
        let declared = ["x", "z"].map(str::to_owned).into();
        let expected = ["add a line for `z`", "remove the line of `old`: nothing uses it"];
        assert_eq!(differences(&declared, &documented), expected);
        assert!(differences(&declared, &declared).is_empty());
    }
}
