#version 450
// 8-byte scalars, aligned to 8 after a 4-byte one, and atomic operations. The entry point is renamed:
// glslangValidator -e count --source-entrypoint main.
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 16, local_size_y = 2) in;

layout(set = 0, binding = 0) readonly buffer In { double numbers[]; };
layout(set = 0, binding = 1) buffer Out { uint counts[]; };
layout(push_constant) uniform Scalars {
    uint n;
    double limit;
    uint64_t step;
};

void main() {
    uint i = gl_WorkGroupID.x * 32 + gl_LocalInvocationIndex;
    if (i < n && numbers[i] < limit) atomicAdd(counts[uint(i % step)], 1);
}
