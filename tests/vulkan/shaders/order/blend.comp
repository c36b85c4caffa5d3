#version 450
// Computes the third buffer from the first two.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) readonly buffer B { uint b[]; };
layout(set = 0, binding = 2) writeonly buffer C { uint c[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    c[i] = 3 * a[i] + b[i];
}
