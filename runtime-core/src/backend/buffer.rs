//! What a backend implements for memory.

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
}
