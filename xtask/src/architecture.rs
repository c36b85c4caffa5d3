//! `cargo xtask lint`: the files and folders that `ARCHITECTURE.md` names exist.

use std::fs;
use std::process::Command;

use crate::process::{Failure, Outcome, output};
use crate::workspace::Workspace;

const DOCUMENT: &str = "ARCHITECTURE.md";

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let text = fs::read_to_string(workspace.root.join(DOCUMENT))?;
    let listed = output(Command::new("git").current_dir(&workspace.root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    // A listed file that does not exist was deleted without a commit yet.
    let files: Vec<_> = listed.split('\0').filter(|name| workspace.root.join(name).is_file()).collect();
    let missing = missing(&text, &files);
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("{DOCUMENT} names paths that do not exist: {}", missing.join(", "))))
    }
}

/// The `.rs` files and the folders (words that end in `/`) between backticks that are not the end of an existing path: the
/// document shortens paths.
fn missing<'a>(text: &'a str, files: &[&str]) -> Vec<&'a str> {
    let exists = |path: &str| {
        let (inside, is_folder) = (format!("/{path}"), path.ends_with('/'));
        files.iter().any(|file| {
            let file = format!("/{file}");
            if is_folder { file.contains(&inside) } else { file.ends_with(&inside) }
        })
    };
    text.lines().flat_map(code_words).filter(|word| is_path(word) && !exists(word)).collect()
}

/// The texts between backticks in a line.
fn code_words(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_path(word: &str) -> bool {
    (word.ends_with(".rs") || word.ends_with('/')) && !word.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::missing;

    const FILES: &[&str] = &["core/src/queue/mod.rs", "core/src/lib.rs"];

    #[test]
    fn a_path_that_does_not_exist_is_reported() {
        let text = "| `queue/submit.rs` |\nin `ueue/`, not `graph/` or `od.rs`";
        assert_eq!(missing(text, FILES), ["queue/submit.rs", "ueue/", "graph/", "od.rs"]);
    }

    #[test]
    fn shortened_paths_and_other_words_are_accepted() {
        let text = "`queue/mod.rs`, `lib.rs`, `core/src/`, `queue/` and `a / b.rs`; `Queue`, graph/";
        assert!(missing(text, FILES).is_empty());
    }
}
