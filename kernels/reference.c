/* References of the portable kernels: plain loops, written for clarity. Sums are computed in double and rounded once.
 *
 * T is the element type of the specification, and its constants are macros. SUM is the type of sums of products. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef T
#define T float
#endif
#ifndef SUM
#define SUM T
#endif

void saxpy(const T *x, T *y, T alpha, uint32_t n) {
    for (size_t i = 0; i < n; i++) y[i] = (T)((double)alpha * (double)x[i] + (double)y[i]);
}

void vector_add(const T *a, const T *b, T *c, uint32_t n) {
    for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}

void multiply_subtract(const T *x, const T *a, const T *b, T *out, uint32_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (T)((double)x[i] * (double)a[i] - (double)b[i]);
}

void relu(const T *x, T *out, uint32_t n) {
    for (size_t i = 0; i < n; i++) out[i] = x[i] > 0 ? x[i] : 0;
}

void scale(const T *x, T *out, T factor, uint32_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (T)((double)factor * (double)x[i]);
}

void bias(const T *x, const T *shift, T *out, uint32_t rows, uint32_t columns) {
    for (size_t row = 0; row < rows; row++, x += columns, out += columns)
        for (size_t i = 0; i < columns; i++) out[i] = x[i] + shift[i];
}

void gelu(const T *x, T *out, uint32_t rows, uint32_t columns) {
    for (size_t i = 0; i < (size_t)rows * columns; i++) {
        double value = (double)x[i], slope = sqrt(2 / acos(-1));
        out[i] = (T)(value / 2 * (1 + tanh(slope * (value + 0.044715 * pow(value, 3)))));
    }
}

void residual(const T *x, const T *skipped, T *out, uint32_t rows, uint32_t columns) {
    for (size_t i = 0; i < (size_t)rows * columns; i++) out[i] = x[i] + skipped[i];
}

void scale_mask(const T *x, const T *mask, T *out, uint32_t rows, uint32_t columns, T factor) {
    for (size_t i = 0; i < (size_t)rows * columns; i++) out[i] = (T)((double)factor * (double)x[i] + (double)mask[i]);
}

void blur(const T *x, T *out, uint32_t n) {
    for (size_t i = 0; i < n; i++) {
        double left = (double)x[i > 0 ? i - 1 : 0], right = (double)x[i + 1 < n ? i + 1 : i];
        out[i] = (T)((left + 2 * (double)x[i] + right) / 4);
    }
}

void sharpen(const T *x, T *out, uint32_t n) {
    for (size_t i = 0; i < n; i++) {
        double left = (double)x[i > 0 ? i - 1 : 0], right = (double)x[i + 1 < n ? i + 1 : i];
        out[i] = (T)(2 * (double)x[i] - (left + right) / 2);
    }
}

void transpose(const T *a, T *b, uint32_t rows, uint32_t columns) {
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column++) b[column * rows + row] = a[row * columns + column];
}

void matmul(const T *a, const T *b, SUM *c, uint32_t m, uint32_t n, uint32_t k) {
    double *row = malloc(n * sizeof(double) + 1);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) row[j] = 0;
        for (size_t p = 0; p < k; p++) {
            double factor = (double)a[i * k + p];
            for (size_t j = 0; j < n; j++) row[j] += factor * (double)b[p * n + j];
        }
        for (size_t j = 0; j < n; j++) c[i * n + j] = (SUM)row[j];
    }
    free(row);
}

#if defined(GROUP) && defined(ITEMS)
enum { BLOCK = GROUP * ITEMS };

static size_t end_of_block(size_t start, size_t n) { return start + BLOCK < n ? start + BLOCK : n; }

void reduction(const T *x, T *sums, uint32_t n) {
    for (size_t start = 0; start < n; start += BLOCK) {
        double sum = 0;
        for (size_t i = start; i < end_of_block(start, n); i++) sum += (double)x[i];
        sums[start / BLOCK] = (T)sum;
    }
}

void scan(const T *x, T *out, T *totals, uint32_t n) {
    for (size_t start = 0; start < n; start += BLOCK) {
        double sum = 0;
        for (size_t i = start; i < end_of_block(start, n); i++) {
            out[i] = (T)sum;
            sum += (double)x[i];
        }
        totals[start / BLOCK] = (T)sum;
    }
}

void scan_offset(const T *offsets, T *out, uint32_t n) {
    for (size_t i = 0; i < n; i++) out[i] = offsets[i / BLOCK] + out[i];
}
#endif

void softmax(const T *x, T *out, uint32_t rows, uint32_t columns) {
    for (size_t row = 0; row < rows; row++, x += columns, out += columns) {
        double most = -INFINITY, sum = 0;
        for (size_t i = 0; i < columns; i++) most = fmax(most, (double)x[i]);
        for (size_t i = 0; i < columns; i++) sum += exp((double)x[i] - most);
        for (size_t i = 0; i < columns; i++) out[i] = (T)(exp((double)x[i] - most) / sum);
    }
}

void layer_norm(const T *x, const T *scale, const T *shift, T *out, uint32_t rows, uint32_t columns, T epsilon) {
    for (size_t row = 0; row < rows; row++, x += columns, out += columns) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < columns; i++) mean += (double)x[i] / columns;
        for (size_t i = 0; i < columns; i++) variance += pow((double)x[i] - mean, 2) / columns;
        double deviation = sqrt(variance + (double)epsilon);
        for (size_t i = 0; i < columns; i++)
            out[i] = (T)(((double)x[i] - mean) / deviation * (double)scale[i] + (double)shift[i]);
    }
}

void convolution(const T *image, const T *weights, T *out, uint32_t height, uint32_t width) {
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            double sum = 0;
            for (int64_t i = 0; i < 3; i++)
                for (int64_t j = 0; j < 3; j++) {
                    int64_t y = row + i - 1, x = column + j - 1;
                    if (0 <= y && y < height && 0 <= x && x < width)
                        sum += (double)weights[3 * i + j] * (double)image[y * width + x];
                }
            out[row * width + column] = (T)sum;
        }
}

#ifdef BINS
void histogram(const uint32_t *values, uint32_t *counts, uint32_t n) {
    for (size_t i = 0; i < n; i++)
        if (values[i] < BINS) counts[values[i]]++;
}
#endif

void mandelbrot(float *counts, uint32_t width, uint32_t height, T left, T top, T step, uint32_t most) {
    for (size_t row = 0; row < height; row++)
        for (size_t column = 0; column < width; column++) {
            T real = left + (T)column * step, imaginary = top + (T)row * step, x = 0, y = 0;
            uint32_t count = 0;
            while (count < most && x * x + y * y <= 65536) {
                T next = x * x - y * y + real;
                y = 2 * x * y + imaginary;
                x = next;
                count++;
            }
            double square = (double)x * (double)x + (double)y * (double)y;
            counts[row * width + column] = (float)(square > 65536 ? count - log2(log2(square) / 16) : count);
        }
}

void n_body(const T *bodies, T *accelerations, uint32_t n, T softening) {
    for (size_t i = 0; i < n; i++) {
        double sum[4] = {0};
        for (size_t j = 0; j < n; j++) {
            double d[3], square = (double)softening;
            for (int axis = 0; axis < 3; axis++) {
                d[axis] = (double)bodies[4 * j + axis] - (double)bodies[4 * i + axis];
                square += d[axis] * d[axis];
            }
            double pull = (double)bodies[4 * j + 3] / (square * sqrt(square));
            for (int axis = 0; axis < 3; axis++) sum[axis] += d[axis] * pull;
        }
        for (int axis = 0; axis < 4; axis++) accelerations[4 * i + axis] = (T)sum[axis];
    }
}
