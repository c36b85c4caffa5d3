#version 450
// The sum of each group's elements. Specialisation constants set the group size, its work-group memory, and a factor.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 8;
layout(constant_id = 7) const float FACTOR = 0.0;

layout(set = 0, binding = 0) readonly buffer In { float numbers[]; };
layout(set = 0, binding = 1) writeonly buffer Out { float sums[]; };
layout(push_constant) uniform Scalars { uint n; };

shared float partial[GROUP];

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint i = gl_GlobalInvocationID.x;
    partial[lane] = i < n ? numbers[i] : 0.0;
    for (uint width = GROUP / 2; width > 0; width /= 2) {
        barrier();
        if (lane < width) partial[lane] += partial[lane + width];
    }
    if (lane == 0) sums[gl_WorkGroupID.x] = FACTOR * partial[0];
}
