//! The private pool from which device memory is allocated in stream order: its settings do not affect other libraries.

#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::Result;

use crate::context::PrimaryContext;
use crate::driver::MemoryPools;
use crate::driver::abi::{
    self, CUdevice_attribute, CUmemPool_attribute, CuResult, DevicePtr, Ordinal, Stream,
};
use crate::free_list::Block;

/// A pool of stream-ordered memory.
#[derive(Debug)]
pub(crate) struct MemoryPool {
    primary: Arc<PrimaryContext>,
    api: MemoryPools,
    handle: abi::Pool,
    /// Stream for allocations and frees that belong to no queue.
    stream: Stream,
    /// Devices that may access the memory.
    peers: Mutex<Vec<Ordinal>>,
}

impl MemoryPool {
    /// Creates a pool; `None` where pools are not supported.
    pub(crate) fn open(primary: &Arc<PrimaryContext>) -> Result<Option<Arc<Self>>> {
        let supported = primary
            .driver
            .attribute(primary.ordinal, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
            != 0;
        let Some(api) = primary.driver.memory_pools.filter(|_| supported) else { return Ok(None) };
        let properties = abi::device_pool(primary.ordinal);
        let mut handle = abi::Pool::NULL;
        // SAFETY: the properties are complete, and the out-parameter is writable.
        let code = unsafe { (api.cuMemPoolCreate)(&raw mut handle.0, &raw const properties) };
        if code == CuResult::CUDA_ERROR_NOT_SUPPORTED {
            return Ok(None);
        }
        primary.check("cuMemPoolCreate", code)?;
        // On an error the drop destroys what exists so far.
        let (primary, peers) = (Arc::clone(primary), Mutex::default());
        let mut pool = Self { primary, api, handle, stream: Stream::NULL, peers };
        pool.stream = pool.primary.open_stream(0)?;
        pool.configure()?;
        Ok(Some(Arc::new(pool)))
    }

    fn configure(&self) -> Result<()> {
        // Keep freed memory: returning it to the system and taking it again costs 40 times an allocation.
        let mut threshold = u64::MAX;
        // Memory allocated without a queue may be used on every stream at once, so it must not depend on a pending free.
        let mut dependencies: c_int = 0;
        let attributes = [
            (CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut threshold).cast::<c_void>()),
            (
                CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
                (&raw mut dependencies).cast(),
            ),
        ];
        for (attribute, value) in attributes {
            // SAFETY: the pool is alive, and the value has the attribute's type.
            let code = unsafe { (self.api.cuMemPoolSetAttribute)(self.handle.0, attribute, value) };
            self.primary.check("cuMemPoolSetAttribute", code)?;
        }
        Ok(())
    }

    /// Allocates in order with a stream, or for use on any stream at once. Returns the driver's code with the address.
    pub(crate) fn allocate(&self, bytes: usize, stream: Option<Stream>) -> Result<(DevicePtr, CuResult)> {
        let (mut address, on) = (0, stream.unwrap_or(self.stream));
        // SAFETY: pool and stream are alive and of one device, and the out-parameter is writable.
        let code =
            unsafe { (self.api.cuMemAllocFromPoolAsync)(&raw mut address, bytes, self.handle.0, on.0) };
        if stream.is_none() && code.is_success() {
            // Any stream may use it from now on, so the allocation must have completed.
            while !self.is_idle()? {
                std::hint::spin_loop();
            }
        }
        Ok((address, code))
    }

    /// Frees a block, in order with a stream if one is given.
    pub(crate) fn free(&self, block: Block, stream: Option<Stream>) {
        let on = stream.unwrap_or(self.stream);
        // SAFETY: allocated from the pool, freed once, and used by no work submitted to the stream later.
        let _ = unsafe { (self.api.cuMemFreeAsync)(block.base, on.0) };
    }

    /// Whether nothing is being allocated or freed without a queue.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.primary.is_stream_idle(self.stream)
    }

    /// Returns unused memory to the system.
    pub(crate) fn trim(&self) -> Result<()> {
        // SAFETY: the pool is alive; trimming keeps memory that is in use.
        let code = unsafe { (self.api.cuMemPoolTrimTo)(self.handle.0, 0) };
        self.primary.check("cuMemPoolTrimTo", code)
    }

    /// Bytes that the pool holds without using them.
    pub(crate) fn unused_bytes(&self) -> Result<u64> {
        let query = |attribute| {
            let mut bytes = 0_u64;
            // SAFETY: the pool is alive, and both attributes have 64 bits.
            let code = unsafe {
                (self.api.cuMemPoolGetAttribute)(self.handle.0, attribute, (&raw mut bytes).cast())
            };
            self.primary.check("cuMemPoolGetAttribute", code).map(|()| bytes)
        };
        Ok(query(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?
            .saturating_sub(query(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?))
    }

    /// Gives another device access to the memory.
    pub(crate) fn give_access(&self, other: Ordinal) -> Result<()> {
        let mut peers = self.peers.lock();
        if peers.contains(&other) {
            return Ok(());
        }
        let access = abi::device_access(other);
        // SAFETY: the pool is alive, and one descriptor is passed.
        let code = unsafe { (self.api.cuMemPoolSetAccess)(self.handle.0, &raw const access, 1) };
        self.primary.check("cuMemPoolSetAccess", code)?;
        peers.push(other);
        Ok(())
    }
}

impl Drop for MemoryPool {
    fn drop(&mut self) {
        self.primary.close_stream(self.stream);
        let _current = self.primary.make_current();
        // SAFETY: every allocation of the pool was freed before.
        let _ = unsafe { (self.api.cuMemPoolDestroy)(self.handle.0) };
    }
}
