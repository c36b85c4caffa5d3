/* What is launched: next to nothing, and something that takes long and always as long. */
kernel void touch(global const float *a, global const float *b, global float *c, float scale) {
    c[get_global_id(0)] = a[get_global_id(0)] + scale * b[get_global_id(0)];
}

kernel void busy(global uint *out, uint rounds) {
    uint x = get_global_id(0);
    for (uint round = 0; round < rounds; round++) x = x * x + 5;
    out[get_global_id(0)] = x;
}
