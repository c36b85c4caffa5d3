//! Compiles code without loading it.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::borrow::Cow;

use crate::abi::{self, Str};
use crate::code::lowering::LoweringPlan;
use crate::code::registers;
use crate::model::compiled::{Compiled, CompiledCode, Fit};
use crate::model::lowering::LoweredKernel;
use crate::plugin::compiled;
use crate::plugin::instance::{Instance, check_status};
use crate::timeline::open_device::OpenDevice;
use crate::{DeviceInfo, Error, ErrorKind, ModuleSource, Result};

/// Room for a compiler's identity. A longer one costs a second call, for which the host runs the preprocessor again; the list of
/// a processor's features alone takes 1 to 2 KiB.
const IDENTITY_BYTES: usize = 1 << 14;

/// Compiles `source`, lowered first if it is portable, for an architecture of a backend. Makes no driver call.
///
/// # Errors
/// `NotFound` for an unknown architecture; `Unavailable` without the compiler; as
/// [`CommonRuntime::compile`](crate::CommonRuntime::compile) otherwise.
pub(crate) fn compile_for_architecture(
    instance: &Instance,
    architecture: &str,
    source: &ModuleSource,
) -> Result<Compiled> {
    let target = instance.architecture(architecture)?;
    let (plan, native, lowered) = lowered(source, instance, &target)?;
    native.check(&target, instance)?;
    let compile = |source: &ModuleSource| compile_without_device(instance, architecture, source);
    let native = compile(&native).map_err(|error| match plan {
        Some(plan) => plan.with_own_lines(error, source, &target, compile),
        None => error,
    })?;
    Ok(Compiled { native, lowered })
}

/// Compiles code that an architecture of a backend accepts.
fn compile_without_device(
    instance: &Instance,
    architecture: &str,
    source: &ModuleSource,
) -> Result<CompiledCode> {
    with_best_budget(source, instance, |source| {
        let (name, mut handle) = (Str::new(architecture), std::ptr::null_mut());
        // SAFETY: the instance is open, and everything lives during the call.
        let status = source.with_raw(|raw| unsafe {
            (instance.calls.instance.compile_for)(instance.handle, name, raw, &raw mut handle)
        });
        check_status(status)?;
        // SAFETY: the backend has just compiled it.
        unsafe { compiled::take(&instance.calls, handle) }
    })
}

/// Compiles with the register budget that is best for the code, if its options select none.
fn with_best_budget(
    source: &ModuleSource,
    instance: &Instance,
    compile: impl Fn(&ModuleSource) -> Result<CompiledCode>,
) -> Result<CompiledCode> {
    registers::compile(source.options(), &instance.specs, |budget| match budget {
        None => compile(source),
        Some(budget) => compile(&source.clone().option(registers::OPTION, budget.to_string())),
    })
}

/// How `source` was lowered, if it is portable, what to compile, and its entry points.
type ToCompile<'a> = (Option<LoweringPlan<'a>>, Cow<'a, ModuleSource>, Option<Vec<LoweredKernel>>);

/// Lowers `source`, if it is portable, for a device of `instance`.
///
/// # Errors
/// As [`LoweringPlan::of`] and [`LoweringPlan::lower`].
fn lowered<'a>(
    source: &'a ModuleSource,
    instance: &'a Instance,
    device: &DeviceInfo,
) -> Result<ToCompile<'a>> {
    let Some(plan) = LoweringPlan::of(source, instance, device)? else {
        return Ok((None, Cow::Borrowed(source), None));
    };
    let (native, kernels) = plan.lower(source, device)?;
    Ok((Some(plan), Cow::Owned(native), Some(kernels)))
}

/// Compiles code that the device accepts, as a part of `operation`, which errors name.
pub(crate) fn compile(
    device: &OpenDevice,
    source: &ModuleSource,
    operation: &'static str,
) -> Result<CompiledCode> {
    with_best_budget(source, &device.instance, |source| {
        let mut handle = std::ptr::null_mut();
        source.with_raw(|raw| {
            // SAFETY: the device is open and the structures live during the call.
            device.call(operation, |calls, device| unsafe {
                (calls.module.compile)(device, raw, &raw mut handle)
            })
        })?;
        // SAFETY: the backend has just compiled it.
        unsafe { compiled::take(&device.calls, handle) }
            .map_err(|error| error.in_operation(operation).on_device(&device.name))
    })
}

/// What identifies everything outside the source that compiled code depends on; `None` if code like this is not
/// compiled, or must not be kept.
///
/// # Errors
/// Any error of the backend, such as `Unavailable` without a compiler.
pub(crate) fn compiler_identity(device: &OpenDevice, source: &ModuleSource) -> Result<Option<Vec<u8>>> {
    let mut text = vec![0; IDENTITY_BYTES];
    loop {
        let mut bytes = 0;
        let asked = source.with_raw(|raw| {
            device.call("compiler_identity", |calls, device| {
                let (buffer, capacity) = (text.as_mut_ptr(), text.len());
                // SAFETY: the device is open, and everything lives during the call.
                unsafe { (calls.module.compiler_identity)(device, raw, buffer, capacity, &raw mut bytes) }
            })
        });
        match asked {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            other => other?,
        }
        if bytes <= text.len() {
            text.truncate(bytes);
            return Ok(Some(text));
        }
        if bytes > abi::MAX_TEXT_BYTES {
            let message = format!("the compiler's identity has {bytes} bytes");
            return Err(Error::new(ErrorKind::AbiMismatch, message).on_device(&device.name));
        }
        // It may have grown meanwhile, so ask again.
        text = vec![0; bytes];
    }
}

/// How native code fits the device.
///
/// # Errors
/// `Unsupported` if the backend cannot say.
pub(crate) fn fits(device: &OpenDevice, source: &ModuleSource) -> Result<Fit> {
    let mut fit = abi::FITS_NOT;
    source.with_raw(|raw| {
        // SAFETY: the device is open, and everything lives during the call.
        device.call("fits", |calls, device| unsafe { (calls.module.fits)(device, raw, &raw mut fit) })
    })?;
    Ok(match fit {
        abi::FITS_OPTIMALLY => Fit::Optimal,
        abi::FITS_RECOMPILE => Fit::Recompile,
        _ => Fit::Unsupported,
    })
}
