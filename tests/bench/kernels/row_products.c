#include <stdint.h>
#include <stddef.h>

void row_products(const int32_t *a, const int32_t *b, int32_t *y, uint32_t rows, uint32_t columns) {
    for (size_t row = 0; row < rows; row++) {
        uint32_t sum = 0;
        for (size_t k = 0; k < columns; k++) sum += (uint32_t)a[row * columns + k] * (uint32_t)b[row * columns + k];
        y[row] = (int32_t)sum;
    }
}
