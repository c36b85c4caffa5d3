//! Identifiers: the program's own names, changed where they could mean something else.
//!
//! Macros ignore scopes, and no list of the macros of all compilers, versions and headers is complete. So a name of
//! the program is kept only if it consists of lower-case letters and `_`, is at function scope, and is not a word of
//! any of the languages ([`reserved`]). All other names, and all at file scope, end in `_w`, which nothing in
//! compilers, their libraries or the generated text does. Names that the printer invents have other endings.

use std::fmt::Write as _;

use naga::{ArraySize, Constant, FastHashMap, FastHashSet, Function, Handle, Module, Type, TypeInner};

use super::reserved;
use super::type_names::vector_name;
use crate::ir::Global;
use crate::ir::declare::scalar_name;

/// The suffix that makes a name safe.
const MARK: &str = "_w";

/// Names at file scope.
#[derive(Debug, Default)]
pub(crate) struct Names {
    declared: Declared,
    types: Vec<String>,
    members: Vec<Vec<String>>,
    globals: Vec<Variable>,
    constants: Vec<String>,
    functions: Vec<String>,
    entries: Vec<String>,
}

/// The names for one module variable.
#[derive(Debug)]
struct Variable {
    name: String,
    size: String,
    length: String,
}

impl Names {
    /// Names all declarations of `module`.
    pub(super) fn new(module: &Module) -> Self {
        let mut names = Self::default();
        // Entry points come first, since users look their names up.
        names.entries = module.entry_points.iter().map(|entry| names.of_file(&entry.name)).collect();
        for (_, ty) in module.types.iter() {
            let (name, members) = names.of_type(module, ty);
            names.types.push(name);
            names.members.push(members);
        }
        for (_, variable) in module.global_variables.iter() {
            let wanted = variable.name.as_deref().unwrap_or("global");
            let mut declare = |wanted: &str| names.declared.next(local_identifier(wanted), &|_| false);
            let name = declare(wanted);
            let (size, length) =
                (declare(&[wanted, "_size"].concat()), declare(&[wanted, "_length"].concat()));
            names.globals.push(Variable { name, size, length });
        }
        let constants = module.constants.iter();
        names.constants = constants
            .map(|(_, constant)| names.of_file(constant.name.as_deref().unwrap_or("constant")))
            .collect();
        let functions = module.functions.iter();
        names.functions = functions
            .map(|(_, function)| names.of_file(function.name.as_deref().unwrap_or("function")))
            .collect();
        names
    }

    fn of_type(&mut self, module: &Module, ty: &Type) -> (String, Vec<String>) {
        match &ty.inner {
            TypeInner::Struct { members, .. } => {
                let name = self.of_file(ty.name.as_deref().unwrap_or("structure"));
                let mut declared = Declared::default();
                let members = members.iter().map(|member| {
                    let name = local_identifier(member.name.as_deref().unwrap_or("member"));
                    declared.next(name, &|_| false)
                });
                (name, members.collect())
            }
            TypeInner::Array { base, size, .. } => {
                let element = match module.types[*base].inner {
                    TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => scalar_name(scalar).to_owned(),
                    TypeInner::Vector { size, scalar } => vector_name(size, scalar),
                    _ => self.types.get(base.index()).cloned().unwrap_or_default(),
                };
                let element = element.trim_start_matches("array_").trim_end_matches(MARK);
                let mut name = format!("array_{element}");
                if let Ok(naga::proc::IndexableLength::Known(length)) = size.resolve(module.to_ctx()) {
                    let _ = write!(name, "_{length}");
                }
                (
                    if matches!(size, ArraySize::Dynamic) {
                        String::new()
                    } else {
                        self.declared.next(name, &|_| false)
                    },
                    Vec::new(),
                )
            }
            _ => (String::new(), Vec::new()),
        }
    }

    /// A new name at file scope.
    fn of_file(&mut self, wanted: &str) -> String {
        self.declared.next(marked(identifier(wanted)), &|_| false)
    }

    /// The name of a structure or array type.
    pub(crate) fn of(&self, ty: Handle<Type>) -> &str {
        &self.types[ty.index()]
    }

    /// The name of a structure's member.
    pub(crate) fn member(&self, structure: Handle<Type>, index: u32) -> &str {
        &self.members[structure.index()][index as usize]
    }

    /// The name of a module's variable.
    pub(crate) fn global(&self, variable: Global) -> &str {
        &self.globals[variable.index()].name
    }

    /// The name of the argument with a storage buffer's size in bytes.
    pub(crate) fn size(&self, variable: Global) -> &str {
        &self.globals[variable.index()].size
    }

    /// The name of the length of a storage buffer's runtime-sized array.
    pub(crate) fn length(&self, variable: Global) -> &str {
        &self.globals[variable.index()].length
    }

    /// The name of a module's constant.
    pub(crate) fn constant(&self, constant: Handle<Constant>) -> &str {
        &self.constants[constant.index()]
    }

    /// The name of a function.
    pub(crate) fn function(&self, function: Handle<Function>) -> &str {
        &self.functions[function.index()]
    }

    /// The symbol of an entry point.
    pub(crate) fn entry(&self, index: usize) -> &str {
        &self.entries[index]
    }
}

/// Names in one function's scope.
#[derive(Debug, Default)]
pub(crate) struct LocalNames {
    declared: Declared,
}

impl LocalNames {
    /// A new name in this scope for what the program calls `wanted`.
    pub(crate) fn named(&mut self, file: &Names, wanted: &str) -> String {
        self.declared.next(local_identifier(wanted), &|name| file.declared.taken.contains(name))
    }

    /// A new name in this scope for something unnamed in the program: `wanted` if it is free here and at file
    /// scope.
    pub(crate) fn fresh(&mut self, file: &Names, wanted: &str) -> String {
        self.declared.next(wanted.to_owned(), &|name| file.declared.taken.contains(name))
    }
}

/// The names in a scope.
#[derive(Debug, Default)]
struct Declared {
    taken: FastHashSet<String>,
    /// By name: the number of its next duplicate.
    numbers: FastHashMap<String, u32>,
}

impl Declared {
    /// Declares the first of `wanted`, `wanted_1`, `wanted_2`, … that is neither declared nor in `outer`; a suffix
    /// stays at the end.
    fn next(&mut self, wanted: String, outer: &dyn Fn(&str) -> bool) -> String {
        if !outer(&wanted) && !self.taken.contains(&wanted) {
            self.taken.insert(wanted.clone());
            return wanted;
        }
        let (base, mark) = wanted.strip_suffix(MARK).map_or((&wanted[..], ""), |base| (base, MARK));
        let number = self.numbers.entry(wanted.clone()).or_default();
        loop {
            *number += 1;
            let name = format!("{base}_{number}{mark}");
            if !outer(&name) && self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// A name at function scope, or of a structure member.
fn local_identifier(wanted: &str) -> String {
    let name = identifier(wanted);
    let small = name.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'_');
    if small && !reserved::is_word(&name) { name } else { marked(name) }
}

/// A name that does not occur in any compiler, header or library.
fn marked(mut name: String) -> String {
    name.push_str(MARK);
    name
}

/// The name reduced to ASCII letters, digits and `_`, without leading, trailing or double underscores.
fn identifier(wanted: &str) -> String {
    let mut name = String::with_capacity(wanted.len() + MARK.len());
    for letter in wanted.chars() {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' => name.push(letter),
            '_' | ':' | '<' | '>' | ',' => {
                if !name.is_empty() && !name.ends_with('_') {
                    name.push('_');
                }
            }
            _ => {
                let _ = write!(name, "u{:x}_", u32::from(letter));
            }
        }
    }
    name.truncate(name.trim_end_matches('_').len());
    match name.bytes().next() {
        Some(first) if !first.is_ascii_digit() => name,
        _ => format!("w{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_unless_they_could_mean_something_else() {
        let (file, mut names) = (Names::default(), LocalNames::default());
        for (wanted, given) in [
            ("length", "length"),
            ("row_sum", "row_sum"),
            ("length", "length_1"),
            ("x1", "x1_w"),
            ("x1", "x1_1_w"),
            ("x1_1", "x1_1_1_w"),
            ("LANES", "LANES_w"),
            ("FLT_MAX", "FLT_MAX_w"),
            ("kernel", "kernel_w"),
            ("__modf_result", "modf_result"),
            ("größe", "gruf6_udf_e_w"),
            ("__FILE__", "FILE_w"),
            ("a__b", "a_b"),
            ("bool_select", "bool_select_w"),
            ("_", "w"),
        ] {
            assert_eq!(names.named(&file, wanted), given, "{wanted}");
        }
    }

    #[test]
    fn names_at_file_scope_do_not_clash_with_libraries() {
        let mut names = Names::default();
        for (wanted, given) in [
            ("main", "main_w"),
            ("saxpy", "saxpy_w"),
            ("dot", "dot_w"),
            ("dot", "dot_1_w"),
            ("f32_min", "f32_min_w"),
        ] {
            assert_eq!(names.of_file(wanted), given);
        }
        let mut local = LocalNames::default();
        assert_eq!(local.named(&names, "saxpy"), "saxpy");
        assert_eq!(local.named(&names, "f32_min"), "f32_min_1_w", "that of file scope stays visible");
    }

    #[test]
    fn many_duplicates_of_a_name_take_linear_time() {
        let (file, mut names) = (Names::default(), LocalNames::default());
        for number in 0..200_000 {
            let name = names.named(&file, "FLT_MAX");
            assert!(number == 0 || name == format!("FLT_MAX_{number}_w"), "{name}");
        }
    }
}
