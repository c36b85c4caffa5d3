//! Compiles code to shared objects without loading them, and tells how a shared object fits this processor.

use runtime_core::backend::{Log, Source, read_file};
use runtime_core::code::{CompiledCode, Fit};
use runtime_core::{CodeFormat, Error, ErrorKind, OptionValue, Options, Result};

use crate::architecture::{self, Architecture, Marked};
use crate::options::{check_options, name_of};
use crate::toolchain::{self, Built};
use crate::{compile, debug, link, shared_object};

/// Compiles or links `source`, which is no shared object.
///
/// # Errors
/// As [`compile::compile`] and [`link::link`].
pub(crate) fn build(source: &Source<'_>, architecture: Architecture, log: Log) -> Result<Built> {
    match source.format {
        "c" => compile::compile(source, architecture, log),
        _ => link::link(source, architecture, log),
    }
}

/// Compiles `source` to a shared object.
///
/// # Errors
/// `Unsupported` for a shared object; `InvalidArgument` for an option that the format does not have, or a flag that
/// chooses another architecture; otherwise as [`build`].
pub(crate) fn compile(source: &Source<'_>, architecture: Architecture, log: Log) -> Result<CompiledCode> {
    check_options(source)?;
    if source.format == "shared-object" {
        return Err(Error::unsupported("a shared object is native code already; load it as it is"));
    }
    check_flags(source.options, architecture)?;
    let built = build(source, architecture, log)?;
    let code = read_file(&built.library)?;
    shared_object::check_for(&code, name_of(source), architecture.machine())
        .map_err(|error| error.with_note("option `compiler` names a compiler for the architecture"))?;
    // What an object needs is unknown.
    let code = if source.format == "c" { architecture.mark(code) } else { code };
    let mut options = debug::carried(source.options);
    if let Some(OptionValue::Text(convention)) = source.options.value("convention") {
        options.push("convention", convention.as_str());
    }
    Ok(CompiledCode { format: CodeFormat::SHARED_OBJECT, code, log: built.log, options, kernels: Vec::new() })
}

/// Refuses flags that contradict the mark of the code.
fn check_flags(options: &Options, architecture: Architecture) -> Result<()> {
    const HARMLESS: [&str; 4] = ["-mtune=", "-mprefer-vector-width=", "-mno-", "-mcmodel="];
    let mut flags = toolchain::flags(options).map(|flag| flag.to_string_lossy().into_owned());
    let chooses =
        |flag: &String| flag.starts_with("-m") && !HARMLESS.iter().any(|harmless| flag.starts_with(harmless));
    match flags.find(chooses).filter(|_| architecture != Architecture::Native) {
        Some(flag) => Err(Error::invalid(format!(
            "flag \"{flag}\" chooses an architecture, but the code is compiled for {}; remove the flag",
            architecture.name()
        ))),
        None => Ok(()),
    }
}

/// How `code` fits this processor.
///
/// # Errors
/// `Io`.
pub(crate) fn fits(code: &Source<'_>) -> Result<Fit> {
    match code.format {
        "shared-object" => {}
        "c" | "object" | "archive" => return Ok(Fit::Recompile),
        _ => return Ok(Fit::Unsupported),
    }
    let bytes = &*code.bytes()?;
    match architecture::check(bytes, name_of(code)) {
        Ok(()) if Marked::of(bytes) == Marked::Best => Ok(Fit::Optimal),
        Ok(()) => Ok(Fit::Recompile),
        Err(error) if error.kind() == ErrorKind::CompileFailed => Ok(Fit::Unsupported),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
