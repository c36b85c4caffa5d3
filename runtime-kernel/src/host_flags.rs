//! The compiler flags that host C is lowered with.

use crate::analysis::private_memory::debug_frame_bytes;
use crate::program::Program;

/// The flags for host C.
pub(crate) fn host_flags(program: &Program) -> Vec<String> {
    let mut flags = vec!["-fno-math-errno -fno-trapping-math".to_owned()];
    if program.is_plain() {
        // Results then depend on the program alone, not on which operations the compiler combines.
        flags.push("-ffp-contract=off".to_owned());
    }
    if program.has_debug_info {
        // Clang takes the limit from here; the code makes the warning an error.
        flags.push(format!("-Wframe-larger-than={}", debug_frame_bytes(&program.module)));
    } else if program.is_serial {
        flags.push("-O1 -fno-tree-vectorize".to_owned());
    }
    flags
}
