//! `cargo xtask lines`: lines of code of the product crates and xtask, without blank lines, comments and tests.

use std::collections::BTreeMap;
use std::fs;

use crate::process::Outcome;
use crate::workspace::Workspace;

/// Prints the lines of each crate, and their sum.
pub(crate) fn print() -> Outcome {
    let workspace = Workspace::read()?;
    let mut crates = BTreeMap::new();
    for name in workspace.tracked_files()?.iter().filter(|name| is_product(name)) {
        // A tracked file that does not exist was deleted without a commit yet.
        let text = fs::read_to_string(workspace.root.join(name)).unwrap_or_default();
        let package = name.split('/').next().unwrap_or_default().to_owned();
        *crates.entry(package).or_insert(0) += code_lines(&text);
    }
    for (package, lines) in &crates {
        println!("{lines:7} {package}");
    }
    println!("{:7} in all", crates.values().sum::<usize>());
    Ok(())
}

/// Whether a file belongs to a product crate or xtask, and is neither a test nor only used by tests.
pub(crate) fn is_product(name: &str) -> bool {
    let is_test = |part: &str| {
        let stem = part.trim_end_matches(".rs");
        matches!(stem, "tests" | "fixture" | "brute_force") || stem.ends_with("_tests")
    };
    name.ends_with(".rs") && !name.split('/').any(is_test) && !name.contains("/examples/")
}

/// Lines with code, outside modules for tests. The text is formatted by rustfmt, so such a module ends at a brace in its column.
fn code_lines(text: &str) -> usize {
    let (mut count, mut attribute, mut end) = (0, false, None);
    for line in text.lines() {
        if let Some(brace) = &end {
            if line == brace {
                end = None;
            }
        } else if line.trim() == "#[cfg(test)]" {
            attribute = true;
        } else if attribute {
            attribute = false;
            let indent = &line[..line.len() - line.trim_start().len()];
            end = line.ends_with('{').then(|| format!("{indent}}}"));
        } else if !line.trim().is_empty() && !line.trim_start().starts_with("//") {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_tests_are_not_counted() {
        let text = "//! Text.\n\nuse a;\n\n/// Text.\nfn f() {\n    // Text.\n    g(); // Text.\n}\n\n\
                    #[cfg(test)]\nuse b;\n\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n\nfn g() {}\n";
        assert_eq!(code_lines(text), 5);
    }

    #[test]
    fn tests_examples_and_fixtures_are_no_product() {
        assert!(is_product("runtime-core/src/lib.rs") && is_product("xtask/src/main.rs"));
        for name in ["tests/null/src/lib.rs", "runtime-core/tests/disks.rs", "runtime-core/examples/a.rs"] {
            assert!(!is_product(name), "{name}");
        }
        assert!(!is_product("runtime-core/src/cache/tests/mod.rs") && !is_product("runtime-core/README.md"));
        assert!(!is_product("runtime-host/src/module/format_tests.rs"));
    }
}
