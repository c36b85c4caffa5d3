//! `assert_proofs`: run-time checks of accesses that were proven in range.
//!
//! The index of such an access goes through a function that reports if it is out of range. On the host it reports in
//! the exported `const char *volatile runtime_kernel_failure`, which the backend reads after a launch; on CUDA
//! through the driver's assertion, which ends the launch and prints the place.

use naga::Scalar;
use runtime_core::Result;

use crate::print::c::writer::Writer;
use crate::program::Dialect;

impl Writer<'_> {
    /// The function `(index, length, place)` that returns the index of an access, and reports it if it is out of
    /// range.
    pub(crate) fn assertion(&mut self) -> Result<String> {
        self.scalar(Scalar::U64)?;
        let host = self.dialect == Dialect::Host;
        let declaration = if host {
            "const char *volatile runtime_kernel_failure;\n"
        } else {
            "extern \"C\" __device__ void __assertfail(const char *, const char *, unsigned int, const char *, size_t);\n"
        };
        if self.first("runtime_kernel_failure") {
            self.types.push_str(declaration);
        }
        self.library("proven_".to_owned(), |_, name| {
            let report = if host {
                // An empty array has no element to substitute.
                "runtime_kernel_failure = place; if (length == 0) __builtin_trap();"
            } else {
                "__assertfail(\"the index was proven in range\", place, 0, \"\", 1);"
            };
            Ok(format!(
                "u64 {name}(u64 index, u64 length, const char *place)\n{{\n    if (index < length) return index;\n    \
                 {report}\n    return 0;\n}}"
            ))
        })
    }
}
