//! The pipeline, step by step: from text to a [`Program`], and from a program to code.

use std::borrow::Cow;

use naga::Module;
use naga::valid::ModuleInfo;
use runtime_core::lowering::SignatureParam;
use runtime_core::{Error, Result};

use crate::analysis::features::features;
use crate::analysis::{interfaces, signature};
use crate::check::{barriers, continuing, cooperative};
use crate::parse::diagnostics::{failed, path_or_wgsl};
use crate::parse::limits::{self, Depth};
use crate::parse::specialise::{Specialisation, as_constants, overrides, values, with_values};
use crate::parse::tokens::Token;
use crate::parse::type_parameters::TypeParameters;
use crate::parse::{
    Parsed, diagnostic, expansion_limits, panic_guard, parse_amended, parse_and_validate, source_edits,
};
use crate::parse::{
    bindings, by_value, constants, continuing_names, directives, half_bitcasts, half_frexp, negations,
    nested_alignments, rules, subgroup_calls, textures, unreached_functions,
};
use crate::print::c::{self, CCode};
use crate::print::spirv;
use crate::program::{Checks, Dialect, Feature, Program};
use crate::transform::pointer_arguments::{self, Parts};
use crate::transform::subgroups::{self, Sharing};
use crate::transform::{bounds_checks, coarsening, zeroing};

impl Program {
    /// Parses, specialises and checks `code`; messages refer to it as `path`, which may be empty.
    ///
    /// # Errors
    /// `CompileFailed` with naga's diagnostic, or with the convention's rule that an entry point breaks and its line;
    /// `InvalidArgument` for a constant or element type that the code does not declare.
    pub fn parse(code: &str, path: &str, specialisation: &Specialisation) -> Result<Self> {
        let text = Text::of(code, path, specialisation)?;
        let code = text.code();
        let (depth, tokens) = limits::check(code, path)?;
        expansion_limits::check(&tokens, code, path)?;
        panic_guard::run("reading the kernel", depth, || {
            let program = parse_program(code, path, depth, specialisation);
            let program = program.map_err(|error| text.own_error(error, path))?;
            text.check_rules(path)?;
            Ok(program)
        })
    }

    /// The parameters of an entry point of `code`, in the order of the arguments. Each line `alias NAME = …;` that names
    /// a plain scalar type declares a type parameter, unless `specialisation` sets it. Constants need no values.
    ///
    /// # Errors
    /// As [`Program::parse`]; `NotFound` for an unknown entry point.
    pub fn signature(
        code: &str,
        path: &str,
        specialisation: &Specialisation,
        entry: &str,
    ) -> Result<Vec<SignatureParam>> {
        let text = Text::of(code, path, specialisation)?;
        let code = text.code();
        let (depth, tokens) = limits::check(code, path)?;
        expansion_limits::check(&tokens, code, path)?;
        let chosen: Vec<_> = specialisation.named_elements().into_iter().map(|(name, _)| name).collect();
        panic_guard::run("reading the kernel", depth, || {
            let (Parsed { mut module, info, made_private }, code) = parse_amended(code, path)
                .map_err(|texts| text.own_error(diagnostic(&texts, code, path), path))?;
            let code = code.as_ref();
            text.check_rules(path)?;
            made_private.restore(&mut module, &info, code, path)?;
            let module = with_arguments((module, info), code, path, specialisation)?;
            let program = Self::new(module, code, path, depth)?;
            signature::of_entry(&program, entry, &TypeParameters::of(&tokens, &chosen))
        })
    }

    /// A valid module with its interfaces, without overrides.
    ///
    /// # Errors
    /// `CompileFailed`, naming the rule of the convention that an entry point breaks, and its line.
    fn new((module, info): (Module, ModuleInfo), source: &str, path: &str, depth: Depth) -> Result<Self> {
        let mut program = Self {
            features: features(&module),
            module,
            info,
            source: source.to_owned(),
            path: path.to_owned(),
            depth,
            interfaces: Vec::new(),
            overrides: Vec::new(),
            zeroes: true,
            asserts: false,
            is_serial: false,
            has_debug_info: false,
            has_lines: false,
            min_groups: 0,
            group_loops: None,
        };
        program.interfaces = interfaces::of_program(&program)?;
        Ok(program)
    }

    /// Writes SPIR-V for Vulkan: tensors are storage buffers in set 0, scalars are push constants.
    ///
    /// # Errors
    /// `Unsupported` for what SPIR-V cannot express.
    pub fn spirv(&self, checks: Checks) -> Result<Vec<u32>> {
        panic_guard::run("writing SPIR-V", self.depth, || spirv::write(self, checks))
    }

    /// Writes code in a C-family language.
    ///
    /// # Errors
    /// `Unsupported`, naming the construct and its line, for what the language cannot express.
    pub fn c(&self, dialect: Dialect, checks: Checks) -> Result<CCode> {
        if dialect == Dialect::Host && self.features.contains(&Feature::Subgroups) {
            return self.with_emulated_subgroups(None)?.c(dialect, checks);
        }
        panic_guard::run("writing C", self.depth, || c::write(self, dialect, checks))
    }

    /// The program for a target without subgroups: with subgroups of `size` invocations, a power of two from 4 to 128, in the
    /// order of the local invocation index, which exchange values through work-group memory. Without `size`, they have 32
    /// invocations, or less if the work-groups have. Cooperative matrices are emulated, too, by full subgroups of 16, 32 or 64
    /// invocations.
    ///
    /// # Errors
    /// `Unsupported` for an operation that some invocations of a work-group do not reach, naming its line;
    /// `InvalidArgument` for another size.
    pub fn with_emulated_subgroups(&self, size: Option<u32>) -> Result<Self> {
        let size = self.emulated_size(size)?;
        panic_guard::run("emulating subgroups", self.depth, || {
            let emulated = |sharing| -> Result<Self> {
                let mut program = self.with(subgroups::emulated(self, size, sharing)?)?;
                program.features.retain(|feature| *feature != Feature::Subgroups);
                // Tensors of matrices are aligned as they are where matrices are not emulated.
                program.interfaces = interfaces::of_program(&program)?;
                program.features.retain(|feature| *feature != Feature::MatrixUnits);
                Ok(program)
            };
            let program = emulated(Sharing::Shared)?;
            match barriers::check_emulated(&program) {
                Ok(()) => Ok(program),
                Err(error) => barriers::check_emulated(&emulated(Sharing::PerCall)?).and(Err(error)),
            }
        })
    }

    /// The invocations of an emulated subgroup.
    fn emulated_size(&self, size: Option<u32>) -> Result<u32> {
        let has_matrices = self.features.contains(&Feature::MatrixUnits);
        let (least, most) = if has_matrices { (16, 64) } else { (4, 128) };
        let groups = self.interfaces.iter().map(|entry| entry.group_size.iter().product());
        let largest: u32 = groups.max().unwrap_or(1);
        let size = size.unwrap_or_else(|| largest.next_power_of_two().clamp(least, 32));
        if !size.is_power_of_two() || !(least..=most).contains(&size) {
            let what = if has_matrices { " with cooperative matrices" } else { "" };
            let message = format!(
                "a subgroup of {size} items{what}: the size is a power of two from {least} to {most}"
            );
            return Err(Error::invalid(message));
        }
        if has_matrices {
            cooperative::check_full_subgroups(self, size, "emulated subgroups")?;
        }
        Ok(size)
    }

    /// The program with element-wise entry points changed such that one invocation does the work of several, whose loads are
    /// then issued together: of `items`, or with `None`, of as many as the size of the elements calls for. [`Interface`]
    /// describes how to launch the result. Entry points with loops, barriers, atomic operations or shared memory stay as they
    /// are, as does code for debuggers. Not for host C, whose loops are vectorised.
    ///
    /// [`Interface`]: crate::Interface
    ///
    /// # Errors
    /// `Unsupported` for expressions that kernels do not use.
    pub fn coarsened(self, items: Option<u32>) -> Result<Self> {
        let changed = match self.is_plain() {
            true => None,
            false => {
                panic_guard::run("joining invocations", self.depth, || coarsening::coarsened(&self, items))?
            }
        };
        Ok(changed.unwrap_or(self))
    }

    /// The program with bounds checks as branches in the module itself, so that a writer may omit its own.
    ///
    /// # Errors
    /// `Unsupported` for expressions that kernels do not use.
    pub fn with_bounds_checks(&self, checks: Checks) -> Result<Self> {
        panic_guard::run("checking accesses", self.depth, || {
            let copied = pointer_arguments::by_value(self, Parts::All)?;
            let program = copied.as_ref().unwrap_or(self);
            self.with(bounds_checks::with_checks(program, checks)?)
        })
    }

    /// The program with bounds checks as branches in the module, plus a check of each index that was proven in
    /// range. Where such an index is out of range after all, the line number is stored in a tensor of one `u32`,
    /// which precedes each entry point's own tensors. For tests of the proofs in languages that have no other way
    /// to report.
    pub(crate) fn with_proof_reports(&self, checks: Checks) -> Result<Self> {
        panic_guard::run("checking accesses", self.depth, || {
            let copied = pointer_arguments::by_value(self, Parts::All)?;
            let program = copied.as_ref().unwrap_or(self);
            let zeroed = zeroing::zeroed(program)?;
            let program = zeroed.as_ref().unwrap_or(program);
            bounds_checks::with_reports(program, checks)
        })
        .map(Self::with_uninitialised_workgroup_memory)
    }
}

/// A text after the edits for what naga lacks of WGSL.
struct Text<'a> {
    /// As its author wrote it, and its tokens.
    original: &'a str,
    tokens: Vec<Token<'a>>,
    /// Still with its textures, for errors in terms of the text that the author wrote.
    plain: Cow<'a, str>,
    /// With tensors in place of its textures, if it has any.
    with_tensors: Option<String>,
}

impl<'a> Text<'a> {
    /// Edits a text. The limits are checked again before each step whose time they bound.
    fn of(code: &'a str, path: &str, specialisation: &Specialisation) -> Result<Self> {
        let (tokens, mut plain) = match limits::check(code, path) {
            Ok((_, tokens)) => (tokens, edited(code, path, specialisation)?),
            Err(error) => {
                let (tokens, text) = shortened(code, path).ok_or(error)?;
                (tokens, Cow::Owned(edited(&text, path, specialisation)?.into_owned()))
            }
        };
        if let Cow::Owned(text) = &plain {
            limits::check(text, path)?;
        }
        if let Some(text) = without_half_frexp(&plain, path)? {
            limits::check(&text, path)?;
            plain = Cow::Owned(text);
        }
        if let Some(text) = with_half_bitcasts(&plain, path)? {
            limits::check(&text, path)?;
            plain = Cow::Owned(text);
        }
        let with_tensors = match textures::with_tensors(&plain) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        };
        Ok(Self { original: code, tokens, plain, with_tensors })
    }

    /// Checks the rules that are about the text, of one that is valid otherwise.
    fn check_rules(&self, path: &str) -> Result<()> {
        rules::check_text(&self.tokens, self.original, path)
    }

    /// The text that naga parses.
    fn code(&self) -> &str {
        self.with_tensors.as_deref().unwrap_or(&self.plain)
    }

    /// The error of the text as its author wrote it, if that text has one of its own.
    fn own_error(&self, error: Error, path: &str) -> Error {
        if self.with_tensors.is_none() {
            return error;
        }
        match parse_and_validate(&self.plain, path) {
            Err(texts) => diagnostic(&texts, &self.plain, path),
            Ok(_) => error,
        }
    }
}

/// The tokens of a text that is too long, and a shorter one, with the values of its constants.
fn shortened<'a>(code: &'a str, path: &str) -> Option<(Vec<Token<'a>>, String)> {
    let (depth, tokens) = limits::check_long(code, path).ok()?;
    let text = panic_guard::run("reading the kernel", depth, || Ok(constants::evaluated(code))).ok()??;
    limits::check(&text, path).ok()?;
    Some((tokens, text))
}

/// The text after all edits that need no parsing, except that of textures.
fn edited<'a>(code: &'a str, path: &str, specialisation: &Specialisation) -> Result<Cow<'a, str>> {
    // Some editors begin a file with a byte-order mark, which is not part of WGSL.
    let code = code.strip_prefix('\u{feff}').unwrap_or(code);
    let code = source_edits::with_elements(code, path, &specialisation.named_elements())?;
    let code = then(code, directives::without_needless);
    let code = then(code, continuing_names::without_repeated);
    let code = then(code, negations::parted);
    let code = match nested_alignments::written_out(&code, path)? {
        Cow::Owned(edited) => Cow::Owned(edited),
        Cow::Borrowed(_) => code,
    };
    Ok(then(code, subgroup_calls::with_known_calls))
}

/// The text without calls of `frexp` with `f16`, if it has any.
fn without_half_frexp(code: &str, path: &str) -> Result<Option<String>> {
    if !half_frexp::may_be_in(code) {
        return Ok(None);
    }
    let (depth, tokens) = limits::check(code, path)?;
    expansion_limits::check(&tokens, code, path)?;
    panic_guard::run("reading the kernel", depth, || match half_frexp::without_calls(code) {
        Cow::Owned(text) => Ok(Some(text)),
        Cow::Borrowed(_) => Ok(None),
    })
}

/// The text without bit casts of `f16`, if it has any.
fn with_half_bitcasts(code: &str, path: &str) -> Result<Option<String>> {
    if !half_bitcasts::may_be_in(code) {
        return Ok(None);
    }
    let (_, tokens) = limits::check(code, path)?;
    expansion_limits::check(&tokens, code, path)?;
    let Some(probe) = half_bitcasts::Probe::of(code, &tokens) else { return Ok(None) };
    // Longer and nested deeper than the text: beyond the limits, the casts stay.
    let Ok((depth, tokens)) = limits::check(probe.text(), path) else { return Ok(None) };
    if expansion_limits::check(&tokens, probe.text(), path).is_err() {
        return Ok(None);
    }
    let converted = panic_guard::run("reading the kernel", depth, || Ok(probe.with_conversions()))?;
    if let Some(converted) = &converted {
        half_bitcasts::check_calls(code, converted, path)?;
    }
    Ok(converted)
}

/// The text after one more edit.
fn then<'a>(code: Cow<'a, str>, edit: impl FnOnce(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match edit(&code) {
        Cow::Owned(edited) => Cow::Owned(edited),
        Cow::Borrowed(_) => code,
    }
}

/// The module with its buffers in the form of arguments.
fn with_arguments(
    (module, info): (Module, ModuleInfo),
    code: &str,
    path: &str,
    specialisation: &Specialisation,
) -> Result<(Module, ModuleInfo)> {
    let (module, info) = by_value::pass(module, info, &specialisation.by_value, (code, path))?;
    bindings::normalise(module, info)
}

/// Parses, validates, specialises, reflects and checks a text whose element types are already set.
fn parse_program(code: &str, path: &str, depth: Depth, specialisation: &Specialisation) -> Result<Program> {
    let (first, amended) = parse_amended(code, path).map_err(|texts| diagnostic(&texts, code, path))?;
    let code = amended.as_ref();
    continuing::check(&first.module, code, path)?;
    barriers::check_unreached(&first.module, code, path)?;
    let overrides = overrides(&first.module, code);
    let values = values(&first.module, code, path, &specialisation.constants)?;
    let (Parsed { mut module, info, made_private }, code) = if first.module.overrides.is_empty() {
        (first, Cow::Borrowed(code))
    } else if let Some((module, info)) = with_values(&first.module, &first.info, &values)
        .filter(|(module, _)| rules::of_module(module, code, path).is_empty())
    {
        (Parsed { module, info, made_private: first.made_private }, Cow::Borrowed(code))
    } else {
        let code = as_constants(&first.module, &unreached_functions::blanked(&first.module, code), &values);
        let (parsed, code) = parse_amended(&code, path).map_err(|texts| {
            failed(format!(
                "{}: with the given constants: {}",
                path_or_wgsl(path),
                texts.join("\n").trim_end()
            ))
        })?;
        (parsed, Cow::Owned(code.into_owned()))
    };
    let code = code.as_ref();
    made_private.restore(&mut module, &info, code, path)?;
    let module = with_arguments((module, info), code, path, specialisation)?;
    let program = Program { overrides, ..Program::new(module, code, path, depth)? };
    cooperative::check(&program)?;
    barriers::check(&program)?;
    Ok(program)
}
