//! `cargo xtask lint`: no two modules of `runtime-core` import each other, directly or through others.
//!
//! A module may import its own parents, since it is part of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{self, Imports};
use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

const SOURCE: &str = "runtime-core/src";

/// Modules that belong together: a module has kernels, which keep it loaded; a device can be asked for its kind.
const NATURAL: &[&[&str]] = &[
    &["code::kernel", "code::module"],
    &["device::accelerator", "device::common_runtime", "device::embedded", "device::host"],
];

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let imports = imports::of_crate(&workspace.root.join(SOURCE))?;
    let unexpected: Vec<_> = cycles(&imports)
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
        cycles(&imports::of_modules(&texts)).into_iter().collect()
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
