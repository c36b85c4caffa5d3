#version 450
#extension GL_ARB_shader_clock : require
// A capability that the backend never enables.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, std430) buffer Out { uvec2 out_[]; };

void main() { out_[0] = clock2x32ARB(); }
