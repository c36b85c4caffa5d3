#version 450
// y = alpha · x + y, with scalars in push constants.
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Scalars {
    float alpha;
    uint n;
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) y[i] = alpha * x[i] + y[i];
}
