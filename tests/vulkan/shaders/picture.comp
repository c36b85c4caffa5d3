#version 450
// An image, which cannot be a kernel argument.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, r32f) uniform image2D picture;

void main() { imageStore(picture, ivec2(0), vec4(1.0)); }
