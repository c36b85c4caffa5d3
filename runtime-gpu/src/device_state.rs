//! What all openings of a device share, on top of its primary context.

#![allow(unsafe_code, reason = "calls the driver")]

use std::sync::{Arc, OnceLock, Weak};

use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use runtime_core::Result;
use runtime_core::backend::StagingOptions;

use crate::builtin::Builtins;
use crate::context::PrimaryContext;
use crate::counter_state::CounterState;
use crate::driver::Driver;
use crate::driver::abi::Ordinal;
use crate::memory_pool::MemoryPool;
use crate::pinned_blocks::PinnedBlockPool;
use crate::progress::StreamState;
use crate::staging::Staging;
use crate::timer::DeviceClock;

/// The state of an open device.
#[derive(Debug)]
pub(crate) struct DeviceState {
    /// Declared, and so dropped, first: its threads use the rest.
    staging: OnceLock<Staging>,
    builtins: OnceCell<Builtins>,
    pub(crate) counters: CounterState,
    pub(crate) pinned_blocks: Arc<PinnedBlockPool>,
    pub(crate) clock: Arc<DeviceClock>,
    pub(crate) pool: Option<Arc<MemoryPool>>,
    queues: Mutex<Vec<Weak<StreamState>>>,
    pub(crate) primary: Arc<PrimaryContext>,
}

impl DeviceState {
    /// Opens a device.
    ///
    /// # Errors
    /// Any error of the driver; `DeviceLost` if an earlier fault left the context unusable.
    pub(crate) fn open(driver: &'static Driver, ordinal: Ordinal) -> Result<Self> {
        let primary = Arc::new(PrimaryContext::open(driver, ordinal)?);
        Ok(Self {
            staging: OnceLock::new(),
            builtins: OnceCell::new(),
            counters: CounterState::default(),
            pinned_blocks: Arc::new(PinnedBlockPool::new(&primary)),
            clock: Arc::new(DeviceClock::new(&primary)),
            pool: MemoryPool::open(&primary)?,
            queues: Mutex::default(),
            primary,
        })
    }

    /// Registers a queue.
    pub(crate) fn add_queue(&self, queue: &Arc<StreamState>) {
        let mut queues = self.queues.lock();
        queues.retain(|known| known.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
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
    pub(crate) fn is_idle(&self) -> Result<bool> {
        for queue in self.queues() {
            if !self.primary.is_stream_idle(queue.stream)? {
                return Ok(false);
            }
        }
        self.pool.as_ref().map_or(Ok(true), |pool| pool.is_idle())
    }

    /// Gives kernels and copies of `other` access to the memory of this device; returns whether the machine supports that.
    pub(crate) fn enable_peer(&self, other: &Self) -> Result<bool> {
        let (own, other) = (self.primary.ordinal, other.primary.ordinal);
        if own == other {
            return Ok(true);
        }
        let mut can_access = 0;
        // SAFETY: the out-parameter is writable, and both devices exist.
        let code = unsafe { (self.primary.driver.cuDeviceCanAccessPeer)(&raw mut can_access, other, own) };
        self.primary.check("cuDeviceCanAccessPeer", code)?;
        match &self.pool {
            Some(pool) if can_access == 1 => pool.give_access(other).map(|()| true),
            _ => Ok(false),
        }
    }

    /// The backend's own kernels, loaded on first use.
    pub(crate) fn builtins(&self) -> Result<&Builtins> {
        self.builtins.get_or_try_init(|| Builtins::load(&self.primary))
    }

    /// The threads that stage transfers of pageable memory, started on first use.
    pub(crate) fn staging(&self, options: StagingOptions) -> &Staging {
        self.staging.get_or_init(|| Staging::new(options))
    }
}
