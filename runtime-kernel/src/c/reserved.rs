//! Identifiers that a name of the program cannot have, in any of the languages.

use std::sync::LazyLock;

use naga::FastHashSet;

/// Keywords, types, macros, and what the printed text itself uses, in every scope.
const EVERYWHERE: &str = "
    alignas alignof and and_eq asm atomic_bool auto bitand bitor bool break case catch char char16_t char32_t char8_t
    class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto half if inline int
    int16_t int32_t int64_t int8_t long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public quad register reinterpret_cast requires restrict return short signed size_t sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename typeof
    uint16_t uint32_t uint64_t uint8_t union unsigned using virtual void volatile wchar_t while xor xor_eq

    kernel global local constant generic read_only write_only read_write pipe uniform event_t clk_event_t queue_t
    ndrange_t reserve_id_t sampler_t image1d_t image2d_t image3d_t image1d_buffer_t image1d_array_t image2d_array_t
    uchar ushort uint ulong intptr_t uintptr_t ptrdiff_t complex imaginary vec_step
    char2 char3 char4 char8 char16 uchar2 uchar3 uchar4 uchar8 uchar16 short2 short3 short4 short8 short16 ushort2 ushort3
    ushort4 ushort8 ushort16 int2 int3 int4 int8 int16 uint2 uint3 uint4 uint8 uint16 long2 long3 long4 long8 long16 ulong2
    ulong3 ulong4 ulong8 ulong16 float2 float3 float4 float8 float16 double2 double3 double4 double8 double16 half2 half3
    half4 half8 half16 bool2 bool3 bool4 longlong1 longlong2 longlong3 longlong4 ulonglong1 ulonglong2 char1 int1 uint1 float1
    double1 long1 ulong1 short1 ushort1 uchar1 dim3

    threadIdx blockIdx blockDim gridDim warpSize
    barrier mem_fence get_work_dim get_global_size get_global_id get_local_size get_local_id get_num_groups get_group_id
    get_global_offset get_sub_group_size get_sub_group_id get_sub_group_local_id get_num_sub_groups sub_group_barrier
    atomic_add atomic_sub atomic_xchg atomic_inc atomic_dec atomic_cmpxchg atomic_min atomic_max atomic_and atomic_or
    atomic_xor atom_add atom_sub atom_xchg atom_cmpxchg atom_min atom_max atom_and atom_or atom_xor
    atomicAdd atomicSub atomicExch atomicMin atomicMax atomicCAS atomicAnd atomicOr atomicXor

    NULL EOF NAN INFINITY HUGE_VAL HUGE_VALF MAXFLOAT CHAR_BIT CHAR_MAX CHAR_MIN SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX
    SHRT_MIN USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX FP_ILOGB0 FP_ILOGBNAN
    CLK_LOCAL_MEM_FENCE CLK_GLOBAL_MEM_FENCE linux unix i386 main
    i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 array_length warp_lane";

/// Functions that the languages know without a declaration: no function, constant or entry point has their names.
const FILE_SCOPE: &str = "
    abs abs_diff acos acosh acospi add_sat asin asinh asinpi atan atan2 atan2pi atanh atanpi bitselect cbrt ceil clamp clz
    copysign cos cosh cospi cross degrees distance dot erf erfc exp exp10 exp2 expm1 fabs fast_distance fast_length
    fast_normalize fdim floor fma fmax fmin fmod fract frexp hadd hypot ilogb isequal isfinite isgreater isinf isless isnan
    isnormal isordered ldexp length lgamma log log10 log1p log2 logb mad mad24 mad_hi mad_sat max maxmag min minmag mix modf
    mul24 mul_hi nan nextafter normalize popcount pow pown powr prefetch printf radians remainder remquo rhadd rint rootn
    rotate round rsqrt select shuffle shuffle2 sign signbit sin sincos sinh sinpi smoothstep sqrt step sub_sat tan tanh tanpi
    tgamma trunc upsample all any async_work_group_copy wait_group_events read_mem_fence write_mem_fence vload2 vload3 vload4
    vstore2 vstore3 vstore4 vload_half vstore_half as_int as_uint as_float as_long as_ulong as_double
    native_cos native_divide native_exp native_exp2 native_log native_log2 native_powr native_recip native_rsqrt native_sin
    native_sqrt native_tan half_cos half_divide half_exp half_log half_powr half_recip half_rsqrt half_sin half_sqrt half_tan

    abort calloc exit free malloc memcmp memcpy memmove memset puts putchar rand realloc scanf strcat strchr strcmp strcpy
    strlen strncmp strncpy assert labs llabs nearbyint round scalbn lround lrint j0 j1 jn y0 y1 yn gamma drem signgam index
    clock clock64 nanosleep norm rnorm rhypot umin umax llmin llmax ullmin ullmax saturate dp4a ffs brev popc sad
    atomic_load atomic_store atomic_exchange atomic_init atomic_fetch_add atomic_fetch_sub atomic_fetch_min atomic_fetch_max
    atomic_work_item_fence work_group_barrier sub_group_all sub_group_any sub_group_broadcast sub_group_reduce_add";

/// What the names of types and of library functions begin with.
const PREFIXES: [&str; 16] = [
    "i16_", "u16_", "i32_", "u32_", "i64_", "u64_", "f16_", "f32_", "f64_", "bool_", "vec2", "vec3", "vec4",
    "mat2", "mat3", "mat4",
];

type Words = LazyLock<FastHashSet<&'static str>>;

static KEYWORDS: Words = LazyLock::new(|| EVERYWHERE.split_whitespace().collect());
static FUNCTIONS: Words = LazyLock::new(|| FILE_SCOPE.split_whitespace().collect());

/// Whether no name can be `word`.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(word) || ["M_", "FLT_", "DBL_", "HALF_"].iter().any(|family| word.starts_with(family))
}

/// Whether no name of file scope can be `word`.
pub(super) fn is_function(word: &str) -> bool {
    FUNCTIONS.contains(word)
}

/// Whether `word` looks like a name of the library.
pub(super) fn is_of_library(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}
