/* Programs for embedded devices. The option `entry` chooses one. They use no library: not every board has one. */

typedef __INT64_TYPE__ int64_t;

void noop(void) {}

/* Busy for at least that long on any processor that executes fewer than 10^9 instructions per second. */
void spin(int64_t microseconds) {
    for (volatile int64_t left = microseconds * 1000; left > 0; left--) {}
}

void scale_f32(float *x, float a, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] *= a;
}

int fail(void) { return -1; }
