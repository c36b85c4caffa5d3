//! The code of the peak kernels, which this crate vouches for.

#![allow(
    unsafe_code,
    reason = "the peak kernels are native or unchecked code, written for their launches in this module"
)]

use runtime_core::{CodeFormat, ModuleSource};

/// Native code of a peak kernel.
pub(super) fn native(format: CodeFormat, code: &str) -> ModuleSource {
    // SAFETY: `compute`, `memory` and `launches` launch these kernels with tensors of the sizes that their code accesses.
    unsafe { ModuleSource::native(format, code.as_bytes()) }
}

/// Portable code of a peak kernel, without bounds checks.
pub(super) fn unchecked(code: &str) -> ModuleSource {
    // SAFETY: as above; every index is masked to the chunk of its group, or is the number of the invocation.
    unsafe { ModuleSource::wgsl(code).unchecked() }
}
