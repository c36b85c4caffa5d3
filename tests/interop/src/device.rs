//! Devices, and kernels that run on memory of another library.

use std::ffi::{CStr, c_char};
use std::sync::{Arc, Mutex, PoisonError};

use runtime_core::{
    Arg, CommonRuntime, Error, Geometry, Kernel, ModuleSource, Queue, Result, Runtime, Tensor,
};

/// Multiplies in place, after a pause.
const SCALE: &str = "
#include <time.h>
void scale(float *x, float factor, long count, long pause_ms) {
    struct timespec pause = {0, pause_ms * 1000000};
    if (pause_ms) nanosleep(&pause, 0);
    for (long i = 0; i < count; i++) x[i] *= factor;
}";

/// The same for a GPU.
const CUDA_SCALE: &str = r#"
extern "C" __global__ void scale(float *x, float factor, long long count, long long pause_ms) {
    for (long long i = 0; i < pause_ms; i++) __nanosleep(1000000);
    long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (long long i = first; i < count; i += gridDim.x * (long long)blockDim.x) x[i] *= factor;
}"#;

/// An opened device, and on the host or a GPU a queue with a kernel.
#[derive(Debug)]
pub struct Device {
    pub(crate) runtime: Arc<dyn CommonRuntime>,
    work: Option<(Queue, Kernel, Geometry)>,
}

static LAST_ERROR: Mutex<String> = Mutex::new(String::new());

/// Keeps an error for [`interop_error`].
pub(crate) fn store_error<T>(result: Result<T>) -> Option<T> {
    result
        .map_err(|error| *LAST_ERROR.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string())
        .ok()
}

/// A string of the caller.
///
/// # Safety
/// A terminated string.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|error| Error::invalid(error.to_string()))
}

/// Copies the last error, terminated, into `buffer`.
///
/// # Safety
/// `buffer` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_error(buffer: *mut c_char, bytes: usize) {
    let error = LAST_ERROR.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let count = error.len().min(bytes.saturating_sub(1));
    // SAFETY: room for `bytes` bytes, says the caller.
    unsafe { std::ptr::copy_nonoverlapping(error.as_ptr().cast(), buffer, count) };
    // SAFETY: as above.
    unsafe { buffer.wrapping_add(count).write(0) };
}

/// Opens `host`, a GPU or a null device.
///
/// # Safety
/// `name` is a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_open(name: *const c_char) -> *mut Device {
    let open = || {
        let runtime = Runtime::builder().discover(false).register(runtime_host::backend());
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        let runtime = runtime.register(runtime_null::backend()).register(runtime_gpu::backend());
        let runtime = runtime.build().open(name)?;
        let work = if runtime.as_host().is_some() {
            Some(kernel(&*runtime, "c", SCALE, Geometry::single())?)
        } else if name.starts_with("cuda") {
            Some(kernel(&*runtime, "cuda-c", CUDA_SCALE, Geometry::new([8, 1, 1], [256, 1, 1]))?)
        } else {
            None
        };
        Ok(Box::new(Device { runtime, work }))
    };
    store_error(open()).map_or(std::ptr::null_mut(), Box::into_raw)
}

fn kernel(
    device: &dyn CommonRuntime,
    format: &'static str,
    code: &'static str,
    geometry: Geometry,
) -> Result<(Queue, Kernel, Geometry)> {
    // SAFETY: it reads and writes as many elements of its first argument as its third argument states.
    let source = unsafe { ModuleSource::native(format, code) };
    Ok((device.queue()?, device.kernel(&source, "scale")?, geometry))
}

/// Closes a device.
///
/// # Safety
/// Made by [`interop_open`], and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_close(device: *mut Device) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(device) });
}

/// Multiplies a row-major tensor of f32, after a pause, and does not wait.
///
/// # Safety
/// Both were made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_scale(device: &Device, tensor: &Tensor, factor: f32, pause_ms: i64) -> i32 {
    let launch = || {
        let (queue, kernel, geometry) = device
            .work
            .as_ref()
            .ok_or_else(|| Error::unsupported("a kernel on this device is not supported"))?;
        let count = i64::try_from(tensor.len()).unwrap_or(0);
        let args = [Arg::read_write(tensor), Arg::scalar(factor), Arg::scalar(count), Arg::scalar(pause_ms)];
        queue.launch(kernel, *geometry, &args).map(drop)
    };
    store_error(launch()).map_or(-1, |()| 0)
}

/// Submits later kernels to a stream of the caller.
///
/// # Safety
/// Both belong to one GPU; the stream stays open until the device is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_use_stream(device: &mut Device, stream: u64) -> i32 {
    let mut borrow = || {
        let (queue, ..) = device.work.as_mut().ok_or_else(|| Error::unsupported("no queue"))?;
        // SAFETY: the caller's promise.
        *queue = unsafe { device.runtime.queue_from_native(stream) }?;
        Ok(())
    };
    store_error(borrow()).map_or(-1, |()| 0)
}

/// Calls a function that submits work on a tensor to a stream, in order with the kernels.
///
/// # Safety
/// Both were made here. `work` submits to the stream that it gets, accesses nothing but the tensor, and does not return to Python's
/// caller by an exception.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_native(device: &Device, tensor: &Tensor, work: extern "C" fn(u64)) -> i32 {
    let submit = || {
        let (queue, ..) = device.work.as_ref().ok_or_else(|| Error::unsupported("no queue"))?;
        // SAFETY: the caller's promise.
        let done = unsafe {
            queue.native(&[Arg::read_write(tensor)], |handles| {
                work(handles.number("CUstream")?);
                Ok(())
            })
        };
        done.map(drop)
    };
    store_error(submit()).map_or(-1, |()| 0)
}

/// Waits for all kernels, and lets the device release what was dropped meanwhile.
///
/// # Safety
/// Made by [`interop_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_wait(device: &Device) -> i32 {
    let wait = || {
        if let Some((queue, ..)) = &device.work {
            queue.wait_idle()?;
        }
        device.runtime.tensor([1], &[0u8]).map(drop)
    };
    store_error(wait()).map_or(-1, |()| 0)
}
