//! The primary context of a device: retained and never reset, since other libraries of the process share it. Records the first
//! fault, which loses the device.

#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use runtime_core::backend::HostBorrowGuard;
use runtime_core::{Error, ErrorKind, Result};

use crate::builtin::Builtins;
use crate::counters::CounterState;
use crate::driver::abi::{
    self, Context, CuResult, NO_TIMING, NON_BLOCKING, Ordinal, Stream, device_attribute, pool_attribute,
};
use crate::driver::{Driver, MemoryPools, is_sticky};
use crate::free_list::Block;
use crate::interner::Interner;
use crate::pinned_blocks::PinnedBlockPool;
use crate::progress::StreamState;
use crate::staging::{Staging, StagingConfig};
use crate::timer::DeviceClock;

/// Most running kernels that an error names, one per queue.
const MAX_NAMED_QUEUES: usize = 4;

/// A retained primary context, with the state that all openings of the device share.
#[derive(Debug)]
pub(crate) struct PrimaryContext {
    pub(crate) driver: &'static Driver,
    pub(crate) ordinal: Ordinal,
    pub(crate) context: Context,
    pub(crate) pool: Option<MemoryPool>,
    /// Stream for allocations and frees that belong to no queue.
    pub(crate) alloc_stream: Stream,
    pub(crate) kernel_names: Interner,
    pub(crate) clock: DeviceClock,
    pub(crate) pinned_blocks: PinnedBlockPool,
    host_borrows: HostBorrowGuard,
    pub(crate) counters: CounterState,
    builtins: Mutex<Option<Arc<Builtins>>>,
    staging: OnceLock<Staging>,
    queues: Mutex<Vec<Weak<StreamState>>>,
    enabled_peers: Mutex<Vec<Ordinal>>,
    /// The first sticky error.
    fault: OnceLock<Error>,
}

/// A pool of stream-ordered memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryPool {
    pub(crate) api: MemoryPools,
    pub(crate) handle: abi::Pool,
}

impl MemoryPool {
    /// Frees a block in stream order.
    pub(crate) fn free(self, block: Block, stream: Stream) {
        // SAFETY: allocated from the pool, freed once, and used by no work submitted to the stream later.
        let _ = unsafe { (self.api.cuMemFreeAsync)(block.base, stream.0) };
    }
}

/// Makes a context current on this thread until it is dropped, which restores the previous one.
#[derive(Debug)]
pub(crate) struct CurrentContext<'a>(&'a Driver);

impl<'a> CurrentContext<'a> {
    /// Makes a retained context current.
    ///
    /// # Errors
    /// The driver's code.
    #[inline]
    pub(crate) fn push(driver: &'a Driver, context: Context) -> std::result::Result<Self, CuResult> {
        // SAFETY: the context is retained.
        let code = unsafe { (driver.cuCtxPushCurrent_v2)(context.0) };
        if code.is_success() { Ok(Self(driver)) } else { Err(code) }
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        let mut popped = Context::NULL;
        // SAFETY: pops what was pushed on this thread.
        let _ = unsafe { (self.0.cuCtxPopCurrent_v2)(&raw mut popped.0) };
    }
}

impl PrimaryContext {
    /// Retains the primary context of a device.
    ///
    /// # Errors
    /// Any error of the driver; `DeviceLost` if an earlier fault left the context unusable.
    pub(crate) fn open(driver: &'static Driver, ordinal: Ordinal) -> Result<Self> {
        let mut context = Context::NULL;
        // SAFETY: the out-parameter is writable, and the device exists.
        let code = unsafe { (driver.cuDevicePrimaryCtxRetain)(&raw mut context.0, ordinal) };
        driver.check("cuDevicePrimaryCtxRetain", code)?;
        let mut primary = Self {
            driver,
            ordinal,
            context,
            pool: None,
            alloc_stream: Stream::NULL,
            kernel_names: Interner::default(),
            clock: DeviceClock::default(),
            pinned_blocks: PinnedBlockPool::default(),
            host_borrows: HostBorrowGuard::default(),
            counters: CounterState::default(),
            builtins: Mutex::default(),
            staging: OnceLock::new(),
            queues: Mutex::default(),
            enabled_peers: Mutex::default(),
            fault: OnceLock::new(),
        };
        // On an error the drop releases what exists so far.
        primary.memory_info()?;
        primary.alloc_stream = primary.open_stream(0)?;
        primary.pool = primary.open_pool()?;
        Ok(primary)
    }

    /// Makes the context current on this thread, for the driver calls that require it.
    #[inline]
    pub(crate) fn make_current(&self) -> Result<CurrentContext<'_>> {
        CurrentContext::push(self.driver, self.context).map_err(|code| self.fail("cuCtxPushCurrent", code))
    }

    /// Turns a code into a result; a sticky code loses the device.
    #[inline]
    pub(crate) fn check(&self, function: &str, code: CuResult) -> Result<()> {
        if code.is_success() { Ok(()) } else { Err(self.fail(function, code)) }
    }

    /// The error for a code. A sticky code loses the device: from then on every error is the first fault.
    #[cold]
    pub(crate) fn fail(&self, function: &str, code: CuResult) -> Error {
        if let Err(fault) = self.check_alive() {
            return fault;
        }
        let error = self.driver.error(function, code);
        if !is_sticky(code) {
            return error;
        }
        let error = match self.running_kernels().as_slice() {
            [] => error,
            kernels => error.with_note(format_args!("most likely running: {}", kernels.join(", "))),
        };
        self.lose(self.fault.get_or_init(|| error))
    }

    /// Fails with the first fault if the device is lost; nothing touches borrowed host memory after that.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<()> {
        self.fault.get().map_or(Ok(()), |fault| Err(self.lose(fault)))
    }

    /// Revokes the borrows of host memory, before the fault is reported and after it is recorded: an access that is denied
    /// finds the fault.
    #[cold]
    fn lose(&self, fault: &Error) -> Error {
        self.host_borrows.revoke();
        fault.clone()
    }

    /// Runs `copy`, which accesses borrowed host memory.
    ///
    /// # Errors
    /// The first fault if the device is lost; `copy` is not run then.
    pub(crate) fn access_borrowed(&self, copy: impl FnOnce()) -> Result<()> {
        if self.host_borrows.access(copy) { Ok(()) } else { self.check_alive() }
    }

    /// The oldest kernel of each queue that is not known to have ended.
    fn running_kernels(&self) -> Vec<String> {
        let queues = self.queues();
        let found = queues.iter().filter_map(|queue| {
            let (ticket, name) = queue.oldest_running_launch()?;
            Some(format!("kernel `{}` (ticket {ticket})", self.kernel_names.resolve(name)))
        });
        found.take(MAX_NAMED_QUEUES).collect()
    }

    /// Registers a queue.
    pub(crate) fn add_queue(&self, queue: &Arc<StreamState>) {
        let mut queues = self.queues.lock();
        queues.retain(|known| known.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// Free and total bytes of the device's memory.
    pub(crate) fn memory_info(&self) -> Result<(usize, usize)> {
        let _current = self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the out-parameters are writable, and the context is current.
        let code = unsafe { (self.driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", code)?;
        Ok((free, total))
    }

    /// Creates a stream; a higher priority runs first, and 0 is normal.
    pub(crate) fn open_stream(&self, priority: i32) -> Result<Stream> {
        let _current = self.make_current()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the out-parameters are writable, and the context is current.
        let code = unsafe { (self.driver.cuCtxGetStreamPriorityRange)(&raw mut least, &raw mut greatest) };
        self.check("cuCtxGetStreamPriorityRange", code)?;
        let priority = priority.saturating_neg().max(greatest).min(least);
        let mut stream = Stream::NULL;
        // SAFETY: the out-parameter is writable, and the context is current.
        let code =
            unsafe { (self.driver.cuStreamCreateWithPriority)(&raw mut stream.0, NON_BLOCKING, priority) };
        self.check("cuStreamCreate", code)?;
        Ok(stream)
    }

    /// Creates an event, with or without timing.
    pub(crate) fn open_event(&self, timing: bool) -> Result<abi::Event> {
        let _current = self.make_current()?;
        let mut event = abi::Event::NULL;
        let flags = if timing { 0 } else { NO_TIMING };
        // SAFETY: the out-parameter is writable, and the context is current.
        let code = unsafe { (self.driver.cuEventCreate)(&raw mut event.0, flags) };
        self.check("cuEventCreate", code)?;
        Ok(event)
    }

    /// Whether all work before an event has ended.
    #[inline]
    pub(crate) fn is_event_complete(&self, event: abi::Event) -> Result<bool> {
        // SAFETY: the event is alive.
        match unsafe { (self.driver.cuEventQuery)(event.0) } {
            CuResult::CUDA_SUCCESS => Ok(true),
            CuResult::CUDA_ERROR_NOT_READY => Ok(false),
            code => Err(self.fail("cuEventQuery", code)),
        }
    }

    /// Whether all work on a stream has ended.
    pub(crate) fn is_stream_idle(&self, stream: Stream) -> Result<bool> {
        // SAFETY: the stream is alive.
        match unsafe { (self.driver.cuStreamQuery)(stream.0) } {
            CuResult::CUDA_SUCCESS => Ok(true),
            CuResult::CUDA_ERROR_NOT_READY => Ok(false),
            code => Err(self.fail("cuStreamQuery", code)),
        }
    }

    /// Creates a private pool, so that its settings do not affect other libraries; `None` where pools are not supported.
    fn open_pool(&self) -> Result<Option<MemoryPool>> {
        let supported = self.driver.attribute(self.ordinal, device_attribute::MEMORY_POOLS) != 0;
        let Some(api) = self.driver.memory_pools.filter(|_| supported) else { return Ok(None) };
        let properties = abi::device_pool(self.ordinal);
        let mut handle = abi::Pool::NULL;
        // SAFETY: the properties are complete, and the out-parameter is writable.
        let code = unsafe { (api.cuMemPoolCreate)(&raw mut handle.0, &raw const properties) };
        if code == CuResult::CUDA_ERROR_NOT_SUPPORTED {
            return Ok(None);
        }
        self.check("cuMemPoolCreate", code)?;
        let pool = MemoryPool { api, handle };
        // Keep freed memory: returning it to the system and taking it again costs 40 times an allocation.
        let mut threshold = u64::MAX;
        // Memory allocated without a queue may be used on every stream at once, so it must not depend on a pending free.
        let mut dependencies: c_int = 0;
        let attributes = [
            (pool_attribute::RELEASE_THRESHOLD, (&raw mut threshold).cast::<c_void>()),
            (pool_attribute::REUSE_ALLOW_INTERNAL_DEPENDENCIES, (&raw mut dependencies).cast()),
        ];
        for (attribute, value) in attributes {
            // SAFETY: the pool is alive, and the value has the attribute's type.
            let code = unsafe { (api.cuMemPoolSetAttribute)(handle.0, attribute, value) };
            self.check("cuMemPoolSetAttribute", code)?;
        }
        Ok(Some(pool))
    }

    /// Reserved and used bytes of the pool.
    pub(crate) fn pool_bytes(&self, pool: MemoryPool) -> Result<(u64, u64)> {
        let query = |attribute| {
            let mut bytes = 0_u64;
            // SAFETY: the pool is alive, and both attributes have 64 bits.
            let code = unsafe {
                (pool.api.cuMemPoolGetAttribute)(pool.handle.0, attribute, (&raw mut bytes).cast())
            };
            self.check("cuMemPoolGetAttribute", code).map(|()| bytes)
        };
        Ok((query(pool_attribute::RESERVED_CURRENT)?, query(pool_attribute::USED_CURRENT)?))
    }

    fn queues(&self) -> Vec<Arc<StreamState>> {
        self.queues.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the free lists of all queues to the pool.
    pub(crate) fn drain_free_lists(&self) {
        self.queues().iter().for_each(|queue| queue.drain_free_list());
    }

    /// Bytes in the free lists of all queues.
    pub(crate) fn free_list_bytes(&self) -> usize {
        self.queues().iter().map(|queue| queue.free_list.bytes()).sum()
    }

    /// Whether no stream has work.
    pub(crate) fn is_device_idle(&self) -> Result<bool> {
        for queue in self.queues() {
            if !self.is_stream_idle(queue.stream)? {
                return Ok(false);
            }
        }
        self.is_stream_idle(self.alloc_stream)
    }

    /// Gives kernels and copies of `other` access to the memory of this device; returns whether the machine supports that.
    pub(crate) fn enable_peer(&self, other: &Self) -> Result<bool> {
        if other.ordinal == self.ordinal {
            return Ok(true);
        }
        let mut can_access = 0;
        // SAFETY: the out-parameter is writable, and both devices exist.
        let code =
            unsafe { (self.driver.cuDeviceCanAccessPeer)(&raw mut can_access, other.ordinal, self.ordinal) };
        self.check("cuDeviceCanAccessPeer", code)?;
        let (Some(pool), true) = (self.pool, can_access == 1) else { return Ok(false) };
        let mut enabled_peers = self.enabled_peers.lock();
        if enabled_peers.contains(&other.ordinal) {
            return Ok(true);
        }
        let access = abi::device_access(other.ordinal);
        // SAFETY: the pool is alive, and one descriptor is passed.
        let code = unsafe { (pool.api.cuMemPoolSetAccess)(pool.handle.0, &raw const access, 1) };
        self.check("cuMemPoolSetAccess", code)?;
        enabled_peers.push(other.ordinal);
        Ok(true)
    }

    /// The backend's own kernels, loaded on first use.
    pub(crate) fn builtins(&self) -> Result<Arc<Builtins>> {
        let mut builtins = self.builtins.lock();
        if let Some(builtins) = &*builtins {
            return Ok(Arc::clone(builtins));
        }
        Ok(Arc::clone(builtins.insert(Arc::new(Builtins::load(self)?))))
    }

    /// The threads that stage transfers of pageable memory, started on first use.
    pub(crate) fn staging(&self, config: StagingConfig) -> &Staging {
        self.staging.get_or_init(|| Staging::new(config))
    }

    /// Whether an error means that the device is lost.
    pub(crate) fn is_lost(error: &Error) -> bool {
        error.kind() == ErrorKind::DeviceLost
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        drop(self.staging.take());
        let builtins = self.builtins.get_mut().take();
        if let Ok(_current) = self.make_current() {
            if let Some(builtins) = builtins {
                builtins.unload(self.driver);
            }
            self.pinned_blocks.close(self.driver);
            self.clock.close(self.driver);
            if self.alloc_stream != Stream::NULL {
                // SAFETY: ours, and no longer in use.
                let _ = unsafe { (self.driver.cuStreamDestroy_v2)(self.alloc_stream.0) };
            }
            if let Some(pool) = self.pool {
                // SAFETY: every allocation of the pool was freed before.
                let _ = unsafe { (pool.api.cuMemPoolDestroy)(pool.handle.0) };
            }
        }
        // SAFETY: retained once, released once.
        let _ = unsafe { (self.driver.cuDevicePrimaryCtxRelease_v2)(self.ordinal) };
    }
}
