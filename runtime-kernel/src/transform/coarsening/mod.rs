//! Thread coarsening: an invocation does the work of one invocation of each of several neighbouring work-groups, so that
//! their loads are issued together.
//!
//! ```text
//! first = workgroup_id.x * 4;
//! if all four work-groups exist && all four invocations pass the kernel's own guard {
//!     a0 = x[i0]; a1 = x[i1]; a2 = x[i2]; a3 = x[i3];      // `lanes`
//!     y[i0] = f(a0); y[i1] = f(a1); y[i2] = f(a2); y[i3] = f(a3);
//!     return;
//! }
//! for k in 0..4 { if first + k < groups { the kernel } }
//! ```
//!
//! A launch covers its work-groups along x with a quarter of them, and passes their true number in one more scalar, the last.
//! If it launches as many as that number says, an invocation does its own work only. So `workgroup_id`,
//! `global_invocation_id` and `num_workgroups` are what the kernel expects.
//!
//! It runs before the accesses are checked, and nothing about safety depends on it: to the checks, the new body is code like
//! any other.

mod eligible;
mod lanes;
mod launch_scalar;
#[cfg(test)]
mod tests;

use naga::{AddressSpace, Module};
use runtime_core::Result;

use self::lanes::Copier;
use crate::interface::Interface;
use crate::program::Program;
use crate::transform::inline::{Purpose, inline};

/// The program with the entry points coarsened for which that is worthwhile; `None` if there is none. `items` is the number of
/// invocations whose work one does; `None` chooses it by the size of the elements.
///
/// # Errors
/// `Internal` if the new module is not valid.
pub(crate) fn coarsened(program: &Program, items: Option<u32>) -> Result<Option<Program>> {
    if items == Some(1) || !program.module.entry_points.iter().any(eligible::may_be) {
        return Ok(None);
    }
    let inlined = |purpose| program.with(inline(&program.module, &program.info, purpose)?);
    // Code that cannot be inlined or unrolled is left as it is.
    let Ok(flat) = inlined(Purpose::Speed).or_else(|_| inlined(Purpose::SpeedWithoutUnrolling)) else {
        return Ok(None);
    };
    let mut module = program.module.clone();
    // The handles of all types of the program stay the same.
    module.types = flat.module.types.clone();
    let mut interfaces = program.interfaces.clone();
    for (index, interface) in interfaces.iter_mut().enumerate() {
        let Some(plan) = eligible::plan(&flat, index, items) else { continue };
        let Some(scalar) = launch_scalar::add(&mut module, interface) else { continue };
        let point = &flat.module.entry_points[index];
        let copier = Copier::new(&mut module.types, (&point.function, &plan), interface, scalar);
        module.entry_points[index].function = copier.coarsened()?;
        interface.items_per_thread = plan.items;
    }
    if interfaces.iter().all(|interface| interface.items_per_thread == 1) {
        return Ok(None);
    }
    make_unused_immediates_private(&mut module, &interfaces);
    Ok(Some(Program { interfaces, ..program.with(module)? }))
}

/// One variable of scalars is left to each entry point: the validation layers of Vulkan (1.3.239) check one that is not used
/// against the launch's.
fn make_unused_immediates_private(module: &mut Module, interfaces: &[Interface]) {
    for (handle, variable) in module.global_variables.iter_mut() {
        let is_used = interfaces.iter().any(|interface| interface.immediate == Some(handle));
        if variable.space == AddressSpace::Immediate && !is_used {
            variable.space = AddressSpace::Private;
        }
    }
}
