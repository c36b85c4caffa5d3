//! The pseudo-device `transforms`: interprets the modules that the lowering prints, and compares their results with that of
//! the kernel's own module. It tests inlining, unrolling, zeroing and bounds checks without a compiler.

use naga::{AddressSpace, Module, Span, Type, TypeInner};
use runtime_core::ErrorKind;
use runtime_kernel::{Interface, PrintedModule, Program, Specialisation, naga};

use crate::case::{Case, Launch};
use crate::device::{Verdict, compare};
use crate::interpret::{Expected, Invalid, Parsed, Rules, interpret_by};

/// A module to interpret, with its name, what must hold for it, and its coarsened entry points.
type Printed = (&'static str, Parsed, Rules, Vec<Interface>);

/// Interprets each launch of a case in every printed module, and calls `report` before and after it, as
/// [`crate::device::Device::run`] does.
///
/// # Errors
/// The verdict for all launches, if the kernel cannot be lowered.
pub fn run(
    case: &Case,
    expected: &[Expected],
    mut report: impl FnMut(usize, Option<Verdict>),
) -> Result<(), Verdict> {
    let modules = printed(case)?;
    for (index, (launch, expected)) in case.launches.iter().zip(expected).enumerate() {
        report(index, None);
        let verdicts = modules.iter().map(|module| verdict(module, launch, expected));
        report(index, Some(verdicts.into_iter().find(Verdict::is_wrong).unwrap_or(Verdict::Same)));
    }
    Ok(())
}

fn printed(case: &Case) -> Result<Vec<Printed>, Verdict> {
    let constants = case.launches.iter().flat_map(|launch| launch.constants.clone()).collect();
    let specialisation = Specialisation { constants, ..Specialisation::default() };
    let modules =
        Program::parse(&case.text, "", &specialisation).and_then(|program| program.printed_modules());
    let modules = modules.map_err(|error| match error.kind() {
        ErrorKind::Unsupported | ErrorKind::OutOfResources => Verdict::Unsupported(error.to_string()),
        _ => Verdict::Rejected(error.to_string()),
    })?;
    let parse = |PrintedModule { name, module, is_checked, is_zeroed, coarsened }| {
        let rules = Rules { in_range: is_checked, zeroes_memory: is_zeroed, is_transformed: true };
        let module = if name.starts_with("host C") { with_function_pointers(module) } else { module };
        let parsed = Parsed::of_module(module, &case.text);
        parsed
            .map(|parsed| (name, parsed, rules, coarsened))
            .map_err(|error| Verdict::Rejected(format!("{name} is not valid: {error}")))
    };
    modules.into_iter().map(parse).collect()
}

/// The module with pointers to private variables in signatures declared as pointers to local ones: for the host, private
/// variables become local ones, which C does not tell apart.
fn with_function_pointers(mut module: Module) -> Module {
    let private = |module: &Module, ty| match module.types[ty].inner {
        TypeInner::Pointer { base, space: AddressSpace::Private } => Some(base),
        _ => None,
    };
    let handles: Vec<_> = module.functions.iter().map(|(handle, _)| handle).collect();
    for handle in handles {
        for index in 0..module.functions[handle].arguments.len() {
            let Some(base) = private(&module, module.functions[handle].arguments[index].ty) else { continue };
            let inner = TypeInner::Pointer { base, space: AddressSpace::Function };
            let ty = module.types.insert(Type { name: None, inner }, Span::UNDEFINED);
            module.functions.get_mut(handle).arguments[index].ty = ty;
        }
    }
    module
}

/// The launch of a coarsened kernel as the device runs it.
fn coarsened(launch: &Launch, interface: &Interface) -> Launch {
    let [x, y, z] = launch.groups;
    let mut scalars = launch.scalars.clone();
    scalars.resize(interface.scalar_arguments().len(), "0".to_owned());
    scalars.push(x.to_string());
    Launch { groups: [x.div_ceil(interface.items_per_thread), y, z], scalars, ..launch.clone() }
}

fn verdict((name, module, rules, interfaces): &Printed, launch: &Launch, expected: &Expected) -> Verdict {
    let interface = interfaces.iter().find(|interface| interface.name == launch.entry);
    let changed = interface.map(|interface| coarsened(launch, interface));
    let launch = changed.as_ref().unwrap_or(launch);
    let result = match interpret_by(*rules, module, launch) {
        Ok(result) => result,
        // Evaluated speculatively, which is allowed: the value is not used, or it would differ.
        Err(Invalid::Inexact) => return Verdict::Same,
        Err(invalid) => return Verdict::Failed(format!("{name}: {invalid}")),
    };
    for tensor in &expected.tensors {
        let found = result.tensors.iter().find(|found| found.binding == tensor.binding);
        let content = found.map_or(&tensor.before, |found| &found.after);
        if let Err(difference) = compare(tensor, content) {
            return Verdict::Different(format!("{name}: tensor {}{difference}", tensor.binding));
        }
    }
    Verdict::Same
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::interpret;

    /// The verdict of a kernel, where another one was printed for it.
    fn compared(text: &str, printed: &str, rules: Rules) -> Verdict {
        let launch = Case::parse(&format!("//! launch k lengths=3\n{text}")).unwrap().launches.remove(0);
        let expected = interpret(&Parsed::new(text).unwrap(), &launch).unwrap();
        verdict(&("test", Parsed::new(printed).unwrap(), rules, Vec::new()), &launch, &expected)
    }

    fn kernel(body: &str) -> String {
        format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
            var<workgroup> w: u32;
            @compute @workgroup_size(1) fn k() {{ {body} }}"
        )
    }

    #[test]
    fn a_transform_that_changes_the_meaning_is_found() {
        let (right, rules) = (kernel("y[0] = 1u;"), Rules { is_transformed: true, ..Rules::default() });
        assert_eq!(compared(&right, &kernel("y[0] = 2u - 1u;"), rules), Verdict::Same);
        assert!(matches!(compared(&right, &kernel("y[0] = 2u;"), rules), Verdict::Different(_)));
        // A tensor that is not used any more.
        assert!(matches!(compared(&right, &kernel(""), rules), Verdict::Different(_)));
    }

    #[test]
    fn a_check_that_is_missing_is_found() {
        let unchecked = kernel("y[y[0] % 1u + 3u] = 1u;");
        let rules = Rules { in_range: true, is_transformed: true, ..Rules::default() };
        let failed = Verdict::Failed("test: an access is out of range".to_owned());
        assert_eq!(compared(&unchecked, &unchecked, rules), failed);
        assert_eq!(compared(&unchecked, &kernel("y[0] = y[0];"), rules), Verdict::Same);
    }

    #[test]
    fn memory_that_is_not_zeroed_is_found() {
        let rules = Rules { zeroes_memory: true, is_transformed: true, ..Rules::default() };
        let text = kernel("y[0] = w;");
        assert!(matches!(compared(&text, &text, rules), Verdict::Different(_)));
        assert_eq!(compared(&text, &kernel("w = 0u; y[0] = w;"), rules), Verdict::Same);
    }
}
