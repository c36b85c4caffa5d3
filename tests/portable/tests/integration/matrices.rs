//! Emulated cooperative matrices on the host against sums in f64: every order of loads and stores, in arrays of every kind of
//! element, at places that are in range, out of range and misaligned, for subgroups of 16 to 64 items.

use half::f16;
use runtime_core::{Device, ModuleSource, Result, Runtime};

use portable::random::Random;

const COUNT: usize = INSIDE as usize + 8;
const INSIDE: u32 = 692;

/// The kernel of one form. Numbers are members behind others, so that their arrays are parts of variables.
struct Form {
    /// The numbers in an element of the factors' and the sums' arrays.
    numbers: [u32; 2],
    /// Whether factors and sums are by rows.
    by_rows: [bool; 3],
    size: u32,
}

const fn element(numbers: u32, scalar: &'static str) -> [&'static str; 3] {
    match numbers {
        1 => ["", scalar, ""],
        2 => ["vec2<", scalar, ">"],
        _ => ["vec4<", scalar, ">"],
    }
}

fn code(form: &Form) -> String {
    let [factors, sums] = form.numbers;
    let load = |is_by_rows| if is_by_rows { "coopLoadT" } else { "coopLoad" };
    let [a, b, c] = form.by_rows.map(load);
    let store = if form.by_rows[2] { "coopStoreT" } else { "coopStore" };
    format!(
        "enable f16; enable wgpu_cooperative_matrix;
         struct Places {{ a: i32, b: u32, c: u32, factor_stride: u32, sum_stride: i32 }} var<immediate> places: Places;
         struct Factors {{ head: vec4u, all: array<{half}> }}
         @group(0) @binding(0) var<storage, read> x: Factors;
         @group(0) @binding(1) var<storage, read_write> y: array<{float}>;
         fn product(a: coop_mat16x16<f16, A>, c: coop_mat16x16<f32, C>) -> coop_mat16x16<f32, C> {{
             var factors: array<coop_mat16x16<f16, B>, 2>;
             for (var i = 0u; i < 2; i++) {{
                 factors[i] = {b}<coop_mat16x16<f16, B>>(&x.all[places.b], places.factor_stride);
             }}
             return coopMultiplyAdd(a, factors[places.b % 2], c);
         }}
         @compute @workgroup_size({items}) fn main() {{
             let a = {a}<coop_mat16x16<f16, A>>(&x.all[places.a], places.factor_stride);
             var sums = {c}<coop_mat16x16<f32, C>>(&y[places.c], places.sum_stride);
             sums = product(a, sums * 0.5 - sums);
             {store}(2.0 * sums, &y[places.c], places.sum_stride);
         }}",
        half = element(factors, "f16").concat(),
        float = element(sums, "f32").concat(),
        items = 2 * form.size,
    )
}

/// The index of a number of a matrix; `None` if the matrix is not completely in range, or not aligned.
fn places(
    (index, stride, length): (u32, u32, usize),
    numbers: u32,
    bytes: u32,
    by_rows: bool,
) -> Option<impl Fn(usize, usize) -> usize> {
    let (index, stride, width) = (index as usize, stride as usize, (16 / numbers) as usize);
    let unit = (16 / (numbers * bytes)).max(1) as usize;
    let fits = index + 15 * stride + width <= length / numbers as usize;
    let aligned = index.is_multiple_of(unit) && stride.is_multiple_of(unit);
    (fits && aligned).then_some(move |row: usize, column: usize| {
        let (row, column) = if by_rows { (row, column) } else { (column, row) };
        (index + row * stride) * numbers as usize + column
    })
}

fn check(device: &Device, form: &Form, random: &mut Random) -> Result<()> {
    let [factors, sums] = form.numbers;
    let kernel = device
        .kernel(ModuleSource::wgsl(&code(form)).option("subgroup_size", i64::from(form.size)), "main")?;
    let mut number = || f16::from_f32(random.below(64) as f32 / 16.0 - 2.0);
    let x: Vec<f16> = (0..COUNT).map(|_| number()).collect();
    let before: Vec<f32> = (0..COUNT).map(|_| f32::from(number())).collect();
    let (unit, word) = (8 / factors, (4 / sums).max(1));
    let (wide, sum_stride) = (16 / factors + unit, 16 / sums + word);
    // In range and aligned; a and c misaligned where that is possible; the last number outside.
    let outside = (INSIDE - 15 * wide * factors) / factors / unit * unit;
    for [a, b, c] in
        [[0, 0, 0], [2 * unit, unit, word], [1, unit, word], [outside, 0, 0], [unit, outside, 0], [0, 0, 400]]
    {
        let (x_tensor, y) = (device.tensor([COUNT], &x)?, device.tensor([COUNT], &before)?);
        let arguments = (&x_tensor, &y, a as i32, b, c, wide, sum_stride as i32);
        device.queue()?.launch(&kernel, (1, 2 * form.size), arguments)?.wait()?;
        let of_a = places((a, wide, COUNT - 8), factors, 2, form.by_rows[0]);
        let of_b = places((b, wide, COUNT - 8), factors, 2, form.by_rows[1]);
        let of_c = places((c, sum_stride, COUNT), sums, 4, form.by_rows[2]);
        let mut expected: Vec<f64> = before.iter().map(|&number| number.into()).collect();
        if let Some(of_c) = of_c {
            let factor = |at: usize| f64::from(x[8 + at]);
            for (row, column) in (0..16).flat_map(|row| (0..16).map(move |column| (row, column))) {
                let products = (0..16).map(|k| match (&of_a, &of_b) {
                    (Some(of_a), Some(of_b)) => factor(of_a(row, k)) * factor(of_b(k, column)),
                    _ => 0.0,
                });
                let at = of_c(row, column);
                expected[at] = 2.0 * (products.sum::<f64>() - f64::from(before[at]) / 2.0);
            }
        }
        let actual: Vec<f64> = y.to_vec::<f32>()?.into_iter().map(f64::from).collect();
        // All sums are exact in f32.
        assert_eq!(actual, expected, "{:?} {:?} {} {a} {b} {c}", form.numbers, form.by_rows, form.size);
    }
    Ok(())
}

fn host() -> Result<Device> {
    let builder = Runtime::builder().with_lowering(runtime_kernel::wgsl()).discover(false);
    builder.register(runtime_host::backend()).build().open("host")
}

#[test]
fn matrices_are_transposed_in_place() -> Result<()> {
    let code = "enable wgpu_cooperative_matrix;
        @group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(32) fn main() {
            coopStore(coopLoadT<coop_mat16x16<f32, C>>(&y[0], 16u), &y[0], 16u);
        }";
    let device = host()?;
    let kernel = device.kernel(ModuleSource::wgsl(code), "main")?;
    let before: Vec<f32> = (0..256u16).map(f32::from).collect();
    let y = device.tensor([256], &before)?;
    device.queue()?.launch(&kernel, (1, 32), (&y,))?.wait()?;
    let after: Vec<f32> = (0..256).map(|at| before[at % 16 * 16 + at / 16]).collect();
    assert_eq!(y.to_vec::<f32>()?, after);
    Ok(())
}

#[test]
fn every_form_agrees_with_sums_in_f64() -> Result<()> {
    let device = host()?;
    let mut random = Random::new(3);
    let orders = [[true; 3], [false; 3], [true, false, true], [false, true, false]];
    let sizes = [32, 16, 64];
    for (at, by_rows) in orders.into_iter().enumerate() {
        for (place, numbers) in [[1, 1], [2, 2], [4, 4]].into_iter().enumerate() {
            check(&device, &Form { numbers, by_rows, size: sizes[(at + place) % 3] }, &mut random)?;
        }
    }
    Ok(())
}
