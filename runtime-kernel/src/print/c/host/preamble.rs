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
/// The declarations let GCC call the vector variants of mathematical functions in glibc's libmvec where a loop is
/// vectorised. Their error is below 4 ULP; over a seventh of all 32-bit floats, in blocks, it was 2.6 for `exp`, 1.0
/// for `exp2`, 1.8 for `log` and 0.9 for `log2`, all within WGSL's limits (3 ULP, plus an argument-dependent term
/// for `exp` and `exp2`; the other functions have far wider limits).
pub(super) const PREAMBLE: &str = r#"#ifdef __clang__
#define UNORDERED _Pragma("clang loop vectorize(assume_safety)")
#else
#define UNORDERED _Pragma("GCC ivdep")
#pragma GCC optimize("no-split-loops")
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#if __has_include(<features.h>)
#include <features.h>
#ifdef __GLIBC_PREREQ
#define LANES __attribute__((simd("notinbranch")))
#if __GLIBC_PREREQ(2, 22)
LANES float expf(float);
LANES float logf(float);
LANES float sinf(float);
LANES float cosf(float);
LANES float powf(float, float);
LANES double exp(double);
LANES double log(double);
LANES double sin(double);
LANES double cos(double);
LANES double pow(double, double);
#endif
#if __GLIBC_PREREQ(2, 35)
LANES float exp2f(float);
LANES float log2f(float);
LANES float tanf(float);
LANES float asinf(float);
LANES float acosf(float);
LANES float atanf(float);
LANES float atan2f(float, float);
LANES float sinhf(float);
LANES float coshf(float);
LANES float tanhf(float);
LANES float asinhf(float);
LANES float acoshf(float);
LANES float atanhf(float);
LANES double exp2(double);
LANES double log2(double);
LANES double tan(double);
LANES double atan(double);
LANES double tanh(double);
#endif
#endif
#endif
#endif
"#;
