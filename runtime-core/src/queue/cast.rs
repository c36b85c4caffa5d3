//! Conversion of a tensor's elements to another type: a portable kernel, or on the host where the device has no such kernel.

use parking_lot::Mutex;

use crate::queue::copy::check_placed_on;
use crate::tensor::number::integer_bounds;
use crate::{
    DType, ErrorKind, Geometry, Kernel, ModuleSource, Placement, Queue, Result, Tensor, read, write,
};

/// Elements that one launch converts: 65535 groups, the least that a device allows, and at most 128 MiB, the least that a device binds.
const PIECE: usize = 65535 * GROUP_SIZE as usize;

const GROUP_SIZE: u32 = 256;

/// The kernels of the conversions that a queue has made; `None` for those that its device has no kernel for.
#[derive(Debug, Default)]
pub(crate) struct CastKernels(Mutex<Vec<(DType, DType, Option<Kernel>)>>);

impl Queue {
    /// Converts the elements of a tensor, in order with this queue's work: the tensor itself if it has the type already, otherwise a new
    /// contiguous tensor in the same memory space. The elements are those of [`HostArray::cast`](crate::HostArray::cast), on every
    /// device; one that does not keep subnormal numbers makes them zero, and the bits of a NaN may differ.
    ///
    /// ```
    /// # use runtime_core::{DType, Runtime};
    /// # let runtime = Runtime::builder().register(runtime_host::backend()).with_lowering(runtime_kernel::wgsl()).build();
    /// # let device = runtime.open("host")?;
    /// let queue = device.queue()?;
    /// let x = device.tensor([3], &[1.5f32, -2.5, 1e10])?;
    /// assert_eq!(queue.cast(&x, DType::I32)?.to_vec::<i32>()?, [1, -2, i32::MAX]);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// Types that WGSL lacks (8 and 16-bit integers, bf16, `bool`), those that the device lacks, and f64 to f16 are converted on the host:
    /// the call then waits for the work that wrote the tensor.
    ///
    /// # Errors
    /// `InvalidArgument` for complex and opaque types, and for a tensor of another device; `OutOfMemory`; `Unsupported` for a conversion
    /// on the host while the queue records; the failure of the queue, or of the work that wrote the tensor.
    pub fn cast(&self, tensor: &Tensor, dtype: DType) -> Result<Tensor> {
        self.cast_tensor(tensor, dtype).map_err(|error| self.annotate(error, "cast"))
    }

    fn cast_tensor(&self, tensor: &Tensor, dtype: DType) -> Result<Tensor> {
        check_placed_on(&self.device, tensor)?;
        if tensor.dtype() == dtype {
            return Ok(tensor.clone());
        }
        let placement = Placement::space(tensor.space());
        let Some(kernel) = self.cast_kernel(tensor.dtype(), dtype)? else {
            self.check_not_recording("cast")?;
            let cast = tensor.to_array()?.cast(dtype)?;
            let converted = self.allocate(dtype, tensor.shape(), &placement)?;
            converted.write_array(&cast)?;
            return Ok(converted);
        };
        let converted = self.allocate(dtype, tensor.shape(), &placement)?;
        let (from, to) =
            (self.contiguous(tensor)?.reshape(&[tensor.len()])?, converted.reshape(&[tensor.len()])?);
        for begin in (0..tensor.len()).step_by(PIECE) {
            let range = begin..tensor.len().min(begin + PIECE);
            let geometry = Geometry::cover(u32::try_from(range.len()).unwrap_or(u32::MAX), GROUP_SIZE);
            let (from, to) = (from.slice(0, range.clone())?, to.slice(0, range)?);
            drop(self.launch(&kernel, geometry, (read(&from), write(&to)))?);
        }
        Ok(converted)
    }

    /// The kernel of a conversion; `None` if the device has none.
    fn cast_kernel(&self, from: DType, to: DType) -> Result<Option<Kernel>> {
        let mut kernels = self.casts.0.lock();
        if let Some((.., kernel)) = kernels.iter().find(|known| (known.0, known.1) == (from, to)) {
            return Ok(kernel.clone());
        }
        let load = |code: String| {
            let module = crate::Module::load(&self.device, &ModuleSource::wgsl(&code))?;
            module.kernel("cast_elements").map(Some)
        };
        let kernel = match code(from, to).map(load) {
            None => None,
            Some(Err(error)) if error.kind() == ErrorKind::Unsupported => None,
            Some(kernel) => kernel?,
        };
        kernels.push((from, to, kernel.clone()));
        Ok(kernel)
    }
}

/// The kernel in WGSL; `None` for a type that it lacks, and from f64 to f16, for which Mesa (22.3) rounds to f32 first.
fn code(from: DType, to: DType) -> Option<String> {
    if (from, to) == (DType::F64, DType::F16) {
        return None;
    }
    let (source, target) = (name(from)?, name(to)?);
    let value = match (integer_bounds(from), integer_bounds(to)) {
        (_, None) => format!("{target}(value)"),
        (Some(from_bounds), Some(to_bounds)) => {
            let (least, most) = (from_bounds.0.max(to_bounds.0), from_bounds.1.min(to_bounds.1));
            format!("{target}(clamp(value, {}, {}))", literal(from, least), literal(from, most))
        }
        (None, Some((_, most))) => {
            // A conversion ends at the largest number that *both* types have, and takes NaN for any number. Whether it is one is
            // asked of its bits, since a device may assume that there is none.
            let wide = if from == DType::F64 { "f64" } else { "f32" };
            format!(
                "select(select({target}({wide}(value)), {}, {wide}(value) >= {wide}({}.0)), {}, \
                 (bitcast<u32>(f32(value)) & 0x7fffffffu) > 0x7f800000u)",
                literal(to, most),
                most + 1,
                literal(to, 0),
            )
        }
    };
    let enable = if [from, to].contains(&DType::F16) { "enable f16;\n" } else { "" };
    Some(format!(
        "{enable}\
         @group(0) @binding(0) var<storage, read> x: array<{source}>;
         @group(0) @binding(1) var<storage, read_write> y: array<{target}>;
         @compute @workgroup_size({GROUP_SIZE})
         fn cast_elements(@builtin(global_invocation_id) id: vec3u) {{
             if id.x < arrayLength(&y) {{
                 let value = x[id.x];
                 y[id.x] = {value};
             }}
         }}"
    ))
}

/// What WGSL calls a type of tensors.
fn name(dtype: DType) -> Option<String> {
    const TYPES: [DType; 7] =
        [DType::F32, DType::F16, DType::F64, DType::I32, DType::U32, DType::I64, DType::U64];
    TYPES.contains(&dtype).then(|| dtype.to_string())
}

/// An integer of a type. The least one cannot be written as a negated literal.
fn literal(dtype: DType, value: i128) -> String {
    let suffix = match dtype {
        DType::I32 => "i",
        DType::U32 => "u",
        DType::I64 => "li",
        _ => "lu",
    };
    match integer_bounds(dtype) {
        Some((least, _)) if value == least && least < 0 => format!("({}{suffix} - 1{suffix})", least + 1),
        _ => format!("{value}{suffix}"),
    }
}
