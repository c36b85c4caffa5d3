__kernel void sample(__read_only image2d_t from, sampler_t how, __global float4 *out) {
    const int i = get_global_id(0);
    out[i] = read_imagef(from, how, (int2)(i, 0));
}
__kernel void plain(__global float *out) { out[get_global_id(0)] = 1.0f; }
