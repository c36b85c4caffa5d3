//! The host CPU as a device.

use std::ops::Deref;
use std::sync::Arc;

use crate::device::common_runtime::{CommonRuntime, sealed::Opened, sealed::Shared};
use crate::memory::buffer::Buffer;
use crate::tensor::layout::Layout;
use crate::timeline::open_device::OpenDevice;
use crate::{DType, Error, Result, Tensor};

/// The host CPU as a device: it computes in the process's own memory, with native code.
///
/// [`Queue::call`](crate::Queue::call) runs on the caller's thread when the queue is idle.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
/// # let device = runtime.open("host")?;
/// // SAFETY: `square` accesses x[begin] to x[end - 1], and is launched with ranges within x.
/// let source = unsafe {
///     ModuleSource::native("c", "void square(float *x, long begin, long end) {
///         for (long i = begin; i < end; i++) x[i] *= x[i];
///     }")
/// };
/// let square = device.kernel(source, "square")?;
/// let x = device.tensor([3], &[1.0f32, 2.0, 3.0])?;
/// device.queue()?.call(&square, 0..3, (read_write(&x),))?; // a large range is divided among threads
/// assert_eq!(x.map()?.as_slice::<f32>()?, [1.0, 4.0, 9.0]); // the memory itself, not a copy
/// assert!(device.as_host().is_some());
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Host(pub(crate) Arc<OpenDevice>);

impl Opened for Host {
    fn opened(&self) -> Shared<'_> {
        Shared(&self.0)
    }
}

/// The methods of every opened device, without an import of the trait.
impl Deref for Host {
    type Target = dyn CommonRuntime;

    fn deref(&self) -> &Self::Target {
        self
    }
}

impl CommonRuntime for Host {
    fn as_host(&self) -> Option<&Host> {
        Some(self)
    }
}

impl Host {
    /// Wraps existing host memory as a row-major tensor, without a copy.
    ///
    /// # Safety
    /// `data` holds the elements, outlives the tensor, its views and all work on them, and is not accessed in
    /// any other way meanwhile.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid shape or a null pointer.
    #[allow(unsafe_code, reason = "the caller is responsible for the imported memory")]
    pub unsafe fn import(&self, data: *mut u8, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let bytes = crate::tensor::layout::checked_bytes(dtype, shape)?;
        if data.is_null() && bytes != 0 {
            return Err(Error::invalid("the memory to import is a null pointer").in_operation("import"));
        }
        // SAFETY: guaranteed by the caller.
        let buffer = unsafe { Buffer::import_host(&self.0, 0, data, bytes) }?;
        Ok(Tensor::from_buffer(buffer, dtype, Layout::contiguous(shape)?))
    }
}
