//! The load option `debug`: code for a debugger.

use runtime_core::Options;
use runtime_core::backend::OptionSpec;

const OPTION: &str = "debug";

/// The flags of compilers. With `-Og`, variables are missing where the optimiser had no use for them, and statements are out of
/// order.
pub(crate) const FLAGS: [&str; 2] = ["-O0", "-g"];

pub(crate) fn option() -> OptionSpec {
    OptionSpec::module(
        OPTION,
        false,
        "Compile C with -O0 -g, and keep the file of the code while it is loaded, for debuggers that attach later.",
    )
}

pub(crate) fn is_on(options: &Options) -> bool {
    options.flag(OPTION)
}

/// The option for code that was compiled with `options`.
pub(crate) fn carried(options: &Options) -> Options {
    if is_on(options) { Options::new().with(OPTION, true) } else { Options::new() }
}
