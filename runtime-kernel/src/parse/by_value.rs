//! Passes uniform buffers by value: their numbers become scalar arguments, in the order of their bytes.

use std::collections::BTreeMap;

use naga::valid::ModuleInfo;
use naga::{AddressSpace, ArraySize, Expression, Handle, Module, Scalar, Type, TypeInner};
use runtime_core::backend::did_you_mean;
use runtime_core::{Error, Result};

use super::diagnostics::place;
use super::validate_again;
use crate::ir::rebuild::{Change, Rebuild};
use crate::ir::{Global, Value, blocks, declare};

/// More numbers are not a plain structure, and push constants hold no more everywhere.
const MAX_SCALARS: usize = 64;

/// The module with the named uniform buffers passed by value.
///
/// # Errors
/// `InvalidArgument` for a name that no uniform buffer has, a buffer of too many numbers, or a kernel that has scalars
/// already.
pub(crate) fn pass(
    module: Module,
    info: ModuleInfo,
    names: &[String],
    (code, path): (&str, &str),
) -> Result<(Module, ModuleInfo)> {
    if names.is_empty() {
        return Ok((module, info));
    }
    let mut immediate = Immediate::default();
    for name in names {
        let buffer = uniform(&module, name)?;
        immediate.add(&module, buffer).map_err(|why| {
            let place = place(code, path, module.global_variables.get_span(buffer));
            Error::invalid(format!("{place}: by_value = \"{name}\": {why}; pass it as a tensor"))
        })?;
    }
    let module = immediate.replace_buffers(module)?;
    let info = validate_again(&module)?;
    Ok((module, info))
}

fn uniform(module: &Module, name: &str) -> Result<Global> {
    let all = || module.global_variables.iter().filter(|(_, v)| v.space == AddressSpace::Uniform);
    let found = all().find(|(_, variable)| variable.name.as_deref() == Some(name));
    found.map(|(handle, _)| handle).ok_or_else(|| {
        let names: Vec<_> = all().filter_map(|(_, variable)| variable.name.as_deref()).collect();
        let hint = did_you_mean(name, &names);
        Error::invalid(format!(
            "by_value = \"{name}\": the kernel has no uniform buffer of this name; {hint}"
        ))
    })
}

/// The numbers of the buffers, as the members of one `var<immediate>`.
#[derive(Default)]
struct Immediate {
    members: Vec<(String, Scalar)>,
    /// The first member of each buffer.
    first_elements: BTreeMap<Global, usize>,
}

impl Immediate {
    fn add(&mut self, module: &Module, buffer: Global) -> std::result::Result<(), String> {
        if module.global_variables.iter().any(|(_, variable)| variable.space == AddressSpace::Immediate) {
            return Err("the kernel has a var<immediate>".to_owned());
        }
        if self.first_elements.contains_key(&buffer) {
            return Ok(());
        }
        let variable = &module.global_variables[buffer];
        let first = self.members.len();
        let count = scalars(module, variable.ty).unwrap_or(usize::MAX);
        if count > MAX_SCALARS - first.min(MAX_SCALARS) {
            return Err(format!("it has more than {MAX_SCALARS} numbers"));
        }
        self.flatten(module, variable.ty, variable.name.as_deref().unwrap_or_default());
        self.first_elements.insert(buffer, first);
        Ok(())
    }

    fn flatten(&mut self, module: &Module, ty: Handle<Type>, name: &str) {
        match &module.types[ty].inner {
            TypeInner::Scalar(scalar) => self.members.push((name.to_owned(), *scalar)),
            TypeInner::Struct { members, .. } => {
                for member in members {
                    let member_name = member.name.as_deref().unwrap_or_default();
                    self.flatten(module, member.ty, &format!("{name}_{member_name}"));
                }
            }
            inner => {
                let scalar = inner.scalar();
                for index in 0..parts(inner) {
                    let name = format!("{name}_{index}");
                    match (inner, scalar) {
                        (TypeInner::Array { base, .. }, _) => self.flatten(module, *base, &name),
                        (TypeInner::Matrix { rows, .. }, Some(scalar)) => {
                            let rows = 0..*rows as usize;
                            self.members.extend(rows.map(|row| (format!("{name}_{row}"), scalar)));
                        }
                        (_, Some(scalar)) => self.members.push((name, scalar)),
                        _ => {}
                    }
                }
            }
        }
    }

    fn replace_buffers(self, mut module: Module) -> Result<Module> {
        let variable = declare::immediate(&mut module, ["by_value", "ByValue"], self.members.into_iter());
        declare_columns(&mut module);
        let source = module.clone();
        let change = Reads { module: &source, variable, first_elements: &self.first_elements };
        for function in blocks::functions_mut(&mut module) {
            *function = Rebuild::function(function, &change)?;
        }
        Ok(module)
    }
}

/// Declares the types of the columns of matrices.
fn declare_columns(module: &mut Module) {
    let columns: Vec<_> = module
        .types
        .iter()
        .filter_map(|(_, ty)| match ty.inner {
            TypeInner::Matrix { rows, scalar, .. } => Some(TypeInner::Vector { size: rows, scalar }),
            _ => None,
        })
        .collect();
    for inner in columns {
        declare::ty(&mut module.types, inner);
    }
}

/// The elements of an array or vector, or the columns of a matrix.
fn parts(inner: &TypeInner) -> usize {
    match inner {
        TypeInner::Vector { size, .. } => *size as usize,
        TypeInner::Matrix { columns, .. } => *columns as usize,
        TypeInner::Array { size: ArraySize::Constant(length), .. } => length.get() as usize,
        _ => 0,
    }
}

/// The numbers in a type; `None` if there are more than a `usize` counts, or an unknown number.
fn scalars(module: &Module, ty: Handle<Type>) -> Option<usize> {
    match &module.types[ty].inner {
        TypeInner::Scalar(_) => Some(1),
        TypeInner::Struct { members, .. } => members.iter().map(|member| scalars(module, member.ty)).sum(),
        inner @ TypeInner::Array { base, size: ArraySize::Constant(_), .. } => {
            scalars(module, *base)?.checked_mul(parts(inner))
        }
        inner @ TypeInner::Vector { .. } => Some(parts(inner)),
        inner @ TypeInner::Matrix { rows, .. } => Some(parts(inner) * *rows as usize),
        _ => None,
    }
}

/// Replaces what reads the buffers by what reads the scalars.
struct Reads<'a> {
    module: &'a Module,
    variable: Global,
    first_elements: &'a BTreeMap<Global, usize>,
}

/// A part of a buffer: its type, and its first number among the scalars.
#[derive(Clone, Copy)]
struct Part {
    ty: Handle<Type>,
    first: usize,
}

/// A step from a value to a part of it.
#[derive(Clone, Copy)]
enum Step {
    Constant(u32),
    Computed(Value),
}

/// Where a pointer leads.
struct Path {
    /// The expression of the buffer.
    root: Value,
    /// The part up to the first computed step, and the steps from there.
    part: Part,
    rest: Vec<Step>,
}

impl Change for Reads<'_> {
    fn replacement(&self, new: &mut Rebuild<'_>, old: Value) -> Option<Value> {
        match new.source.expressions[old] {
            Expression::GlobalVariable(buffer) if self.first_elements.contains_key(&buffer) => {
                Some(new.append(Expression::GlobalVariable(self.variable)))
            }
            Expression::AccessIndex { .. } | Expression::Access { .. } => {
                let path = self.path(new, old)?;
                // Only loads use pointers, and they find their own way.
                Some(self.pointer(new, &path, path.part.first))
            }
            Expression::Load { pointer } => {
                let path = self.path(new, pointer)?;
                let value = self.value(new, &path, path.part);
                Some(path.rest.iter().fold(value, |base, step| {
                    new.append(match *step {
                        Step::Constant(index) => Expression::AccessIndex { base, index },
                        Step::Computed(index) => Expression::Access { base, index: new.value(index) },
                    })
                }))
            }
            _ => None,
        }
    }
}

impl Reads<'_> {
    fn path(&self, new: &Rebuild<'_>, pointer: Value) -> Option<Path> {
        let (base, step) = match new.source.expressions[pointer] {
            Expression::GlobalVariable(buffer) => {
                let ty = self.module.global_variables[buffer].ty;
                let part = Part { ty, first: *self.first_elements.get(&buffer)? };
                return Some(Path { root: pointer, part, rest: Vec::new() });
            }
            Expression::AccessIndex { base, index } => (base, Step::Constant(index)),
            Expression::Access { base, index } => (base, Step::Computed(index)),
            _ => return None,
        };
        let mut path = self.path(new, base)?;
        match step {
            Step::Constant(index) if path.rest.is_empty() => match self.part(path.part, index) {
                Some(part) => path.part = part,
                None => path.rest.push(step),
            },
            _ => path.rest.push(step),
        }
        Some(path)
    }

    /// A part of a part; `None` for the element of a vector or matrix, which is a part of the value.
    fn part(&self, of: Part, index: u32) -> Option<Part> {
        let types = &self.module.types;
        let count = |ty| scalars(self.module, ty).unwrap_or(0);
        match &types[of.ty].inner {
            TypeInner::Struct { members, .. } => {
                let before =
                    members.iter().take(index as usize).map(|member| count(member.ty)).sum::<usize>();
                Some(Part { ty: members[index as usize].ty, first: of.first + before })
            }
            TypeInner::Array { base, .. } => {
                Some(Part { ty: *base, first: of.first + index as usize * count(*base) })
            }
            _ => None,
        }
    }

    fn pointer(&self, new: &mut Rebuild<'_>, path: &Path, scalar: usize) -> Value {
        let base = new.value(path.root);
        let index = u32::try_from(scalar).unwrap_or(u32::MAX);
        new.append(Expression::AccessIndex { base, index })
    }

    /// Reads a part, number by number.
    fn value(&self, new: &mut Rebuild<'_>, path: &Path, part: Part) -> Value {
        let inner = &self.module.types[part.ty].inner;
        let components = match inner {
            TypeInner::Scalar(_) => {
                let pointer = self.pointer(new, path, part.first);
                return new.append(Expression::Load { pointer });
            }
            TypeInner::Struct { members, .. } => 0..members.len(),
            inner => 0..parts(inner),
        };
        let components = components.map(|index| self.component(new, path, part, inner, index)).collect();
        new.append(Expression::Compose { ty: part.ty, components })
    }

    fn component(
        &self,
        new: &mut Rebuild<'_>,
        path: &Path,
        of: Part,
        inner: &TypeInner,
        index: usize,
    ) -> Value {
        let part = match *inner {
            TypeInner::Vector { scalar, .. } => {
                Part { ty: self.find(&TypeInner::Scalar(scalar)), first: of.first + index }
            }
            TypeInner::Matrix { rows, scalar, .. } => {
                let column = TypeInner::Vector { size: rows, scalar };
                Part { ty: self.find(&column), first: of.first + index * rows as usize }
            }
            _ => self.part(of, u32::try_from(index).unwrap_or(u32::MAX)).unwrap_or(of),
        };
        self.value(new, path, part)
    }

    fn find(&self, inner: &TypeInner) -> Handle<Type> {
        let found = self.module.types.iter().find(|(_, ty)| ty.name.is_none() && ty.inner == *inner);
        found.map_or_else(|| unreachable!("the types of components are declared first"), |(handle, _)| handle)
    }
}
