#ifdef __clang__
#define UNORDERED _Pragma("clang loop vectorize(assume_safety)")
#else
#define UNORDERED _Pragma("GCC ivdep")
#pragma GCC optimize("no-split-loops", "no-aggressive-loop-optimizations")
#if __GNUC__ == 12 && defined(__AVX512F__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif
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
