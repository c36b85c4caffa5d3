//! Errors of types and of module-scope variables.

use naga::valid::{Disalignment, GlobalVariableError, TypeError, TypeFlags, WidthError};
use naga::{AddressSpace, ArraySize, GlobalVariable, Handle, Span, Type, TypeInner};

use super::{Context, Explanation, or_empty};
use crate::ir::{Global, blocks, declare};

impl Context<'_> {
    pub(super) fn of_type(&self, ty: Handle<Type>, error: &TypeError) -> Explanation {
        let name = self.type_name(ty);
        let explanation = match error {
            TypeError::InvalidDynamicArray(field, _) => explain!(
                "\"{field}\" is an array without a length, which only the last member of a struct may be";
                "move it to the end, or give it a length"
            ),
            TypeError::EmptyStruct => explain!("struct {name} has no members"),
            TypeError::InvalidArrayBaseType(part) | TypeError::InvalidData(part) => {
                self.part_of(&name, *part)
            }
            TypeError::InvalidPointerBase(part) => {
                explain!("there are no pointers to {}", self.type_name(*part))
            }
            _ if matches!(self.module.types[ty].inner, TypeInner::Atomic(_)) => explain!(
                "there is no type {name}";
                "atomics are `u32`, `i32`, `u64` or `i64`; a sum of floats is an `atomicCompareExchangeWeak` of their bits in a loop"
            ),
            TypeError::WidthError(WidthError::MissingCapability { .. }) | TypeError::MissingCapability(_) => {
                explain!(
                    "portable kernels do not have the type {name}";
                    "numbers are `i32`, `u32`, `f32`, `f16`, `i64`, `u64` or `f64`"
                )
            }
            other => self.of_other(None, other),
        };
        explanation.at(self.first_use(ty))
    }

    /// A type that cannot be part of another.
    fn part_of(&self, whole: &str, part: Handle<Type>) -> Explanation {
        let part_name = self.type_name(part);
        match self.module.types[part].inner {
            TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => explain!(
                "a pointer cannot be stored in {whole}";
                "keep a pointer in a `let`, or pass it to a function"
            ),
            TypeInner::Array { size: ArraySize::Dynamic, .. } => {
                explain!("{part_name}, an array without a length, cannot be part of {whole}"; "give it a length")
            }
            _ => explain!("{part_name} cannot be part of {whole}"),
        }
    }

    /// The variable that a type occurs in.
    fn first_use(&self, ty: Handle<Type>) -> Option<Span> {
        let declared = self.module.types.get_span(ty);
        if declared.is_defined() {
            return Some(declared);
        }
        let mut uses = self.module.global_variables.iter();
        let found = uses.find(|(_, variable)| self.contains(variable.ty, ty));
        let in_struct = || {
            let is_whole = |(whole, _): &(Handle<Type>, &Type)| {
                self.module.types.get_span(*whole).is_defined() && self.contains(*whole, ty)
            };
            self.module.types.iter().find(is_whole).map(|(whole, _)| self.module.types.get_span(whole))
        };
        let global = found.map(|(handle, _)| self.module.global_variables.get_span(handle));
        global.or_else(in_struct).or_else(|| self.local_use(ty))
    }

    fn local_use(&self, ty: Handle<Type>) -> Option<Span> {
        blocks::functions(self.module).find_map(|function| {
            let locals = function.local_variables.iter().filter(|(_, local)| local.ty == ty);
            let local = locals.map(|(handle, _)| function.local_variables.get_span(handle)).next();
            let values = function.expressions.iter();
            let mut values = values.filter(
                |(_, value)| matches!(value, naga::Expression::Compose { ty: made, .. } if *made == ty),
            );
            local.or_else(|| values.next().map(|(handle, _)| function.expressions.get_span(handle)))
        })
    }

    fn contains(&self, whole: Handle<Type>, part: Handle<Type>) -> bool {
        declare::has_part(self.module, whole, &|ty, _| ty == part)
    }

    pub(super) fn of_variable(&self, variable: Global, error: &GlobalVariableError) -> Explanation {
        let variable = &self.module.global_variables[variable];
        let (name, space) = (or_empty(&variable.name), space_name(variable.space));
        match error {
            GlobalVariableError::MissingTypeFlags { required, seen } => {
                self.of_flags(name, variable, required.difference(*seen))
            }
            GlobalVariableError::InvalidBinding if variable.binding.is_some() => {
                explain!("\"{name}\" has a binding, but `var<{space}>` cannot have a binding")
            }
            GlobalVariableError::InvalidBinding => {
                explain!("\"{name}\" has no binding"; "write `@group(0) @binding(N)` before it")
            }
            GlobalVariableError::InitializerNotAllowed(space) => explain!(
                "\"{name}\" has an initial value, which `var<{}>` cannot have", space_name(*space);
                "store the value in the kernel; work-group memory begins with zeros"
            ),
            GlobalVariableError::StorageAddressSpaceWriteOnlyNotSupported => explain!(
                "\"{name}\" is `var<storage, write>`, which WGSL does not have";
                "declare `var<storage, read_write>`; a tensor that is never read counts as written"
            ),
            GlobalVariableError::CoherentNotSupported | GlobalVariableError::VolatileNotSupported => {
                explain!(
                    "\"{name}\" is `@coherent` or `@volatile`, which portable kernels do not have";
                    "remove it; other invocations see atomics, and what is stored before a barrier"
                )
            }
            GlobalVariableError::UnsupportedCapability(_) => {
                explain!("\"{name}\" is {}, which portable kernels do not have", self.type_name(variable.ty))
            }
            GlobalVariableError::Alignment(_, ty, error) => self.of_alignment(name, *ty, error),
            other => self.of_other(None, other),
        }
    }

    fn of_flags(&self, name: &str, variable: &GlobalVariable, missing: TypeFlags) -> Explanation {
        let (ty, space) = (self.type_name(variable.ty), space_name(variable.space));
        if missing.contains(TypeFlags::SIZED) {
            explain!(
                "\"{name}\" has no size: {ty} contains an array without a length";
                "give the array a length, or declare `var<storage>`"
            )
        } else if missing.contains(TypeFlags::HOST_SHAREABLE) {
            explain!(
                "\"{name}\" is {ty}, but a `var<{space}>` cannot contain a `bool`";
                "use `u32`, and compare it with 0"
            )
        } else if missing.contains(TypeFlags::CREATION_RESOLVED) {
            explain!(
                "the size of \"{name}\" depends on an override";
                "only an array that is a whole `var<workgroup>` may; use a `const` or an array without a length"
            )
        } else if missing.contains(TypeFlags::CONSTRUCTIBLE) {
            explain!(
                "\"{name}\" is {ty}, which `var<{space}>` cannot contain";
                "atomics are in `var<storage, read_write>` or `var<workgroup>`; pointers are in a `let`"
            )
        } else {
            explain!("\"{name}\" is {ty}, which `var<{space}>` cannot contain")
        }
    }

    fn of_alignment(&self, name: &str, ty: Handle<Type>, error: &Disalignment) -> Explanation {
        let text = match error {
            Disalignment::ArrayStride { stride, alignment } => {
                format!("its elements are {stride} bytes apart, not a multiple of {alignment}")
            }
            Disalignment::MemberOffset { index, offset, alignment } => {
                format!("member {index} is at byte {offset}, not at a multiple of {alignment}")
            }
            other => other.to_string(),
        };
        explain!(
            "\"{name}\" has the layout of {}: {text}", self.type_name(ty);
            "declare `var<storage, read>`, or align it by `@align(16)`"
        )
    }
}

/// The name of an address space in WGSL.
pub(super) fn space_name(space: AddressSpace) -> &'static str {
    match space {
        AddressSpace::Function => "function",
        AddressSpace::Private => "private",
        AddressSpace::WorkGroup => "workgroup",
        AddressSpace::Uniform => "uniform",
        AddressSpace::Storage { access } if access.contains(naga::StorageAccess::STORE) => {
            "storage, read_write"
        }
        AddressSpace::Storage { .. } => "storage, read",
        AddressSpace::Immediate => "immediate",
        _ => "handle",
    }
}
