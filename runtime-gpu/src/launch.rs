//! Launches: arguments are packed into a parameter buffer, or passed by pointer; up to 16 need no allocation.

#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

use runtime_core::backend::{ArgRef, Launch, unsupported_argument};
use runtime_core::{Error, Result};

use crate::driver::abi::{self, CUfunction_attribute, CUlaunchAttribute, CUlaunchConfig, Stream};
use crate::memory::CudaBuffer;
use crate::module::CudaKernel;
use crate::param_buffer::ParamBuffer;

/// Most arguments whose values and pointers are on the stack.
const INLINE_ARGS: usize = 16;
/// Pointers passed where the driver does not report the parameters; the excess ones point to readable zeros.
const MAX_UNKNOWN_PARAMS: usize = 1024;
static ZEROS: [u64; 64] = [0; 64];
/// Largest cluster that every device with clusters supports.
const MAX_PORTABLE_CLUSTER: u32 = 8;

/// Calls `submit` with the arguments as an array of pointers, which the driver only reads, and with the bytes of dynamic work-group
/// memory.
///
/// # Errors
/// `InvalidArgument`, with the index of the argument; any error of `submit`.
#[inline]
pub(crate) fn pack_pointers<R>(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    submit: impl FnOnce(*mut *mut c_void, u32) -> Result<R>,
) -> Result<R> {
    let count = launch.args().len();
    if count <= INLINE_ARGS && kernel.parameters.is_some() {
        // Only the entries that the driver reads are written: zeroing the rest costs 10 ns.
        let (mut values, mut pointers) =
            ([MaybeUninit::uninit(); INLINE_ARGS], [MaybeUninit::uninit(); INLINE_ARGS]);
        let shared_bytes = fill_pointers(kernel, launch, &mut values, &mut pointers)?;
        return submit(pointers.as_mut_ptr().cast(), shared_bytes);
    }
    let mut values = vec![MaybeUninit::uninit(); count];
    let room = if kernel.parameters.is_none() { count.max(MAX_UNKNOWN_PARAMS) } else { count };
    let mut pointers = vec![MaybeUninit::new(ZEROS.as_ptr().cast()); room];
    let shared_bytes = fill_pointers(kernel, launch, &mut values, &mut pointers)?;
    submit(pointers.as_mut_ptr().cast(), shared_bytes)
}

/// Fills in values and pointers to them; returns the bytes of dynamic work-group memory.
#[inline]
fn fill_pointers(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    values: &mut [MaybeUninit<u64>],
    pointers: &mut [MaybeUninit<*const c_void>],
) -> Result<u32> {
    let mut shared_bytes = 0_u64;
    let known = kernel.parameters.as_deref();
    let mut next = 0;
    for (index, arg) in launch.args().enumerate() {
        let (pointer, bytes) = match arg {
            ArgRef::Tensor(tensor) => (write_word(&mut values[next], tensor.address()), 8),
            ArgRef::Scalar { dtype, bits } => (write_word(&mut values[next], bits), dtype.bytes()),
            ArgRef::Bytes(bytes) | ArgRef::Record { bytes, .. } => (bytes.as_ptr().cast(), bytes.len()),
            ArgRef::Local(bytes) => {
                shared_bytes = shared_bytes.saturating_add(bytes);
                continue;
            }
            _ => return Err(unsupported_argument(index)),
        };
        if known.is_some_and(|known| known.get(next).is_none_or(|parameter| parameter.bytes != bytes)) {
            return Err(kernel.arg_size_error(index, next, bytes));
        }
        pointers[next].write(pointer);
        next += 1;
    }
    match known {
        Some(parameters) if parameters.len() != next => Err(kernel.arg_count_error(next)),
        _ => kernel.allow_dynamic_shared(shared_bytes),
    }
}

#[inline]
fn write_word(target: &mut MaybeUninit<u64>, value: u64) -> *const c_void {
    std::ptr::from_ref(target.write(value)).cast()
}

/// Submits a launch.
///
/// # Errors
/// `InvalidArgument`, with the index of the argument; any error of the driver; `DeviceLost` after a fault of an earlier kernel.
#[inline]
pub(crate) fn submit(kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>, stream: Stream) -> Result<()> {
    let has_attributes = launch.cooperative() || launch.cluster() != [1; 3];
    match kernel.packed_bytes {
        Some(bytes) if !has_attributes => submit_packed(kernel, launch, stream, bytes.get()),
        _ => submit_by_pointers(kernel, launch, stream, has_attributes),
    }
}

#[inline]
fn submit_packed(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    stream: Stream,
    bytes: usize,
) -> Result<()> {
    let mut params = ParamBuffer::new();
    let shared_bytes = params.pack(kernel, launch)?;
    let (mut extra, none) = (params.launch_extra(&bytes), std::ptr::null_mut());
    let (shape, extra) = ([launch.groups(), launch.group_size()], extra.as_mut_ptr());
    // SAFETY: function and stream are alive and of one context; the parameters have the offsets that the function expects;
    // whoever loaded the code vouched for what it does with them.
    let code = unsafe { kernel.driver.launch(kernel.function, shape, shared_bytes, stream, none, extra) };
    kernel.check_launch("cuLaunchKernel", code)
}

#[inline(never)]
fn submit_by_pointers(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    stream: Stream,
    has_attributes: bool,
) -> Result<()> {
    pack_pointers(kernel, launch, |parameters, shared_bytes| {
        if has_attributes {
            return submit_with_attributes(kernel, launch, stream, parameters, shared_bytes);
        }
        let (shape, none) = ([launch.groups(), launch.group_size()], std::ptr::null_mut());
        // SAFETY: as for a packed launch; number and sizes of the parameters are those of the function.
        let code =
            unsafe { kernel.driver.launch(kernel.function, shape, shared_bytes, stream, parameters, none) };
        kernel.check_launch("cuLaunchKernel", code)
    })
}

fn submit_with_attributes(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    stream: Stream,
    parameters: *mut *mut c_void,
    shared_bytes: u32,
) -> Result<()> {
    check_cluster(kernel, launch)?;
    let primary = kernel.primary();
    let (mut attributes, attribute_count) = attributes(launch);
    let ([x, y, z], [i, j, k]) = (launch.groups(), launch.group_size());
    if let Some(api) = primary.driver.launch_ex {
        let config = CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: i,
            blockDimY: j,
            blockDimZ: k,
            sharedMemBytes: shared_bytes,
            hStream: stream.0,
            attrs: attributes.as_mut_ptr(),
            numAttrs: u32::try_from(attribute_count).unwrap_or(0),
        };
        // SAFETY: as for a plain launch; the attributes live during the call.
        let code = unsafe {
            (api.cuLaunchKernelEx)(&raw const config, kernel.function.0, parameters, std::ptr::null_mut())
        };
        return kernel.check_launch("cuLaunchKernelEx", code);
    }
    let Some(api) = primary.driver.cooperative_launch.filter(|_| launch.cluster() == [1; 3]) else {
        return Err(Error::unsupported("this driver does not support clusters; update it"));
    };
    let (function, stream) = (kernel.function.0, stream.0);
    // SAFETY: as for a plain launch.
    let code = unsafe {
        (api.cuLaunchCooperativeKernel)(function, x, y, z, i, j, k, shared_bytes, stream, parameters)
    };
    kernel.check_launch("cuLaunchCooperativeKernel", code)
}

/// The attributes of a launch, and their number.
pub(crate) fn attributes(launch: &Launch<'_, CudaBuffer>) -> ([CUlaunchAttribute; 2], usize) {
    let (cooperative, cluster) = (abi::cooperative_attribute(), abi::cluster_attribute(launch.cluster()));
    match (launch.cooperative(), launch.cluster() != [1; 3]) {
        (true, true) => ([cooperative, cluster], 2),
        (true, false) => ([cooperative, cluster], 1),
        (false, true) => ([cluster, cooperative], 1),
        (false, false) => ([cluster, cooperative], 0),
    }
}

/// Checks a cluster, and enables a non-portable size where it needs one.
pub(crate) fn check_cluster(kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>) -> Result<()> {
    let (cluster, groups) = (launch.cluster(), launch.groups());
    if cluster == [1; 3] {
        return Ok(());
    }
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        if cluster[axis] == 0 || !groups[axis].is_multiple_of(cluster[axis]) {
            return Err(Error::invalid(format!(
                "cluster.{name} is {}, which does not divide groups.{name}, {}",
                cluster[axis], groups[axis]
            )));
        }
    }
    let size = cluster.iter().fold(1_u32, |size, &extent| size.saturating_mul(extent));
    if size <= MAX_PORTABLE_CLUSTER || kernel.nonportable_clusters.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    kernel.set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
}
