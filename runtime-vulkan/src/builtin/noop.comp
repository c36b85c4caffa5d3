#version 450
// Does nothing.
layout(local_size_x = 1) in;

void main() {}
