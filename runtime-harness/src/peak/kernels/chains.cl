// As chains.wgsl, with the widest vectors of OpenCL C, which a compiler for processors keeps. T, V and STEP are macros.

__kernel void chains(__global T *result, int m_, int b_, uint steps) {
    const size_t id = get_global_id(0);
    const V m = (V)((T)m_), b = (V)((T)b_), x = (V)((T)(int)(id % 8)), one = (V)((T)1);
    V x0 = x, x1 = x0 + one, x2 = x1 + one, x3 = x2 + one, x4 = x3 + one, x5 = x4 + one, x6 = x5 + one, x7 = x6 + one;
    for (uint k = 0; k < steps; k++) {
        x0 = fma(x0, m, b);
        x1 = fma(x1, m, b);
        x2 = fma(x2, m, b);
        x3 = fma(x3, m, b);
        x4 = fma(x4, m, b);
        x5 = fma(x5, m, b);
        x6 = fma(x6, m, b);
        x7 = fma(x7, m, b);
    }
    const V sum = ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7));
    result[id] = TOTAL(sum);
}
