//! The load option `debug`: code for a debugger.

use runtime_core::backend::{OptionSpec, Source};
use runtime_core::{Error, Result};

/// The load option.
pub(crate) const OPTION: &str = "debug";

/// Compiler options, preferred first. OpenCL defines `-cl-opt-disable`; `-g` is an extension of PoCL and Intel.
const FLAGS: [&str; 2] = ["-g -cl-opt-disable", "-cl-opt-disable"];

pub(crate) fn option() -> OptionSpec {
    OptionSpec::module(
        OPTION,
        false,
        "Compile OpenCL C and SPIR-V with -cl-opt-disable, and with -g where the driver has it, for debuggers.",
    )
}

/// The compiler options for a load, preferred first; a single empty one for code that is not compiled for a debugger.
pub(crate) fn flags(source: &Source<'_>) -> &'static [&'static str] {
    let is_compiled = source.format != "opencl-binary";
    if is_compiled && source.options.flag(OPTION) { &FLAGS } else { &[""] }
}

/// The first success of `build` with one of the compiler options in front of others.
///
/// # Errors
/// The first one of `build`.
pub(crate) fn first_accepted(
    source: &Source<'_>,
    options: &str,
    build: impl Fn(&str) -> Result<()>,
) -> Result<()> {
    let mut first: Option<Error> = None;
    for flags in flags(source) {
        match build([*flags, options].join(" ").trim()) {
            Ok(()) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    first.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use runtime_core::Options;

    use super::*;

    fn tried(format: &str, debug: bool, accepted: &str) -> (Vec<String>, bool) {
        let options = if debug { Options::new().with(OPTION, true) } else { Options::new() };
        let source = Source { format, path: "", code: Some(b""), options: &options };
        let tried = RefCell::new(Vec::new());
        let built = first_accepted(&source, "-DN=1", |options| {
            tried.borrow_mut().push(options.to_owned());
            if options == accepted { Ok(()) } else { Err(Error::invalid(options.to_owned())) }
        });
        if let Err(error) = &built {
            assert_eq!(error.message(), tried.borrow()[0], "the first error is returned");
        }
        (tried.into_inner(), built.is_ok())
    }

    #[test]
    fn debug_options_are_dropped_until_the_driver_accepts_them() {
        let (with_g, without_g) = ("-g -cl-opt-disable -DN=1", "-cl-opt-disable -DN=1");
        assert_eq!(tried("opencl-c", true, with_g), (vec![with_g.to_owned()], true));
        assert_eq!(tried("opencl-c", true, without_g), (vec![with_g.to_owned(), without_g.to_owned()], true));
        assert!(!tried("spirv-kernel", true, "").1);
        assert_eq!(tried("opencl-binary", true, "-DN=1"), (vec!["-DN=1".to_owned()], true));
        assert_eq!(tried("opencl-c", false, "-DN=1"), (vec!["-DN=1".to_owned()], true));
    }
}
