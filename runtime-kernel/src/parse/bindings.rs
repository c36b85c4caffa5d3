//! Brings the buffers of a module into the form that every later step relies on: uniform buffers become storage buffers
//! that are read, whose layout rules are the same but for larger alignments, and each entry point's buffers are in group 0,
//! numbered 0, 1, 2, … in the order of (group, binding).

use std::collections::BTreeMap;

use naga::compact::{KeepUnused, compact};
use naga::valid::{GlobalUse, ModuleInfo};
use naga::{
    AddressSpace, Block, Expression, Function, GlobalVariable, Handle, Module, ResourceBinding, ShaderStage,
    Statement, StorageAccess,
};
use runtime_core::Result;

use super::validate_again;
use crate::ir::{Global, blocks};

/// The numbers of an entry point's buffers.
type Numbers = BTreeMap<Global, u32>;

/// Removes entry points of other stages, so that nothing they use is judged. A module without a compute shader keeps
/// them, for the error message.
pub(crate) fn keep_compute(module: &mut Module) {
    let is_compute = |stage| stage == ShaderStage::Compute;
    if module.entry_points.iter().any(|entry| is_compute(entry.stage)) {
        module.entry_points.retain(|entry| is_compute(entry.stage));
    }
}

/// Brings the buffers of a valid module into the form above.
///
/// # Errors
/// `Internal` if the new module is not valid.
pub(crate) fn normalise(module: Module, info: ModuleInfo) -> Result<(Module, ModuleInfo)> {
    if is_normal(&module, &info) {
        return Ok((module, info));
    }
    let mut module = module;
    compact(&mut module, KeepUnused::No);
    uniforms_as_storage(&mut module, |_| true);
    let info = validate_again(&module)?;
    let numbers: Vec<_> =
        (0..module.entry_points.len()).map(|entry| numbers(&module, &info, entry)).collect();
    let mut given = Numbers::new();
    for (entry, numbers) in numbers.iter().enumerate() {
        let taken = |(buffer, number): (&Handle<_>, &u32)| given.get(buffer).is_some_and(|old| old != number);
        if numbers.iter().any(taken) {
            split(&mut module, entry, numbers);
        } else {
            given.extend(numbers);
        }
    }
    for (buffer, number) in given {
        module.global_variables.get_mut(buffer).binding = Some(place(number));
    }
    let info = validate_again(&module)?;
    Ok((module, info))
}

const fn place(binding: u32) -> ResourceBinding {
    ResourceBinding { group: 0, binding }
}

/// Whether a module has the form, and neither functions nor resources that no entry point uses.
fn is_normal(module: &Module, info: &ModuleInfo) -> bool {
    let entries = 0..module.entry_points.len();
    let is_used =
        |handle: Global| entries.clone().any(|entry| !info.get_entry_point(entry)[handle].is_empty());
    let has_form = |(handle, variable): (_, &GlobalVariable)| {
        variable.binding.is_none() || (variable.space != AddressSpace::Uniform && is_used(handle))
    };
    let is_numbered = |entry| {
        let numbers = numbers(module, info, entry);
        numbers
            .iter()
            .all(|(buffer, number)| module.global_variables[*buffer].binding == Some(place(*number)))
    };
    module.global_variables.iter().all(has_form) && entries.clone().all(is_numbered) && calls_all(module)
}

/// Whether every function is called.
fn calls_all(module: &Module) -> bool {
    let mut called = vec![false; module.functions.len()];
    for function in blocks::functions(module) {
        blocks::note_calls(&function.body, &mut called);
    }
    called.into_iter().all(|called| called)
}

/// The buffers that an entry point uses, with their positions in the order of (group, binding).
fn numbers(module: &Module, info: &ModuleInfo, entry: usize) -> Numbers {
    let uses = info.get_entry_point(entry);
    let buffers = module.global_variables.iter().filter(|(handle, variable)| {
        matches!(variable.space, AddressSpace::Storage { .. } | AddressSpace::Uniform)
            && uses[*handle] != GlobalUse::empty()
    });
    let mut buffers: Vec<_> = buffers
        .filter_map(|(handle, variable)| variable.binding.map(|at| ((at.group, at.binding), handle)))
        .collect();
    buffers.sort_unstable();
    buffers.into_iter().zip(0..).map(|((_, handle), number)| (handle, number)).collect()
}

/// Turns the chosen uniform buffers into storage buffers that are read. No function takes a pointer to them any more:
/// `pointers_to_variables` has replaced those arguments.
pub(super) fn uniforms_as_storage(module: &mut Module, is_chosen: impl Fn(&GlobalVariable) -> bool) {
    for (_, variable) in module.global_variables.iter_mut() {
        if variable.space == AddressSpace::Uniform && is_chosen(variable) {
            variable.space = AddressSpace::Storage { access: StorageAccess::LOAD };
        }
    }
}

/// Gives an entry point buffers of its own, and copies of the functions that use them: another entry point numbers the
/// same buffers differently, and a buffer has one number.
fn split(module: &mut Module, entry: usize, numbers: &Numbers) {
    let mut copies = Copies { buffers: BTreeMap::new(), functions: BTreeMap::new() };
    for (buffer, number) in numbers {
        let copy =
            GlobalVariable { binding: Some(place(*number)), ..module.global_variables[*buffer].clone() };
        let span = module.global_variables.get_span(*buffer);
        copies.buffers.insert(*buffer, module.global_variables.append(copy, span));
    }
    // A function follows those that it calls.
    let originals: Vec<_> = module.functions.iter().map(|(handle, _)| handle).collect();
    for original in originals {
        let mut function = module.functions[original].clone();
        if copies.renew(&mut function) {
            let span = module.functions.get_span(original);
            copies.functions.insert(original, module.functions.append(function, span));
        }
    }
    copies.renew(&mut module.entry_points[entry].function);
}

/// The copies that an entry point uses in place of the originals.
struct Copies {
    buffers: BTreeMap<Global, Global>,
    functions: BTreeMap<Handle<Function>, Handle<Function>>,
}

impl Copies {
    /// Makes a function use the copies; whether it uses any.
    fn renew(&self, function: &mut Function) -> bool {
        let mut changed = false;
        for (_, expression) in function.expressions.iter_mut() {
            match expression {
                Expression::GlobalVariable(buffer) => changed |= replace(buffer, &self.buffers),
                Expression::CallResult(called) => changed |= replace(called, &self.functions),
                _ => {}
            }
        }
        self.renew_calls(&mut function.body) | changed
    }

    fn renew_calls(&self, block: &mut Block) -> bool {
        let mut changed = false;
        for statement in block.iter_mut() {
            if let Statement::Call { function, .. } = statement {
                changed |= replace(function, &self.functions);
            }
            for inner in blocks::inner_mut(statement) {
                changed |= self.renew_calls(inner);
            }
        }
        changed
    }
}

/// Replaces a handle by its copy, if it has one.
fn replace<T>(handle: &mut Handle<T>, copies: &BTreeMap<Handle<T>, Handle<T>>) -> bool {
    let copy = copies.get(handle);
    copy.inspect(|copy| *handle = **copy).is_some()
}
