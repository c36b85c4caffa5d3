//! The formats of code that devices accept, and the options that belong to each.

use runtime_core::backend::{Source, check_format};
use runtime_core::{Error, Result};

/// Accepted formats, preferred first.
pub(crate) const FORMATS: [&str; 4] = ["cubin", "fatbin", "ptx", "cuda-c"];

/// The option for the most registers per work-item.
pub(crate) const REGISTERS: &str = "registers";
/// The option for the level of optimisation.
pub(crate) const OPTIMIZATION: &str = "optimization";

/// Checks the format, and that it accepts the given options.
///
/// # Errors
/// `Unsupported` for a format, `InvalidArgument` for an option of another one.
pub(crate) fn check(source: &Source<'_>) -> Result<()> {
    check_format(source.format, &FORMATS)?;
    let applies = |key: &str| match source.format {
        "cuda-c" => key != OPTIMIZATION,
        "ptx" => [REGISTERS, OPTIMIZATION].contains(&key),
        _ => false,
    };
    let Some((key, _)) = source.options.iter().find(|(key, _)| !applies(key)) else { return Ok(()) };
    let formats = match key {
        REGISTERS => "formats \"cuda-c\" and \"ptx\"",
        OPTIMIZATION => "format \"ptx\"",
        _ => "format \"cuda-c\"",
    };
    Err(Error::invalid(format!("option \"{key}\" applies to {formats}, not to \"{}\"", source.format)))
}
