//! Imports tensors of other libraries: validates every field before creating anything.

#![allow(unsafe_code, reason = "reads structures of another library, and calls its deleter")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, FLAG_READ_ONLY,
    MAJOR_VERSION, dl_device, is_handle,
};
use crate::memory::buffer::Buffer;
use crate::model::placement::Placement;
use crate::tensor::layout::{Layout, checked_bytes};
use crate::timeline::deferred_free::ExternalOwner;
use crate::timeline::open_device::OpenDevice;
use crate::{DType, DeviceKind, Error, ErrorKind, Result, Tensor};

/// More than any library uses. Catches garbage counts before that many extents are read.
const MAX_DIMENSIONS: i32 = 64;

impl Tensor {
    /// Imports a tensor of another library; see `CommonRuntime::import_dlpack`.
    ///
    /// # Safety
    /// As for that method.
    pub(crate) unsafe fn import_dlpack(
        device: &Arc<OpenDevice>,
        managed: *mut DLManagedTensorVersioned,
    ) -> Result<Self> {
        let import = || {
            let pointer = check_pointer(managed)?;
            // SAFETY: not null, and aligned; the version is the first field in every version.
            let version = unsafe { pointer.cast::<DLPackVersion>().read() };
            if version.major != MAJOR_VERSION {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("version.major is {}; this library reads {MAJOR_VERSION}", version.major),
                ));
            }
            // SAFETY: the caller guarantees a managed tensor, and its version is the one here.
            let DLManagedTensorVersioned { flags, dl_tensor, .. } = unsafe { &*managed };
            let (read_only, tensor) = (flags & FLAG_READ_ONLY != 0, *dl_tensor);
            // SAFETY: guaranteed by the caller.
            unsafe { import_managed(device, &tensor, OwnedManaged(pointer), read_only) }
        };
        import().map_err(|error: Error| error.in_operation("import_dlpack"))
    }

    /// As above, for the format before DLPack 1.0; see `CommonRuntime::import_dlpack_unversioned`.
    ///
    /// # Safety
    /// As for that method.
    pub(crate) unsafe fn import_dlpack_unversioned(
        device: &Arc<OpenDevice>,
        managed: *mut DLManagedTensor,
    ) -> Result<Self> {
        let import = || {
            let pointer = check_pointer(managed)?;
            // SAFETY: the caller guarantees a managed tensor.
            let tensor = unsafe { (*managed).dl_tensor };
            // SAFETY: guaranteed by the caller.
            unsafe { import_managed(device, &tensor, OwnedManaged(pointer), false) }
        };
        import().map_err(|error: Error| error.in_operation("import_dlpack"))
    }
}

/// A structure with a deleter.
trait Deletable {
    /// Calls the deleter.
    ///
    /// # Safety
    /// `managed` is valid, and is not used afterwards.
    unsafe fn delete(managed: NonNull<Self>);
}

macro_rules! deletable {
    ($($ty:ty),*) => {$(
        impl Deletable for $ty {
            unsafe fn delete(managed: NonNull<Self>) {
                // SAFETY: the caller guarantees that it is valid.
                if let Some(deleter) = unsafe { (*managed.as_ptr()).deleter } {
                    // SAFETY: the producer's function for its own structure, called once.
                    unsafe { deleter(managed.as_ptr()) };
                }
            }
        }
    )*};
}
deletable!(DLManagedTensor, DLManagedTensorVersioned);

/// An owned structure; dropping it calls the deleter.
struct OwnedManaged<M: Deletable>(NonNull<M>);

// SAFETY: the caller of the import guarantees that any thread may call the deleter.
unsafe impl<M: Deletable> Send for OwnedManaged<M> {}

impl<M: Deletable> Drop for OwnedManaged<M> {
    fn drop(&mut self) {
        // SAFETY: this owns the structure, so nothing else calls the deleter.
        unsafe { M::delete(self.0) };
    }
}

fn check_pointer<M>(managed: *mut M) -> Result<NonNull<M>> {
    NonNull::new(managed)
        .filter(|pointer| pointer.is_aligned())
        .ok_or_else(|| Error::invalid("managed is null or misaligned; pass the producer's pointer unchanged"))
}

/// Creates the tensor, which takes ownership of `managed`; on error the caller keeps ownership.
///
/// # Safety
/// As for `CommonRuntime::import_dlpack`.
unsafe fn import_managed<M: Deletable + 'static>(
    device: &Arc<OpenDevice>,
    tensor: &DLTensor,
    managed: OwnedManaged<M>,
    read_only: bool,
) -> Result<Tensor> {
    // Must not be dropped on the error paths.
    let managed = std::mem::ManuallyDrop::new(managed);
    // SAFETY: guaranteed by the caller.
    let memory = unsafe { Memory::parse(device, tensor) }?;
    // SAFETY: guaranteed by the caller.
    let buffer = unsafe { memory.to_buffer(device) }?;
    let owner = ExternalOwner::new(std::mem::ManuallyDrop::into_inner(managed));
    Ok(Tensor::from_buffer(buffer.owned_by(owner, read_only), memory.dtype, memory.layout))
}

/// Foreign memory, and the layout of the tensor in it.
struct Memory {
    space: usize,
    on_host: bool,
    /// First byte, or driver handle.
    start: *mut c_void,
    bytes: usize,
    dtype: DType,
    layout: Layout,
}

impl Memory {
    /// Reads and validates all fields of a `DLTensor`.
    ///
    /// # Safety
    /// `shape` and `strides` are null, or readable for `ndim` numbers.
    unsafe fn parse(device: &OpenDevice, tensor: &DLTensor) -> Result<Self> {
        let space = find_space(device, tensor.device)?;
        let dtype = element_type(tensor.dtype)?;
        if !(0..=MAX_DIMENSIONS).contains(&tensor.ndim) {
            return Err(Error::invalid(format!("ndim is {}; valid: 0 to {MAX_DIMENSIONS}", tensor.ndim)));
        }
        let ndim = usize::try_from(tensor.ndim).unwrap_or(0);
        // SAFETY: the caller guarantees `ndim` extents.
        let shape = unsafe { read_i64s("shape", tensor.shape, ndim) }?
            .ok_or_else(|| Error::invalid(format!("shape is null for ndim {ndim}")))?;
        let shape = parse_shape(&shape)?;
        checked_bytes(dtype, &shape)?;
        let mut layout = Layout::contiguous(&shape)?;
        // SAFETY: the caller guarantees `ndim` strides, if any.
        if let Some(strides) = unsafe { read_i64s("strides", tensor.strides, ndim) }? {
            layout.strides = strides.into();
        }
        let on_host = tensor.device.device_type == DLDevice::CPU;
        let mut memory = Self { space, on_host, start: tensor.data, bytes: 0, dtype, layout };
        if !shape.contains(&0) {
            memory.compute_range(tensor)?;
        }
        Ok(memory)
    }

    /// Computes the range of memory that the elements occupy.
    fn compute_range(&mut self, tensor: &DLTensor) -> Result<()> {
        let size = self.dtype.bytes();
        let bytes = i128::try_from(size).unwrap_or(i128::MAX);
        let Some((low, high)) = self.layout.offset_bounds() else {
            return Err(Error::invalid(format!("strides {:?} overflow", self.layout.strides)));
        };
        if tensor.data.is_null() {
            return Err(Error::invalid(format!("data is null for shape {:?}", self.layout.shape)));
        }
        let handle = is_handle(tensor.device.device_type);
        let data = if handle { 0 } else { tensor.data.addr() };
        // Handles allow no pointer arithmetic: the offset becomes one in whole elements.
        let alignment = if handle { size } else { self.dtype.alignment_bytes() };
        check_alignment(self.dtype, data, tensor.byte_offset, alignment)?;
        // In bytes relative to `data`; neither sum overflows 128 bits.
        let first = i128::from(tensor.byte_offset) + i128::from(low) * bytes;
        let end = i128::from(tensor.byte_offset) + (i128::from(high) + 1) * bytes;
        let begin = if handle { 0 } else { first };
        let outside = || {
            let what = if handle { "the driver's object" } else { "the address space" };
            let (offset, strides) = (tensor.byte_offset, &self.layout.strides);
            Error::invalid(format!(
                "byte_offset {offset} with strides {strides:?} is out of bounds of {what}"
            ))
        };
        let room = first >= begin && isize::try_from(end - begin).is_ok() && isize::try_from(begin).is_ok();
        let address = i128::try_from(data).unwrap_or(i128::MAX);
        // Host and device addresses are in the lower half of the address space.
        if !room || address + begin < 0 || isize::try_from(address + end).is_err() {
            return Err(outside());
        }
        self.start = tensor.data.wrapping_byte_offset(isize::try_from(begin).map_err(|_| outside())?);
        self.bytes = usize::try_from(end - begin).map_err(|_| outside())?;
        let offset = usize::try_from((i128::from(tensor.byte_offset) - begin) / bytes);
        self.layout.offset = offset.map_err(|_| outside())?;
        Ok(())
    }

    /// Wraps the memory in a buffer.
    ///
    /// # Safety
    /// The memory outlives the buffer and all work on it, and nothing else accesses it meanwhile.
    unsafe fn to_buffer(&self, device: &Arc<OpenDevice>) -> Result<Buffer> {
        if self.bytes == 0 {
            let placement = Placement::space(&device.info.spaces[self.space].name);
            return Buffer::allocate(device, 0, &placement);
        }
        if self.on_host {
            // SAFETY: guaranteed by the caller.
            return unsafe { Buffer::import_host(device, self.space, self.start.cast(), self.bytes) };
        }
        // SAFETY: guaranteed by the caller.
        unsafe { Buffer::import_device_memory(device, self.space, self.start, self.bytes) }
    }
}

/// The memory space of `device` that corresponds to a DLPack device.
fn find_space(device: &OpenDevice, given: DLDevice) -> Result<usize> {
    let info = &device.info;
    if info.kind == DeviceKind::Embedded {
        let error =
            Error::unsupported("an embedded device cannot import memory; flash the data with the program");
        return Err(error.on_device(&device.name));
    }
    let valid: Vec<_> = info.spaces.iter().map(|space| dl_device(info, space)).collect();
    valid.iter().position(|valid| *valid == given).ok_or_else(|| {
        let pair = |device: &DLDevice| format!("({}, {})", device.device_type, device.device_id);
        let mut pairs: Vec<_> = valid.iter().map(pair).collect();
        pairs.dedup();
        let (given, valid) = (pair(&given), pairs.join(", "));
        Error::invalid(format!(
            "device is (type, id) {given}; {} is {valid}; open the device that owns the memory, or copy the tensor",
            device.name
        ))
    })
}

/// The element type, if its code is known and its elements are whole bytes.
fn element_type(given: DLDataType) -> Result<DType> {
    let DLDataType { code, bits, lanes } = given;
    if lanes != 1 {
        return Err(Error::invalid(format!(
            "dtype.lanes is {lanes}; pass 1 lane and an additional dimension instead"
        )));
    }
    let valid: &[u8] = match code {
        0 | 1 => &[8, 16, 32, 64],
        2 => &[16, 32, 64],
        4 => &[16],
        5 => &[32, 64, 128],
        6..=14 => &[8],
        15..=17 => {
            let error =
                format!("dtype.code {code} of {bits} bits is not supported: elements must be whole bytes");
            return Err(Error::new(ErrorKind::Unsupported, error));
        }
        _ => return Err(Error::invalid(format!("dtype.code is {code}; valid: 0 to 2 and 4 to 14"))),
    };
    if !valid.contains(&bits) {
        return Err(Error::invalid(format!("dtype.bits is {bits} for dtype.code {code}; valid: {valid:?}")));
    }
    Ok(DType::from_dlpack(code, bits, lanes))
}

/// Copies `count` numbers; `None` if the pointer is null and `count` is not 0.
unsafe fn read_i64s(field: &str, pointer: *const i64, count: usize) -> Result<Option<Vec<i64>>> {
    if count == 0 {
        return Ok(Some(Vec::new()));
    }
    if pointer.is_null() {
        return Ok(None);
    }
    if !pointer.is_aligned() {
        return Err(Error::invalid(format!("{field} is misaligned")));
    }
    // SAFETY: not null, aligned, and the caller guarantees `count` numbers.
    Ok(Some(unsafe { std::slice::from_raw_parts(pointer, count) }.to_vec()))
}

fn parse_shape(shape: &[i64]) -> Result<Vec<usize>> {
    let extent = |(axis, &extent): (usize, &i64)| {
        usize::try_from(extent).map_err(|_| Error::invalid(format!("shape[{axis}] is {extent}")))
    };
    shape.iter().enumerate().map(extent).collect()
}

fn check_alignment(dtype: DType, data: usize, byte_offset: u64, alignment: usize) -> Result<()> {
    let offset = usize::try_from(byte_offset).unwrap_or(usize::MAX);
    if data.wrapping_add(offset).is_multiple_of(alignment) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "data + byte_offset is not aligned to {alignment} bytes, which {dtype} requires"
    )))
}
