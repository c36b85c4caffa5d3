//! Results, counts and the contents of tensors.

use runtime_core::{Arg, DType, HostArray, ModuleSource};

use crate::{Board, Case, DEADLINE, Link, c};

pub(crate) const CASES: &[Case] = &[
    ("a_kernel_runs_on_its_data", a_kernel_runs_on_its_data),
    ("scalars_of_every_type_arrive", scalars_of_every_type_arrive),
    ("the_library_works", the_library_works),
    ("seeds_make_the_data_of_the_host", seeds_make_the_data_of_the_host),
    ("outputs_are_poisoned", outputs_are_poisoned),
    ("counts_are_the_same_in_every_run", counts_are_the_same_in_every_run),
    ("counts_are_instructions", counts_are_instructions),
    ("large_tensors_survive_the_way", large_tensors_survive_the_way),
];

/// On boards whose counter has 64 bits that code can set.
pub(crate) const WIDE: &[Case] = &[("counts_have_64_bits", counts_have_64_bits)];

const SCALE: &str =
    "void scale(float *x, float a, long long n) { for (long long i = 0; i < n; i++) x[i] *= a; }";

pub(crate) fn a_kernel_runs_on_its_data(board: &Board) {
    let device = board.embedded();
    let x = device.tensor_from_array(HostArray::from_slice(&[3], &[1.0f32, 2.0, -3.0]).unwrap()).unwrap();
    board.flash(SCALE, &[Arg::read_write(&x), Arg::scalar(2.5f32), Arg::scalar(3i64)]).unwrap();
    let report = device.run(DEADLINE).unwrap();
    assert!(report.exit_code == 0 && report.cycles.unwrap() > 5 && report.elapsed_ns > 0, "{report:?}");
    assert_eq!(device.read(0).unwrap().as_slice::<f32>().unwrap(), [2.5, 5.0, -7.5]);
}

fn scalars_of_every_type_arrive(board: &Board) {
    let code = "
        static void keep(void) {}
        void all(signed char a, short b, int c, long long d, unsigned char e, unsigned short f, unsigned g,
                 unsigned long long h, float i, double j, _Bool k, double *out) {
            double values[] = {a, b, c, d, e, f, g, h, i, j, k};
            for (int at = 0; at < 11; at++) out[at] = values[at];
            keep();
        }";
    let out = board.embedded().tensor_from_seed(DType::F64, &[11], 0).unwrap();
    let args = [
        Arg::scalar(-1i8),
        Arg::scalar(-2i16),
        Arg::scalar(-3i32),
        Arg::scalar(-4i64),
        Arg::scalar(5u8),
        Arg::scalar(6u16),
        Arg::scalar(7u32),
        Arg::scalar(1u64 << 40),
        Arg::scalar(0.5f32),
        Arg::scalar(-0.125f64),
        Arg::scalar(true),
        Arg::write(&out),
    ];
    board.flash(code, &args).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    let expected = [-1.0, -2.0, -3.0, -4.0, 5.0, 6.0, 7.0, 1_099_511_627_776.0, 0.5, -0.125, 1.0];
    assert_eq!(board.embedded().read(0).unwrap().as_slice::<f64>().unwrap(), expected);
}

fn the_library_works(board: &Board) {
    let code = "
        #include <errno.h>
        #include <math.h>
        #include <string.h>
        static int table[4] = {1, 2, 3, 4};
        int f(float *x) {
            char text[64];
            memset(text, 7, sizeof text);
            x[0] = sqrtf(x[0]) + expf(0.0f) + (float)strlen(\"abc\") + (float)table[3]++;
            errno = text[63];
            return errno - 7;
        }";
    let x = board.embedded().tensor_from_array(HostArray::from_slice(&[1], &[16.0f32]).unwrap()).unwrap();
    board.flash(code, &[Arg::read_write(&x)]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(board.embedded().read(0).unwrap().as_slice::<f32>().unwrap(), [12.0]);
}

/// The words of `SplitMix64`.
fn words(mut state: u64) -> impl Iterator<Item = u64> {
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}

/// An element as `docs/spec.md` defines random data with the default range.
#[expect(clippy::cast_possible_truncation, reason = "24 bits are exact in f32")]
fn element(dtype: DType, word: u64) -> Vec<u8> {
    let fraction = |digits: u32| (word >> (64 - digits)) as f64 / (1u64 << digits) as f64;
    match dtype {
        DType::F16 => half::f16::from_f64(fraction(11)).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(fraction(8)).to_le_bytes().to_vec(),
        DType::F32 | DType::COMPLEX64 => (fraction(24) as f32).to_le_bytes().to_vec(),
        DType::F64 | DType::COMPLEX128 => fraction(53).to_le_bytes().to_vec(),
        DType::BOOL => vec![(word >> 63) as u8],
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            ((word >> 60) as i64 - 8).to_le_bytes()[..dtype.bytes()].to_vec()
        }
        _ => (word >> 60).to_le_bytes()[..dtype.bytes()].to_vec(),
    }
}

fn seeds_make_the_data_of_the_host(board: &Board) {
    let dtypes = [
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::BOOL,
        DType::COMPLEX64,
        DType::COMPLEX128,
    ];
    let device = board.embedded();
    let tensors: Vec<_> = dtypes
        .iter()
        .zip(40..)
        .map(|(&of, seed)| device.tensor_from_seed(of, &[257], seed).unwrap())
        .collect();
    let args: Vec<_> = tensors.iter().map(Arg::read).collect();
    let parameters: Vec<_> = (0..tensors.len()).map(|index| format!("const void *x{index}")).collect();
    board.flash(&format!("void f({}) {{}}", parameters.join(", ")), &args).unwrap();
    for (index, (dtype, seed)) in dtypes.into_iter().zip(40..).enumerate() {
        let part = element(dtype, 0).len();
        let expected: Vec<u8> =
            words(seed).take(257 * dtype.bytes() / part).flat_map(|word| element(dtype, word)).collect();
        assert_eq!(device.read(index).unwrap().bytes(), expected, "{dtype}");
    }
}

fn outputs_are_poisoned(board: &Board) {
    let device = board.embedded();
    let y = device.tensor_from_seed(DType::U8, &[9], 1).unwrap();
    board.flash("void f(unsigned char *y) { y[4] = 1; }", &[Arg::write(&y)]).unwrap();
    device.run(DEADLINE).unwrap();
    let expected = [255, 255, 255, 255, 1, 255, 255, 255, 255];
    assert_eq!(device.read(0).unwrap().as_slice::<u8>().unwrap(), expected);
}

/// The count of one run of `source`.
fn count(board: &Board, source: &ModuleSource) -> u64 {
    let x = board.embedded().tensor_from_seed(DType::F32, &[500], 1).unwrap();
    let args = [Arg::read_write(&x), Arg::scalar(1.5f32), Arg::scalar(500i64)];
    board.embedded().flash(source, &args).unwrap();
    board.embedded().run(DEADLINE).unwrap().cycles.unwrap()
}

fn counts_are_the_same_in_every_run(board: &Board) {
    let first = count(board, &c(SCALE));
    assert_eq!([count(board, &c(SCALE)), count(board, &c(SCALE))], [first, first]);
    assert_eq!(count(&board.another(), &c(SCALE)), first, "on another target");
    let ten = count(board, &c(SCALE).option("calls", 10));
    assert!((8 * first..=11 * first).contains(&ten), "{first} for one call, {ten} for ten");
}

/// A loop of two instructions, whose number is known.
fn counts_are_instructions(board: &Board) {
    let body = match board.is_cortex_m() {
        true => "1: subs %0, %0, #1\\n bne 1b",
        false => "1: addi %0, %0, -1\\n bnez %0, 1b",
    };
    let code = format!("void f(int n) {{ __asm__ volatile(\"{body}\" : \"+r\"(n) : : \"cc\"); }}");
    let count = |n: i32| {
        board.flash(&code, &[Arg::scalar(n)]).unwrap();
        board.embedded().run(DEADLINE).unwrap().cycles.unwrap()
    };
    let (short, long) = (count(1), count(1001));
    assert!((1999..=2001).contains(&(long - short)), "{short} and {long}");
    assert!(short < 60, "measuring costs at most 60 instructions, not {short}");
}

pub(crate) fn large_tensors_survive_the_way(board: &Board) {
    let device = board.embedded();
    // An emulated UART takes some kilobytes per second.
    let count: i32 = if board.link == Link::Uart { 5_000 } else { 100_000 };
    let data: Vec<u8> =
        words(3).take(count.unsigned_abs() as usize).map(|word| word.to_le_bytes()[0]).collect();
    let x = device.tensor_from_array(HostArray::from_slice(&[data.len()], &data).unwrap()).unwrap();
    let code = "void f(unsigned char *x, int n) { for (int i = 0; i < n; i++) x[i] ^= 0x5a; }";
    board.flash(code, &[Arg::read_write(&x), Arg::scalar(count)]).unwrap();
    device.run(DEADLINE).unwrap();
    let expected: Vec<u8> = data.iter().map(|byte| byte ^ 0x5a).collect();
    assert_eq!(device.read(0).unwrap().as_slice::<u8>().unwrap(), expected);
}

/// The kernel sets the system counter to 2³² − 1.
fn counts_have_64_bits(board: &Board) {
    let code = "
        #define REGISTER(offset) (*(volatile unsigned *)(0x58100000u + (offset)))
        void f(void) { REGISTER(0) = 0; REGISTER(8) = 0xffffffffu; REGISTER(12) = 0; REGISTER(0) = 1; }";
    board.flash(code, &[]).unwrap();
    let count = board.embedded().run(DEADLINE).unwrap().cycles.unwrap();
    assert!(count.abs_diff((1u64 << 32) * 125 / 1024) < 100, "{count}");
}
