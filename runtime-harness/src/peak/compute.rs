//! Operations per second of each element type.

use half::f16;
use runtime_core::code::ParallelRange;
use runtime_core::{
    Arg, CodeFormat, DType, DeviceInfo, Error, ErrorKind, HostArray, LaunchConfig, ModuleSource, Result, abi,
};

use super::bench::{Bench, Timed};
use super::native::{native, unchecked};
use super::{ComputePeak, Figure, Missing, Peak};
use crate::row::{Unit, headline};

const CHAINS_WGSL: &str = include_str!("kernels/chains.wgsl");
const CHAINS_CL: &str = include_str!("kernels/chains.cl");
const HOST_C: &str = include_str!("kernels/host.c");
const MATRIX_CU: &str = include_str!("kernels/matrix.cu");

/// Work-items of a group.
const GROUP: u32 = 256;
/// Groups per compute unit: enough to fill it several times.
const GROUPS_PER_UNIT: u32 = 16;
/// Compute units of a device that does not tell them.
const UNITS: u32 = 32;
/// Parts of the work per processor of a host.
const PARTS_PER_CORE: u32 = 8;
/// Matrix units sum ones in `f32`, which is exact up to 2²⁴: 512 per step.
const MATRIX_STEPS: u32 = 1 << 14;
/// The compute capability from which on `mma` has large shapes of `f64` (PTX ISA, "Matrix multiply-accumulate using mma").
const LARGE_F64: u32 = 90;
/// Sums of ones by the host, of 384 or 768 per step.
const DOT_STEPS: u32 = 1 << 15;

/// A kernel that does nothing but arithmetic of one element type.
struct Arithmetic {
    dtype: &'static str,
    unit: Unit,
    source: ModuleSource,
    entry: &'static str,
    /// Element type of the result.
    result: DType,
    config: LaunchConfig,
    /// Number of elements of the result.
    items: u32,
    /// Operations per element of the result and step.
    operations: f64,
    pattern: Pattern,
    /// Maximum number of steps.
    limit: u32,
}

/// What a kernel computes, which says what to expect.
#[derive(Clone, Copy)]
enum Pattern {
    /// `chains` values x, x + 1, …, each in `lanes` lanes, replaced by b - x an odd number of times.
    Chains { chains: u32, lanes: u32 },
    /// Adds this to the result in each step.
    Sum(u32),
}

/// Measures every element type that the device has.
pub(super) fn measure(bench: &Bench<'_>, peak: &mut Peak) {
    for arithmetic in kernels(bench.device.info()) {
        let (dtype, unit) = (arithmetic.dtype, arithmetic.unit);
        let format = arithmetic.source.format().to_string();
        match arithmetic.measure(bench) {
            Ok(gflops_per_s) => {
                peak.compute.push(ComputePeak { dtype: dtype.to_owned(), unit, format, gflops_per_s });
            }
            Err(error) => peak.missing.push(Missing::new(&format!("{dtype} ({})", unit.name()), &error)),
        }
    }
}

fn kernels(info: &DeviceInfo) -> Vec<Arithmetic> {
    let mut kernels = Vec::new();
    if info.accepts(&CodeFormat::C) {
        let cores = info.compute_units.unwrap_or(1);
        kernels.extend([
            Arithmetic::host_chains("f64", "chains_f64", DType::F64, cores),
            Arithmetic::host_chains("f32", "chains_f32", DType::F32, cores),
            Arithmetic::host_chains("f16", "chains_f16", DType::F16, cores),
            // A step is 12 dot products in 16 lanes, of two or four elements each.
            Arithmetic::host_dots("bf16", "dots_bf16", DType::F32, (cores, 2)),
            Arithmetic::host_dots("i8", "dots_i8", DType::I32, (cores, 4)),
        ]);
        return kernels;
    }
    // Processors want vectors wider than those of portable code, on which graphics processors run out of registers.
    let is_wide = info.accepts(&CodeFormat::OPENCL_C) && info.properties.text("type") == Some("cpu");
    let chains = if is_wide { Arithmetic::opencl } else { Arithmetic::portable };
    kernels.extend(
        [("f64", DType::F64), ("f32", DType::F32), ("f16", DType::F16)]
            .map(|(name, dtype)| chains(name, dtype, info)),
    );
    kernels.push(Arithmetic::portable("i8", DType::I32, info));
    if info.accepts(&CodeFormat::CUDA_C) {
        // Multiply-adds of an `mma` divided by 32 threads, as in the names of its shapes.
        kernels.extend([
            Arithmetic::matrix("f64", "matrix_f64", (DType::F64, 0), info),
            Arithmetic::matrix("tf32", "matrix_tf32", (DType::F32, 8), info),
            Arithmetic::matrix("f16", "matrix_f16", (DType::F32, 16), info),
            Arithmetic::matrix("bf16", "matrix_bf16", (DType::F32, 16), info),
            Arithmetic::matrix("i8", "matrix_i8", (DType::I32, 32), info),
        ]);
    }
    kernels
}

impl Arithmetic {
    fn host(dtype: &'static str, entry: &'static str, result: DType, cores: u32) -> Self {
        let items = cores * PARTS_PER_CORE;
        Self {
            dtype,
            unit: Unit::Vector,
            source: native(CodeFormat::C, HOST_C),
            entry,
            result,
            config: ParallelRange::from(0..i64::from(items)).grain(1).into(),
            items,
            operations: 0.0,
            pattern: Pattern::Sum(0),
            limit: u32::MAX / 64,
        }
    }

    fn host_chains(dtype: &'static str, entry: &'static str, result: DType, cores: u32) -> Self {
        let lanes = host_vector_bytes() / u32::try_from(result.bytes()).unwrap_or(1);
        Self {
            operations: f64::from(2 * 12 * lanes),
            pattern: Pattern::Chains { chains: 12, lanes },
            ..Self::host(dtype, entry, result, cores)
        }
    }

    fn host_dots(
        dtype: &'static str,
        entry: &'static str,
        result: DType,
        (cores, length): (u32, u32),
    ) -> Self {
        Self {
            operations: f64::from(2 * 12 * 16 * length),
            pattern: Pattern::Sum(12 * 16 * length),
            limit: DOT_STEPS,
            ..Self::host(dtype, entry, result, cores)
        }
    }

    fn grid(dtype: &'static str, result: DType, source: ModuleSource, info: &DeviceInfo) -> Self {
        let groups = info.compute_units.unwrap_or(UNITS) * GROUPS_PER_UNIT;
        let group = GROUP.min(info.limits.group_items);
        Self {
            dtype,
            unit: Unit::Vector,
            source,
            entry: "chains",
            result,
            config: (groups, group).into(),
            items: groups * group,
            operations: 0.0,
            pattern: Pattern::Sum(0),
            limit: u32::MAX / 64,
        }
    }

    fn portable(dtype: &'static str, result: DType, info: &DeviceInfo) -> Self {
        // Integers are computed by dot products of four packed elements.
        let (element, vector, step, total, lanes) = match result {
            DType::I32 => ("i32", "T", "(dot4I8Packed(bitcast<u32>($), bitcast<u32>(m) & 255u) + b)", "$", 1),
            DType::F16 => ("f16", "vec4<T>", "fma($, m, b)", "(($.x + $.y) + ($.z + $.w))", 4),
            DType::F64 => ("f64", "vec4<T>", "fma($, m, b)", "(($.x + $.y) + ($.z + $.w))", 4),
            _ => ("f32", "vec4<T>", "fma($, m, b)", "(($.x + $.y) + ($.z + $.w))", 4),
        };
        let mut text = format!("alias T = {element};\nalias V = {vector};\n{CHAINS_WGSL}");
        if result == DType::F16 {
            text.insert_str(0, "enable f16;\n");
        }
        for chain in 0..8 {
            let name = format!("x{chain}");
            text = text.replace(&format!("STEP({name})"), &step.replace('$', &name));
        }
        text = text.replace("TOTAL(sum)", &total.replace('$', "sum"));
        let group = GROUP.min(info.limits.group_items);
        let operations = if result == DType::I32 { 8 * 8 } else { 2 * 8 * lanes };
        Self {
            operations: f64::from(operations),
            pattern: Pattern::Chains { chains: 8, lanes },
            ..Self::grid(dtype, result, unchecked(&text).constant("GROUP", group), info)
        }
    }

    fn opencl(dtype: &'static str, result: DType, info: &DeviceInfo) -> Self {
        let (element, pragma) = match result {
            DType::F16 => ("half", "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"),
            DType::F64 => ("double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"),
            _ => ("float", ""),
        };
        let lanes = 16;
        let sum: Vec<String> = "0123456789abcdef".chars().map(|lane| format!("(v).s{lane}")).collect();
        let text = format!(
            "{pragma}typedef {element} T;\ntypedef {element}{lanes} V;\n#define TOTAL(v) ({})\n{CHAINS_CL}",
            sum.join(" + ")
        );
        Self {
            operations: f64::from(2 * 8 * lanes),
            pattern: Pattern::Chains { chains: 8, lanes },
            ..Self::grid(dtype, result, native(CodeFormat::OPENCL_C, &text), info)
        }
    }

    /// `k` is the length of the products that a step adds to each element; 0: that of `f64`, which depends on the architecture.
    fn matrix(
        dtype: &'static str,
        entry: &'static str,
        (result, k): (DType, u32),
        info: &DeviceInfo,
    ) -> Self {
        let has_large_f64 = compute_capability(info) >= Some(LARGE_F64);
        let (elements, k) = match (k, has_large_f64) {
            (0, true) => (4, 16),
            (0, false) => (2, 4),
            (k, _) => (4, k),
        };
        let text = format!("#define LARGE_F64 {}\n{MATRIX_CU}", u8::from(has_large_f64));
        Self {
            unit: Unit::Matrix,
            entry,
            // 32 threads hold 32 × elements of the result, in 8 independent tiles.
            operations: f64::from(2 * 8 * elements * k),
            pattern: Pattern::Sum(8 * elements * k),
            limit: MATRIX_STEPS,
            ..Self::grid(dtype, result, native(CodeFormat::CUDA_C, &text), info)
        }
    }

    fn measure(&self, bench: &Bench<'_>) -> Result<Figure> {
        let needed = match self.result {
            DType::F16 => abi::CAP_F16,
            DType::F64 => abi::CAP_F64,
            _ => 0,
        };
        if !bench.device.info().capabilities.has(needed) {
            return Err(Error::unsupported(format!("the device has no {}", self.dtype)));
        }
        let kernel = bench.device.kernel(&self.source, self.entry).map_err(|error| match error.kind() {
            // The code has these kernels only where the compiler can use such instructions.
            ErrorKind::NotFound => {
                Error::unsupported("the processor or its C compiler has no instructions for it")
            }
            _ => error,
        })?;
        let items = self.items as usize;
        let result = bench.device.allocate(self.result, &[items], &Default::default())?;
        let args = |amount| self.args(&result, amount);
        let timed = Timed { kernel: &kernel, config: self.config, args: &args };
        let amount = bench.amount(&timed, self.limit)?;
        let expected = self.expected(self.steps(amount))?;
        let measurement = bench.time(&timed, amount, expected)?;
        let operations = self.operations * f64::from(self.items) * f64::from(self.steps(amount));
        Ok(Figure::rate(operations, &measurement.statistics, measurement.clock.name()))
    }

    /// An odd number of steps, so that chains end changed.
    fn steps(&self, amount: u32) -> u32 {
        amount.saturating_mul(32).min(self.limit) | 1
    }

    fn args<'a>(&self, result: &'a runtime_core::Tensor, amount: u32) -> Vec<Arg<'a>> {
        let steps = self.steps(amount);
        let steps = match self.config {
            LaunchConfig::Range(_) => Arg::scalar(i64::from(steps)),
            LaunchConfig::Groups(_) => Arg::scalar(steps),
        };
        match self.pattern {
            Pattern::Chains { .. } => vec![Arg::write(result), Arg::scalar(-1i32), Arg::scalar(3i32), steps],
            Pattern::Sum(_) => vec![Arg::write(result), steps],
        }
    }

    fn expected(&self, steps: u32) -> Result<HostArray> {
        let value = |item: u32| match self.pattern {
            Pattern::Chains { chains, lanes } => {
                let first = f64::from(item % 8);
                (0..chains).map(|chain| 3.0 - first - f64::from(chain)).sum::<f64>() * f64::from(lanes)
            }
            Pattern::Sum(step) => f64::from(step) * f64::from(steps),
        };
        let (shape, values) = ([self.items as usize], (0..self.items).map(value));
        match self.result {
            DType::F64 => HostArray::from_slice(&shape, &values.collect::<Vec<f64>>()),
            DType::F16 => HostArray::from_slice(&shape, &values.map(f16::from_f64).collect::<Vec<f16>>()),
            #[expect(clippy::cast_possible_truncation, reason = "integers that the type holds")]
            DType::F32 => {
                HostArray::from_slice(&shape, &values.map(|value| value as f32).collect::<Vec<f32>>())
            }
            #[expect(clippy::cast_possible_truncation, reason = "integers that the type holds")]
            DType::I32 => {
                HostArray::from_slice(&shape, &values.map(|value| value as i32).collect::<Vec<i32>>())
            }
            other => Err(Error::unsupported(format!("no peak kernel has results of type {other}"))),
        }
    }
}

/// The compute capability of an NVIDIA device, as in the name of its architecture: 90 for `sm_90a`, 100 for `sm_100`.
fn compute_capability(info: &DeviceInfo) -> Option<u32> {
    let number = info.arch.as_deref()?.strip_prefix("sm_")?;
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..end].parse().ok()
}

/// The vector width that `host.c` chooses.
pub(super) fn host_vector_bytes() -> u32 {
    #[cfg(target_arch = "x86_64")]
    let width = match () {
        () if std::arch::is_x86_feature_detected!("avx512f") => 64,
        () if std::arch::is_x86_feature_detected!("avx") => 32,
        () => 16,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let width = 16;
    width
}

impl Missing {
    pub(super) fn new(what: &str, error: &Error) -> Self {
        Self { what: what.to_owned(), reason: headline(error.message()) }
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::DeviceKind;

    use super::*;

    /// The operations of a step, and what it adds to the result, for `f64` by matrix units.
    fn matrix_f64(arch: Option<&str>) -> (f64, u32) {
        let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "GPU");
        info.arch = arch.map(str::to_owned);
        let arithmetic = Arithmetic::matrix("f64", "matrix_f64", (DType::F64, 0), &info);
        let Pattern::Sum(sum) = arithmetic.pattern else { panic!("a sum") };
        (arithmetic.operations, sum)
    }

    #[test]
    fn the_large_shape_of_f64_is_used_from_hopper_on() {
        for arch in ["sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_120", "sm_121f"] {
            assert_eq!(matrix_f64(Some(arch)), (1024.0, 512), "{arch}");
        }
        for arch in ["sm_80", "sm_86", "sm_89", "sm_", "gfx942"] {
            assert_eq!(matrix_f64(Some(arch)), (128.0, 64), "{arch}");
        }
        assert_eq!(matrix_f64(None), (128.0, 64));
    }
}
