//! The environment variables that change what compilers and linkers make.

use std::ffi::OsString;
use std::fmt::Write as _;

/// From GCC's manual ("Environment Variables Affecting GCC"), Clang's, and those of GNU ld, gold and lld. Those that only
/// change messages or the folder of temporary files are left out.
pub(super) const VARIABLES: [&str; 21] = [
    "CC",
    "CCC_OVERRIDE_OPTIONS",
    "COLLECT_GCC_OPTIONS",
    "COMPILER_PATH",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "C_INCLUDE_PATH",
    "DEPENDENCIES_OUTPUT",
    "FORCE_SOURCE_DATE",
    "GCC_COMPARE_DEBUG",
    "GCC_EXEC_PREFIX",
    "GCC_SPECS",
    "GNUTARGET",
    "LDEMULATION",
    "LD_LIBRARY_PATH",
    "LD_RUN_PATH",
    "LIBRARY_PATH",
    "MACOSX_DEPLOYMENT_TARGET",
    "OBJC_INCLUDE_PATH",
    "SDKROOT",
    "SOURCE_DATE_EPOCH",
];

/// The variables that are set, and their values.
pub(super) fn of(variable: impl Fn(&'static str) -> Option<OsString>) -> String {
    let mut set = String::new();
    for name in VARIABLES {
        if let Some(value) = variable(name) {
            // Writing to a string cannot fail.
            let _ = writeln!(set, "{name}={value:?}");
        }
    }
    set
}
