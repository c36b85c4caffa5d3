//! Front end: naga's parser and validator, with its diagnostics unchanged.

use std::borrow::Cow;

use naga::front::wgsl;
use naga::valid::{Capabilities, ModuleInfo, ValidationError, ValidationFlags, Validator};
use naga::{Module, WithSpan};
use runtime_core::{Error, ErrorKind, Result};

use crate::nesting::Depth;
use crate::program::{Program, failed, path_or_wgsl};
use crate::specialise::{Specialisation, as_constants, overrides, replaced, values};
use crate::{barriers, continuing, features, immediates, reflect};

/// What a portable kernel may use.
pub(crate) const CAPABILITIES: Capabilities = Capabilities::IMMEDIATES
    .union(Capabilities::FLOAT64)
    .union(Capabilities::SHADER_FLOAT16)
    .union(Capabilities::SHADER_FLOAT16_IN_FLOAT32)
    .union(Capabilities::SHADER_INT64)
    .union(Capabilities::SHADER_INT64_ATOMIC_MIN_MAX)
    .union(Capabilities::SHADER_INT64_ATOMIC_ALL_OPS)
    .union(Capabilities::SUBGROUP)
    .union(Capabilities::SUBGROUP_BARRIER);

/// Text whose element type stands, to program: parsed, validated, specialised, reflected and checked.
pub(crate) fn program(
    code: &str,
    path: &str,
    depth: Depth,
    specialisation: &Specialisation,
) -> Result<Program> {
    let first = read(code, path).map_err(|text| diagnostic(&text))?;
    continuing::check(&first.module, code, path)?;
    let overrides = overrides(&first.module, code);
    let values = values(&first.module, code, path, &specialisation.constants)?;
    let (Read { mut module, info, hidden }, code) = if first.module.overrides.is_empty() {
        (first, Cow::Borrowed(code))
    } else if let Some((module, info)) = replaced(&first.module, &first.info, &values) {
        (Read { module, info, hidden: first.hidden }, Cow::Borrowed(code))
    } else {
        let code = as_constants(&first.module, code, &values);
        let read = read(&code, path).map_err(|text| {
            failed(format!("{}: with the given constants: {}", path_or_wgsl(path), text.trim_end()))
        })?;
        (read, Cow::Owned(code))
    };
    let code = code.as_ref();
    hidden.show(&mut module, &info, code, path)?;
    let features = features::features(&module);
    let (source, path) = (code.to_owned(), path.to_owned());
    let mut program = Program {
        module,
        info,
        source,
        path,
        depth,
        overrides,
        features,
        interfaces: Vec::new(),
        zeroes: true,
        asserts: false,
    };
    program.interfaces = reflect::interfaces(&program)?;
    barriers::check(&program)?;
    Ok(program)
}

/// What naga makes of a text.
struct Read {
    module: Module,
    info: ModuleInfo,
    hidden: immediates::Hidden,
}

/// Parses and validates a text.
///
/// # Errors
/// naga's words.
fn read(code: &str, path: &str) -> Result<Read, String> {
    let name = path_or_wgsl(path);
    let mut module = wgsl::parse_str(code).map_err(|error| error.emit_to_string_with_path(code, name))?;
    let hidden = immediates::hide(&mut module);
    let info = validate(&module).map_err(|error| error.emit_to_string_with_path(code, name))?;
    Ok(Read { module, info, hidden })
}

/// naga's words, without the `error: ` that stands in front of every error anyway.
fn diagnostic(text: &str) -> Error {
    // It does not say where.
    if text.contains("Parser recursion limit exceeded") {
        return failed("nested too deep: the parser takes 200 brackets, statements and dereferences within each other; split it".to_owned());
    }
    failed(text.strip_prefix("error: ").unwrap_or(text).trim_end().to_owned())
}

/// Validates a module for what a portable kernel may use.
pub(crate) fn validate(module: &Module) -> Result<ModuleInfo, Box<WithSpan<ValidationError>>> {
    immediates::validate(module, &mut Validator::new(ValidationFlags::all(), CAPABILITIES))
}

/// Validates a module that was made of a valid one, for what is known of its expressions: what a kernel may not do is
/// not looked for again.
///
/// # Errors
/// `Internal`: whoever made it made a mistake.
pub(crate) fn validate_again(module: &Module) -> Result<ModuleInfo> {
    let mut validator = Validator::new(ValidationFlags::empty(), CAPABILITIES);
    immediates::validate(module, &mut validator).map_err(|error| {
        let text = chain(error.as_inner());
        Error::new(ErrorKind::Internal, format!("preparing the kernel: {text}"))
    })
}

/// An error with all that is behind it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}
