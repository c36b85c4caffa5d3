//! The C writer, with a small dialect per language.
//!
//! The text has four parts, each with only what is used: types, constants, small functions with WGSL's semantics
//! (the *library*), and the functions and entry points of the program.
//!
//! | file | what is there |
//! | --- | --- |
//! | `writer`, `lines`, `source_lines` | the text under construction, with `f16` in CUDA C++, and what it comes from |
//! | `dialect`, `reserved`, `names` | what the languages spell differently; identifiers |
//! | `type_names`, `types`, `value`, `form` | types; literals and constants; operators and their precedence |
//! | `library/` | library functions: integers, floats, vectors, matrices, packing, conversions |
//! | `invocation/` | the statements and expressions of one invocation |
//! | `function`, `device_entry` | functions; entry points of OpenCL C and CUDA C++ |
//! | `host/` | entry points with loops over the invocations of a group: host C, and OpenCL C for large groups |
//!
//! Types are printed under WGSL's aliases (`u32`, `f32`, `vec3f`, `mat4x4f`). In all languages vectors are
//! structures of scalars (members `x y z w`), so that a compiler sees scalars, and arrays are structures with a
//! member `at`.

mod device_entry;
mod dialect;
mod form;
mod function;
mod host;
mod immediates;
mod invocation;
#[cfg(test)]
mod layout_tests;
mod library;
mod lines;
mod names;
mod reserved;
mod source_lines;
#[cfg(test)]
mod tests;
mod type_names;
mod types;
mod value;
mod writer;

use runtime_core::Result;

use self::writer::Writer;
use crate::analysis::proof::bounds::AllBounds;
use crate::program::{Checks, Dialect, Program};
use crate::transform::pointer_arguments::{self, Parts};
use crate::transform::zeroing;

/// The start of the comment in host C that explains why an entry point has its plain form: its schedule failed
/// verification. Schedules are verified only in tests, debug builds and fuzzing.
pub const REJECTED: &str = "/* plain: ";

/// A program in a C-family language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CCode {
    /// The text.
    pub text: String,
    /// Entry points: the name in the portable text, and the symbol in this code.
    pub symbols: Vec<(String, String)>,
}

/// The program as the writer of host C sees it.
#[cfg(test)]
pub(crate) fn host_program(program: &Program) -> Result<Program> {
    host::prepare(program)
}

/// The program as it is written in a language; `None` if it needs no change.
pub(crate) fn prepare(program: &Program, dialect: Dialect, checks: Checks) -> Result<Option<Program>> {
    let copied =
        if checks.are_made() { pointer_arguments::by_value(program, Parts::Computed)? } else { None };
    let program = copied.as_ref().unwrap_or(program);
    match dialect {
        Dialect::Host => host::prepare(program).map(Some),
        Dialect::OpenCl if program.loops_in(dialect).is_some() => {
            host::prepare(zeroing::zeroed(program)?.as_ref().unwrap_or(program)).map(Some)
        }
        Dialect::OpenCl | Dialect::Cuda => Ok(zeroing::zeroed(program)?.or(copied)),
    }
}

/// Writes a program in a C-family language.
pub(crate) fn write(program: &Program, dialect: Dialect, checks: Checks) -> Result<CCode> {
    let prepared = prepare(program, dialect, checks)?;
    let program = prepared.as_ref().unwrap_or(program);
    let bounds = AllBounds::of(program);
    let mut writer = Writer::new(program, &bounds, dialect, checks)?;
    let entries = &program.module.entry_points;
    writer.functions(entries.iter().map(|entry| &entry.function))?;
    let mut symbols = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let symbol = match writer.has_loops {
            true => host::entry(&mut writer, index)?,
            false => writer.entry_point(index)?,
        };
        symbols.push((entry.name.clone(), symbol));
    }
    Ok(CCode { text: writer.finish(), symbols })
}
