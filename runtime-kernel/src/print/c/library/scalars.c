// Library functions on a scalar type. Each follows a line with the types that have it, its name, and the functions that it calls.
// `$T` is the type, `$U` the unsigned type of its width, `$N` the function's name, `$W` the number of bits, `$M` one less, `$L` the
// least value, `$l` the suffix of compilers' functions on 64 bits, `$S` that of a literal.

// signed add
$T $N($T a, $T b) { return ($T)(($U)a + ($U)b); }

// signed sub
$T $N($T a, $T b) { return ($T)(($U)a - ($U)b); }

// signed mul
$T $N($T a, $T b) { return ($T)(($U)a * ($U)b); }

// signed neg
$T $N($T a) { return ($T)(0 - ($U)a); }

// signed div
$T $N($T a, $T b) { return a / (b == 0 || (a == $L && b == -1) ? 1 : b); }

// signed rem
$T $N($T a, $T b) { return a % (b == 0 || (a == $L && b == -1) ? 1 : b); }

// signed abs
$T $N($T a) { return a < 0 ? ($T)(0 - ($U)a) : a; }

// signed sign
$T $N($T a) { return (a > 0) - (a < 0); }

// signed firstLeadingBit: countLeadingZeros
$T $N($T a) { return $M - $T_countLeadingZeros(a ^ (a >> $M)); }

// unsigned div
$T $N($T a, $T b) { return a / (b == 0 ? 1 : b); }

// unsigned rem
$T $N($T a, $T b) { return a % (b == 0 ? 1 : b); }

// unsigned sign
$T $N($T a) { return a > 0; }

// unsigned firstLeadingBit: countLeadingZeros
$T $N($T a) { return $M - $T_countLeadingZeros(a); }

// integer shl
$T $N($T a, u32 b) { return ($T)(($U)a << (b & $M)); }

// integer shr
$T $N($T a, u32 b) { return a >> (b & $M); }

// integer min
$T $N($T a, $T b) { return b < a ? b : a; }

// integer max
$T $N($T a, $T b) { return a < b ? b : a; }

// integer clamp: min max
$T $N($T a, $T low, $T high) { return $T_min($T_max(a, low), high); }

// integer firstTrailingBit: countTrailingZeros
$T $N($T a) { return a == 0 ? ($T)-1 : $T_countTrailingZeros(a); }

// integer extractBits
$T $N($T a, u32 offset, u32 count)
{
    offset = offset < $W ? offset : $W;
    count = count < $W - offset ? count : $W - offset;
    return count == 0 ? 0 : ($T)(($U)a << ($W - offset - count)) >> ($W - count);
}

// integer insertBits
$T $N($T a, $T b, u32 offset, u32 count)
{
    offset = offset < $W ? offset : $W;
    count = count < $W - offset ? count : $W - offset;
    $U mask = count == 0 ? 0 : (~($U)0 >> ($W - count)) << offset;
    return ($T)((($U)a & ~mask) | ((($U)b << (offset & $M)) & mask));
}

// integer.OpenCl countOneBits
$T $N($T a) { return popcount(a); }

// integer.Cuda countOneBits
$T $N($T a) { return ($T)__popc$l(($U)a); }

// integer.Host countOneBits
$T $N($T a) { return ($T)__builtin_popcount$l(($U)a); }

// integer.OpenCl countLeadingZeros
$T $N($T a) { return clz(a); }

// integer.Cuda countLeadingZeros
$T $N($T a) { return ($T)__clz$l(($U)a); }

// integer.Host countLeadingZeros
$T $N($T a) { return a == 0 ? $W : ($T)__builtin_clz$l(($U)a); }

// integer.OpenCl countTrailingZeros
$T $N($T a) { return a == 0 ? $W : ($T)($M - clz(($U)a & (0 - ($U)a))); }

// integer.Cuda countTrailingZeros
$T $N($T a) { return a == 0 ? $W : ($T)(__ffs$l(($U)a) - 1); }

// integer.Host countTrailingZeros
$T $N($T a) { return a == 0 ? $W : ($T)__builtin_ctz$l(($U)a); }

// On `sm_90`, ptxas 13.0 and driver 580.159 fuse `min(a, min(b, -c))`, and likewise `max`, into one instruction and lose the
// negation; these forms are not recognised.
// i32.Cuda neg
$T $N($T a) { $T b = ~a; asm("" : "+r"(b)); return ($T)(($U)b + 1u); }

// i32.Cuda min
$T $N($T a, $T b) { $T c; asm("{ .reg .pred p; setp.lt.s32 p, %2, %1; selp.b32 %0, %2, %1, p; }" : "=r"(c) : "r"(a), "r"(b)); return c; }

// i32.Cuda max
$T $N($T a, $T b) { $T c; asm("{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, %2, %1, p; }" : "=r"(c) : "r"(a), "r"(b)); return c; }

// i32.OpenCl neg
$T $N($T a)
{
#ifdef __NV_CL_C_VERSION
    $T b = ~a; asm("" : "+r"(b)); return ($T)(($U)b + 1u);
#else
    return ($T)(0 - ($U)a);
#endif
}

// i32.OpenCl min
$T $N($T a, $T b)
{
#ifdef __NV_CL_C_VERSION
    $T c; asm("{ .reg .pred p; setp.lt.s32 p, %2, %1; selp.b32 %0, %2, %1, p; }" : "=r"(c) : "r"(a), "r"(b)); return c;
#else
    return b < a ? b : a;
#endif
}

// i32.OpenCl max
$T $N($T a, $T b)
{
#ifdef __NV_CL_C_VERSION
    $T c; asm("{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, %2, %1, p; }" : "=r"(c) : "r"(a), "r"(b)); return c;
#else
    return a < b ? b : a;
#endif
}

// integer.Cuda reverseBits
$T $N($T a) { return ($T)__brev$l(($U)a); }

// `all / 3` is a mask of every other bit, `all / 5` of every other pair, and so on.
// integer.32 reverseBits
$T $N($T a)
{
    const $U all = ~($U)0;
    $U b = ($U)a;
    b = (b >> 1 & all / 3) | (b & all / 3) << 1;
    b = (b >> 2 & all / 5) | (b & all / 5) << 2;
    b = (b >> 4 & all / 17) | (b & all / 17) << 4;
    b = (b >> 8 & all / 257) | (b & all / 257) << 8;
    return ($T)(b >> 16 | b << 16);
}

// integer.64 reverseBits
$T $N($T a)
{
    const $U all = ~($U)0;
    $U b = ($U)a;
    b = (b >> 1 & all / 3) | (b & all / 3) << 1;
    b = (b >> 2 & all / 5) | (b & all / 5) << 2;
    b = (b >> 4 & all / 17) | (b & all / 17) << 4;
    b = (b >> 8 & all / 257) | (b & all / 257) << 8;
    b = (b >> 16 & all / 65537) | (b & all / 65537) << 16;
    return ($T)(b >> 32 | b << 32);
}

// These replace C functions that host compilers would call, or that C lacks, by code that becomes vector instructions. A NaN yields
// the other operand, as in WGSL.
// float.Host min
$T $N($T a, $T b) { return b < a || a != a ? b : a; }

// float.Host max
$T $N($T a, $T b) { return a < b || a != a ? b : a; }

// float.Host fma
$T $N($T a, $T b, $T c) { return a * b + c; }

// float.Host inverseSqrt: sqrt
$T $N($T a) { return 1.0$S / $T_sqrt(a); }

// float clamp: min max
$T $N($T a, $T low, $T high) { return $T_min($T_max(a, low), high); }

// float saturate: clamp
$T $N($T a) { return $T_clamp(a, 0.0$S, 1.0$S); }

// float degrees
$T $N($T a) { return a * 57.29577951308232$S; }

// float radians
$T $N($T a) { return a * 0.017453292519943295$S; }

// float fract: floor
$T $N($T a) { return a - $T_floor(a); }

// float mix
$T $N($T a, $T b, $T t) { return a * (1.0$S - t) + b * t; }

// float sign
$T $N($T a) { return a > 0.0$S ? 1.0$S : a < 0.0$S ? -1.0$S : 0.0$S; }

// float smoothstep: saturate
$T $N($T low, $T high, $T a)
{
    const $T t = $T_saturate((a - low) / (high - low));
    return t * t * (3.0$S - 2.0$S * t);
}

// float step
$T $N($T edge, $T a) { return edge <= a ? 1.0$S : 0.0$S; }
