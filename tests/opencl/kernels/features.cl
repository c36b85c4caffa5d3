/* Kernels for optional features. */
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
__kernel void half_saxpy(__global const half *x, __global half *y, half a, uint n) {
    const uint i = get_global_id(0);
    if (i < n) y[i] = fma(a, x[i], y[i]);
}
#endif

#if defined(cl_intel_subgroups) || defined(cl_khr_subgroups)
__kernel void subgroup_sums(__global const int *in, __global int *out) {
    out[get_global_id(0)] = sub_group_reduce_add(in[get_global_id(0)]);
}
__kernel void subgroup_sizes(__global uint *out) { out[get_global_id(0)] = get_sub_group_size(); }
#endif
