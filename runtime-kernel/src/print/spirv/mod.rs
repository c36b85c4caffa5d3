//! SPIR-V for Vulkan: naga's writer plus fixes for compute.

mod half_bits;
mod layout;
mod loops;

use std::borrow::Cow;

use naga::back::spv::{self, WriterFlags, ZeroInitializeWorkgroupMemoryMode};
use naga::{Expression, MathFunction, Scalar};
use runtime_core::{Error, ErrorKind, Result};
use spirv::Op;

use crate::ir::{blocks, cooperative};
use crate::parse::f16_immediates;
use crate::parse::validate_again;
use crate::program::{Checks, Program};
use crate::transform::inline::{Purpose, inline};
use crate::transform::pointer_arguments::{self, Parts};
use crate::transform::{bounds_checks, f16_push_constants, spirv_fixups, zeroing};

/// Words before the first instruction.
const HEADER: usize = 5;

/// The instructions of a module, with their position among the words.
pub(crate) fn instructions(words: &[u32]) -> impl Iterator<Item = (usize, &[u32])> {
    let mut at = HEADER;
    std::iter::from_fn(move || {
        let rest = words.get(at..)?;
        let length = (*rest.first()? >> 16).max(1) as usize;
        let found = (at, rest.get(..length)?);
        at += length;
        Some(found)
    })
}

/// The instructions before the first function: decorations, types and constants.
fn declarations(words: &[u32]) -> impl Iterator<Item = (usize, &[u32])> {
    instructions(words).take_while(|(_, instruction)| !is(instruction[0], Op::Function))
}

/// Whether the first word of an instruction has this opcode.
pub(crate) const fn is(word: u32, op: Op) -> bool {
    word & 0xffff == op as u32
}

/// The newest version that every Vulkan 1.1 device accepts; subgroup operations require it.
const VERSION: (u8, u8) = (1, 3);

/// Writes a program; bounds checks are part of the module (`bounds_checks`).
pub(crate) fn write(program: &Program, checks: Checks) -> Result<Vec<u32>> {
    reject_f64_mathematics(program)?;
    let prepared = prepare(program)?;
    let program = prepared.as_ref().unwrap_or(program);
    let checked = checks.are_made().then(|| bounds_checks::with_checks(program, checks)).transpose()?;
    let module = checked.as_ref().unwrap_or(&program.module);
    let packed = f16_immediates::has_f16(module).then(|| f16_push_constants::pack(module)).transpose()?;
    let (file, text) = (program.debug_file(), without_nul(&program.source));
    let file = without_nul(&file);
    let options = options(has_short_debug_info(program).then_some(spv::DebugInfo {
        source_code: &text,
        file_name: &file,
        // Validators of 2023 reject `WGSL`.
        language: spv::SourceLanguage::Unknown,
    }));
    let written = match packed.as_ref().or(checked.as_ref()) {
        Some(changed) => spv::write_vec(changed, &validate_again(changed)?, &options, None),
        None => spv::write_vec(module, &program.info, &options, None),
    };
    let mut words = written.map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("{}: in SPIR-V: {error}", program.path()))
    })?;
    layout::remove_from_bools(&mut words);
    half_bits::cast(&mut words);
    if !program.has_debug_info {
        loops::mark_unrolled(module, &mut words);
    }
    Ok(words)
}

/// Bytes that naga may scan for the positions of statements: it counts the lines in front of each anew.
const SCANNED_BYTES: usize = 2 << 30;

/// Whether naga is to write the text and the positions of statements for debuggers: not if that takes too long.
fn has_short_debug_info(program: &Program) -> bool {
    let mut positions = 0_usize;
    for function in blocks::functions(&program.module) {
        positions += function.expressions.len();
        blocks::each(&function.body, &mut |_| positions += 1);
    }
    program.has_debug_info && program.source.len().saturating_mul(positions) <= SCANNED_BYTES
}

/// A text as a string of SPIR-V can hold it, which ends at the first NUL.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', " ")) } else { Cow::Borrowed(text) }
}

fn options(debug_info: Option<spv::DebugInfo<'_>>) -> spv::Options<'_> {
    spv::Options {
        debug_info,
        lang_version: VERSION,
        flags: WriterFlags::DEBUG,
        // `zeroing` does this where necessary; naga's version lets a single invocation do it, in every kernel.
        zero_initialize_workgroup_memory: ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        // No shader input or output holds an f16, and not every device has this capability.
        use_storage_input_output_16: false,
        ..spv::Options::default()
    }
}

/// The program before bounds checks; `None` if it needs no change.
pub(crate) fn prepare(program: &Program) -> Result<Option<Program>> {
    let mut prepared = pointer_arguments::by_value(program, Parts::All)?;
    let fixed_up = spirv_fixups::fixed_up(prepared.as_ref().unwrap_or(program))?;
    if let Some(module) = fixed_up {
        prepared = Some(program.with(module)?);
    }
    if let Some(unrolled) = with_matrices_in_registers(prepared.as_ref().unwrap_or(program)) {
        prepared = Some(unrolled);
    }
    Ok(zeroing::zeroed(prepared.as_ref().unwrap_or(program))?.or(prepared))
}

/// Maximum number of expressions of the entry points with copies: functions with barriers, too, have become part of them.
const MAX_COPIED_SIZE: usize = 20_000;

/// The program with copies of the loops that select matrices of an array. NVIDIA's driver follows the hint to unroll a loop
/// with barriers only if it is short, and then keeps the array in memory: more than half of the time of an attention
/// kernel.
pub(crate) fn with_matrices_in_registers(program: &Program) -> Option<Program> {
    if program.is_plain() || !cooperative::is_used(&program.module) {
        return None;
    }
    // Constants in place of variables may make an invalid module. Such code stays as it is.
    let module = inline(&program.module, &program.info, Purpose::MatricesInRegisters).ok()?;
    let size: usize = module.entry_points.iter().map(|point| point.function.expressions.len()).sum();
    if size > MAX_COPIED_SIZE { None } else { program.with(module).ok() }
}

/// Rejects functions for which naga emits GLSL instructions that do not exist for f64.
fn reject_f64_mathematics(program: &Program) -> Result<()> {
    let module = &program.module;
    for (function, info) in program.functions() {
        for (handle, expression) in function.expressions.iter() {
            let Expression::Math { fun, arg, .. } = *expression else { continue };
            let scalar = info[arg].ty.inner_with(&module.types).scalar();
            if scalar == Some(Scalar::F64) && lacks_f64_form(fun) {
                let name = format!("{fun:?}").to_lowercase();
                return Err(program.unsupported(
                    format!("`{name}` of f64 in SPIR-V"),
                    function.expressions.get_span(handle),
                ));
            }
        }
    }
    Ok(())
}

const fn lacks_f64_form(function: MathFunction) -> bool {
    use MathFunction as F;
    matches!(
        function,
        F::Cos
            | F::Cosh
            | F::Sin
            | F::Sinh
            | F::Tan
            | F::Tanh
            | F::Acos
            | F::Asin
            | F::Atan
            | F::Atan2
            | F::Asinh
            | F::Acosh
            | F::Atanh
            | F::Radians
            | F::Degrees
            | F::Exp
            | F::Exp2
            | F::Log
            | F::Log2
            | F::Pow
    )
}
