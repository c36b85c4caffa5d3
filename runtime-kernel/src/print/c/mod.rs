//! One writer of C, with a small dialect per language.
//!
//! The text has four parts, each printed only as far as it is used: types, constants, small functions with the semantics
//! of WGSL (the *library*), and the functions and entry points of the program.
//!
//! | file | what is there |
//! | --- | --- |
//! | `dialect`, `reserved`, `names` | what the languages spell differently; identifiers |
//! | `types`, `library`, `value` | types on demand; library functions on demand; literals and constants |
//! | `integer`, `float`, `vector`, `matrix`, `packing`, `convert`, `half` | the library's functions |
//! | `plan` | which expressions of a function get a name, and which are printed where they are used |
//! | `place`, `index` | access chains with their bounds checks; the arithmetic of indices |
//! | `assertion` | accesses that were proven in range, checked nevertheless |
//! | `promise` | a second body, for launches that keep to what makes checks needless (`crate::analysis::proof`) |
//! | `expression`, `operator`, `math` | expressions |
//! | `statement`, `logical`, `looping`, `atomic`, `subgroup` | statements |
//! | `environment`, `function`, `entry` | what surrounds one invocation; functions; entry points of OpenCL C and CUDA C++ |
//! | `group` | entry points of host C |
//!
//! # Printing one invocation
//!
//! A [`Printer`](statement::Printer) walks the statements of one function and appends lines to `lines`. What a name is spelled like
//! in this place, how a named value is stored, and what a barrier or `return` becomes, it asks an
//! [`Environment`](environment::Environment): a function's own ([`Plain`](environment::Plain)), or the host's, where a
//! variable may be an array over the lanes of a work-group.
//!
//! ```text
//! printer.block(&block)             all statements of a block
//! printer.statement(&statement, span)   one of them: `Emit` defines the named values of its range
//! printer.value(handle)             an expression as text that can stand as an initialiser or argument
//! printer.operand(handle, level)    the same, in parentheses unless it binds at least as tightly as `level`
//! printer.place(pointer)            an access chain: its lvalue, and the conditions under which it is in range
//! ```
//!
//! [`Plan`](plan::Plan) says which expressions are named (`plan.value(handle)`): those used more than once, `let`s, results of calls, and
//! loads that something with an effect separates from their use. A load that is not named stands in the same
//! block as its use, with nothing but `Emit`s between: a barrier never separates the two.
//!
//! Types print as WGSL's aliases (`u32`, `f32`, `vec3f`, `mat4x4f`); vectors are structures of scalars (members `x y z w`)
//! in all languages, so that a compiler sees scalars, and arrays are structures with a member `at`.

mod dialect;
mod entry;
mod form;
mod function;
mod host;
mod invocation;
mod library;
mod lines;
mod names;
mod reserved;
#[cfg(test)]
mod tests;
mod types;
mod value;
mod writer;

use runtime_core::Result;

use self::writer::Writer;
use crate::analysis::proof::bounds::AllBounds;
use crate::program::{Checks, Dialect, Program};
use crate::transform::pointer_arguments::{self, Parts};
use crate::transform::zeroing;

/// What the line of C for the host begins with that says why an entry point has its plain form: the schedule that was made of it
/// is not right. For tests and fuzzing, where schedules are verified.
pub const REJECTED: &str = "/* plain: ";

/// A program in a C-family language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CCode {
    /// The text.
    pub text: String,
    /// Entry points: the name in the portable text, and the symbol in this one.
    pub symbols: Vec<(String, String)>,
}

/// The program that the host's entry points are written from.
#[cfg(test)]
pub(crate) fn host_program(program: &Program) -> Result<Program> {
    host::prepare(program)
}

/// Writes a program in a C-family language.
pub(crate) fn write(program: &Program, dialect: Dialect, checks: Checks) -> Result<CCode> {
    let copied =
        if checks.are_made() { pointer_arguments::by_value(program, Parts::Computed)? } else { None };
    let program = copied.as_ref().unwrap_or(program);
    let prepared = match dialect {
        Dialect::Host => Some(host::prepare(program)?),
        Dialect::OpenCl | Dialect::Cuda => zeroing::zeroed(program)?,
    };
    let program = prepared.as_ref().unwrap_or(program);
    let bounds = AllBounds::of(program);
    let mut writer = Writer::new(program, &bounds, dialect, checks);
    let entries = &program.module.entry_points;
    writer.functions(entries.iter().map(|entry| &entry.function))?;
    let mut symbols = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let symbol = match dialect {
            Dialect::Host => host::entry(&mut writer, index)?,
            Dialect::OpenCl | Dialect::Cuda => writer.entry_point(index)?,
        };
        symbols.push((entry.name.clone(), symbol));
    }
    Ok(CCode { text: writer.finish(), symbols })
}
