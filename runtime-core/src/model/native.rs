//! Objects of a driver, by name.

use std::ffi::c_void;

use smallvec::SmallVec;

use crate::{Error, ErrorKind, Result};

/// An object of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeHandle {
    /// Its type in the driver's API, e.g. `CUstream`, `cl_command_queue`, `VkQueue`.
    pub name: &'static str,
    /// The handle, an address, or a number.
    pub value: u64,
}

impl NativeHandle {
    /// A handle that is a pointer.
    pub fn pointer<T>(name: &'static str, pointer: *mut T) -> Self {
        Self { name, value: pointer.expose_provenance() as u64 }
    }

    /// A handle that is a number.
    #[must_use]
    pub const fn number(name: &'static str, value: u64) -> Self {
        Self { name, value }
    }
}

/// Objects of a driver, by the names of their types in its API. There are none on a device without a driver, such as the host.
///
/// ```
/// # use runtime_core::{ErrorKind, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// let handles = device.native()?;
/// match handles.pointer("CUcontext") {
///     Ok(context) => println!("a library of CUDA gets {context:p}"),
///     Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound), // another driver; this device has none
/// }
/// # assert!(handles.is_empty());
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeHandles(pub(crate) SmallVec<[NativeHandle; 5]>);

impl NativeHandles {
    /// The handle, address or number with this name.
    ///
    /// # Errors
    /// `NotFound`, with the names that there are.
    pub fn number(&self, name: &str) -> Result<u64> {
        let found = self.0.iter().find(|handle| handle.name == name);
        found.map(|handle| handle.value).ok_or_else(|| self.missing(name))
    }

    /// The handle with this name, as a pointer.
    ///
    /// # Errors
    /// As [`NativeHandles::number`].
    pub fn pointer(&self, name: &str) -> Result<*mut c_void> {
        let value = self.number(name)?;
        Ok(std::ptr::with_exposed_provenance_mut(usize::try_from(value).unwrap_or(0)))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &NativeHandle> {
        self.0.iter()
    }

    /// Whether there are none, because the device has no driver.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cold]
    fn missing(&self, name: &str) -> Error {
        let names: Vec<_> = self.iter().map(|handle| handle.name).collect();
        let found = match names.as_slice() {
            [] => "the device has no driver whose objects could be used".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        Error::new(ErrorKind::NotFound, format!("no native `{name}` here; {found}"))
    }
}

/// Where a tensor lies: what [`Tensor::native`](crate::Tensor::native) returns.
///
/// ```
/// # use runtime_core::Runtime;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// let x = device.tensor([4], &[0.0f32; 4])?;
/// let (whole, tail) = (x.native()?, x.slice(0, 1..4)?.native()?);
/// assert_eq!(tail.address, whole.address.map(|address| address + 4)); // for a library that takes addresses
/// assert_eq!(tail.byte_offset, 4); // for one that takes an object of the driver, and an offset
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NativeTensor {
    /// Address of the first element for code on the device, e.g. a `CUdeviceptr`. `None` if code takes a handle.
    pub address: Option<u64>,
    /// Address of the first element for the host, in a memory space that the host can access.
    pub host_address: Option<u64>,
    /// The objects that hold the memory, e.g. `cl_mem` or `VkBuffer`; empty if it has only an address.
    pub handles: NativeHandles,
    /// Offset of the first element from the beginning of these objects, in bytes.
    pub byte_offset: u64,
}
