//! Files that `#pragma once` hides: GCC skips a file of the same content, size and time as one that it has read, and does not list
//! it among the files that it reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::joints::without_joints;

/// Whether a file that a text or one of `files` includes may have been skipped, because it has the content of another.
pub(super) fn may_be_hidden(text: &[u8], files: &[PathBuf], folders: &BTreeSet<PathBuf>) -> bool {
    let contents: Option<Vec<_>> = files.iter().map(|file| std::fs::read(file).ok()).collect();
    let Some(contents) = contents else { return true };
    let hashes: BTreeSet<_> = contents.iter().map(|content| *blake3::hash(content).as_bytes()).collect();
    let texts: Vec<_> = contents.iter().map(Vec::as_slice).chain([text]).map(without_joints).collect();
    if !texts.iter().any(|text| text.lines().any(reads_once)) {
        return false;
    }
    let names: Option<Vec<_>> = texts.iter().map(|text| included_names(text)).collect();
    let Some(names) = names else { return true };
    let names: BTreeSet<_> = names.into_iter().flatten().collect();
    let places = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    let is_twin = |place: &Path| {
        std::fs::read(place).is_ok_and(|content| hashes.contains(blake3::hash(&content).as_bytes()))
    };
    hashes.len() < contents.len()
        || places.filter(|place| !files.contains(place)).any(|place| place.is_file() && is_twin(&place))
}

/// Whether a line may keep a file from being read again.
fn reads_once(line: &str) -> bool {
    let is_directive = || line.contains('#') || line.contains("%:");
    (line.contains("ragma") && line.contains("once")) || (line.contains("import") && is_directive())
}

/// The names of the files that a text may include; `None` if one is computed.
fn included_names(text: &str) -> Option<Vec<PathBuf>> {
    let mut names = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("include") {
            let operand = after.strip_prefix("_next").unwrap_or(after).trim_start();
            let close = if operand.starts_with('"') { '"' } else { '>' };
            match operand.strip_prefix(['"', '<']).and_then(|name| name.split_once(close)) {
                Some((name, _)) => names.push(PathBuf::from(name)),
                None if before.contains('#') || before.contains("%:") => return None,
                None => {}
            }
            rest = after;
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_directives_unless_they_are_computed() {
        let names = included_names(
            "#include <a.h>\n  # include \"b/c.h\" // include all\n%:include<d.h>\n#include_next <e.h>\n",
        );
        assert_eq!(names.unwrap(), ["a.h", "b/c.h", "d.h", "e.h"].map(PathBuf::from));
        assert_eq!(included_names("#include NAME\n"), None);
    }

    #[test]
    fn a_file_of_the_same_content_may_be_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a.h"), folder.path().join("b.h"));
        std::fs::write(&a, "#pragma once\n").unwrap();
        std::fs::write(&b, "#pragma once\n").unwrap();
        let folders = BTreeSet::from([folder.path().to_owned()]);
        let text = b"#include \"a.h\"\n#include \"b.h\"\n";
        assert!(may_be_hidden(text, std::slice::from_ref(&a), &folders));
        assert!(may_be_hidden(text, &[a.clone(), b.clone()], &folders));
        assert!(!may_be_hidden(b"#include \"a.h\"\n", std::slice::from_ref(&a), &folders));
        std::fs::write(&b, "#pragma once\n\n").unwrap();
        assert!(!may_be_hidden(text, std::slice::from_ref(&a), &folders));
        std::fs::write(&a, "\n").unwrap();
        std::fs::write(&b, "\n").unwrap();
        assert!(!may_be_hidden(text, std::slice::from_ref(&a), &folders), "nothing is read only once");
    }
}
