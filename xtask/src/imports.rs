//! Which modules of a crate import which: read from the text of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::Failure;

/// A path in the code, by its segments.
type Segments = Vec<String>;
/// The modules that each module imports.
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// What every module of the crate imports, without its unit tests; `root` is its `src`.
pub(crate) fn of_crate(root: &Path) -> Result<Imports, Failure> {
    let mut texts = BTreeMap::new();
    for file in sources(root)?.into_iter().filter(|file| !is_test(file)) {
        texts.insert(module_name(root, &file), without_comments_and_tests(&read(&file)?));
    }
    Ok(of_modules(&texts))
}

/// `timeline/wait.rs` is `timeline::wait`, `timeline/mod.rs` is `timeline`, and `lib.rs` has no name.
fn module_name(root: &Path, file: &Path) -> String {
    let name =
        file.strip_prefix(root).unwrap_or(file).with_extension("").to_string_lossy().replace('/', "::");
    match name.strip_suffix("::mod") {
        Some(folder) => folder.to_owned(),
        None if name == "lib" => String::new(),
        None => name,
    }
}

/// What every module imports, given the text of each.
pub(crate) fn of_modules(texts: &BTreeMap<String, String>) -> Imports {
    let exported: BTreeMap<_, _> =
        texts.iter().map(|(module, text)| (module.clone(), exports(module, text))).collect();
    let imports_of = |(module, text): (&String, &String)| {
        let found = paths(module, text).into_iter().filter_map(|path| module_of(path, &exported));
        let is_other = |other: &String| other != module && !module.starts_with(&format!("{other}::"));
        (module.clone(), found.filter(|other| !other.is_empty() && is_other(other)).collect())
    };
    texts.iter().map(imports_of).collect()
}

/// What a module re-exports: the path of each name.
fn exports(module: &str, text: &str) -> BTreeMap<String, Segments> {
    let statements = text.split(';').filter_map(|statement| {
        let (visibility, path) = statement.rsplit_once("use ")?;
        visibility.trim_end().lines().last()?.trim_start().starts_with("pub").then_some(path)
    });
    let mut exported = BTreeMap::new();
    for path in statements.flat_map(expand).map(|path| absolute(module, path)) {
        if let Some(name) = path.last() {
            exported.insert(name.clone(), path);
        }
    }
    exported
}

/// All paths in `text` that begin with `crate::` or `super::`, from the root of the crate.
fn paths(module: &str, text: &str) -> Vec<Segments> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let is_whole =
                !text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | ':'));
            if is_whole {
                found.extend(expand(&text[at..]).into_iter().map(|path| absolute(module, path)));
            }
        }
    }
    found
}

/// The paths that begin `text`: one, or all of a group in braces.
fn expand(text: &str) -> Vec<Segments> {
    let mut prefix = Segments::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            let members = members(group).into_iter().flat_map(expand);
            return members.map(|path| [prefix.clone(), path].concat()).collect();
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end > 0 {
            prefix.push(rest[..end].to_owned());
        }
        match rest[end..].strip_prefix("::") {
            Some(next) => rest = next,
            None => return vec![prefix],
        }
    }
}

/// A path from the root of the crate.
fn absolute(module: &str, path: Segments) -> Segments {
    let mut base: Segments = module.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let mut rest = path.into_iter().peekable();
    if rest.next_if(|first| first == "crate").is_some() {
        base.clear();
    }
    while rest.next_if(|first| first == "super").is_some() {
        base.pop();
    }
    base.extend(rest.skip_while(|first| first == "self"));
    base
}

/// The module that defines what a path names; re-exports are followed.
fn module_of(mut path: Segments, exported: &BTreeMap<String, BTreeMap<String, Segments>>) -> Option<String> {
    // Re-exports of re-exports are few.
    for _ in 0..8 {
        let length =
            (0..=path.len()).rev().find(|&length| exported.contains_key(&path[..length].join("::")))?;
        let module = path[..length].join("::");
        match path.get(length).and_then(|name| exported[&module].get(name)) {
            Some(target) if *target != path => path = target.clone(),
            _ => return Some(module),
        }
    }
    None
}

/// The members of a group, up to its closing brace.
fn members(group: &str) -> Vec<&str> {
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

fn without_comments_and_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether a file holds the unit tests of the module that it lies beside.
fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "tests" || stem.to_string_lossy().ends_with("_tests"))
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
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

    #[test]
    fn comments_and_unit_tests_import_nothing() {
        let commented = "use crate::kitchen; // crate::roof\n/// [`crate::roof`]\nfn f() {}";
        assert!(!without_comments_and_tests(commented).contains("roof"));
        let tested = "fn f() {}\n#[cfg(test)]\nmod tests { use crate::roof; }";
        assert!(!without_comments_and_tests(tested).contains("roof"));
        assert!(is_test(Path::new("a/tests.rs")) && is_test(Path::new("a/b_tests.rs")));
        assert!(!is_test(Path::new("a/b.rs")));
    }
}
