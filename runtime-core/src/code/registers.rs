//! Which register budget code is compiled with, on devices that have several.
//!
//! After Triton's backend for Intel GPUs (`intel/backend/driver.c`): code that spills with the default budget, or does not
//! build with it, is built once more with the largest, and the better result is kept with its own options and figures.

use crate::model::compiled::CompiledCode;
use crate::model::options::OptionSpec;
use crate::{Error, ErrorKind, Options, Result};

/// The load option that selects a budget. Backends describe its values as the choices of the option.
pub(crate) const OPTION: &str = "registers";
/// Spilled bytes per work-item above which the larger budget is tried.
const MAX_SPILLED_BYTES: u32 = 0;
/// Sub-groups of a group that the largest budget can hold.
const MAX_SUB_GROUPS: u32 = 32;

/// Compiles with the budget that `options` select, and with the largest if they select none and it is better.
///
/// # Errors
/// Those of `compile`, of the first attempt if both fail; `InvalidArgument` for an explicit budget whose sub-groups do not
/// fit.
pub(crate) fn compile(
    options: &Options,
    specs: &[OptionSpec],
    compile: impl Fn(Option<u32>) -> Result<CompiledCode>,
) -> Result<CompiledCode> {
    let Some(largest) = largest_budget(specs) else { return compile(None) };
    if let Some(chosen) = options.value(OPTION).map(ToString::to_string).filter(|mode| mode != "default") {
        // An explicit budget is never overridden.
        let compiled = compile(None)?;
        return match chosen.parse() == Ok(largest) {
            true => check_sub_groups(compiled, largest),
            false => Ok(compiled),
        };
    }
    let first = compile(None);
    let wants_more = match &first {
        Ok(compiled) => spilled_bytes(compiled) > MAX_SPILLED_BYTES && holds_groups(compiled),
        Err(error) => matches!(error.kind(), ErrorKind::CompileFailed | ErrorKind::OutOfResources),
    };
    if !wants_more {
        return first;
    }
    match (first, compile(Some(largest))) {
        (Err(_), Ok(larger)) => Ok(larger),
        (Ok(first), Ok(larger))
            if spilled_bytes(&larger) < spilled_bytes(&first) && holds_groups(&larger) =>
        {
            Ok(larger)
        }
        (first, _) => first,
    }
}

/// The largest budget that a device has, in registers per work-item; `None` if it has one budget only.
fn largest_budget(specs: &[OptionSpec]) -> Option<u32> {
    let spec = specs.iter().find(|spec| spec.key == OPTION)?;
    spec.choices.iter().filter_map(|choice| choice.parse().ok()).max()
}

/// The most that a kernel spills; 0 if nothing is known.
fn spilled_bytes(compiled: &CompiledCode) -> u32 {
    compiled.kernels.iter().filter_map(|(_, info)| info.spilled_bytes).max().unwrap_or(0)
}

/// Whether the largest budget can hold the groups of all kernels, as far as their sizes are known.
fn holds_groups(compiled: &CompiledCode) -> bool {
    too_many_sub_groups(compiled).is_none()
}

/// A kernel whose groups have too many sub-groups for the largest budget, and their number.
fn too_many_sub_groups(compiled: &CompiledCode) -> Option<(&str, u32)> {
    compiled.kernels.iter().find_map(|(name, info)| {
        let items = info.group_size?.iter().product::<u32>();
        let sub_groups = items.div_ceil(info.preferred_multiple?.max(1));
        (sub_groups > MAX_SUB_GROUPS).then_some((name.as_str(), sub_groups))
    })
}

fn check_sub_groups(compiled: CompiledCode, largest: u32) -> Result<CompiledCode> {
    match too_many_sub_groups(&compiled) {
        None => Ok(compiled),
        Some((kernel, sub_groups)) => Err(Error::invalid(format!(
            "option \"{OPTION}\" is {largest}, but the groups of \"{kernel}\" have {sub_groups} sub-groups, and that budget \
             holds {MAX_SUB_GROUPS}; use smaller groups, or registers=default"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::model::kernel_info::KernelInfo;

    const SMALL: Option<u32> = None;
    const LARGE: Option<u32> = Some(256);

    fn specs() -> Vec<OptionSpec> {
        vec![OptionSpec::module(OPTION, "default", "").choices(&["default", "128", "256", "auto"])]
    }

    /// A stub compiler: what it is asked for, and what it gives for the default and the largest budget.
    fn compile_with(
        mode: &str,
        group: u32,
        results: [std::result::Result<u32, ErrorKind>; 2],
    ) -> (Result<CompiledCode>, Vec<Option<u32>>) {
        let asked = RefCell::new(Vec::new());
        let options = if mode.is_empty() { Options::new() } else { Options::new().with(OPTION, mode) };
        let compiled = compile(&options, &specs(), |budget| {
            asked.borrow_mut().push(budget);
            let result = results[usize::from(budget.is_some())];
            let spilled = result.map_err(|kind| Error::new(kind, format!("with {budget:?}")))?;
            let info = KernelInfo {
                registers: Some(budget.unwrap_or(128)),
                spilled_bytes: Some(spilled),
                group_size: Some([group, 1, 1]),
                preferred_multiple: Some(16),
                ..KernelInfo::default()
            };
            Ok(CompiledCode {
                format: "stub".into(),
                code: Vec::new(),
                log: String::new(),
                options: Options::new().with("flags", format!("{budget:?}")),
                kernels: vec![("kernel".to_owned(), info)],
            })
        });
        (compiled, asked.into_inner())
    }

    fn registers(compiled: &Result<CompiledCode>) -> Option<u32> {
        compiled.as_ref().unwrap().kernels[0].1.registers
    }

    #[test]
    fn large_registers_are_chosen_automatically_for_code_that_spills() {
        let (compiled, asked) = compile_with("", 64, [Ok(217), Ok(0)]);
        // The figures and flags are those of the code that runs: once, the small kernel was said to have 256 registers.
        assert_eq!((registers(&compiled), asked), (Some(256), vec![SMALL, LARGE]));
        assert_eq!(compiled.unwrap().options.text("flags"), Some("Some(256)"));
        let (compiled, asked) = compile_with("default", 64, [Ok(0), Ok(0)]);
        assert_eq!((registers(&compiled), asked), (Some(128), vec![SMALL]), "nothing is spilled");
    }

    #[test]
    fn the_first_build_is_kept_unless_the_second_is_better() {
        for second in [Ok(217), Ok(300), Err(ErrorKind::CompileFailed)] {
            let (compiled, asked) = compile_with("", 64, [Ok(217), second]);
            assert_eq!((registers(&compiled), asked), (Some(128), vec![SMALL, LARGE]));
            assert_eq!(compiled.unwrap().options.text("flags"), Some("None"));
        }
    }

    #[test]
    fn large_registers_are_chosen_on_a_failed_build() {
        for failure in [ErrorKind::CompileFailed, ErrorKind::OutOfResources] {
            let (compiled, asked) = compile_with("", 64, [Err(failure), Ok(0)]);
            assert_eq!((registers(&compiled), asked), (Some(256), vec![SMALL, LARGE]));
            let (compiled, _) = compile_with("", 64, [Err(failure), Err(ErrorKind::Driver)]);
            assert_eq!(compiled.unwrap_err().message(), "with None", "both fail: the first error");
        }
        let (compiled, asked) = compile_with("", 64, [Err(ErrorKind::Unavailable), Ok(0)]);
        assert_eq!((compiled.unwrap_err().kind(), asked), (ErrorKind::Unavailable, vec![SMALL]));
    }

    #[test]
    fn an_explicit_mode_is_never_built_again() {
        for mode in ["128", "256", "auto"] {
            let (compiled, asked) = compile_with(mode, 64, [Ok(217), Ok(0)]);
            assert_eq!((compiled.is_ok(), asked), (true, vec![SMALL]), "{mode}");
            let (compiled, asked) = compile_with(mode, 64, [Err(ErrorKind::CompileFailed), Ok(0)]);
            assert_eq!((compiled.is_err(), asked), (true, vec![SMALL]), "{mode}");
        }
    }

    #[test]
    fn the_upgrade_is_skipped_for_large_groups() {
        let (compiled, asked) = compile_with("", 16 * 33, [Ok(217), Ok(0)]);
        assert_eq!((registers(&compiled), asked), (Some(128), vec![SMALL]));
        let (compiled, _) = compile_with("256", 16 * 33, [Ok(0), Ok(0)]);
        let error = compiled.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("\"kernel\" have 33 sub-groups"), "{error}");
        assert!(compile_with("256", 16 * 32, [Ok(0), Ok(0)]).0.is_ok());
    }

    #[test]
    fn a_device_with_one_budget_builds_once() {
        let asked = RefCell::new(0);
        let failed = compile(&Options::new(), &[], |_| {
            *asked.borrow_mut() += 1;
            Err(Error::new(ErrorKind::CompileFailed, "no"))
        });
        assert_eq!((failed.is_err(), asked.into_inner()), (true, 1));
    }
}
