#version 450
// Fills words with a pattern of four.
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) writeonly buffer Words { uint words[]; };
layout(push_constant) uniform Constants { uint first; uint count; uint a; uint b; uint c; uint d; };

void main() {
    uint pattern[4] = uint[4](a, b, c, d);
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += step) {
        words[first + i] = pattern[i & 3];
    }
}
