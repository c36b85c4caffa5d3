/* C = A · B for row-major float matrices: A is m × k, B is k × n, C is m × n. One thread.
 *
 * The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a panel of
 * B (DEPTH × COLUMNS) stays in the last-level cache, a block of A (ROWS × DEPTH) in the second level, a sliver of B in the first, and a
 * TILE_ROWS × TILE_COLUMNS tile of C in registers. Both operands are packed, so that the inner loop reads them in order. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16, TILE_ROWS = 12 }; /* 24 of 32 registers hold the tile */
#elif defined(__AVX__)
enum { LANES = 8, TILE_ROWS = 6 }; /* 12 of 16 */
#else
enum { LANES = 4, TILE_ROWS = 6 };
#endif
enum { VECTORS = 2, TILE_COLUMNS = VECTORS * LANES };
enum { DEPTH = 512, ROWS = 16 * TILE_ROWS, COLUMNS = 64 * TILE_COLUMNS };

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Packs rows of A in slivers of TILE_ROWS, column by column, padded with zeros. */
static void pack_a(const float *a, int64_t stride, int64_t rows, int64_t depth, float *packed) {
    for (int64_t top = 0; top < rows; top += TILE_ROWS) {
        int64_t height = smaller(TILE_ROWS, rows - top);
        for (int64_t p = 0; p < depth; p++, packed += TILE_ROWS) {
            for (int64_t i = 0; i < height; i++) packed[i] = a[(top + i) * stride + p];
            for (int64_t i = height; i < TILE_ROWS; i++) packed[i] = 0.0f;
        }
    }
}

/* Packs columns of B in slivers of TILE_COLUMNS, row by row, padded with zeros. */
static void pack_b(const float *b, int64_t stride, int64_t depth, int64_t columns, float *packed) {
    for (int64_t left = 0; left < columns; left += TILE_COLUMNS) {
        int64_t width = smaller(TILE_COLUMNS, columns - left);
        for (int64_t p = 0; p < depth; p++, packed += TILE_COLUMNS) {
            memcpy(packed, b + p * stride + left, (size_t)width * sizeof(float));
            for (int64_t j = width; j < TILE_COLUMNS; j++) packed[j] = 0.0f;
        }
    }
}

/* Computes a tile of C over `depth`; stores it if `first`, otherwise adds it. */
static void tile(const float *a, const float *b, int64_t depth, float *c, int64_t stride, int first) {
    vector sum[TILE_ROWS][VECTORS] = {0};
    for (int64_t p = 0; p < depth; p++, a += TILE_ROWS, b += TILE_COLUMNS) {
        const vector *row = (const vector *)b;
#pragma GCC unroll 16
        for (int i = 0; i < TILE_ROWS; i++)
#pragma GCC unroll 2
            for (int v = 0; v < VECTORS; v++) sum[i][v] += a[i] * row[v];
    }
    for (int i = 0; i < TILE_ROWS; i++, c += stride)
        for (int v = 0; v < VECTORS; v++) {
            vector old = {0};
            if (!first) memcpy(&old, c + v * LANES, sizeof old);
            old += sum[i][v];
            memcpy(c + v * LANES, &old, sizeof old);
        }
}

/* A tile that extends beyond C is computed as a whole tile in a buffer. */
static void edge(const float *a, const float *b, int64_t depth, float *c, int64_t stride, int first, int64_t height, int64_t width) {
    float whole[TILE_ROWS * TILE_COLUMNS];
    tile(a, b, depth, whole, TILE_COLUMNS, 1);
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++)
            c[i * stride + j] = whole[i * TILE_COLUMNS + j] + (first ? 0.0f : c[i * stride + j]);
}

/* Multiplies a packed block of A by a packed panel of B. */
static void block(const float *a, const float *b, int64_t rows, int64_t columns, int64_t depth, float *c, int64_t stride, int first) {
    for (int64_t left = 0; left < columns; left += TILE_COLUMNS)
        for (int64_t top = 0; top < rows; top += TILE_ROWS) {
            const float *sliver_a = a + top * depth, *sliver_b = b + left * depth;
            float *corner = c + top * stride + left;
            int64_t height = smaller(TILE_ROWS, rows - top), width = smaller(TILE_COLUMNS, columns - left);
            if (height == TILE_ROWS && width == TILE_COLUMNS)
                tile(sliver_a, sliver_b, depth, corner, stride, first);
            else
                edge(sliver_a, sliver_b, depth, corner, stride, first, height, width);
        }
}

/* Slow fallback, if there is no memory to pack into. */
static void plain(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
    memset(c, 0, (size_t)(m * n) * sizeof(float));
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++) c[i * n + j] += a[i * k + p] * b[p * n + j];
}

void matmul(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
    /* Each call packs into its own memory, so that calls can run concurrently. */
    float *packed = aligned_alloc(64, (ROWS + COLUMNS) * DEPTH * sizeof(float));
    if (!packed || k == 0) {
        plain(a, b, c, m, n, k);
        free(packed);
        return;
    }
    float *packed_a = packed, *packed_b = packed + ROWS * DEPTH;
    for (int64_t left = 0; left < n; left += COLUMNS)
        for (int64_t p = 0; p < k; p += DEPTH) {
            int64_t columns = smaller(COLUMNS, n - left), depth = smaller(DEPTH, k - p);
            pack_b(b + p * n + left, n, depth, columns, packed_b);
            for (int64_t top = 0; top < m; top += ROWS) {
                int64_t rows = smaller(ROWS, m - top);
                pack_a(a + top * k + p, k, rows, depth, packed_a);
                block(packed_a, packed_b, rows, columns, depth, c + top * n + left, n, p == 0);
            }
        }
    free(packed);
}
