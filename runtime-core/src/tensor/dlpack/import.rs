//! Tensors of other libraries: every field is looked at before anything is made of it.

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

/// More than any library makes; a garbage count is found before so many extents are read.
const MOST_DIMENSIONS: i32 = 64;

impl Tensor {
    /// Takes over a tensor of another library; see `CommonRuntime::import_dlpack`.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn import_dlpack(
        device: &Arc<OpenDevice>,
        managed: *mut DLManagedTensorVersioned,
    ) -> Result<Self> {
        let import = || {
            let pointer = checked(managed)?;
            // SAFETY: not null and aligned; the version stands first in every version.
            let version = unsafe { pointer.cast::<DLPackVersion>().read() };
            if version.major != MAJOR_VERSION {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("version.major is {}; this library reads {MAJOR_VERSION}", version.major),
                ));
            }
            // SAFETY: a managed tensor of this version, says the caller.
            let DLManagedTensorVersioned { flags, dl_tensor, .. } = unsafe { &*managed };
            let (read_only, tensor) = (flags & FLAG_READ_ONLY != 0, *dl_tensor);
            // SAFETY: the caller's promise.
            unsafe { take_over(device, &tensor, Managed(pointer), read_only) }
        };
        import().map_err(|error: Error| error.in_operation("import_dlpack"))
    }

    /// The same for a structure from before DLPack 1.0; see `CommonRuntime::import_dlpack_unversioned`.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn import_dlpack_unversioned(
        device: &Arc<OpenDevice>,
        managed: *mut DLManagedTensor,
    ) -> Result<Self> {
        let import = || {
            let pointer = checked(managed)?;
            // SAFETY: a managed tensor, says the caller.
            let tensor = unsafe { (*managed).dl_tensor };
            // SAFETY: the caller's promise.
            unsafe { take_over(device, &tensor, Managed(pointer), false) }
        };
        import().map_err(|error: Error| error.in_operation("import_dlpack"))
    }
}

/// A structure with a deleter.
trait Deletable {
    /// Gives the structure back.
    ///
    /// # Safety
    /// `managed` is valid, and is not used any more.
    unsafe fn delete(managed: NonNull<Self>);
}

macro_rules! deletable {
    ($($ty:ty),*) => {$(
        impl Deletable for $ty {
            unsafe fn delete(managed: NonNull<Self>) {
                // SAFETY: valid, says the caller.
                if let Some(deleter) = unsafe { (*managed.as_ptr()).deleter } {
                    // SAFETY: the producer's own function, for its own structure, called once.
                    unsafe { deleter(managed.as_ptr()) };
                }
            }
        }
    )*};
}
deletable!(DLManagedTensor, DLManagedTensorVersioned);

/// A consumed structure: its deleter is called when this is dropped.
struct Managed<M: Deletable>(NonNull<M>);

// SAFETY: the importing caller promises a deleter that any thread may call.
unsafe impl<M: Deletable> Send for Managed<M> {}

impl<M: Deletable> Drop for Managed<M> {
    fn drop(&mut self) {
        // SAFETY: consumed, so nobody else calls the deleter.
        unsafe { M::delete(self.0) };
    }
}

fn checked<M>(managed: *mut M) -> Result<NonNull<M>> {
    NonNull::new(managed)
        .filter(|pointer| pointer.is_aligned())
        .ok_or_else(|| Error::invalid("managed is null or misaligned; pass what the producer made"))
}

/// Makes the tensor, which takes `managed` over; on an error it stays the caller's.
///
/// # Safety
/// As `CommonRuntime::import_dlpack`.
unsafe fn take_over<M: Deletable + 'static>(
    device: &Arc<OpenDevice>,
    tensor: &DLTensor,
    managed: Managed<M>,
    read_only: bool,
) -> Result<Tensor> {
    // Not to be dropped on the way out of an error.
    let managed = std::mem::ManuallyDrop::new(managed);
    // SAFETY: the caller's promise.
    let memory = unsafe { Memory::describe(device, tensor) }?;
    // SAFETY: the caller's promise.
    let buffer = unsafe { memory.wrap(device) }?;
    let owner = ExternalOwner::new(std::mem::ManuallyDrop::into_inner(managed));
    Ok(Tensor::adopt(buffer.owned_by(owner, read_only), memory.dtype, memory.layout))
}

/// Foreign memory, and how a tensor lies in it.
struct Memory {
    space: usize,
    on_host: bool,
    /// First byte, or the driver's handle.
    start: *mut c_void,
    bytes: usize,
    dtype: DType,
    layout: Layout,
}

impl Memory {
    /// Reads and checks everything that a `DLTensor` says.
    ///
    /// # Safety
    /// Its `shape` and `strides` are null or readable for `ndim` numbers.
    unsafe fn describe(device: &OpenDevice, tensor: &DLTensor) -> Result<Self> {
        let space = find_space(device, tensor.device)?;
        let dtype = element_type(tensor.dtype)?;
        if !(0..=MOST_DIMENSIONS).contains(&tensor.ndim) {
            return Err(Error::invalid(format!("ndim is {}; valid: 0 to {MOST_DIMENSIONS}", tensor.ndim)));
        }
        let ndim = usize::try_from(tensor.ndim).unwrap_or(0);
        // SAFETY: the caller promises `ndim` extents.
        let shape = unsafe { numbers("shape", tensor.shape, ndim) }?
            .ok_or_else(|| Error::invalid(format!("shape is null for ndim {ndim}")))?;
        let shape = extents(&shape)?;
        checked_bytes(dtype, &shape)?;
        let mut layout = Layout::contiguous(&shape)?;
        // SAFETY: the caller promises `ndim` strides, if any.
        if let Some(strides) = unsafe { numbers("strides", tensor.strides, ndim) }? {
            layout.strides = strides.into();
        }
        let on_host = tensor.device.device_type == DLDevice::CPU;
        let mut memory = Self { space, on_host, start: tensor.data, bytes: 0, dtype, layout };
        if !shape.contains(&0) {
            memory.locate(tensor)?;
        }
        Ok(memory)
    }

    /// Finds the memory that the elements reach.
    fn locate(&mut self, tensor: &DLTensor) -> Result<()> {
        let size = self.dtype.bytes();
        let bytes = i128::try_from(size).unwrap_or(i128::MAX);
        let Some((low, high)) = self.layout.reach() else {
            return Err(Error::invalid(format!("strides {:?} overflow", self.layout.strides)));
        };
        if tensor.data.is_null() {
            return Err(Error::invalid(format!("data is null for shape {:?}", self.layout.shape)));
        }
        let handle = is_handle(tensor.device.device_type);
        let data = if handle { 0 } else { tensor.data.addr() };
        // Handles cannot be moved: the offset becomes one in whole elements.
        let alignment = if handle { size } else { self.dtype.alignment_bytes() };
        check_alignment(self.dtype, data, tensor.byte_offset, alignment)?;
        // Bytes relative to `data`; neither sum overflows 128 bits.
        let first = i128::from(tensor.byte_offset) + i128::from(low) * bytes;
        let end = i128::from(tensor.byte_offset) + (i128::from(high) + 1) * bytes;
        let begin = if handle { 0 } else { first };
        let outside = || {
            let what = if handle { "the driver's object" } else { "the address space" };
            let (offset, strides) = (tensor.byte_offset, &self.layout.strides);
            Error::invalid(format!("byte_offset {offset} with strides {strides:?} reaches outside {what}"))
        };
        let room = first >= begin && isize::try_from(end - begin).is_ok() && isize::try_from(begin).is_ok();
        let address = i128::try_from(data).unwrap_or(i128::MAX);
        // Programs and devices have their addresses in the lower half.
        if !room || address + begin < 0 || isize::try_from(address + end).is_err() {
            return Err(outside());
        }
        self.start = tensor.data.wrapping_byte_offset(isize::try_from(begin).map_err(|_| outside())?);
        self.bytes = usize::try_from(end - begin).map_err(|_| outside())?;
        let offset = usize::try_from((i128::from(tensor.byte_offset) - begin) / bytes);
        self.layout.offset = offset.map_err(|_| outside())?;
        Ok(())
    }

    /// Makes a buffer of the memory.
    ///
    /// # Safety
    /// The memory outlives the buffer and all work on it, and nothing else touches it meanwhile.
    unsafe fn wrap(&self, device: &Arc<OpenDevice>) -> Result<Buffer> {
        if self.bytes == 0 {
            let placement = Placement::space(&device.info.spaces[self.space].name);
            return Buffer::allocate(device, 0, &placement);
        }
        if self.on_host {
            // SAFETY: the caller's promise.
            return unsafe { Buffer::import(device, self.space, self.start.cast(), self.bytes) };
        }
        // SAFETY: the caller's promise.
        unsafe { Buffer::adopt(device, self.space, self.start, self.bytes) }
    }
}

/// The memory space of an opened device that DLPack's device names.
fn find_space(device: &OpenDevice, given: DLDevice) -> Result<usize> {
    let info = &device.info;
    if info.kind == DeviceKind::Embedded {
        let error =
            Error::unsupported("an embedded device takes no foreign memory; flash the data with the program");
        return Err(error.on_device(&device.name));
    }
    let valid: Vec<_> = info.spaces.iter().map(|space| dl_device(info, space)).collect();
    valid.iter().position(|valid| *valid == given).ok_or_else(|| {
        let pair = |device: &DLDevice| format!("({}, {})", device.device_type, device.device_id);
        let mut pairs: Vec<_> = valid.iter().map(pair).collect();
        pairs.dedup();
        let (given, valid) = (pair(&given), pairs.join(", "));
        Error::invalid(format!(
            "device is (type, id) {given}; {} is {valid}: open the device that owns the memory, or copy",
            device.name
        ))
    })
}

/// The element type, if its elements are whole bytes of a known code.
fn element_type(given: DLDataType) -> Result<DType> {
    let DLDataType { code, bits, lanes } = given;
    if lanes != 1 {
        return Err(Error::invalid(format!(
            "dtype.lanes is {lanes}; pass 1 lane and a further dimension instead"
        )));
    }
    let valid: &[u8] = match code {
        0 | 1 => &[8, 16, 32, 64],
        2 => &[16, 32, 64],
        4 => &[16],
        5 => &[32, 64, 128],
        6..=14 => &[8],
        15..=17 => {
            let error = format!("dtype.code {code} of {bits} bits: only whole bytes");
            return Err(Error::new(ErrorKind::Unsupported, error));
        }
        _ => return Err(Error::invalid(format!("dtype.code is {code}; valid: 0 to 2 and 4 to 14"))),
    };
    if !valid.contains(&bits) {
        return Err(Error::invalid(format!("dtype.bits is {bits} for dtype.code {code}; valid: {valid:?}")));
    }
    Ok(DType::from_dlpack(code, bits, lanes))
}

/// Copies `count` numbers; `None` for a null pointer to some.
unsafe fn numbers(field: &str, pointer: *const i64, count: usize) -> Result<Option<Vec<i64>>> {
    if count == 0 {
        return Ok(Some(Vec::new()));
    }
    if pointer.is_null() {
        return Ok(None);
    }
    if !pointer.is_aligned() {
        return Err(Error::invalid(format!("{field} is misaligned")));
    }
    // SAFETY: not null, aligned, and the caller promises `count` numbers.
    Ok(Some(unsafe { std::slice::from_raw_parts(pointer, count) }.to_vec()))
}

fn extents(shape: &[i64]) -> Result<Vec<usize>> {
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
    Err(Error::invalid(format!("data + byte_offset is not aligned to {alignment} bytes, as {dtype} needs")))
}
