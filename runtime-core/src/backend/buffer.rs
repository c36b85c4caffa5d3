//! What a backend implements for memory.

use crate::Result;
use crate::backend::NativeHandle;

/// Memory of a device.
pub trait Buffer: Send + Sync + 'static {
    /// Address that kernels use; 0 if kernels take a handle.
    fn kernel_address(&self) -> u64;

    /// Address at which the host can access the memory; null if it cannot. The host may read it as a slice of
    /// bytes before writing it, so memory from Rust's allocator must be allocated zeroed (`alloc_zeroed`);
    /// memory from a driver or the operating system counts as initialised, whatever it contains.
    fn host_pointer(&self) -> *mut u8 {
        std::ptr::null_mut()
    }

    /// The objects of the driver that hold the memory, and the offset of its first byte in them.
    ///
    /// # Errors
    /// `Unsupported` if work outside the runtime cannot use the memory.
    fn native(&self) -> Result<(Vec<NativeHandle>, u64)> {
        Ok((Vec::new(), 0))
    }
}
