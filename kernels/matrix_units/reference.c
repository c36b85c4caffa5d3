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
