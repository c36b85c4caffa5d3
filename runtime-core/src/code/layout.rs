//! Shape and strides of a tensor as scalar arguments, for kernels that declare them in a structure `Layout`.

use std::fmt::Debug;

use crate::code::argument_tuples::{ArgList, IntoArg};
use crate::model::counted::counted;
use crate::{Arg, Error, Kernel, Result, Tensor};

/// The shape and the strides of a tensor, as an element of a tuple of arguments: `rank` extents (`u32`), then
/// `rank` strides in elements (`i32`). A tensor of fewer dimensions is padded in front, with extents 1 and
/// strides 0.
///
/// A portable kernel declares `struct Layout { shape: array<u32, RANK>, strides: array<i32, RANK> }`, and for
/// its tensor `x` a member `x_layout: Layout` in the structure of its `var<immediate>`.
#[must_use]
pub const fn layout(tensor: &Tensor, rank: usize) -> TensorLayout<'_> {
    TensorLayout { tensor, rank }
}

/// The shape and the strides of a tensor, as arguments of a launch: what [`layout`] returns.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false);
/// # let runtime = runtime.register(runtime_host::backend()).with_lowering(runtime_kernel::wgsl()).build();
/// # let device = runtime.open("host")?;
/// use runtime_core::code::layout;
///
/// const COPY: &str = "
///     struct Layout { shape: array<u32, 1>, strides: array<i32, 1> }
///     struct Args { x_layout: Layout } // that of the tensor `x`, which may have gaps
///     var<immediate> args: Args;
///     @group(0) @binding(0) var<storage, read> x: array<f32>;
///     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
///     @compute @workgroup_size(1) fn copy(@builtin(global_invocation_id) id: vec3u) {
///         y[id.x] = x[id.x * u32(args.x_layout.strides[0])];
///     }";
/// let copy = device.kernel(ModuleSource::wgsl(COPY), "copy")?;
/// let odd = device.tensor([4], &[0.0f32, 1.0, 2.0, 3.0])?.view(&[2], &[2], 1)?;
/// let y = device.zeros::<f32>([2])?;
/// device.queue()?.call(&copy, (2, 1), (&odd, &y, layout(&odd, 1)))?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 3.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TensorLayout<'a> {
    tensor: &'a Tensor,
    rank: usize,
}

impl<'a> IntoArg<'a> for TensorLayout<'_> {
    const IS_ONE: bool = false;

    fn push_args(self, _kernel: Option<&Kernel>, list: &mut ArgList<'a>) -> Result<()> {
        layout_scalars(self.tensor, self.rank, list)
    }

    fn into_arg(self, _kernel: Option<&Kernel>, index: usize) -> Result<Arg<'a>> {
        Err(Error::invalid(format!("argument {index} is a layout, which is several arguments")))
    }
}

/// Appends the scalars of a `Layout` of `rank` dimensions: the extents as `u32`, then the strides, in elements, as `i32`. A
/// tensor of fewer dimensions is padded in front, with extents 1 and strides 0.
///
/// # Errors
/// `InvalidArgument` for a tensor of more dimensions, or an extent or stride beyond 32 bits; `out` then has a part of them.
pub(crate) fn layout_scalars<'a>(tensor: &Tensor, rank: usize, out: &mut impl Extend<Arg<'a>>) -> Result<()> {
    let (shape, strides) = (tensor.shape(), tensor.strides());
    let padding = rank.checked_sub(shape.len()).ok_or_else(|| too_many_dimensions(shape, rank))?;
    out.extend((0..padding).map(|_| Arg::scalar(1_u32)));
    for (axis, &extent) in shape.iter().enumerate() {
        let extent = u32::try_from(extent).map_err(|_| beyond_32_bits("extent", axis, shape))?;
        out.extend([Arg::scalar(extent)]);
    }
    out.extend((0..padding).map(|_| Arg::scalar(0_i32)));
    for (axis, &stride) in strides.iter().enumerate() {
        let stride = i32::try_from(stride).map_err(|_| beyond_32_bits("stride", axis, strides))?;
        out.extend([Arg::scalar(stride)]);
    }
    Ok(())
}

#[cold]
fn too_many_dimensions(shape: &[usize], rank: usize) -> Error {
    Error::invalid(format!(
        "a tensor of shape {shape:?} has {}, but the Layout of the kernel holds {rank}",
        counted(shape.len(), "dimension")
    ))
}

#[cold]
fn beyond_32_bits(what: &str, axis: usize, values: &[impl Debug]) -> Error {
    Error::invalid(format!(
        "the {what} {:?} of dimension {axis} (of {values:?}) does not fit into the 32 bits of a Layout",
        values[axis]
    ))
}
