//! Front end: parses and validates text with naga, whose errors `explanations` puts in terms of the text.

pub(crate) mod bindings;
pub(crate) mod by_value;
pub(crate) mod constants;
pub(crate) mod continuing_names;
pub(crate) mod diagnostic_filters;
pub(crate) mod diagnostics;
pub(crate) mod directives;
mod endless_loops;
mod every_error;
pub(crate) mod expansion_limits;
mod explanations;
pub(crate) mod f16_immediates;
mod flat_groups;
pub(crate) mod half_bitcasts;
pub(crate) mod half_frexp;
mod late_operands;
mod let_values;
pub(crate) mod limits;
mod lists;
mod merged_types;
pub(crate) mod negations;
pub(crate) mod nested_alignments;
pub(crate) mod panic_guard;
mod pointer_aliases;
mod pointer_calls;
mod pointers_to_variables;
mod remedies;
pub(crate) mod rules;
pub(crate) mod source_edits;
pub(crate) mod specialise;
pub(crate) mod subgroup_calls;
pub(crate) mod templates;
pub(crate) mod text_edits;
pub(crate) mod textures;
pub(crate) mod tokens;
mod type_aliases;
pub(crate) mod type_parameters;
pub(crate) mod unreached_functions;

use std::borrow::Cow;

use naga::front::wgsl;
use naga::valid::{
    Capabilities, GlobalVariableError, ModuleInfo, ValidationError, ValidationFlags, Validator,
};
use naga::{AddressSpace, ArraySize, Module, Span, TypeInner, WithSpan};
use runtime_core::{Error, ErrorKind, Result};

use self::diagnostics::{failed, location};
use self::limits::Depth;

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

/// Parses and validates a text, or if naga refuses it, the text with what it cannot do done: the text that was parsed is
/// returned, too.
///
/// # Errors
/// The diagnostics of all functions of the text as it is.
pub(crate) fn parse_amended<'a>(code: &'a str, path: &str) -> Result<(Parsed, Cow<'a, str>), Vec<String>> {
    if constants::may_be_wrong(code)
        && let Some(Ok((parsed, text))) = amended(code, path, constants::evaluated)
    {
        return Ok((parsed, Cow::Owned(text)));
    }
    let mut errors = match parse_and_validate(code, path) {
        Ok(parsed) => return Ok((parsed, Cow::Borrowed(code))),
        Err(errors) => errors,
    };
    match amended(code, path, constants::evaluated) {
        Some(Ok((parsed, text))) => return Ok((parsed, Cow::Owned(text))),
        // The other errors of the text: these constants have values now.
        Some(Err(rest)) if errors.iter().any(|error| error.contains(constants::UNEVALUATED)) => errors = rest,
        _ => {}
    }
    let both = |code: &str| type_aliases::written_out(&constants::evaluated(code)?);
    let written = amended(code, path, type_aliases::written_out).and_then(Result::ok);
    if let Some((parsed, text)) = written.or_else(|| amended(code, path, both)?.ok()) {
        return Ok((parsed, Cow::Owned(text)));
    }
    Err(errors)
}

/// A text after an amendment, if there is any, and it is nested as deep as the stack allows.
fn amended(
    code: &str,
    path: &str,
    amend: impl Fn(&str) -> Option<String>,
) -> Option<Result<(Parsed, String), Vec<String>>> {
    let text = amend(code)?;
    let depth = limits::check(code, path).ok()?.0;
    let (new_depth, tokens) = limits::check(&text, path).ok()?;
    expansion_limits::check(&tokens, &text, path).ok()?;
    let fits = matches!((depth, new_depth), (Depth::Deep, _) | (_, Depth::Shallow));
    fits.then(|| parse_and_validate(&text, path).map(|parsed| (parsed, text)))
}

/// Parses and validates a text.
///
/// # Errors
/// The diagnostics of all functions.
pub(crate) fn parse_and_validate(code: &str, path: &str) -> Result<Parsed, Vec<String>> {
    let mut module = wgsl::parse_str(code).map_err(|error| every_error::of_text(error, code, path))?;
    bindings::keep_compute(&mut module);
    late_operands::evaluate_first(&mut module);
    endless_loops::complete(&mut module);
    merged_types::merge(&mut module);
    let mut errors = pointer_aliases::errors(&module, code, path);
    errors.extend(rules::of_module(&module, code, path));
    if pointers_to_variables::are_taken(&module) {
        errors.extend(every_error::of_pointer_calls(&mut module, code, path));
        if let Err((span, limit)) = pointers_to_variables::replace(&mut module) {
            errors.push(format!("{}: {limit}", location(code, path, span)));
            return Err(errors);
        }
    }
    let made_private = f16_immediates::make_private(&mut module);
    let mut validated = validate(&module);
    if validated.is_err() && let_values::hide(&mut module) {
        validated = validate(&module);
    }
    match validated {
        Ok(info) if errors.is_empty() => Ok(Parsed { module, info, made_private }),
        Ok(_) => Err(errors),
        Err(error) => {
            every_error::of_module(module, *error, &mut errors, code, path);
            Err(errors)
        }
    }
}

/// The error with the diagnostics of `code`, without their leading `error: `, which every error has anyway.
pub(crate) fn diagnostic(texts: &[String], code: &str, path: &str) -> Error {
    if let Some(error) = templates::unexpanded(code, path) {
        return error;
    }
    // naga's message has no location.
    if texts.iter().any(|text| text.contains("Parser recursion limit exceeded")) {
        return failed(
            "nested too deep: more than 200 nested brackets, statements and dereferences; split it"
                .to_owned(),
        );
    }
    if let Some(span) = push_constant(code) {
        return failed(format!(
            "{}: the scalars of a kernel are in `var<immediate>`, not in `var<push_constant>`; rename it",
            location(code, path, span)
        ));
    }
    let with_remedy =
        |text: &String| remedies::with_remedy(text.strip_prefix("error: ").unwrap_or(text).trim_end());
    failed(texts.iter().map(with_remedy).collect::<Vec<_>>().join("\n"))
}

/// The older name of the address space of scalars.
fn push_constant(code: &str) -> Option<Span> {
    let tokens: Vec<_> = tokens::tokens(code).collect();
    let is_space = |at: &usize| {
        ["var", "<", "push_constant"].iter().zip(*at..).all(|(word, at)| tokens::text(&tokens, at) == *word)
    };
    (0..tokens.len()).find(is_space).map(|at| tokens[at + 2].span())
}

/// Validates a module against [`CAPABILITIES`]. Uniform buffers may have the layouts of storage buffers, as the language
/// extension `uniform_buffer_standard_layout` allows: they become storage buffers later.
pub(crate) fn validate(module: &Module) -> Result<ModuleInfo, Box<WithSpan<ValidationError>>> {
    let validated =
        |module| flat_groups::validate(module, &mut Validator::new(ValidationFlags::all(), CAPABILITIES));
    match validated(module) {
        Err(error) if is_layout(error.as_inner()) => {
            let mut copy = module.clone();
            plain_uniforms_as_storage(&mut copy);
            validated(&copy)
        }
        other => other,
    }
}

/// Whether an error is about the layout of a uniform buffer.
const fn is_layout(error: &ValidationError) -> bool {
    let ValidationError::GlobalVariable { source, .. } = error else { return false };
    matches!(source, GlobalVariableError::Alignment(AddressSpace::Uniform, ..))
}

/// Turns uniform buffers into storage buffers, except those with an array without a length or an atomic, which are invalid.
fn plain_uniforms_as_storage(module: &mut Module) {
    // By type: a structure may contain another many times.
    let mut is_plain: Vec<bool> = Vec::with_capacity(module.types.len());
    for (_, ty) in module.types.iter() {
        is_plain.push(match &ty.inner {
            TypeInner::Atomic(_) | TypeInner::Array { size: ArraySize::Dynamic, .. } => false,
            TypeInner::Array { base, .. } => is_plain[base.index()],
            TypeInner::Struct { members, .. } => members.iter().all(|member| is_plain[member.ty.index()]),
            _ => true,
        });
    }
    bindings::uniforms_as_storage(module, |variable| is_plain[variable.ty.index()]);
}

/// Validates a module derived from a valid one, to compute its types; the rules for kernels are not checked again.
///
/// # Errors
/// `Internal`: the transform that produced the module is wrong.
pub(crate) fn validate_again(module: &Module) -> Result<ModuleInfo> {
    let mut validator = Validator::new(ValidationFlags::empty(), CAPABILITIES);
    flat_groups::validate(module, &mut validator).map_err(|error| {
        let text = with_causes(error.as_inner());
        Error::new(ErrorKind::Internal, format!("preparing the kernel: {text}"))
    })
}

/// An error with all its causes, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}
