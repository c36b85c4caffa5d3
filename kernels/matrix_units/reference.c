/* References of the kernels for matrix units; that of `gemm` is `matmul` with other types. */

#define T _Float16
#define SUM float
#include "../reference.c"

/* The element of a matrix of 16 × 16 that is stored by columns, or else by rows. */
static double at(const _Float16 *matrix, int by_columns, int row, int column) {
    return (double)(by_columns ? matrix[column * 16 + row] : matrix[row * 16 + column]);
}

static double product(const _Float16 *a, const _Float16 *b, int form, int row, int column) {
    double sum = 0;
    for (int k = 0; k < 16; k++) sum += at(a, form / 2, row, k) * at(b, form % 2, k, column);
    return sum;
}

void forms(const _Float16 *a, const _Float16 *b, const float *c, float *out) {
    for (int row = 0; row < 16; row++) {
        for (int column = 0; column < 16; column++) {
            int i = row * 16 + column;
            for (int form = 0; form < 8; form++) {
                int place = form % 4 == 3 ? column * 16 + row : i;
                out[form * 256 + place] = (float)product(a, b, form % 4, row, column);
            }
            double sum = product(a, b, 0, row, column);
            out[2048 + i] = (float)(2 * sum);
            out[2304 + i] = (float)(2 * sum + (double)c[i] / 2);
            out[2560 + i] = c[i];
            out[2816 + i] = c[i];
        }
    }
}

enum { HEAD = 64 };

/* One query: the softmax of its products with the keys up to it, as weights of their values. */
static void attend(const _Float16 *q, const _Float16 *k, const _Float16 *v, _Float16 *out, size_t keys) {
    double most = -INFINITY, total = 0, sums[HEAD] = {0};
    double *scores = malloc(keys * sizeof(double));
    for (size_t key = 0; key < keys; key++) {
        scores[key] = 0;
        for (int i = 0; i < HEAD; i++) scores[key] += (double)q[i] * (double)k[key * HEAD + i] / 8;
        most = fmax(most, scores[key]);
    }
    for (size_t key = 0; key < keys; key++) {
        double weight = exp(scores[key] - most);
        total += weight;
        for (int i = 0; i < HEAD; i++) sums[i] += weight * (double)v[key * HEAD + i];
    }
    for (int i = 0; i < HEAD; i++) out[i] = (_Float16)(sums[i] / total);
    free(scores);
}

void attention(const _Float16 *q, const _Float16 *k, const _Float16 *v, _Float16 *out, uint32_t n, uint32_t heads) {
    for (size_t head = 0; head < heads; head++) {
        size_t first = head * n * HEAD;
        for (size_t query = 0; query < n; query++)
            attend(q + first + query * HEAD, k + first, v + first, out + first + query * HEAD, query + 1);
    }
}
