#version 450
// Increments each element.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) buffer X { uint x[]; };

void main() { x[gl_GlobalInvocationID.x] += 1; }
