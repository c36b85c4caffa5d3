// Multiply-accumulate by matrix units for `runtime peak`, after the PTX ISA's `mma`. All operands are ones, so that each step adds
// k to every element, exactly. The assembly is volatile: no step can be left out.

#define EACH(OP) OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7)
#define DECLARE(j) R x##j[4] = {0, 0, 0, 0};
#define ADD(j) sum += x##j[0] + x##j[1] + x##j[2] + x##j[3];
#define KERNEL(NAME, RESULT, STEP, ONE) \
    extern "C" __global__ void NAME(RESULT *result, unsigned steps) { \
        typedef RESULT R; \
        const unsigned one = ONE; \
        EACH(DECLARE) \
        for (unsigned k = 0; k < steps; k++) { EACH(STEP) } \
        R sum = 0; \
        EACH(ADD) \
        result[blockIdx.x * blockDim.x + threadIdx.x] = sum; \
    }
#define MMA(j, SHAPE_AND_TYPES, REG) \
    asm volatile("mma.sync.aligned." SHAPE_AND_TYPES " {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};" \
        : "+" REG(x##j[0]), "+" REG(x##j[1]), "+" REG(x##j[2]), "+" REG(x##j[3]) : "r"(one));

#define F16(j) MMA(j, "m16n8k16.row.col.f32.f16.f16.f32", "f")
#define BF16(j) MMA(j, "m16n8k16.row.col.f32.bf16.bf16.f32", "f")
#define TF32(j) MMA(j, "m16n8k8.row.col.f32.tf32.tf32.f32", "f")
#define I8(j) MMA(j, "m16n8k32.row.col.s32.s8.s8.s32", "r")

KERNEL(matrix_f16, float, F16, 0x3c003c00u)
KERNEL(matrix_bf16, float, BF16, 0x3f803f80u)
KERNEL(matrix_tf32, float, TF32, 0x3f800000u)
KERNEL(matrix_i8, int, I8, 0x01010101u)

// From Hopper on only the large shape is fast; m8n8k4 has two elements of the result per thread.
#if LARGE_F64
#define F64(j) asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 " \
        "{%0,%1,%2,%3}, {%4,%4,%4,%4,%4,%4,%4,%4}, {%4,%4,%4,%4}, {%0,%1,%2,%3};" \
        : "+d"(x##j[0]), "+d"(x##j[1]), "+d"(x##j[2]), "+d"(x##j[3]) : "d"(1.0));
#else
#define F64(j) asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%2}, {%0,%1};" \
        : "+d"(x##j[0]), "+d"(x##j[1]) : "d"(1.0));
#endif
KERNEL(matrix_f64, double, F64, 0u)
