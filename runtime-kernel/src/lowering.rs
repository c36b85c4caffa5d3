//! The lowering to register with core: translates WGSL to the best format that a device accepts.

mod coarsening;
mod device_limits;
mod group_loops;
mod matrix_units;
mod subgroups;

use std::sync::Arc;

use runtime_core::backend::OptionSpec;
use runtime_core::code::{ArgKind, Param};
use runtime_core::lowering::{
    FusionPlan, FusionRequest, Lowered, LoweredKernel, LoweredParam, Lowering, PortableSource, SignatureParam,
};
use runtime_core::{Access, CodeFormat, DeviceInfo, Error, ErrorKind, OptionValue, Options, Result};

use crate::fuse;
use crate::host_flags::host_flags;
use crate::interface::Interface;
use crate::parse::specialise::Specialisation;
use crate::print::c::CCode;
use crate::print::spirv;
use crate::program::{Checks, Dialect, Feature, Program};

/// The lowering of WGSL, for [`RuntimeBuilder::with_lowering`](runtime_core::RuntimeBuilder::with_lowering).
#[must_use]
pub fn wgsl() -> Arc<dyn Lowering> {
    Arc::new(Wgsl)
}

#[derive(Debug)]
struct Wgsl;

/// The version of this crate, and a hash of its sources.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("RUNTIME_KERNEL_VERSION"));

/// The option for the second number of `__launch_bounds__`.
const MIN_GROUPS: &str = "min_groups_per_unit";
/// No multiprocessor holds more (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
const MAX_MIN_GROUPS: i64 = 32;

/// How a format is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Spirv,
    C(Dialect),
}

const WRITERS: [(CodeFormat, Writer); 4] = [
    (CodeFormat::SPIRV_SHADER, Writer::Spirv),
    (CodeFormat::CUDA_C, Writer::C(Dialect::Cuda)),
    (CodeFormat::OPENCL_C, Writer::C(Dialect::OpenCl)),
    (CodeFormat::C, Writer::C(Dialect::Host)),
];

fn writer(format: &CodeFormat) -> Option<(CodeFormat, Writer)> {
    WRITERS.into_iter().find(|(known, _)| known == format)
}

// SAFETY: WGSL has no pointers to foreign memory, and every access that is not proven in range is checked.
#[allow(unsafe_code, reason = "guarantees that the lowered code is memory-safe")]
unsafe impl Lowering for Wgsl {
    fn format(&self) -> CodeFormat {
        CodeFormat::WGSL
    }

    fn options(&self) -> Vec<OptionSpec> {
        let mut options = vec![
            OptionSpec::module("constant", "", "Value of an override constant, NAME=VALUE; may be repeated."),
            OptionSpec::module(
                "element",
                "",
                "Element type that replaces f32 in `alias T = f32;`, e.g. f16; NAME=f16 for another alias; may be repeated.",
            ),
            OptionSpec::module(
                "by_value",
                "",
                "Name of a uniform buffer whose numbers are scalar arguments, in the order of its bytes; may be repeated.",
            ),
            OptionSpec::module(
                "unchecked",
                false,
                "Omit bounds checks: an access out of range may do anything.",
            ),
            OptionSpec::module(
                "variants",
                "auto",
                "Variants of an entry point: 2 adds one without checks, for launches whose sizes keep all accesses in range; \
                 auto is 2 on GPUs. C for the host decides for itself.",
            )
            .choices(&["auto", "1", "2"]),
            OptionSpec::module(
                coarsening::OPTION,
                "auto",
                "Items whose work one item of an element-wise kernel does, so that their loads are issued together: auto is \
                 up to 4 on GPUs, by the size of the elements, for launches that keep the device busy; a number holds for \
                 all launches. C for the host decides for itself.",
            )
            .choices(&coarsening::CHOICES),
            group_loops::option(),
            OptionSpec::module(
                "zero_workgroup_memory",
                true,
                "Zero work-group memory that the kernel may read before it writes it; false leaves it uninitialised, \
                 except on the host.",
            ),
            subgroups::option(),
            matrix_units::option(),
            OptionSpec::module(
                MIN_GROUPS,
                0,
                "Work-groups that a compute unit should hold at least, up to 32: on CUDA, the compiler then limits registers \
                 (the second number of `__launch_bounds__`). 0 leaves it to the compiler, as do other devices.",
            ),
            OptionSpec::module(
                "assert_proofs",
                false,
                "Also check accesses that were proven in range, and fail launches that disprove a proof; slow, for tests.",
            ),
        ];
        options.extend(line_options());
        options
    }

    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat> {
        device.formats.iter().find_map(writer).map(|(format, _)| format)
    }

    fn identity(&self, device: &DeviceInfo) -> Option<String> {
        let DeviceInfo { formats, capabilities, limits, properties, compute_units, .. } = device;
        // Its peers differ between devices that are otherwise alike, and change no code.
        let properties: Vec<_> = properties.iter().filter(|(key, _)| *key != "peer").collect();
        let serial = is_serial(device);
        Some(format!(
            "{VERSION} {formats:?} {capabilities:?} {limits:?} {properties:?} {compute_units:?} {serial}"
        ))
    }

    fn signature(&self, source: &PortableSource<'_>, entry: &str) -> Result<Option<Vec<SignatureParam>>> {
        let specialisation = Specialisation::of_options(source.options)?;
        Program::signature(source.code, source.path, &specialisation, entry).map(Some)
    }

    fn fuse(&self, request: &FusionRequest<'_>, device: &DeviceInfo) -> Result<FusionPlan> {
        fuse::plan(request, device, &|program| check_target(program, device))
    }

    fn lower(&self, source: &PortableSource<'_>, device: &DeviceInfo) -> Result<Lowered> {
        let target = device.formats.iter().find_map(writer);
        let (format, writer) =
            target.ok_or_else(|| Error::unsupported("lowering wgsl for this device is not supported"))?;
        let program = Program::parse(source.code, source.path, &Specialisation::of_options(source.options)?)?;
        let program = subgroups::applied(program, source.options, device, writer)?;
        let program = match source.options.value("zero_workgroup_memory") {
            Some(OptionValue::Flag(false)) => program.with_uninitialised_workgroup_memory(),
            _ => program,
        };
        let program = Program {
            is_serial: is_serial(device),
            has_debug_info: source.options.flag("debug"),
            has_lines: source.options.flag("lines"),
            min_groups: min_groups(source.options)?,
            ..program
        };
        let program = match group_loops::of(&program, source.options, device, writer) {
            Some(loops) => program.with_group_loops(loops),
            None => program,
        };
        device_limits::check_device(&program, device, writer)?;
        let program = coarsening::applied(program, source.options, device, writer)?;
        let checks = checks(source.options, device, writer);
        let (written, reports_on) = match source.options.flag("assert_proofs") {
            true => write_with_asserted_proofs(&program, writer, checks)?,
            false => (write(&program, writer, checks)?, None),
        };
        let kernels = program.interfaces().iter().enumerate().map(|(index, interface)| {
            let kernel = written.kernel(interface, writer, &reports_on)?;
            let coarsening = coarsening::of(interface, source.options, device);
            Ok(LoweredKernel { coarsening, work_items: program.work_items(index), ..kernel })
        });
        let kernels = kernels.collect::<Result<_>>()?;
        Ok(Lowered {
            format,
            code: written.code,
            options: backend_options(writer, &program, device),
            kernels,
        })
    }
}

/// The options for code that refers to the lines of the text.
fn line_options() -> [OptionSpec; 2] {
    [
        OptionSpec::module(
            "debug",
            false,
            "Refer to the lines of the text, for debuggers, and keep its statements, functions and variables.",
        ),
        OptionSpec::module(
            "lines",
            false,
            "Refer to the lines of the text in C and change nothing else: for messages of compilers, and for profilers.",
        ),
    ]
}

/// Fails on what the device does not support.
fn check_target(program: &Program, device: &DeviceInfo) -> Result<()> {
    let target = device.formats.iter().find_map(writer);
    let (_, writer) =
        target.ok_or_else(|| Error::unsupported("lowering wgsl for this device is not supported"))?;
    let loops = group_loops::of(program, &Options::new(), device, writer);
    let looped = loops.map(|loops| program.clone().with_group_loops(loops));
    device_limits::check_device(looped.as_ref().unwrap_or(program), device, writer)
}

/// Whether the device was opened as one that runs the invocations of a kernel in order.
fn is_serial(device: &DeviceInfo) -> bool {
    device.open_options.flag("serial_items")
}

fn checks(options: &Options, device: &DeviceInfo, writer: Writer) -> Checks {
    let kind = device.properties.text("type");
    // Processors run a whole work-group on one thread, and a branch around its body defeats that: PoCL's kernels
    // then take twice as long or never finish. Other accelerators may suffer likewise, since their OpenCL is often
    // PoCL.
    let once = match writer {
        Writer::C(Dialect::OpenCl) => kind != Some("gpu"),
        _ => kind == Some("cpu"),
    };
    let variants = options.value("variants").map(ToString::to_string);
    match variants.as_deref() {
        _ if options.flag("unchecked") => Checks::Unchecked,
        Some("1") => Checks::BoundedOnce,
        Some("2") => Checks::Bounded,
        _ if once || options.flag("debug") => Checks::BoundedOnce,
        _ => Checks::Bounded,
    }
}

fn min_groups(options: &Options) -> Result<u32> {
    let groups = options.integer_within(MIN_GROUPS, 0, 0..=MAX_MIN_GROUPS)?;
    Ok(u32::try_from(groups).unwrap_or(0))
}

/// Backend options for the lowered code.
fn backend_options(writer: Writer, program: &Program, device: &DeviceInfo) -> Options {
    match writer {
        Writer::C(Dialect::OpenCl) => {
            let mut options = Options::new();
            // Without an explicit language version a compiler assumes OpenCL C 1.2, which has no subgroups.
            if program.features().contains(&Feature::Subgroups) {
                let version = device.properties.text("opencl_version");
                let second = version.is_some_and(|version| version.starts_with("OpenCL 2"));
                options =
                    options.with("build_options", if second { "-cl-std=CL2.0" } else { "-cl-std=CL3.0" });
            }
            // WGSL allows subnormal numbers to be flushed, and a GPU's square root is then a single instruction.
            if device.properties.text("type") == Some("gpu") {
                options = options.with("build_options", "-cl-denorms-are-zero");
            }
            options
        }
        // Nothing reads `errno` or floating-point exceptions. Without them, mathematical functions become
        // instructions and both sides of a branch may be evaluated.
        Writer::C(Dialect::Host) => {
            let flags = host_flags(program);
            let options = Options::new().with("convention", "groups");
            flags.into_iter().fold(options, |options, flag| options.with("flags", flag))
        }
        // WGSL requires 2.5 ULP for quotients, and little more for square roots; OpenCL and Vulkan default to
        // that. Subnormal numbers may be flushed, as for OpenCL.
        Writer::C(Dialect::Cuda) => Options::new()
            .with("options", "--prec-div=false")
            .with("options", "--prec-sqrt=false")
            .with("options", "--ftz=true"),
        _ => Options::new(),
    }
}

struct Written {
    code: Vec<u8>,
    symbols: Vec<(String, String)>,
}

fn write(program: &Program, writer: Writer, checks: Checks) -> Result<Written> {
    match writer {
        Writer::Spirv => {
            let words = program.spirv(checks)?;
            let symbols = program.interfaces().iter().map(|entry| (entry.name.clone(), entry.name.clone()));
            Ok(Written {
                code: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
                symbols: symbols.collect(),
            })
        }
        Writer::C(dialect) => {
            let CCode { text, symbols } = program.c(dialect, checks)?;
            Ok(Written { code: text.into_bytes(), symbols })
        }
    }
}

/// Writes the program with its proofs asserted. If launches report failures through a tensor, also returns the
/// name of the text for messages; for the host and CUDA, the backend receives the report itself.
fn write_with_asserted_proofs(
    program: &Program,
    writer: Writer,
    checks: Checks,
) -> Result<(Written, Option<String>)> {
    let reports = matches!(writer, Writer::Spirv | Writer::C(Dialect::OpenCl)) && checks.are_made();
    if !reports {
        return Ok((write(&program.clone().with_asserted_proofs(), writer, checks)?, None));
    }
    // PoCL miscompiles barriers on both sides of a branch.
    let checks = if writer == Writer::Spirv { checks } else { Checks::BoundedOnce };
    let copied = if writer == Writer::Spirv { spirv::with_matrices_in_registers(program) } else { None };
    let reporting = copied.as_ref().unwrap_or(program).with_proof_reports(checks)?;
    let written = write(&reporting, writer, Checks::Unchecked)?;
    Ok((written, Some(program.path().to_owned())))
}

impl Written {
    fn kernel(
        &self,
        interface: &Interface,
        writer: Writer,
        reports_on: &Option<String>,
    ) -> Result<LoweredKernel> {
        let symbol = self.symbols.iter().find(|(name, _)| *name == interface.name);
        let (_, symbol) = symbol.ok_or_else(|| {
            Error::new(ErrorKind::Internal, format!("entry point \"{}\" was not written", interface.name))
        })?;
        Ok(LoweredKernel {
            name: interface.name.clone(),
            symbol: symbol.clone(),
            params: params(interface),
            group_size: interface.group_size,
            work_items: None,
            shared_bytes: interface.shared_bytes,
            tensor_sizes: writer != Writer::Spirv,
            coarsening: None,
            reports_on: reports_on.clone(),
        })
    }
}

fn params(interface: &Interface) -> Vec<LoweredParam> {
    let strided = |index| interface.layouts.iter().any(|layout| layout.tensor == index && layout.is_strided);
    let tensors = interface.tensors.iter().enumerate().map(|(index, tensor)| LoweredParam {
        param: Param {
            kind: ArgKind::Tensor,
            access: Some(tensor.access),
            strided: strided(index),
            dtype: tensor.dtype,
        },
        min_bytes: tensor.min_bytes,
        alignment_bytes: tensor.alignment_bytes,
    });
    let scalars = interface.scalar_arguments().iter().map(|scalar| LoweredParam {
        param: Param {
            kind: ArgKind::Scalar,
            access: Some(Access::Read),
            strided: false,
            dtype: Some(scalar.dtype),
        },
        min_bytes: 0,
        alignment_bytes: 1,
    });
    tensors.chain(scalars).collect()
}

#[cfg(test)]
mod tests;
