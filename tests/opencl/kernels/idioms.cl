/* Kernels in the idioms of benchmarks: vector types, static and dynamic work-group memory, structures by value, constant tables,
   fixed group sizes. */

/* Sums per work-group, in dynamically sized work-group memory, with a grid-stride loop. */
__kernel void sum(__global const float *in, __global float *out, __local float *partial, const unsigned int n) {
    const unsigned int lane = get_local_id(0);
    float own = 0.0f;
    for (unsigned int i = get_global_id(0); i < n; i += get_global_size(0)) own += in[i];
    partial[lane] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned int step = get_local_size(0) / 2; step > 0; step >>= 1) {
        if (lane < step) partial[lane] += partial[lane + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0) out[get_group_id(0)] = partial[0];
}

/* Two dynamic work-group arrays, with other arguments in between. */
__kernel void two_locals(__local uint *first, __global uint *out, __local ulong *second, uint factor) {
    const uint lane = get_local_id(0), count = get_local_size(0);
    first[lane] = lane * factor;
    second[count - 1 - lane] = lane;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = first[count - 1 - lane] + (uint)second[lane];
}

typedef struct {
    float4 centre;
    int count;
    float scale;
} camera;

/* A structure with a vector member, by value; vectors in memory, swizzled. */
__kernel void look(__global const float4 *points, __global float4 *out, const camera from, __global const float *weights) {
    const int i = get_global_id(0);
    if (i >= from.count) return;
    float4 to = points[i] - from.centre;
    to.w = dot(to.xyz, vload3(0, weights));
    out[i] = to.wxyz * from.scale;
}

/* N-body forces, with tiles of vectors. */
__kernel void forces(__global const float4 *bodies, __global float4 *out, __local float4 *tile, const int n, const float softening) {
    const int i = get_global_id(0), lane = get_local_id(0), width = get_local_size(0);
    const float4 own = bodies[min(i, n - 1)];
    float4 sum = (float4)(0.0f);
    for (int first = 0; first < n; first += width) {
        tile[lane] = first + lane < n ? bodies[first + lane] : (float4)(0.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < width; j++) {
            const float4 away = tile[j] - own;
            const float distance = dot(away.xyz, away.xyz) + softening;
            sum.xyz += away.xyz * (tile[j].w / (distance * sqrt(distance)));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n) out[i] = sum;
}

#define TILE 16

/* A 2D stencil, with a tile and its halo in static work-group memory. */
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void
heat(__global const float *power, __global const float *before, __global float *after, int columns, int rows, float rate) {
    __local float near[TILE + 2][TILE + 2];
    const int x = get_global_id(0), y = get_global_id(1), lx = get_local_id(0), ly = get_local_id(1);
    for (int v = ly; v < TILE + 2; v += TILE)
        for (int u = lx; u < TILE + 2; u += TILE) {
            const int column = clamp((int)get_group_id(0) * TILE + u - 1, 0, columns - 1);
            const int row = clamp((int)get_group_id(1) * TILE + v - 1, 0, rows - 1);
            near[v][u] = before[row * columns + column];
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (x >= columns || y >= rows) return;
    const float here = near[ly + 1][lx + 1];
    const float around = near[ly][lx + 1] + near[ly + 2][lx + 1] + near[ly + 1][lx] + near[ly + 1][lx + 2];
    after[y * columns + x] = here + rate * (around - 4.0f * here + power[y * columns + x]);
}

__constant int OFFSETS[4] = {-2, -1, 1, 2};

/* A program-scope constant table, and one passed in constant memory. */
__kernel void filter(__global const int *in, __global int *out, __constant int *taps, const int n) {
    const int i = get_global_id(0);
    if (i >= n) return;
    int sum = 0;
    for (int tap = 0; tap < 4; tap++) sum += taps[tap] * in[(i + OFFSETS[tap] + n) % n];
    out[i] = sum;
}

/* A histogram of bytes: atomics in work-group memory, then in global memory. */
__kernel void count_bytes(__global const uchar *data, __global uint *bins, const uint n) {
    __local uint own[256];
    for (uint bin = get_local_id(0); bin < 256; bin += get_local_size(0)) own[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&own[data[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint bin = get_local_id(0); bin < 256; bin += get_local_size(0)) atomic_add(&bins[bin], own[bin]);
}

/* A level of a breadth-first search: byte flags, and whether there is another level. */
__kernel void level(__global const int *first, __global const int *edges, __global char *frontier, __global char *next,
                    __global int *cost, __global char *is_more, int nodes, int depth) {
    const int node = get_global_id(0);
    if (node >= nodes || !frontier[node]) return;
    frontier[node] = 0;
    for (int edge = first[node]; edge < first[node + 1]; edge++)
        if (atomic_cmpxchg(&cost[edges[edge]], -1, depth) == -1) {
            next[edges[edge]] = 1;
            *is_more = 1;
        }
}

/* For views: single elements of any size. */
__kernel void add_bytes(__global const uchar *a, __global uchar *out, uint n) {
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) out[i] = a[i] + 1;
}

__kernel void add_ints(__global const int *a, __global int *out, uint n) {
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) out[i] = a[i] + 1;
}
