//! Launches in the driver's form: arguments packed, or by pointers without an allocation for up to 16 of them.

#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

use runtime_core::backend::{ArgRef, Launch};
use runtime_core::{Error, Result};

use crate::driver::abi::{LaunchAttribute, LaunchConfig, Stream, function_attribute};
use crate::memory::CudaBuffer;
use crate::module::CudaKernel;
use crate::packed::{Packed, unknown};

/// Arguments that are packed on the stack.
const INLINE: usize = 16;
/// Parameters that code may have where the driver does not tell: each of them is something readable.
const MOST_PARAMETERS: usize = 1024;
static ZEROS: [u64; 64] = [0; 64];
/// Groups of a cluster that every device with clusters can have.
const PORTABLE_CLUSTER: u32 = 8;

/// Calls `submit` with the arguments as an array of pointers, and with the bytes of dynamic work-group memory.
///
/// # Errors
/// `InvalidArgument` that says which argument; whatever `submit` says.
#[inline]
pub(crate) fn pack<R>(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    submit: impl FnOnce(*const *const c_void, u32) -> Result<R>,
) -> Result<R> {
    let count = launch.args().len();
    if count <= INLINE && kernel.parameters.is_some() {
        // As many as the driver reads are written; to zero the rest of them costs 10 ns.
        let (mut values, mut pointers) = ([MaybeUninit::uninit(); INLINE], [MaybeUninit::uninit(); INLINE]);
        let shared_bytes = fill(kernel, launch, &mut values, &mut pointers)?;
        return submit(pointers.as_ptr().cast(), shared_bytes);
    }
    let mut values = vec![MaybeUninit::uninit(); count];
    let room = if kernel.parameters.is_none() { count.max(MOST_PARAMETERS) } else { count };
    let mut pointers = vec![MaybeUninit::new(ZEROS.as_ptr().cast()); room];
    let shared_bytes = fill(kernel, launch, &mut values, &mut pointers)?;
    submit(pointers.as_ptr().cast(), shared_bytes)
}

/// Fills in values and pointers to them; answers the bytes of dynamic work-group memory.
#[inline]
fn fill(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    values: &mut [MaybeUninit<u64>],
    pointers: &mut [MaybeUninit<*const c_void>],
) -> Result<u32> {
    let mut shared_bytes = u64::from(launch.shared_bytes());
    let known = kernel.parameters.as_deref();
    let mut next = 0;
    for (index, arg) in launch.args().enumerate() {
        let (pointer, bytes) = match arg {
            ArgRef::Tensor(tensor) => (word(&mut values[next], tensor.address()), 8),
            ArgRef::Scalar { dtype, bits } => (word(&mut values[next], bits), dtype.bytes()),
            ArgRef::Bytes(bytes) => (bytes.as_ptr().cast(), bytes.len()),
            ArgRef::Local(bytes) => {
                shared_bytes = shared_bytes.saturating_add(bytes);
                continue;
            }
            _ => return Err(unknown(index)),
        };
        if known.is_some_and(|known| known.get(next).is_none_or(|parameter| parameter.bytes != bytes)) {
            return Err(kernel.mismatch(index, next, bytes));
        }
        pointers[next].write(pointer);
        next += 1;
    }
    match known {
        Some(parameters) if parameters.len() != next => Err(kernel.miscount(next)),
        _ => kernel.allow_shared(shared_bytes),
    }
}

#[inline]
fn word(place: &mut MaybeUninit<u64>, value: u64) -> *const c_void {
    std::ptr::from_ref(place.write(value)).cast()
}

/// Submits a launch.
///
/// # Errors
/// `InvalidArgument` that says which argument; a refusal of the driver; `DeviceLost` for what an earlier kernel has done.
#[inline]
pub(crate) fn submit(kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>, stream: Stream) -> Result<()> {
    let extended = launch.cooperative() || launch.cluster() != [1; 3];
    match kernel.packed_bytes {
        Some(bytes) if !extended => submit_packed(kernel, launch, stream, bytes.get()),
        _ => submit_by_pointers(kernel, launch, stream, extended),
    }
}

#[inline]
fn submit_packed(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    stream: Stream,
    bytes: usize,
) -> Result<()> {
    let mut packed = Packed::new();
    let shared_bytes = packed.fill(kernel, launch)?;
    let ([x, y, z], [i, j, k]) = (launch.groups(), launch.group_size());
    let (told, none) = (packed.told(&bytes), std::ptr::null());
    // SAFETY: function and stream are alive and of one context; the parameters lie where the function takes them; that it
    // may do what it does with them is vouched for by whoever loaded the code.
    let code = unsafe {
        (kernel.driver.cuLaunchKernel)(
            kernel.function,
            x,
            y,
            z,
            i,
            j,
            k,
            shared_bytes,
            stream,
            none,
            told.as_ptr(),
        )
    };
    if code.is_success() { Ok(()) } else { Err(kernel.refused("cuLaunchKernel", code)) }
}

#[inline(never)]
fn submit_by_pointers(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    stream: Stream,
    extended: bool,
) -> Result<()> {
    pack(kernel, launch, |parameters, shared_bytes| {
        if extended {
            return submit_extended(kernel, launch, stream, parameters, shared_bytes);
        }
        let ([x, y, z], [i, j, k]) = (launch.groups(), launch.group_size());
        let (driver, function, none) = (kernel.driver, kernel.function, std::ptr::null());
        // SAFETY: as for a packed launch; the parameters are as many and as large as the function takes.
        let code = unsafe {
            (driver.cuLaunchKernel)(function, x, y, z, i, j, k, shared_bytes, stream, parameters, none)
        };
        if code.is_success() { Ok(()) } else { Err(kernel.refused("cuLaunchKernel", code)) }
    })
}

fn submit_extended(
    kernel: &CudaKernel,
    launch: &Launch<'_, CudaBuffer>,
    stream: Stream,
    parameters: *const *const c_void,
    shared_bytes: u32,
) -> Result<()> {
    check_cluster(kernel, launch)?;
    let primary = kernel.primary();
    let (attributes, attribute_count) = attributes(launch);
    if let Some(extended) = primary.driver.extended {
        let config = LaunchConfig {
            groups: launch.groups(),
            group_size: launch.group_size(),
            shared_bytes,
            stream,
            attributes: attributes.as_ptr(),
            attribute_count: u32::try_from(attribute_count).unwrap_or(0),
        };
        // SAFETY: as for a plain launch; the attributes live during the call.
        let code = unsafe {
            (extended.cuLaunchKernelEx)(&raw const config, kernel.function, parameters, std::ptr::null())
        };
        return if code.is_success() { Ok(()) } else { Err(kernel.refused("cuLaunchKernelEx", code)) };
    }
    let Some(cooperative) = primary.driver.cooperative.filter(|_| launch.cluster() == [1; 3]) else {
        return Err(Error::unsupported("this driver has no clusters; update it"));
    };
    let ([x, y, z], [i, j, k]) = (launch.groups(), launch.group_size());
    // SAFETY: as for a plain launch.
    let code = unsafe {
        (cooperative.cuLaunchCooperativeKernel)(
            kernel.function,
            x,
            y,
            z,
            i,
            j,
            k,
            shared_bytes,
            stream,
            parameters,
        )
    };
    if code.is_success() { Ok(()) } else { Err(kernel.refused("cuLaunchCooperativeKernel", code)) }
}

/// The attributes of a launch, and how many there are.
pub(crate) fn attributes(launch: &Launch<'_, CudaBuffer>) -> ([LaunchAttribute; 2], usize) {
    let (cooperative, cluster) = (LaunchAttribute::cooperative(), LaunchAttribute::cluster(launch.cluster()));
    match (launch.cooperative(), launch.cluster() != [1; 3]) {
        (true, true) => ([cooperative, cluster], 2),
        (true, false) => ([cooperative, cluster], 1),
        (false, true) => ([cluster, cooperative], 1),
        (false, false) => ([cluster, cooperative], 0),
    }
}

/// Checks a cluster, and allows one of more groups than every device has.
pub(crate) fn check_cluster(kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>) -> Result<()> {
    let (cluster, groups) = (launch.cluster(), launch.groups());
    if cluster == [1; 3] {
        return Ok(());
    }
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        if cluster[axis] == 0 || !groups[axis].is_multiple_of(cluster[axis]) {
            return Err(Error::invalid(format!(
                "cluster.{name} is {}, and groups.{name} is {}: groups come in whole clusters",
                cluster[axis], groups[axis]
            )));
        }
    }
    let size = cluster.iter().fold(1_u32, |size, &extent| size.saturating_mul(extent));
    if size <= PORTABLE_CLUSTER || kernel.large_clusters.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    kernel.set(function_attribute::NON_PORTABLE_CLUSTERS, 1)
}
