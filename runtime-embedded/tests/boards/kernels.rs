//! The kernels of `kernels/embedded`, against references in this process.

use std::f64::consts::TAU;

use runtime_core::{Arg, DType, Element, HostArray, ModuleSource, Tensor};

use crate::{Board, Case, DEADLINE};

pub(crate) const CASES: &[Case] = &[
    ("matmul_i8_is_exact", matmul_i8_is_exact),
    ("depthwise_i8_is_exact", depthwise_i8_is_exact),
    ("fir_q15_is_exact", fir_q15_is_exact),
    ("fft_q15_is_close", fft_q15_is_close),
];

fn kernel(name: &str) -> ModuleSource {
    let path = format!("{}/../kernels/embedded/{name}.c", env!("CARGO_MANIFEST_DIR"));
    // SAFETY: the kernel runs on the target.
    unsafe { ModuleSource::native_file("c", path) }
}

/// Deterministic numbers of all magnitudes.
fn numbers(count: usize, seed: u32) -> impl Iterator<Item = i32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.cast_signed() >> 16
    })
    .take(count)
}

fn bytes(count: usize, seed: u32) -> Vec<i8> {
    numbers(count, seed).map(|number| number.to_le_bytes()[0].cast_signed()).collect()
}

fn words(count: usize, seed: u32) -> Vec<i16> {
    numbers(count, seed).map(|number| i16::try_from(number).unwrap()).collect()
}

fn tensor<T: Element>(board: &Board, data: &[T]) -> Tensor {
    board.embedded().tensor_from_array(HostArray::from_slice(&[data.len()], data).unwrap()).unwrap()
}

/// Runs a kernel and returns its tensor `output`.
fn run<T: Element>(board: &Board, name: &str, args: &[Arg<'_>], output: usize) -> Vec<T> {
    board.embedded().flash(&kernel(name), args).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    board.embedded().read(output).unwrap().as_slice::<T>().unwrap().to_vec()
}

fn matmul_i8_is_exact(board: &Board) {
    let (m, n, k) = (7, 5, 33);
    let (a, b) = (bytes(m * k, 1), bytes(k * n, 2));
    let bias: Vec<i32> = numbers(n, 3).collect();
    let (multiplier, shift, zero_point) = (1_395_864_371i64, 6u32, -5i64);
    let mut expected = Vec::new();
    for row in 0..m {
        for column in 0..n {
            let terms = (0..k).map(|i| i64::from(a[row * k + i]) * i64::from(b[i * n + column]));
            let product = (i64::from(bias[column]) + terms.sum::<i64>()) * multiplier;
            let half = 1i64 << (30 + shift);
            let rounded = (product.abs() + half) >> (31 + shift);
            let value = rounded * product.signum() + zero_point;
            expected.push(i8::try_from(value.clamp(-128, 127)).unwrap());
        }
    }
    let c = board.embedded().tensor_from_seed(DType::I8, &[m * n], 0).unwrap();
    let (a, b, bias) = (tensor(board, &a), tensor(board, &b), tensor(board, &bias));
    let args = [
        Arg::read(&a),
        Arg::read(&b),
        Arg::read(&bias),
        Arg::write(&c),
        Arg::scalar(7i32),
        Arg::scalar(5i32),
        Arg::scalar(33i32),
        Arg::scalar(1_395_864_371i32),
        Arg::scalar(6i32),
        Arg::scalar(-5i32),
    ];
    assert_eq!(run::<i8>(board, "matmul_i8", &args, 3), expected);
    assert!(expected.iter().any(|&x| x > -128 && x < 127), "not everything is saturated");
}

fn depthwise_i8_is_exact(board: &Board) {
    let (height, width, channels) = (6usize, 5usize, 3usize);
    let (image, weights) = (bytes(height * width * channels, 4), bytes(9 * channels, 5));
    let mut expected = vec![0i32; image.len()];
    for (at, sum) in expected.iter_mut().enumerate() {
        let (y, x, channel) = (at / channels / width, at / channels % width, at % channels);
        for (tap, weight) in weights.iter().skip(channel).step_by(channels).enumerate() {
            let (row, column) = ((y + tap / 3).wrapping_sub(1), (x + tap % 3).wrapping_sub(1));
            if row < height && column < width {
                *sum += i32::from(image[(row * width + column) * channels + channel]) * i32::from(*weight);
            }
        }
    }
    let sums = board.embedded().tensor_from_seed(DType::I32, &[expected.len()], 0).unwrap();
    let (image, weights) = (tensor(board, &image), tensor(board, &weights));
    let sizes = [6i32, 5, 3].map(Arg::scalar);
    let [height, width, channels] = sizes;
    let args = [Arg::read(&image), Arg::read(&weights), Arg::write(&sums), height, width, channels];
    assert_eq!(run::<i32>(board, "depthwise_i8", &args, 2), expected);
}

fn fir_q15_is_exact(board: &Board) {
    let (n, taps) = (50, 11);
    let (x, h) = (words(n + taps - 1, 6), words(taps, 7));
    let expected: Vec<i16> = x
        .windows(taps)
        .map(|window| {
            let terms = window.iter().rev().zip(&h).map(|(&x, &h)| i64::from(x) * i64::from(h));
            let sum = (terms.sum::<i64>() + (1 << 14)) >> 15;
            i16::try_from(sum.clamp(-32768, 32767)).unwrap()
        })
        .collect();
    let y = board.embedded().tensor_from_seed(DType::I16, &[n], 0).unwrap();
    let (x, h) = (tensor(board, &x), tensor(board, &h));
    let args = [Arg::read(&x), Arg::read(&h), Arg::write(&y), Arg::scalar(50i32), Arg::scalar(11i32)];
    assert_eq!(run::<i16>(board, "fir_q15", &args, 2), expected);
}

fn fft_q15_is_close(board: &Board) {
    let (bits, n) = (6i32, 64usize);
    let data = words(2 * n, 8);
    let angle = |i: usize| -TAU * i as f64 / n as f64;
    #[expect(clippy::cast_possible_truncation, reason = "rounded to 1.15 fixed point")]
    let fixed = |x: f64| (x * 32767.0).round() as i16;
    let twiddles: Vec<i16> =
        (0..n / 2).flat_map(|i| [fixed(angle(i).cos()), fixed(angle(i).sin())]).collect();
    let (x, w) = (tensor(board, &data), tensor(board, &twiddles));
    let args = [Arg::read_write(&x), Arg::read(&w), Arg::scalar(bits)];
    let result = run::<i16>(board, "fft_q15", &args, 0);
    for (frequency, got) in result.chunks_exact(2).enumerate() {
        let (mut real, mut imaginary) = (0.0, 0.0);
        for (i, number) in data.chunks_exact(2).enumerate() {
            let (sin, cos) = angle(i * frequency % n).sin_cos();
            let (x, y) = (f64::from(number[0]), f64::from(number[1]));
            real += (x * cos - y * sin) / n as f64;
            imaginary += (x * sin + y * cos) / n as f64;
        }
        // Each stage rounds twice by at most one.
        let bound = 2.0 * f64::from(bits);
        let error = (real - f64::from(got[0])).abs().max((imaginary - f64::from(got[1])).abs());
        assert!(error < bound, "frequency {frequency}: {got:?} instead of {real}, {imaginary}");
    }
}
