//! Exports tensors to other libraries.

#![allow(unsafe_code, reason = "transfers ownership of memory to C, and back in the deleter")]

use std::ffi::c_void;

use super::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, FLAG_READ_ONLY,
    MAJOR_VERSION, MINOR_VERSION, dl_device, is_handle, is_host,
};
use crate::panics::contain;
use crate::timeline::hazards::HOST;
use crate::timeline::host_access::with_host_access;
use crate::{Access, Error, ErrorKind, Result, Tensor};

/// A tensor ready for export: no work is in flight on it. Dropping it cancels the export.
///
/// ```
/// # use runtime_core::Runtime;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// let x = device.tensor([2, 3], &[1.0f32; 6])?;
/// let managed = x.to_dlpack()?.into_raw(); // e.g. for a `PyCapsule` of the name "dltensor_versioned"
/// // SAFETY: `managed` is valid until its deleter is called, which happens once.
/// unsafe {
///     let tensor = &(*managed).dl_tensor;
///     assert_eq!((tensor.ndim, *tensor.shape, *tensor.shape.add(1)), (2, 2, 3));
///     (*managed).deleter.expect("exports have a deleter")(managed); // what the consumer does when it is done
/// }
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct DlpackTensor {
    tensor: Tensor,
    device: DLDevice,
    /// The address of the first element, or the driver's object that holds it.
    data: u64,
    /// Offset of the first element from `data`; 0 with an address, because some libraries ignore it.
    byte_offset: u64,
}

impl Tensor {
    /// Exports the tensor to another library, without a copy; waits for all work in flight on it.
    ///
    /// Core does not order the consumer's accesses to the memory; see [`dlpack`](crate::tensor::dlpack).
    ///
    /// # Errors
    /// The failure of the work that wrote the tensor; `InvalidArgument` while it is mapped; `Unsupported` if
    /// the device's memory has no address that another library could use.
    pub fn to_dlpack(&self) -> Result<DlpackTensor> {
        self.export().map_err(|error| error.in_operation("to_dlpack"))
    }

    fn export(&self) -> Result<DlpackTensor> {
        let buffer = self.buffer("to_dlpack")?;
        let device = dl_device(&buffer.device.info, buffer.space());
        let (data, byte_offset) = if self.is_empty() { (0, 0) } else { self.data(device)? };
        let exported = DlpackTensor { tensor: self.clone(), device, data, byte_offset };
        // The consumer may write, unless the content is final.
        let access = if buffer.is_frozen() { Access::Read } else { Access::ReadWrite };
        with_host_access(&buffer.device, &buffer.hazards, (access, HOST), |hazards| {
            hazards.check_unmapped(access)
        })?;
        Ok(exported)
    }

    /// The address of the first element, or the object of the driver that holds it with the offset in it.
    fn data(&self, device: DLDevice) -> Result<(u64, u64)> {
        let buffer = self.buffer("to_dlpack")?;
        let first = self.byte_offset() as u64;
        let found = if is_handle(device.device_type) {
            let native = self.native()?;
            native.handles.iter().next().map(|handle| (handle.value, native.byte_offset))
        } else {
            let host = is_host(device.device_type);
            let start =
                if host { buffer.host_pointer.expose_provenance() as u64 } else { buffer.kernel_address };
            (start != 0).then(|| (start + first, 0))
        };
        found.ok_or_else(|| {
            let error = Error::unsupported(
                "memory without an address or an object of the driver cannot be exported; copy the tensor to the host first",
            );
            error.on_device(&buffer.device.name)
        })
    }
}

impl DlpackTensor {
    /// The device that owns the memory, as DLPack defines it.
    #[must_use]
    pub const fn device(&self) -> DLDevice {
        self.device
    }

    /// Transfers ownership to the consumer, which calls the deleter once, on any thread.
    #[must_use = "the memory lives until the deleter is called"]
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        let flags = if self.tensor.is_frozen() { FLAG_READ_ONLY } else { 0 };
        Exported::leak(self, |dl_tensor| DLManagedTensorVersioned {
            version: DLPackVersion { major: MAJOR_VERSION, minor: MINOR_VERSION },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete),
            flags,
            dl_tensor,
        })
    }

    /// Transfers ownership in the format before DLPack 1.0: the only one of PyTorch before 2.8, and what a consumer expects that does
    /// not pass `max_version` to `__dlpack__`.
    ///
    /// # Errors
    /// `Unsupported` for a frozen tensor: that format cannot express that the memory is read-only.
    pub fn into_raw_unversioned(self) -> Result<*mut DLManagedTensor> {
        if self.tensor.is_frozen() {
            let message = "a frozen tensor is read-only, which DLPack before 1.0 cannot express; export it versioned, or copy it";
            return Err(Error::new(ErrorKind::Unsupported, message).in_operation("to_dlpack"));
        }
        Ok(Exported::leak(self, |dl_tensor| DLManagedTensor {
            dl_tensor,
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete),
        }))
    }
}

/// An exported structure with everything it points to. `repr(C)`, so that both have the same address.
#[repr(C)]
struct Exported<M> {
    managed: M,
    _shape: Vec<i64>,
    _strides: Vec<i64>,
    _tensor: Tensor,
}

impl<M> Exported<M> {
    fn leak(exported: DlpackTensor, managed: impl FnOnce(DLTensor) -> M) -> *mut M {
        let DlpackTensor { tensor, device, data, byte_offset } = exported;
        let data = std::ptr::with_exposed_provenance_mut::<c_void>(usize::try_from(data).unwrap_or(0));
        let mut shape: Vec<_> =
            tensor.shape().iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
        let mut strides = tensor.strides().to_vec();
        let (code, bits, lanes) = tensor.dtype().dlpack();
        let managed = managed(DLTensor {
            data,
            device,
            ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
            dtype: DLDataType { code, bits, lanes },
            // Moving the vectors does not move their elements.
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            byte_offset,
        });
        Box::into_raw(Box::new(Self { managed, _shape: shape, _strides: strides, _tensor: tensor })).cast()
    }
}

/// Frees what [`Exported::leak`] leaked.
unsafe extern "C" fn delete<M>(managed: *mut M) {
    // A panic must not unwind into C, and there is no way to report it.
    let _ = contain(|| {
        // SAFETY: `managed` is the first field of a `Exported` box, and the consumer calls this once.
        drop(unsafe { Box::from_raw(managed.cast::<Exported<M>>()) });
    });
}
