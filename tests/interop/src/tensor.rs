//! Creates, inspects and drops tensors.

use std::ffi::c_char;

use runtime_core::{DType, Error, HostArray, Placement, Result, Safetensors, Tensor};

use crate::device::{Device, store_error, text};

const MAX_DIMENSIONS: usize = 8;

/// The description of a tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Description {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of an element.
    pub bits: u8,
    /// Whether it may only be read.
    pub frozen: u8,
    /// Number of dimensions, at most 8.
    pub ndim: u8,
    /// Extents.
    pub shape: [i64; MAX_DIMENSIONS],
    /// Strides in elements.
    pub strides: [i64; MAX_DIMENSIONS],
}

pub(crate) fn into_handle(tensor: Result<Tensor>) -> *mut Tensor {
    store_error(tensor).map_or(std::ptr::null_mut(), |tensor| Box::into_raw(Box::new(tensor)))
}

/// # Safety
/// `count` elements, or null and 0.
unsafe fn slice_or_empty<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, count) }
}

/// Creates a tensor with an element type given by DLPack's code and bits, and copies its elements.
///
/// # Safety
/// The pointers lead to as many elements as the counts say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_tensor(
    device: &Device,
    dtype: &Description,
    bytes: *const u8,
    byte_count: usize,
) -> *mut Tensor {
    let shape: Vec<_> =
        dtype.shape[..usize::from(dtype.ndim)].iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
    let dtype = DType::from_dlpack(dtype.code, dtype.bits, 1);
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice_or_empty(bytes, byte_count) };
    let array = HostArray::from_bytes(dtype, &shape, bytes);
    into_handle(array.and_then(|array| device.runtime.tensor_from_array(&array, &Placement::default())))
}

/// A view with any strides and offset.
///
/// # Safety
/// Made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_view(tensor: &Tensor, view: &Description, offset: usize) -> *mut Tensor {
    let ndim = usize::from(view.ndim);
    let shape: Vec<_> = view.shape[..ndim].iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
    into_handle(tensor.view(&shape, &view.strides[..ndim], offset))
}

/// Describes a tensor.
///
/// # Safety
/// Made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_describe(tensor: &Tensor, out: &mut Description) {
    let (code, bits, _) = tensor.dtype().dlpack();
    let ndim = u8::try_from(tensor.shape().len()).unwrap_or(u8::MAX);
    *out = Description { code, bits, ndim, frozen: u8::from(tensor.is_frozen()), ..Description::default() };
    for (i, (&extent, &stride)) in
        tensor.shape().iter().zip(tensor.strides()).take(MAX_DIMENSIONS).enumerate()
    {
        (out.shape[i], out.strides[i]) = (i64::try_from(extent).unwrap_or(-1), stride);
    }
}

/// Reads row-major bytes.
///
/// # Safety
/// Room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_read(tensor: &Tensor, to: *mut u8, bytes: usize) -> i32 {
    let mut data = vec![0; bytes];
    if store_error(tensor.read_bytes(&mut data)).is_none() {
        return -1;
    }
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, bytes) };
    0
}

/// Writes row-major bytes.
///
/// # Safety
/// `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_write(tensor: &Tensor, from: *const u8, bytes: usize) -> i32 {
    // SAFETY: the caller's promise.
    store_error(tensor.write_bytes(unsafe { slice_or_empty(from, bytes) })).map_or(-1, |()| 0)
}

/// Freezes a tensor.
///
/// # Safety
/// Made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_freeze(tensor: &Tensor) -> i32 {
    store_error(tensor.freeze()).map_or(-1, |()| 0)
}

/// Drops a tensor.
///
/// # Safety
/// Made here, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_drop(tensor: *mut Tensor) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(tensor) });
}

/// Drops a tensor on a thread unknown to Python.
///
/// # Safety
/// As [`interop_drop`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_drop_on_thread(tensor: *mut Tensor) -> i32 {
    // SAFETY: the caller's promise.
    let tensor = unsafe { Box::from_raw(tensor) };
    let joined = std::thread::spawn(move || drop(tensor)).join();
    if joined.is_ok() { 0 } else { -1 }
}

/// Loads or maps a tensor of a `.safetensors` file.
///
/// # Safety
/// Terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_load(
    device: &Device,
    path: *const c_char,
    name: *const c_char,
    map: bool,
) -> *mut Tensor {
    let load = || {
        // SAFETY: the caller's promise.
        let file = Safetensors::open(unsafe { text(path) }?)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        if !map {
            return device.runtime.load_tensor(&file, name, &Placement::default());
        }
        let host = device
            .runtime
            .as_host()
            .ok_or_else(|| Error::unsupported("a mapping on this device is not supported"))?;
        // SAFETY: the caller does not modify the file.
        unsafe { host.map(&file, name) }
    };
    into_handle(load())
}

/// Saves a tensor in a `.safetensors` file.
///
/// # Safety
/// Terminated strings, and a tensor made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_save(path: *const c_char, name: *const c_char, tensor: &Tensor) -> i32 {
    let save = || {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        // SAFETY: as above.
        Safetensors::save(unsafe { text(path) }?, &[(name, tensor)])
    };
    store_error(save()).map_or(-1, |()| 0)
}
