#version 450
// What the convention has no place for: an image.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, r32f) uniform image2D picture;

void main() { imageStore(picture, ivec2(0), vec4(1.0)); }
