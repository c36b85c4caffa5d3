//! Front end: naga's parser and validator, with its diagnostics unchanged.

use naga::front::wgsl;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use runtime_core::{Error, ErrorKind, Result};

use crate::program::Program;
use crate::specialise::Specialisation;

/// What a portable kernel may use.
const CAPABILITIES: Capabilities = Capabilities::IMMEDIATES
    .union(Capabilities::FLOAT64)
    .union(Capabilities::SHADER_FLOAT16)
    .union(Capabilities::SHADER_FLOAT16_IN_FLOAT32)
    .union(Capabilities::SHADER_INT64)
    .union(Capabilities::SHADER_INT64_ATOMIC_MIN_MAX)
    .union(Capabilities::SHADER_INT64_ATOMIC_ALL_OPS)
    .union(Capabilities::SUBGROUP)
    .union(Capabilities::SUBGROUP_BARRIER);

pub(crate) fn program(code: &str, path: &str, _specialisation: &Specialisation) -> Result<Program> {
    let name = if path.is_empty() { "wgsl" } else { path };
    let failed = |text: String| Error::new(ErrorKind::CompileFailed, text);
    let module = wgsl::parse_str(code).map_err(|error| failed(error.emit_to_string_with_path(code, name)))?;
    let info = Validator::new(ValidationFlags::all(), CAPABILITIES)
        .validate(&module)
        .map_err(|error| failed(error.emit_to_string_with_path(code, name)))?;
    Ok(Program { module, info, source: code.to_owned(), path: path.to_owned(), interfaces: Vec::new() })
}
