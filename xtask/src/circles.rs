//! Circles among the modules of a crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::Imports;

type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The groups of modules in one folder, each with all that is below it, that import each other, directly or through others.
pub(crate) fn find(imports: &Imports) -> BTreeSet<Vec<&str>> {
    let mut folders: BTreeMap<&str, Graph<'_>> = BTreeMap::new();
    for (module, other) in
        imports.iter().flat_map(|(module, others)| others.iter().map(move |other| (module, other)))
    {
        let Some((folder, one, other)) = diverge(module, other) else { continue };
        folders.entry(folder).or_default().entry(one).or_default().insert(other);
    }
    folders.values().flat_map(in_folder).collect()
}

/// The folder in which two modules lie, and the two modules of this folder to which they belong; `None` if one is a part of the
/// other.
fn diverge<'a>(one: &'a str, other: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
    let ends = |path: &'a str| path.match_indices("::").map(|(at, _)| at).chain([path.len()]);
    let mut folder = "";
    for (a, b) in ends(one).zip(ends(other)) {
        if one[..a] != other[..b] {
            return Some((folder, &one[..a], &other[..b]));
        }
        folder = &one[..a];
    }
    None
}

fn in_folder<'a>(graph: &Graph<'a>) -> BTreeSet<Vec<&'a str>> {
    let reached: BTreeMap<_, _> = graph.keys().map(|module| (*module, reachable(module, graph))).collect();
    let circle = |module: &&'a str| -> Vec<&'a str> {
        let mutual = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(*module));
        reached[*module].iter().filter(mutual).copied().collect()
    };
    graph.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

/// The modules that `module` imports, directly or not; it is among them if it is part of a circle.
fn reachable<'a>(module: &str, graph: &Graph<'a>) -> BTreeSet<&'a str> {
    let of = |module: &str| graph.get(module).into_iter().flatten().copied();
    let (mut found, mut next) = (BTreeSet::new(), of(module).collect::<Vec<_>>());
    while let Some(other) = next.pop() {
        if found.insert(other) {
            next.extend(of(other));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files.iter().map(|(module, text)| ((*module).to_owned(), (*text).to_owned())).collect();
        find(&crate::imports::of_modules(&texts)).iter().map(|circle| circle.join(" ")).collect()
    }

    #[test]
    fn modules_that_import_each_other_are_found() {
        let direct = [
            ("", ""),
            ("a", "use crate::b::B;"),
            ("b", "fn f(x: crate::a::A) {}"),
            ("c", "use crate::a::A;"),
        ];
        assert_eq!(circles(&direct), ["a b"]);
        let indirect = [
            ("", "pub use house::Door;"),
            ("house", "mod door;\npub use door::Door;"),
            ("house::door", "use super::wall::{Wall, brick::Brick};"),
            ("house::wall", "use crate::{Error, Door};"),
        ];
        assert_eq!(circles(&indirect), ["house::door house::wall"]);
    }

    #[test]
    fn folders_import_each_other_through_different_files() {
        let files = [
            ("", ""),
            ("a", ""),
            ("a::x", "use crate::b::y;"),
            ("a::z", ""),
            ("b", ""),
            ("b::y", ""),
            ("b::w", "use crate::a::z;"),
        ];
        assert_eq!(circles(&files), ["a b"]);
    }

    #[test]
    fn a_module_may_import_its_parents_and_parts() {
        let files =
            [("", ""), ("a", "use b::B; fn f(c: self::b::C) {}"), ("a::b", "use super::A; use crate::a::C;")];
        assert!(circles(&files).is_empty());
        assert!(circles(&[("", ""), ("a", "use crate::b::B;"), ("b", "")]).is_empty());
    }
}
