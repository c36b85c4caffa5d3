//! The module option `registers`: how many registers a work-item may use.

use runtime_core::backend::OptionSpec;
use runtime_core::{Error, Options, Result};

use crate::formats::REGISTERS;

/// The value that leaves the choice to the compiler.
const DEFAULT: &str = "default";
/// Fewest and most registers that the compilers accept for every architecture.
const RANGE: std::ops::RangeInclusive<u32> = 16..=255;

/// Declares the option.
pub(crate) fn option() -> OptionSpec {
    OptionSpec::module(
        REGISTERS,
        DEFAULT,
        "Most registers per work-item, 16 to 255, for CUDA C and PTX (`maxrregcount`); more spills less and leaves room for \
         fewer work-items. \"default\" leaves it to the compiler.",
    )
}

/// The limit; `None` for the compiler's own.
///
/// # Errors
/// `InvalidArgument` for any other value than `default` and the valid numbers.
pub(crate) fn parse(options: &Options) -> Result<Option<u32>> {
    let value = options.text(REGISTERS).unwrap_or(DEFAULT);
    if value == DEFAULT {
        return Ok(None);
    }
    let registers = value.parse().ok().filter(|registers| RANGE.contains(registers));
    registers.map(Some).ok_or_else(|| {
        let (least, most) = (RANGE.start(), RANGE.end());
        Error::invalid(format!(
            "option \"{REGISTERS}\" cannot be \"{value}\"; give \"{DEFAULT}\", or a number from {least} to {most}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_default_or_a_number_in_range() {
        let parsed = |value: &str| parse(&Options::new().with(REGISTERS, value));
        assert_eq!(parse(&Options::new()).unwrap(), None);
        assert_eq!(parsed("default").unwrap(), None);
        assert_eq!(parsed("16").unwrap(), Some(16));
        assert_eq!(parsed("255").unwrap(), Some(255));
        for wrong in ["", "15", "256", "-1", "many", "64.0", "4294967312"] {
            let error = parsed(wrong).unwrap_err();
            let says =
                ["registers", "default", "16 to 255"].iter().all(|word| error.message().contains(word));
            assert!(says, "{wrong}: {error}");
        }
    }
}
