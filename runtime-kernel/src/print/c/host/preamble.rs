//! The text in front of all host C: pragmas, compiler options, and vector variants of mathematical functions.

/// Makes the compiler reject functions that need more stack.
pub(super) fn frame_limit(bytes: u64) -> String {
    format!(
        "#ifdef __clang__\n#pragma clang diagnostic error \"-Wframe-larger-than=\"\n#elif defined(__GNUC__)\n\
         #pragma GCC diagnostic error \"-Wframe-larger-than={bytes}\"\n#endif\n"
    )
}

/// `UNORDERED` declares that the iterations of a loop, which are invocations between barriers, may run in any order.
///
/// GCC 12 and 13 lose the end of a loop that they split where an index reaches its bound: `split.wgsl` of the kernel
/// fuzzer's cases ran three times instead of once.
///
/// With AVX-512, GCC 12 loses zeros or ones at the end of a table of constants when it copies the table by a loop that it
/// has turned into `memcpy`; GCC 13.3 does not. `constant_tables` of WGSL's semantics shows it.
///
/// The declarations let GCC call the vector variants of mathematical functions in glibc's libmvec where a loop is
/// vectorised. Their error is below 4 ULP; over a seventh of all 32-bit floats, in blocks, it was 2.6 for `exp`, 1.0
/// for `exp2`, 1.8 for `log` and 0.9 for `log2`, all within WGSL's limits (3 ULP, plus an argument-dependent term
/// for `exp` and `exp2`; the other functions have far wider limits).
pub(super) const PREAMBLE: &str = include_str!("preamble.c");
