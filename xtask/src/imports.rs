//! Which modules of a crate import which: read from the text of its files.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens;

/// A path in the code, by its segments.
type Segments = Vec<String>;
/// The modules that each module imports, without its own parents, of which it is a part.
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// What the code of one file refers to.
#[derive(Default)]
struct Module {
    /// The items at its top level.
    defined: BTreeSet<String>,
    /// The names that it imports or exports, each with what it stands for.
    named: BTreeMap<String, Segments>,
    /// The modules of which it imports or exports all names.
    globs: Vec<Segments>,
    /// All paths in its code.
    paths: Vec<Segments>,
    /// Whether its macros belong to the root of the crate.
    exports_macros: bool,
}

struct Modules(BTreeMap<String, Module>);

/// `timeline/wait.rs` is `timeline::wait`, `timeline/mod.rs` is `timeline`, and the root of the crate has no name.
pub(crate) fn module_name(file: &str) -> String {
    let name = file.trim_end_matches(".rs").replace('/', "::");
    match name.strip_suffix("::mod") {
        Some(folder) => folder.to_owned(),
        None if matches!(&*name, "lib" | "main") => String::new(),
        None => name,
    }
}

/// What every module imports, given the text of each.
pub(crate) fn of_modules(texts: &BTreeMap<String, String>) -> Imports {
    let modules = Modules::read(texts);
    let imports_of = |(name, module): (&String, &Module)| {
        let found = module.paths.iter().map(|path| modules.module_of(path));
        let is_other = |other: &String| other != name && !name.starts_with(&format!("{other}::"));
        (name.clone(), found.filter(|other| !other.is_empty() && is_other(other)).collect())
    };
    modules.0.iter().map(imports_of).collect()
}

impl Modules {
    fn read(texts: &BTreeMap<String, String>) -> Self {
        let mut modules: BTreeMap<String, Module> = BTreeMap::new();
        for (name, text) in texts {
            modules.insert(name.clone(), Module::read(name, &tokens::of_product_code(text)));
        }
        let macros = modules.iter().filter(|(_, module)| module.exports_macros);
        let macros: Vec<(String, Segments)> = macros
            .flat_map(|(name, module)| module.defined.iter().map(|item| (item.clone(), segments(name, item))))
            .collect();
        modules.entry(String::new()).or_default().named.extend(macros);
        Self(modules)
    }

    /// The module that defines what a path names; if that is not found, the one in which the path ends.
    fn module_of(&self, path: &[String]) -> String {
        self.definition(path, 0).unwrap_or_else(|| self.split(path).0)
    }

    /// The longest beginning of a path that is a module, and the rest.
    fn split<'a>(&self, path: &'a [String]) -> (String, &'a [String]) {
        let is_module = |length: &usize| self.0.contains_key(&path[..*length].join("::"));
        let length = (0..=path.len()).rev().find(is_module).unwrap_or(0);
        (path[..length].join("::"), &path[length..])
    }

    /// As [`Modules::module_of`], through the names that modules import and export.
    fn definition(&self, path: &[String], followed: usize) -> Option<String> {
        let (name, rest) = self.split(path);
        let Some((first, inside)) = rest.split_first() else { return Some(name) };
        let module = &self.0[&name];
        if module.defined.contains(first) {
            return Some(name);
        }
        // Imports may be circular.
        if followed > 8 {
            return None;
        }
        if let Some(target) = module.named.get(first).map(|target| [target, inside].concat()) {
            // What a macro defines is not found, but it is there.
            return self.definition(&target, followed + 1).or_else(|| Some(self.split(&target).0));
        }
        let mut globbed = module.globs.iter().map(|glob| [glob, rest].concat());
        globbed.find_map(|target| self.definition(&target, followed + 1))
    }
}

impl Module {
    fn read(name: &str, tokens: &[&str]) -> Self {
        let mut module = Self::default();
        let file: Segments = name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        // The modules around a token that are written in this file, each with the depth of its braces.
        let (mut inner, mut depth): (Vec<(usize, &str)>, usize) = (Vec::new(), 0);
        for (at, token) in tokens.iter().enumerate() {
            let next = |ahead: usize| tokens.get(at + ahead).copied().unwrap_or_default();
            let base = || {
                [&file[..], &inner.iter().map(|(_, name)| (*name).to_owned()).collect::<Vec<_>>()].concat()
            };
            match *token {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    inner.retain(|(outer, _)| *outer < depth);
                }
                "use" => module.import(&base(), &tokens[at + 1..], depth == 0),
                "crate" | "super" | "self"
                    if next(1) == "::" && at.checked_sub(1).is_none_or(|before| tokens[before] != "::") =>
                {
                    module
                        .paths
                        .extend(expand(&tokens[at..]).into_iter().map(|(path, _)| absolute(&base(), path)));
                }
                "macro_export" => module.exports_macros = true,
                "macro_rules" => _ = module.defined.insert(next(2).to_owned()),
                "mod" if next(2) == "{" => inner.push((depth, next(1))),
                "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" | "fn" if depth == 0 => {
                    module.defined.insert(next(1).to_owned());
                }
                _ => {}
            }
        }
        module
    }

    /// Notes the names of a `use`; those at the top level are names of the module.
    fn import(&mut self, base: &[String], tree: &[&str], is_top: bool) {
        for (path, alias) in expand(tree) {
            let mut path = absolute(base, path);
            self.paths.push(path.clone());
            let Some(last) = path.last().filter(|_| is_top).cloned() else { continue };
            if last == "*" {
                path.pop();
                self.globs.push(path);
            } else {
                self.named.insert(alias.unwrap_or(last), path);
            }
        }
    }
}

fn segments(module: &str, item: &str) -> Segments {
    module.split("::").chain([item]).map(str::to_owned).collect()
}

/// The paths that begin `tokens`, one or all of a group in braces, each with the name that it is given by `as`.
fn expand(tokens: &[&str]) -> Vec<(Segments, Option<String>)> {
    let (mut prefix, mut rest) = (Segments::new(), tokens);
    loop {
        match rest {
            ["{", group @ ..] => {
                let inner = members(group).into_iter().flat_map(expand);
                return inner.map(|(path, alias)| ([&prefix[..], &path].concat(), alias)).collect();
            }
            [word, "::", next @ ..] => {
                prefix.push((*word).to_owned());
                rest = next;
            }
            [word, end @ ..] => {
                let is_name = *word == "*" || word.starts_with(|c: char| c.is_alphabetic() || c == '_');
                prefix.extend(is_name.then(|| (*word).to_owned()));
                let alias = end.strip_prefix(&["as"]).and_then(|end| end.first());
                return vec![(prefix, alias.map(|alias| (*alias).to_owned()))];
            }
            [] => return vec![(prefix, None)],
        }
    }
}

/// The members of a group, up to its closing brace.
fn members<'a, 'b>(group: &'a [&'b str]) -> Vec<&'a [&'b str]> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, token) in group.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" if depth == 0 => {
                found.push(&group[begin..at]);
                break;
            }
            "}" => depth -= 1,
            "," if depth == 0 => {
                found.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// A path from the root of the crate. `self` may also end it, in a group.
fn absolute(module: &[String], path: Segments) -> Segments {
    let mut base = module.to_owned();
    for segment in path {
        match &*segment {
            "crate" => base.clear(),
            "super" => _ = base.pop(),
            "self" => {}
            _ => base.push(segment),
        }
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the last module imports.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files.iter().map(|(module, text)| ((*module).to_owned(), (*text).to_owned())).collect();
        of_modules(&texts).remove(files[files.len() - 1].0).unwrap().into_iter().collect()
    }

    #[test]
    fn modules_are_named_after_their_files() {
        let names = ["lib.rs", "main.rs", "a.rs", "a/mod.rs", "a/b.rs"].map(module_name);
        assert_eq!(names, ["", "", "a", "a", "a::b"]);
    }

    #[test]
    fn groups_aliases_generics_and_macros_are_read() {
        let house = |text| {
            imports(&[("", ""), ("a", "struct A;"), ("b", "struct B;"), ("b::c", "fn c() {}"), ("x", text)])
        };
        for text in [
            "use crate::{a::{self, A as B}, b::{B, c::c}};",
            "fn f(x: Vec<crate::a::A>) -> Option<super::b::B> { crate::b::c::c::<u8>() }",
            "macro_rules! m { () => { $crate::a::A; $crate::b::B; $crate::b::c::c() } }",
            "mod inner { use super::super::{a, b::{self, c}}; }",
        ] {
            assert_eq!(house(text), ["a", "b", "b::c"], "{text}");
        }
        assert!(house("use a::A; // crate::a\n/// [`crate::a`]\nfn f() { \"crate::a\" }").is_empty());
        assert!(
            house("#[cfg(test)]\nuse crate::a;\nmod inner { use super::y; fn f() { self::y() } }").is_empty()
        );
    }

    #[test]
    fn names_are_followed_to_where_they_are_defined() {
        let house = |root, parent, text| {
            let files = [("", root), ("a", parent), ("a::b", "struct B;"), ("a::x", text), ("y", text)];
            (imports(&files[..4]), imports(&files))
        };
        let of_b = |(inside, outside): (Vec<String>, Vec<String>)| {
            assert_eq!((&*inside, &*outside), (&["a::b".to_owned()][..], &["a::b".to_owned()][..]));
        };
        of_b(house("pub use a::B;", "pub use b::B;", "use crate::B;"));
        of_b(house("pub use a::*;", "pub use b::{B as C};", "fn f(c: crate::C) {}"));
        of_b(house("use crate::a::b;", "pub(crate) use self::b::*;", "use crate::a::B;"));
        // Names that only the crate of the parent sees are names for its children.
        assert_eq!(house("", "use b::B;", "use super::B;").0, ["a::b"]);
        let exported =
            [("", ""), ("a", "#[macro_export]\nmacro_rules! m { () => {} }"), ("x", "crate::m!();")];
        assert_eq!(imports(&exported), ["a"]);
        let circular = [("", "pub use a::X;"), ("a", "pub use crate::X;"), ("x", "use crate::X;")];
        assert!(imports(&circular).len() <= 1, "the search ends");
    }
}
