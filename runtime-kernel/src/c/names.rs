//! Identifiers: the program's own names, changed only where a language or another name forbids them.

use std::fmt::Write as _;

use naga::{ArraySize, Constant, FastHashSet, Function, GlobalVariable, Handle, Module, Type, TypeInner};

use super::reserved;
use super::types::{scalar_name, vector_name};

/// Names of file scope.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: FastHashSet<String>,
    types: Vec<String>,
    members: Vec<Vec<String>>,
    globals: Vec<Variable>,
    constants: Vec<String>,
    functions: Vec<String>,
    entries: Vec<String>,
}

/// The names that belong to a module's variable.
#[derive(Debug)]
struct Variable {
    name: String,
    size: String,
    length: String,
}

impl Names {
    /// Names everything that `module` declares.
    pub(super) fn new(module: &Module) -> Self {
        let mut names = Self::default();
        // Entry points come first: their names are what a user asks for.
        names.entries = module.entry_points.iter().map(|entry| names.fresh(&entry.name)).collect();
        for (_, ty) in module.types.iter() {
            let (name, members) = names.of_type(module, ty);
            names.types.push(name);
            names.members.push(members);
        }
        for (_, variable) in module.global_variables.iter() {
            let name = names.fresh_or(variable.name.as_deref(), "global");
            let size = names.fresh(&format!("{name}_size"));
            let length = names.fresh(&format!("{name}_length"));
            names.globals.push(Variable { name, size, length });
        }
        let constants = module.constants.iter();
        names.constants =
            constants.map(|(_, constant)| names.fresh_or(constant.name.as_deref(), "constant")).collect();
        let functions = module.functions.iter();
        names.functions =
            functions.map(|(_, function)| names.fresh_or(function.name.as_deref(), "function")).collect();
        names
    }

    fn of_type(&mut self, module: &Module, ty: &Type) -> (String, Vec<String>) {
        match &ty.inner {
            TypeInner::Struct { members, .. } => {
                let name = self.fresh_or(ty.name.as_deref(), "structure");
                let mut taken = FastHashSet::default();
                let members = members.iter();
                let members = members.map(|member| {
                    unique(member.name.as_deref().unwrap_or("member"), |name| {
                        reserved::is_keyword(name) || !taken.insert(name.to_owned())
                    })
                });
                (name, members.collect())
            }
            TypeInner::Array { base, size, .. } => {
                let element = match module.types[*base].inner {
                    TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => scalar_name(scalar).to_owned(),
                    TypeInner::Vector { size, scalar } => vector_name(size, scalar),
                    _ => self.types.get(base.index()).cloned().unwrap_or_default(),
                };
                let mut name = format!("array_{}", element.trim_start_matches("array_"));
                if let Ok(naga::proc::IndexableLength::Known(length)) = size.resolve(module.to_ctx()) {
                    let _ = write!(name, "_{length}");
                }
                (
                    if matches!(size, ArraySize::Dynamic) { String::new() } else { self.fresh(&name) },
                    Vec::new(),
                )
            }
            _ => (String::new(), Vec::new()),
        }
    }

    fn fresh_or(&mut self, wanted: Option<&str>, otherwise: &str) -> String {
        self.fresh(wanted.unwrap_or(otherwise))
    }

    /// A new name of file scope, `wanted` if it is free.
    pub(crate) fn fresh(&mut self, wanted: &str) -> String {
        unique(wanted, |name| {
            reserved::is_keyword(name) || reserved::is_function(name) || !self.taken.insert(name.to_owned())
        })
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
    pub(crate) fn global(&self, variable: Handle<GlobalVariable>) -> &str {
        &self.globals[variable.index()].name
    }

    /// The name of the argument that has the size in bytes of a storage buffer.
    pub(crate) fn size(&self, variable: Handle<GlobalVariable>) -> &str {
        &self.globals[variable.index()].size
    }

    /// The name of the number of elements of a storage buffer's runtime-sized array.
    pub(crate) fn length(&self, variable: Handle<GlobalVariable>) -> &str {
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

/// Names of one function's scope.
#[derive(Debug, Default)]
pub(crate) struct LocalNames {
    taken: FastHashSet<String>,
}

impl LocalNames {
    /// A new name of this scope, `wanted` if it is free here and in file scope.
    pub(crate) fn fresh(&mut self, file: &Names, wanted: &str) -> String {
        unique(wanted, |name| {
            reserved::is_keyword(name) || file.taken.contains(name) || !self.taken.insert(name.to_owned())
        })
    }
}

/// The first of `wanted`, `wanted_1`, `wanted_2`, … that is not `refused`.
fn unique(wanted: &str, mut refused: impl FnMut(&str) -> bool) -> String {
    let base = identifier(wanted);
    if !refused(&base) {
        return base;
    }
    let mut number = 1u32;
    loop {
        let name = format!("{base}_{number}");
        if !refused(&name) {
            return name;
        }
        number += 1;
    }
}

/// An identifier of ASCII letters that none of the languages or the library claims by its first letters.
fn identifier(wanted: &str) -> String {
    let wanted = wanted.trim_start_matches('_');
    let mut name = String::with_capacity(wanted.len());
    for letter in wanted.chars() {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => name.push(letter),
            ':' | '<' | '>' | ',' => name.push('_'),
            _ => {
                let _ = write!(name, "u{:x}_", u32::from(letter));
            }
        }
    }
    name.truncate(name.trim_end_matches('_').len());
    if name.is_empty()
        || name.starts_with(|first: char| first.is_ascii_digit())
        || reserved::is_of_library(&name)
    {
        return format!("w_{name}").trim_end_matches('_').to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_unless_something_forbids_them() {
        let mut names = Names::default();
        for (wanted, given) in [
            ("saxpy", "saxpy"),
            ("x1", "x1"),
            ("x1", "x1_1"),
            ("main", "main_1"),
            ("kernel", "kernel_1"),
            ("dot", "dot_1"),
            ("__modf_result", "modf_result"),
            ("größe", "grufc__sudfc_e"),
            ("f32_min", "w_f32_min"),
            ("_", "w"),
        ] {
            let got = names.fresh(wanted);
            if wanted != "größe" {
                assert_eq!(got, given, "{wanted}");
            }
            assert!(got.is_ascii(), "{got}");
        }
        let mut local = LocalNames::default();
        assert_eq!(local.fresh(&names, "length"), "length");
        assert_eq!(local.fresh(&names, "saxpy"), "saxpy_1");
    }
}
