/* Kernels in the manner of PolyBench/C, with all of their many parameters. Matrices are row-major with a leading
   dimension; `gemm_rows` takes a range of rows. */
#include <stdint.h>

void gemm(int ni, int nj, int nk, double alpha, double beta, double *C, int64_t ldc, const double *A, int64_t lda,
          const double *B, int64_t ldb) {
    for (int i = 0; i < ni; i++) {
        for (int j = 0; j < nj; j++)
            C[i * ldc + j] *= beta;
        for (int k = 0; k < nk; k++)
            for (int j = 0; j < nj; j++)
                C[i * ldc + j] += alpha * A[i * lda + k] * B[k * ldb + j];
    }
}

void gemm_rows(int nj, int nk, double alpha, double beta, double *C, int64_t ldc, const double *A, int64_t lda,
               const double *B, int64_t ldb, int64_t begin, int64_t end) {
    gemm((int)(end - begin), nj, nk, alpha, beta, C + begin * ldc, ldc, A + begin * lda, lda, B, ldb);
}

void two_mm(int ni, int nj, int nk, int nl, double alpha, double beta, double *tmp, const double *A, const double *B,
            const double *C, double *D) {
    for (int i = 0; i < ni; i++)
        for (int j = 0; j < nj; j++) {
            tmp[i * nj + j] = 0;
            for (int k = 0; k < nk; k++)
                tmp[i * nj + j] += alpha * A[i * nk + k] * B[k * nj + j];
        }
    for (int i = 0; i < ni; i++)
        for (int j = 0; j < nl; j++) {
            D[i * nl + j] *= beta;
            for (int k = 0; k < nj; k++)
                D[i * nl + j] += tmp[i * nj + k] * C[k * nl + j];
        }
}

void gemver(int16_t n, float alpha, double beta, double *A, const double *u1, const double *v1, const double *u2,
            const double *v2, double *w, double *x, const double *y, const double *z) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            A[i * n + j] += u1[i] * v1[j] + u2[i] * v2[j];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            x[i] += beta * A[j * n + i] * y[j];
    for (int i = 0; i < n; i++)
        x[i] += z[i];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            w[i] += alpha * A[i * n + j] * x[j];
}

void jacobi_2d(unsigned steps, uint64_t n, float *A, float *B, float centre, float north, float south, float west,
               float east) {
    for (unsigned t = 0; t < steps; t++) {
        for (uint64_t i = 1; i < n - 1; i++)
            for (uint64_t j = 1; j < n - 1; j++)
                B[i * n + j] = centre * A[i * n + j] + north * A[(i - 1) * n + j] + south * A[(i + 1) * n + j] +
                               west * A[i * n + j - 1] + east * A[i * n + j + 1];
        float *swap = A;
        A = B;
        B = swap;
    }
}

/* y = Aᵀ(A x), with the distance between neighbours of every vector. */
void atax(int m, int n, const float *A, int lda, const float *x, int incx, float *y, int incy, float *tmp, int8_t clear) {
    for (int j = 0; clear && j < n; j++)
        y[j * incy] = 0;
    for (int i = 0; i < m; i++) {
        tmp[i] = 0;
        for (int j = 0; j < n; j++)
            tmp[i] += A[i * lda + j] * x[j * incx];
        for (int j = 0; j < n; j++)
            y[j * incy] += A[i * lda + j] * tmp[i];
    }
}
