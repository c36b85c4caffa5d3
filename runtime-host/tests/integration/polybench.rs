//! Kernels in the style of `PolyBench`: many arguments of many types, compared with the same loops in Rust.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "extents are small, and single precision is tested too")]

use std::path::Path;
use std::sync::Arc;

use runtime_core::code::ParallelRange;
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, Element, Kernel, LaunchConfig, Module, ModuleSource, Runtime, Tensor,
};

struct Bench {
    host: Arc<dyn CommonRuntime>,
    module: Module,
}

impl Bench {
    fn new() -> Self {
        let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
        let host = runtime.open("host").expect("the host is always available");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/polybench.c");
        // SAFETY: the launches below match the functions' parameters.
        let module = host.load(&unsafe { ModuleSource::native_file(CodeFormat::C, path) }).unwrap();
        Self { host, module }
    }

    fn kernel(&self, name: &str) -> Kernel {
        self.module.kernel(name).unwrap()
    }

    fn tensor<T: Element>(&self, data: &[T]) -> Tensor {
        self.host.tensor([data.len()], data).unwrap()
    }

    /// Runs on the caller's thread and on the queue's. The expected results are those after two runs.
    fn run_twice(&self, kernel: &Kernel, config: impl Into<LaunchConfig>, args: &[Arg<'_>]) {
        let config = config.into();
        let queue = self.host.queue().unwrap();
        queue.call(kernel, config, args).unwrap();
        queue.launch(kernel, config, args).unwrap().wait().unwrap();
    }
}

/// `count` reproducible numbers in [-1, 1).
fn numbers(count: usize, seed: u32) -> Vec<f64> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 23) - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn close(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= tolerance * expected.abs().max(1.0),
            "{name}[{index}]: {found}, not {expected}"
        );
    }
}

/// C = alpha A B + beta C.
struct Gemm {
    extents: [usize; 3],
    leading: [usize; 3],
    factors: [f64; 2],
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Gemm {
    fn new() -> Self {
        let [ni, nj, nk] = [17, 23, 31];
        let leading = [nk + 3, nj + 1, nj + 5];
        let (a, b) = (numbers(ni * leading[0], 1), numbers(nk * leading[1], 2));
        Self { extents: [ni, nj, nk], leading, factors: [1.5, 0.75], a, b, c: numbers(ni * leading[2], 3) }
    }

    fn reference(&mut self) {
        let ([ni, nj, nk], [lda, ldb, ldc]) = (self.extents, self.leading);
        for i in 0..ni {
            for j in 0..nj {
                let sum: f64 = (0..nk).map(|k| self.a[i * lda + k] * self.b[k * ldb + j]).sum();
                let at = &mut self.c[i * ldc + j];
                *at = self.factors[1] * *at + self.factors[0] * sum;
            }
        }
    }
}

#[test]
fn gemm_and_gemm_by_rows() {
    let (bench, mut gemm) = (Bench::new(), Gemm::new());
    let [ni, nj, nk] = gemm.extents.map(|extent| i32::try_from(extent).unwrap());
    let [lda, ldb, ldc] = gemm.leading.map(|extent| Arg::scalar(extent as i64));
    let [alpha, beta] = gemm.factors.map(Arg::scalar);
    let (a, b) = (bench.tensor(&gemm.a), bench.tensor(&gemm.b));
    let [whole, rows] = [(); 2].map(|()| bench.tensor(&gemm.c));
    gemm.reference();
    gemm.reference();
    let extents = [ni, nj, nk].map(Arg::scalar);
    let matrices = |c| [alpha, beta, Arg::read_write(c), ldc, Arg::read(&a), lda, Arg::read(&b), ldb];
    let args = [&extents[..], &matrices(&whole)].concat();
    bench.run_twice(&bench.kernel("gemm"), (1, 1), &args);
    close("C", &whole.to_vec::<f64>().unwrap(), &gemm.c, 1e-12);
    let range = ParallelRange::from(0..i64::from(ni)).grain(3);
    let args = [&extents[1..], &matrices(&rows)].concat();
    bench.run_twice(&bench.kernel("gemm_rows"), range, &args);
    close("C by rows", &rows.to_vec::<f64>().unwrap(), &gemm.c, 1e-12);
}

#[test]
fn two_matrix_products() {
    let bench = Bench::new();
    let [ni, nj, nk, nl] = [13, 11, 19, 7_usize];
    let data = [(ni, nk, 4), (nk, nj, 5), (nj, nl, 6), (ni, nl, 7)].map(|(m, n, seed)| numbers(m * n, seed));
    let [a, b, c, d] = data.each_ref().map(|data| bench.tensor(data));
    let product = bench.tensor(&vec![f64::NAN; ni * nj]);
    let mut args: Vec<_> = [ni, nj, nk, nl].map(|extent| Arg::scalar(extent as i32)).to_vec();
    args.extend([Arg::scalar(1.5_f64), Arg::scalar(1.2_f64), Arg::write(&product)]);
    args.extend([Arg::read(&a), Arg::read(&b), Arg::read(&c), Arg::read_write(&d)]);
    bench.run_twice(&bench.kernel("two_mm"), (1, 1), &args);

    let [a, b, c, mut expected] = data;
    let product: Vec<f64> = (0..ni * nj)
        .map(|at| (0..nk).map(|k| 1.5 * a[at / nj * nk + k] * b[k * nj + at % nj]).sum())
        .collect();
    for _ in 0..2 {
        for (at, value) in expected.iter_mut().enumerate() {
            let sum: f64 = (0..nj).map(|k| product[at / nl * nj + k] * c[k * nl + at % nl]).sum();
            *value = 1.2 * *value + sum;
        }
    }
    close("D", &d.to_vec::<f64>().unwrap(), &expected, 1e-12);
}

#[test]
fn vector_multiplications_and_a_matrix_addition() {
    const N: usize = 29;
    let (alpha, beta) = (1.5_f32, 0.01_f64);
    let bench = Bench::new();
    let matrix = numbers(N * N, 8);
    let vectors: [Vec<f64>; 8] = std::array::from_fn(|index| numbers(N, 9 + index as u32));
    let a = bench.tensor(&matrix);
    let tensors = vectors.each_ref().map(|data| bench.tensor(data));
    let [u1, v1, u2, v2, w, x, y, z] = tensors.each_ref();
    let mut args = vec![Arg::scalar(N as i16), Arg::scalar(alpha), Arg::scalar(beta), Arg::read_write(&a)];
    args.extend([u1, v1, u2, v2].map(Arg::read));
    args.extend([Arg::read_write(w), Arg::read_write(x), Arg::read(y), Arg::read(z)]);
    bench.run_twice(&bench.kernel("gemver"), (1, 1), &args);

    let (mut matrix, [u1, v1, u2, v2, mut w, mut x, y, z]) = (matrix, vectors.clone());
    for _ in 0..2 {
        for (at, value) in matrix.iter_mut().enumerate() {
            *value += u1[at / N] * v1[at % N] + u2[at / N] * v2[at % N];
        }
        for i in 0..N {
            x[i] += (0..N).map(|j| beta * matrix[j * N + i] * y[j]).sum::<f64>() + z[i];
        }
        for i in 0..N {
            w[i] += (0..N).map(|j| f64::from(alpha) * matrix[i * N + j] * x[j]).sum::<f64>();
        }
    }
    close("A", &a.to_vec::<f64>().unwrap(), &matrix, 1e-12);
    close("x", &tensors[5].to_vec::<f64>().unwrap(), &x, 1e-12);
    close("w", &tensors[4].to_vec::<f64>().unwrap(), &w, 1e-11);
}

#[test]
fn jacobi_in_two_dimensions() {
    const N: usize = 24;
    let weights = [0.4_f32, 0.1, 0.2, 0.25, 0.05];
    let bench = Bench::new();
    let start: Vec<f32> = numbers(N * N, 20).iter().map(|&value| value as f32).collect();
    let [a, b] = [(); 2].map(|()| bench.tensor(&start));
    let mut args = vec![Arg::scalar(4_u32), Arg::scalar(N as u64), Arg::read_write(&a), Arg::read_write(&b)];
    args.extend(weights.map(Arg::scalar));
    bench.run_twice(&bench.kernel("jacobi_2d"), (1, 1), &args);

    let (mut from, mut to) = (start.clone(), start);
    for _ in 0..8 {
        for at in (0..N * N).filter(|at| (1..N - 1).contains(&(at / N)) && (1..N - 1).contains(&(at % N))) {
            let around = [at, at - N, at + N, at - 1, at + 1].map(|at| from[at]);
            to[at] = weights.iter().zip(around).map(|(weight, value)| weight * value).sum();
        }
        std::mem::swap(&mut from, &mut to);
    }
    let wide = |values: &[f32]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
    close("A", &wide(&a.to_vec::<f32>().unwrap()), &wide(&from), 1e-5);
}

#[test]
fn a_matrix_and_its_transpose() {
    let bench = Bench::new();
    let (m, n, lda, incx, incy) = (9, 14, 16, 2, 3);
    let [matrix, vector, start] =
        [(m * lda, 30), (n * incx, 31), (n * incy, 32)].map(|(count, seed)| numbers(count, seed));
    let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
    let [a, x, y] = [&matrix, &vector, &start].map(|values| bench.tensor(&single(values)));
    let product = bench.tensor(&vec![f32::NAN; m]);
    let number = |value: usize| Arg::scalar(value as i32);
    let mut args = vec![number(m), number(n), Arg::read(&a), number(lda), Arg::read(&x), number(incx)];
    args.extend([Arg::read_write(&y), number(incy), Arg::write(&product), Arg::scalar(1_i8)]);
    bench.run_twice(&bench.kernel("atax"), (1, 1), &args);

    let product: Vec<f64> =
        (0..m).map(|i| (0..n).map(|j| matrix[i * lda + j] * vector[j * incx]).sum()).collect();
    let mut expected = start;
    for j in 0..n {
        expected[j * incy] = (0..m).map(|i| matrix[i * lda + j] * product[i]).sum();
    }
    let found: Vec<f64> = y.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect();
    close("y", &found, &expected, 1e-5);
}
