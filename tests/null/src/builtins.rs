//! The kernels of the null devices. Tensors may be strided; element counts must agree.
//!
//! | builtin | arguments | what it does |
//! | --- | --- | --- |
//! | `add_f32` | `a` read, `b` read, `out` write | `out = a + b` |
//! | `saxpy_f32` | `x` read, `y` read-write, scalar `a` | `y = a x + y` |
//! | `scale_f32` | `x` read-write, scalar `a` | `x = a x` |
//! | `fill_f32` | `out` write, scalar `v` | `out = v` |
//! | `iota_i32` | `out` write | `out[i] = i` |
//! | `copy_bytes` | `from` read, `to` write, of one element size | `to = from` |
//! | `sum9_f64` | scalars `f64, i64, f64, i64, f64, i64, f64, i64`, `out` write | `out[0]` = their sum |
//! | `group_ids_u32` | `out` write | each work-item writes its linear number to its element, if there is one |
//! | `counters` | `out` write, u64 | the queue's counts of `launch`, `signal`, `flush`, `poll`, `wait`, `wait_for`, `write`, `read`, `copy`, `fill`, `noop`, `timestamp`, `replay`, `copy_2d` calls, in this order, as many as fit; including this launch, excluding calls on the caller's thread |
//! | `noop` | anything | nothing |
//! | `spin` | scalar `us`, i64 | takes that many microseconds |
//! | `fail` | anything | the ticket fails with `Failed` |

use std::time::Duration;

use runtime_core::code::{ArgKind, Param};
use runtime_core::{Access, DType, Element, Result};

use crate::arguments::{Arguments, failed};

/// A kernel.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    /// `None`: any arguments.
    pub(crate) params: Option<&'static [Param]>,
    pub(crate) code: Code,
}

/// What a kernel does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Code {
    Noop,
    Spin,
    Fail,
    Counters,
    Compute(fn(&Arguments) -> Result<()>),
}

/// The calls of a queue that are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Launch,
    Signal,
    Flush,
    Poll,
    Wait,
    WaitFor,
    Write,
    Read,
    Copy,
    Fill,
    Noop,
    Timestamp,
    Replay,
    Copy2D,
}

/// The number of variants of [`Call`].
pub(crate) const CALLS: usize = SLOTS.len();

const SLOTS: [&str; 14] = [
    "launch",
    "signal",
    "flush",
    "poll",
    "wait",
    "wait_for",
    "write",
    "read",
    "copy",
    "fill",
    "noop",
    "timestamp",
    "replay",
    "copy_2d",
];

impl Call {
    /// The name of the function in the ABI's table.
    pub(crate) const fn slot(self) -> &'static str {
        SLOTS[self as usize]
    }
}

impl Code {
    /// The simulated duration.
    pub(crate) fn duration(self, arguments: &Arguments) -> Result<Duration> {
        match self {
            Self::Spin => Ok(Duration::from_micros(arguments.scalar::<i64>(0)?.max(0).cast_unsigned())),
            _ => Ok(Duration::ZERO),
        }
    }

    /// Runs it; `counters` are those of its queue.
    pub(crate) fn run(self, arguments: &Arguments, counters: &[u64]) -> Result<()> {
        match self {
            Self::Noop | Self::Spin => Ok(()),
            Self::Fail => Err(failed("the kernel `fail` was run")),
            Self::Counters => {
                let out = arguments.tensor(0)?;
                (0..out.len()).zip(counters).try_for_each(|(index, &count)| out.store(index, count))
            }
            Self::Compute(function) => function(arguments),
        }
    }
}

// The builtins find their elements by the strides: see `Tensor::at`.
const fn tensor(access: Access, dtype: DType) -> Param {
    Param { kind: ArgKind::Tensor, access: Some(access), strided: true, dtype: Some(dtype) }
}

const fn bytes(access: Access) -> Param {
    Param { kind: ArgKind::Tensor, access: Some(access), strided: true, dtype: None }
}

const fn scalar(dtype: DType) -> Param {
    Param { kind: ArgKind::Scalar, access: Some(Access::Read), strided: false, dtype: Some(dtype) }
}

const fn compute(
    name: &'static str,
    params: &'static [Param],
    function: fn(&Arguments) -> Result<()>,
) -> Builtin {
    Builtin { name, params: Some(params), code: Code::Compute(function) }
}

const READ_F32: Param = tensor(Access::Read, DType::F32);
const WRITE_F32: Param = tensor(Access::Write, DType::F32);
const UPDATE_F32: Param = tensor(Access::ReadWrite, DType::F32);
const F32: Param = scalar(DType::F32);
const F64: Param = scalar(DType::F64);
const I64: Param = scalar(DType::I64);

/// All kernels.
pub(crate) static BUILTINS: [Builtin; 12] = [
    compute("add_f32", &[READ_F32, READ_F32, WRITE_F32], |args| {
        let (a, b) = (args.tensor(0)?, args.tensor(1)?);
        each(args, 2, &[0, 1], |i| Ok(a.load::<f32>(i)? + b.load::<f32>(i)?))
    }),
    compute("saxpy_f32", &[READ_F32, UPDATE_F32, F32], |args| {
        let (x, y, a) = (args.tensor(0)?, args.tensor(1)?, args.scalar::<f32>(2)?);
        each(args, 1, &[0], |i| Ok(a * x.load::<f32>(i)? + y.load::<f32>(i)?))
    }),
    compute("scale_f32", &[UPDATE_F32, F32], |args| {
        let (x, a) = (args.tensor(0)?, args.scalar::<f32>(1)?);
        each(args, 0, &[], |i| Ok(a * x.load::<f32>(i)?))
    }),
    compute("fill_f32", &[WRITE_F32, F32], |args| {
        let v = args.scalar::<f32>(1)?;
        each(args, 0, &[], |_| Ok(v))
    }),
    compute("iota_i32", &[tensor(Access::Write, DType::I32)], |args| {
        each(args, 0, &[], |i| i32::try_from(i).map_err(|_| failed("more elements than an i32 counts")))
    }),
    compute("copy_bytes", &[bytes(Access::Read), bytes(Access::Write)], copy_bytes),
    compute("sum9_f64", &[F64, I64, F64, I64, F64, I64, F64, I64, tensor(Access::Write, DType::F64)], sum9),
    compute("group_ids_u32", &[tensor(Access::Write, DType::U32)], |args| {
        let out = args.tensor(0)?;
        (0..args.items.min(out.len())).try_for_each(|id| {
            out.store(id, u32::try_from(id).map_err(|_| failed("more work-items than a u32 counts"))?)
        })
    }),
    Builtin { name: "counters", params: Some(&[tensor(Access::Write, DType::U64)]), code: Code::Counters },
    Builtin { name: "noop", params: None, code: Code::Noop },
    Builtin { name: "spin", params: Some(&[I64]), code: Code::Spin },
    Builtin { name: "fail", params: None, code: Code::Fail },
];

/// Sets every element of argument `out`; checks that `inputs` have as many elements.
fn each<T: Element>(
    args: &Arguments,
    out: usize,
    inputs: &[usize],
    value: impl Fn(u64) -> Result<T>,
) -> Result<()> {
    let out = args.tensor(out)?;
    for &input in inputs {
        let (given, wanted) = (args.tensor(input)?.len(), out.len());
        if given != wanted {
            return Err(failed(format!("argument {input} has {given} elements, the output {wanted}")));
        }
    }
    (0..out.len()).try_for_each(|index| out.store(index, value(index)?))
}

fn copy_bytes(args: &Arguments) -> Result<()> {
    let (from, to) = (args.tensor(0)?, args.tensor(1)?);
    let bytes = from.dtype.bytes();
    if from.len() != to.len() || bytes != to.dtype.bytes() {
        return Err(failed("copy_bytes takes two tensors with the same number and size of elements"));
    }
    (0..to.len()).try_for_each(|index| to.memory.copy(to.at(index), &from.memory, from.at(index), bytes))
}

fn sum9(args: &Arguments) -> Result<()> {
    let mut sum = 0.0;
    for index in (0..8).step_by(2) {
        #[expect(clippy::cast_precision_loss, reason = "the sum is an f64")]
        let integer = args.scalar::<i64>(index + 1)? as f64;
        sum += args.scalar::<f64>(index)? + integer;
    }
    args.tensor(8)?.store(0, sum)
}
