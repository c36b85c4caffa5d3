//! Front end: parses and validates text with naga and passes its diagnostics on unchanged.

pub(crate) mod bindings;
pub(crate) mod by_value;
pub(crate) mod diagnostics;
pub(crate) mod directives;
pub(crate) mod expansion_limits;
pub(crate) mod f16_immediates;
pub(crate) mod half_bitcasts;
mod late_operands;
pub(crate) mod limits;
pub(crate) mod panic_guard;
mod remedies;
pub(crate) mod source_edits;
pub(crate) mod specialise;
pub(crate) mod subgroup_calls;
pub(crate) mod templates;
pub(crate) mod text_edits;
pub(crate) mod textures;
pub(crate) mod tokens;
pub(crate) mod type_parameters;

use naga::front::wgsl;
use naga::valid::{Capabilities, ModuleInfo, ValidationError, ValidationFlags, Validator};
use naga::{Module, Span, WithSpan};
use runtime_core::{Error, ErrorKind, Result};

use self::diagnostics::{failed, path_or_wgsl, place};

/// The capabilities that a portable kernel may use. Textures are checked by their uses, in words of their own.
pub(crate) const CAPABILITIES: Capabilities = Capabilities::IMMEDIATES
    .union(Capabilities::FLOAT64)
    .union(Capabilities::SHADER_FLOAT16)
    .union(Capabilities::SHADER_FLOAT16_IN_FLOAT32)
    .union(Capabilities::SHADER_INT64)
    .union(Capabilities::SHADER_INT64_ATOMIC_MIN_MAX)
    .union(Capabilities::SHADER_INT64_ATOMIC_ALL_OPS)
    .union(Capabilities::SUBGROUP)
    .union(Capabilities::SUBGROUP_BARRIER)
    .union(Capabilities::COOPERATIVE_MATRIX)
    .union(Capabilities::CUBE_ARRAY_TEXTURES);

/// A parsed and validated text.
pub(crate) struct Parsed {
    pub(crate) module: Module,
    pub(crate) info: ModuleInfo,
    pub(crate) made_private: f16_immediates::MadePrivate,
}

/// Parses and validates a text.
///
/// # Errors
/// naga's diagnostic.
pub(crate) fn parse_and_validate(code: &str, path: &str) -> Result<Parsed, String> {
    let name = path_or_wgsl(path);
    let mut module = wgsl::parse_str(code).map_err(|error| error.emit_to_string_with_path(code, name))?;
    bindings::keep_compute(&mut module);
    late_operands::evaluate_first(&mut module);
    let made_private = f16_immediates::make_private(&mut module);
    let info = validate(&module).map_err(|error| error.emit_to_string_with_path(code, name))?;
    Ok(Parsed { module, info, made_private })
}

/// naga's diagnostic of `code` without its leading `error: `, which every error has anyway.
pub(crate) fn diagnostic(text: &str, code: &str, path: &str) -> Error {
    if let Some(error) = templates::unexpanded(code, path) {
        return error;
    }
    // naga's message has no location.
    if text.contains("Parser recursion limit exceeded") {
        return failed(
            "nested too deep: more than 200 nested brackets, statements and dereferences; split it"
                .to_owned(),
        );
    }
    if let Some(span) = push_constant(code) {
        return failed(format!(
            "{}: the scalars of a kernel are in `var<immediate>`, not in `var<push_constant>`; rename it",
            place(code, path, span)
        ));
    }
    let text = remedies::with_remedy(text.strip_prefix("error: ").unwrap_or(text).trim_end());
    failed(without_internals(&text))
}

/// The older name of the address space of scalars.
fn push_constant(code: &str) -> Option<Span> {
    let mut last = ["", ""];
    let mut all = tokens::tokens(code);
    let found = all.find(|token| {
        let is_space = token.text == "push_constant" && last == ["var", "<"];
        last = [last[1], token.text];
        is_space
    });
    found.map(|token| token.span())
}

/// naga's diagnostic in words of WGSL: handles of its intermediate representation say nothing to users.
fn without_internals(text: &str) -> String {
    let mut new = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("naga::ir::") {
        let (kind, after) = after.split_once(" [").unwrap_or((after, ""));
        let (_, after) = after.split_once(']').unwrap_or(("", after));
        new += before;
        new += &format!("this {}", kind.to_lowercase());
        rest = after;
    }
    new += rest;
    match new.strip_prefix("Function [").and_then(|text| text.split_once("] ")) {
        Some((_, text)) => format!("function {text}"),
        None => new,
    }
}

/// Validates a module against [`CAPABILITIES`].
pub(crate) fn validate(module: &Module) -> Result<ModuleInfo, Box<WithSpan<ValidationError>>> {
    f16_immediates::validate(module, &mut Validator::new(ValidationFlags::all(), CAPABILITIES))
}

/// Validates a module derived from a valid one, to compute its types; the rules for kernels are not checked again.
///
/// # Errors
/// `Internal`: the transform that produced the module is wrong.
pub(crate) fn validate_again(module: &Module) -> Result<ModuleInfo> {
    let mut validator = Validator::new(ValidationFlags::empty(), CAPABILITIES);
    f16_immediates::validate(module, &mut validator).map_err(|error| {
        let text = with_causes(error.as_inner());
        Error::new(ErrorKind::Internal, format!("preparing the kernel: {text}"))
    })
}

/// An error with all its causes, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}
