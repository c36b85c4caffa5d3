//! `cargo xtask lint`: no two modules of `runtime-core` import each other, directly or through others.
//!
//! A module may import its own parents, since it is part of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::layers::{is_test, members, read, sources, without_comments_and_tests};
use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

const SOURCE: &str = "runtime-core/src";

/// Modules that belong together: a module has kernels, which keep it loaded; a device can be asked for its kind.
const NATURAL: &[&[&str]] = &[
    &["code::kernel", "code::module"],
    &["device::accelerator", "device::common_runtime", "device::embedded", "device::host"],
];

/// A path in the code, by its segments.
type Segments = Vec<String>;
/// The modules that each module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let root = workspace.root.join(SOURCE);
    let mut texts = BTreeMap::new();
    for file in sources(&root)?.into_iter().filter(|file| !is_test(file)) {
        texts.insert(module_name(&root, &file), without_comments_and_tests(&read(&file)?));
    }
    let unexpected: Vec<_> = cycles(&imports(&texts))
        .into_iter()
        .filter(|cycle| {
            !NATURAL.iter().any(|natural| cycle.iter().map(String::as_str).eq(natural.iter().copied()))
        })
        .map(|cycle| cycle.join(", "))
        .collect();
    if unexpected.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("modules of {SOURCE} that import each other:\n{}", unexpected.join("\n"))))
    }
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

fn imports(texts: &BTreeMap<String, String>) -> Imports {
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

/// The groups of modules that import each other, sorted.
fn cycles(imports: &Imports) -> BTreeSet<Vec<String>> {
    let reached: BTreeMap<_, _> = imports.keys().map(|module| (module, reachable(module, imports))).collect();
    let cycle = |module: &String| {
        let mutual = reached[module].iter().filter(|other| reached[*other].contains(module));
        let cycle: Vec<String> = mutual.map(|other| (*other).clone()).collect();
        (!cycle.is_empty()).then_some(cycle)
    };
    imports.keys().filter_map(cycle).collect()
}

/// The modules that `module` imports, directly or not; it is among them if it is part of a cycle.
fn reachable<'a>(module: &str, imports: &'a Imports) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = imports[module].iter().collect();
    while let Some(other) = next.pop() {
        if found.insert(other) {
            next.extend(&imports[other]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let texts = files.iter().map(|(module, text)| ((*module).to_owned(), (*text).to_owned())).collect();
        cycles(&imports(&texts)).into_iter().collect()
    }

    #[test]
    fn modules_that_import_each_other_are_found() {
        let direct = [
            ("", ""),
            ("a", "use crate::b::B;"),
            ("b", "fn f(x: crate::a::A) {}"),
            ("c", "use crate::a::A;"),
        ];
        assert_eq!(cycles_of(&direct), [["a", "b"]]);
        let indirect = [
            ("", "pub use house::Door;"),
            ("house", "mod door;\npub use door::Door;"),
            ("house::door", "use super::wall::{Wall, brick::Brick};"),
            ("house::wall", "use crate::{Error, Door};"),
        ];
        assert_eq!(cycles_of(&indirect), [["house::door", "house::wall"]]);
    }

    #[test]
    fn a_module_may_import_its_parents() {
        let files = [("", ""), ("a", "use crate::a::b::B;"), ("a::b", "use super::A; use crate::a::C;")];
        assert_eq!(cycles_of(&files), Vec::<Vec<String>>::new());
        assert!(cycles_of(&[("", ""), ("a", "$crate::b::B"), ("b", "use crate::a::A;")]).is_empty());
    }
}
