//! Random kernels with emulated cooperative matrices, on the host, against an interpreter: loads and stores by rows and by columns,
//! in range, partly outside and misaligned, products, sums, arrays of matrices, loops and uniform conditions. All numbers are
//! integers that f16 and f32 represent, so results agree bit for bit.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small integers")]

use std::fmt::Write as _;

use half::f16;
use runtime_core::{Device, ModuleSource, Result, Runtime};

use portable::random::Random;

const SIDE: usize = 16;
/// The numbers of the tensors of factors and of sums.
const COUNT: usize = 1024;
/// The matrices of each array.
const FACTORS: usize = 2;
const SUMS: usize = 3;
/// Statements may double a sum so often.
const DOUBLINGS: usize = 6;

type Matrix = Vec<i64>;

/// An index of an array: a number, plus the loop counter, modulo the length.
#[derive(Clone, Copy, Debug)]
struct Index {
    first: usize,
    by_counter: bool,
}

/// A place in a tensor.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: usize,
    /// What is added to the index per iteration.
    step: usize,
    stride: usize,
    by_rows: bool,
}

#[derive(Clone, Debug)]
enum Statement {
    LoadA(Index, Place),
    LoadB(Index, Place),
    LoadC(Index, Place),
    Zero(Index),
    Product { target: Index, a: Index, b: Index, c: Index },
    Sum(Index, Index, Index),
    Difference(Index, Index, Index),
    Negative(Index, Index),
    Store(Index, Place),
    If(bool, Vec<Self>),
    Loop(usize, Vec<Self>),
}

fn index(random: &mut Random, count: usize, in_loop: bool) -> Index {
    Index { first: random.below(count), by_counter: in_loop && random.once_in(2) }
}

/// A place whose index and stride are multiples of `unit`, mostly.
fn place(random: &mut Random, unit: usize) -> Place {
    let stride = SIDE + unit * random.below(3);
    let most = COUNT - 15 * stride - SIDE;
    let aligned = match random.below(6) {
        // Partly or completely outside.
        0 => most + unit * (1 + random.below(40)),
        _ => random.below(most),
    };
    let shift = usize::from(random.once_in(10));
    let step = if random.once_in(2) { unit * random.below(3) } else { 0 };
    Place { index: aligned / unit * unit + shift, step, stride, by_rows: random.once_in(2) }
}

fn statement(random: &mut Random, doublings: &mut usize, depth: usize, in_loop: bool) -> Statement {
    let factor = |random: &mut Random| index(random, FACTORS, in_loop);
    let sum = |random: &mut Random| index(random, SUMS, in_loop);
    match random.below(if depth == 0 { 9 } else { 12 }) {
        0 => Statement::LoadA(factor(random), place(random, 8)),
        1 => Statement::LoadB(factor(random), place(random, 8)),
        2 => Statement::LoadC(sum(random), place(random, 4)),
        3 => Statement::Zero(sum(random)),
        4 if *doublings > 0 && !in_loop => {
            *doublings -= 1;
            let operands = (sum(random), sum(random), sum(random));
            match random.below(2) {
                0 => Statement::Sum(operands.0, operands.1, operands.2),
                _ => Statement::Difference(operands.0, operands.1, operands.2),
            }
        }
        5 => Statement::Negative(sum(random), sum(random)),
        6 | 7 => Statement::Store(sum(random), place(random, 4)),
        9 => Statement::If(random.once_in(2), block(random, doublings, depth - 1, in_loop)),
        10 | 11 if !in_loop => {
            Statement::Loop(2 + random.below(2), block(random, doublings, depth - 1, true))
        }
        _ => Statement::Product { target: sum(random), a: factor(random), b: factor(random), c: sum(random) },
    }
}

fn block(random: &mut Random, doublings: &mut usize, depth: usize, in_loop: bool) -> Vec<Statement> {
    (0..2 + random.below(5)).map(|_| statement(random, doublings, depth, in_loop)).collect()
}

/// Loads of all matrices, random statements, and stores of all sums.
fn program(random: &mut Random) -> Vec<Statement> {
    let at = |first| Index { first, by_counter: false };
    let inside = |number: usize| Place { index: 64 * number, step: 0, stride: SIDE, by_rows: true };
    let mut all: Vec<_> = (0..FACTORS)
        .flat_map(|n| [Statement::LoadA(at(n), inside(n)), Statement::LoadB(at(n), inside(n + 3))])
        .collect();
    let mut doublings = DOUBLINGS;
    for _ in 0..3 {
        all.extend(block(random, &mut doublings, 2, false));
    }
    all.extend((0..SUMS).map(|n| Statement::Store(at(n), Place { index: 256 * n, ..inside(0) })));
    all
}

/// The text of an index.
fn number(index: Index, count: usize) -> String {
    if index.by_counter { format!("({}u + k) % {count}u", index.first) } else { format!("{}u", index.first) }
}

fn access(place: Place, tensor: &str, is_store: bool) -> String {
    let order = if place.by_rows { "T" } else { "" };
    let name = if is_store { "coopStore" } else { "coopLoad" };
    let step = if place.step == 0 { String::new() } else { format!(" + {}u * k", place.step) };
    let pointer = format!("&{tensor}[zero + {}u{step}], {}u", place.index, place.stride);
    format!("{name}{order}|{pointer}")
}

fn load(role: &str, scalar: &str, tensor: &str, place: Place) -> String {
    let text = access(place, tensor, false);
    let (name, pointer) = text.split_once('|').unwrap_or_default();
    format!("{name}<coop_mat16x16<{scalar}, {role}>>({pointer})")
}

fn write(text: &mut String, statements: &[Statement]) {
    for statement in statements {
        let line = match statement {
            Statement::LoadA(i, place) => {
                format!("a[{}] = {};", number(*i, FACTORS), load("A", "f16", "x", *place))
            }
            Statement::LoadB(i, place) => {
                format!("b[{}] = {};", number(*i, FACTORS), load("B", "f16", "x", *place))
            }
            Statement::LoadC(i, place) => {
                format!("c[{}] = {};", number(*i, SUMS), load("C", "f32", "y", *place))
            }
            Statement::Zero(i) => format!("c[{}] = coop_mat16x16<f32, C>();", number(*i, SUMS)),
            Statement::Product { target, a, b, c } => format!(
                "c[{}] = coopMultiplyAdd(a[{}], b[{}], c[{}]);",
                number(*target, SUMS),
                number(*a, FACTORS),
                number(*b, FACTORS),
                number(*c, SUMS)
            ),
            Statement::Sum(i, l, r) | Statement::Difference(i, l, r) => {
                let sign = if matches!(statement, Statement::Sum(..)) { '+' } else { '-' };
                format!("c[{}] = c[{}] {sign} c[{}];", number(*i, SUMS), number(*l, SUMS), number(*r, SUMS))
            }
            Statement::Negative(i, j) => format!("c[{}] = c[{}] * -1.0;", number(*i, SUMS), number(*j, SUMS)),
            Statement::Store(i, place) => {
                let text = access(*place, "y", true);
                let (name, pointer) = text.split_once('|').unwrap_or_default();
                // Only behind a barrier is a store complete for other items.
                format!("{name}(c[{}], {pointer}); storageBarrier();", number(*i, SUMS))
            }
            Statement::If(is_true, inner) => {
                let _ = writeln!(text, "if zero {} 1u {{", if *is_true { "<" } else { "==" });
                write(text, inner);
                "}".to_owned()
            }
            Statement::Loop(times, inner) => {
                let _ = writeln!(text, "for (var k = 0u; k < zero + {times}u; k++) {{");
                write(text, inner);
                "}".to_owned()
            }
        };
        let _ = writeln!(text, "{line}");
    }
}

fn code(statements: &[Statement], items: usize) -> String {
    let mut body = String::new();
    write(&mut body, statements);
    format!(
        "enable f16; enable wgpu_cooperative_matrix;
         struct Scalars {{ zero: u32 }} var<immediate> scalars: Scalars;
         @group(0) @binding(0) var<storage, read> x: array<f16>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size({items}) fn main() {{
             let zero = scalars.zero;
             let k = 0u;
             var a: array<coop_mat16x16<f16, A>, {FACTORS}>;
             var b: array<coop_mat16x16<f16, B>, {FACTORS}>;
             var c: array<coop_mat16x16<f32, C>, {SUMS}>;
             {body}
         }}"
    )
}

/// The state of the interpreter.
struct State<'a> {
    x: &'a [i64],
    y: Vec<i64>,
    a: Vec<Matrix>,
    b: Vec<Matrix>,
    c: Vec<Matrix>,
    counter: usize,
}

impl State<'_> {
    fn at(&self, index: Index, count: usize) -> usize {
        (index.first + if index.by_counter { self.counter } else { 0 }) % count
    }

    /// The index of each number of a matrix; `None` if it is not completely in range, or not aligned to 16 bytes.
    fn numbers(&self, place: Place, bytes: usize) -> Option<Vec<usize>> {
        let (index, unit) = (place.index + place.step * self.counter, 16 / bytes);
        let is_valid = index + 15 * place.stride + SIDE <= COUNT
            && index.is_multiple_of(unit)
            && place.stride.is_multiple_of(unit);
        let number = |at: usize| {
            let (row, column) = (at / SIDE, at % SIDE);
            let (line, rest) = if place.by_rows { (row, column) } else { (column, row) };
            index + line * place.stride + rest
        };
        is_valid.then(|| (0..SIDE * SIDE).map(number).collect())
    }

    fn loaded(&self, place: Place, is_sum: bool) -> Matrix {
        let (tensor, bytes) = if is_sum { (&self.y[..], 4) } else { (self.x, 2) };
        let numbers = self.numbers(place, bytes);
        numbers.map_or_else(|| vec![0; SIDE * SIDE], |numbers| numbers.iter().map(|&at| tensor[at]).collect())
    }

    fn combine(&mut self, i: Index, l: Index, r: Index, sign: i64) {
        let (l, r) = (&self.c[self.at(l, SUMS)], &self.c[self.at(r, SUMS)]);
        let new = l.iter().zip(r).map(|(l, r)| l + sign * r).collect();
        let at = self.at(i, SUMS);
        self.c[at] = new;
    }

    fn product(&self, a: Index, b: Index, c: Index) -> Matrix {
        let (a, b) = (&self.a[self.at(a, FACTORS)], &self.b[self.at(b, FACTORS)]);
        let c = &self.c[self.at(c, SUMS)];
        let of = |at: usize| {
            let (row, column) = (at / SIDE, at % SIDE);
            c[at] + (0..SIDE).map(|k| a[row * SIDE + k] * b[k * SIDE + column]).sum::<i64>()
        };
        (0..SIDE * SIDE).map(of).collect()
    }

    fn run(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::LoadA(i, place) => {
                    let at = self.at(*i, FACTORS);
                    self.a[at] = self.loaded(*place, false);
                }
                Statement::LoadB(i, place) => {
                    let at = self.at(*i, FACTORS);
                    self.b[at] = self.loaded(*place, false);
                }
                Statement::LoadC(i, place) => {
                    let at = self.at(*i, SUMS);
                    self.c[at] = self.loaded(*place, true);
                }
                Statement::Zero(i) => {
                    let at = self.at(*i, SUMS);
                    self.c[at] = vec![0; SIDE * SIDE];
                }
                Statement::Product { target, a, b, c } => {
                    let at = self.at(*target, SUMS);
                    self.c[at] = self.product(*a, *b, *c);
                }
                Statement::Sum(i, l, r) => self.combine(*i, *l, *r, 1),
                Statement::Difference(i, l, r) => self.combine(*i, *l, *r, -1),
                Statement::Negative(i, j) => {
                    let new = self.c[self.at(*j, SUMS)].iter().map(|number| -number).collect();
                    let at = self.at(*i, SUMS);
                    self.c[at] = new;
                }
                Statement::Store(i, place) => {
                    let at = self.at(*i, SUMS);
                    for (number, value) in self.numbers(*place, 4).into_iter().flatten().zip(&self.c[at]) {
                        self.y[number] = *value;
                    }
                }
                Statement::If(is_true, inner) => {
                    if *is_true {
                        self.run(inner);
                    }
                }
                Statement::Loop(times, inner) => {
                    for counter in 0..*times {
                        self.counter = counter;
                        self.run(inner);
                    }
                    self.counter = 0;
                }
            }
        }
    }
}

fn check(device: &Device, seed: u64, size: usize, is_plain: bool) -> Result<()> {
    let mut random = Random::new(seed);
    let statements = program(&mut random);
    let text = code(&statements, size);
    let source = ModuleSource::wgsl(&text).option("subgroup_size", size as i64).option("debug", is_plain);
    let kernel = device.kernel(source, "main")?;
    let x: Vec<i64> = (0..COUNT).map(|_| random.below(5) as i64 - 2).collect();
    let before: Vec<i64> = (0..COUNT).map(|_| random.below(9) as i64 - 4).collect();
    let factors: Vec<f16> = x.iter().map(|&number| f16::from_f32(number as f32)).collect();
    let sums: Vec<f32> = before.iter().map(|&number| number as f32).collect();
    let (x_tensor, y) = (device.tensor([COUNT], &factors)?, device.tensor([COUNT], &sums)?);
    device.queue()?.launch(&kernel, (1, size as u32), (&x_tensor, &y, 0_u32))?.wait()?;
    let zeros = vec![0; SIDE * SIDE];
    let mut state = State {
        x: &x,
        y: before,
        a: vec![zeros.clone(); FACTORS],
        b: vec![zeros.clone(); FACTORS],
        c: vec![zeros; SUMS],
        counter: 0,
    };
    state.run(&statements);
    assert!(state.y.iter().all(|number| number.abs() < 1 << 24), "inexact: seed {seed}");
    let actual: Vec<i64> = y.to_vec::<f32>()?.into_iter().map(|number| number as i64).collect();
    let wrong = actual.iter().zip(&state.y).position(|(actual, expected)| actual != expected);
    assert_eq!(wrong, None, "seed {seed}, subgroups of {size}\n{text}");
    Ok(())
}

#[test]
fn random_kernels_agree_with_the_interpreter() -> Result<()> {
    let builder = Runtime::builder().with_lowering(runtime_kernel::wgsl()).discover(false);
    let device = builder.register(runtime_host::backend()).build().open("host")?;
    let count: u64 =
        std::env::var("RUNTIME_TEST_MATRIX_KERNELS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    for seed in 0..count {
        // Mostly without the optimisation of the compiler, which takes longer than all else.
        check(&device, seed, [32, 16, 64][seed as usize % 3], seed % 4 != 0)?;
    }
    Ok(())
}
