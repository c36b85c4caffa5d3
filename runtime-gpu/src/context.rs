//! The primary context of a device: shared with every other library of the process, retained, and never reset.

#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, Result};

use crate::bounce::Bounces;
use crate::builtin::Builtins;
use crate::driver::abi::{
    self, Code, Context, NO_TIMING, NON_BLOCKING, Ordinal, PoolAccess, PoolProperties, Stream,
    device_attribute, pool_attribute,
};
use crate::driver::{Driver, Pools, is_sticky};
use crate::names::Names;
use crate::progress::Shared;
use crate::spares::Block;
use crate::staging::{Staging, Tuning};
use crate::timer::DeviceClock;

/// Most queues that an error names kernels of.
const NAMED_QUEUES: usize = 4;

/// Keeps borrowed host memory from being touched once the device is known to be lost.
#[derive(Debug, Default)]
pub(crate) struct Lending {
    lost: AtomicBool,
    copying: AtomicUsize,
}

impl Lending {
    /// Runs `copy`, which touches borrowed memory, unless the device is lost: then its owner may have taken it back.
    pub(crate) fn copy(&self, copy: impl FnOnce()) -> bool {
        self.copying.fetch_add(1, Ordering::SeqCst);
        let allowed = !self.lost.load(Ordering::SeqCst);
        if allowed {
            copy();
        }
        self.copying.fetch_sub(1, Ordering::SeqCst);
        allowed
    }

    /// Ends all lending: returns when nobody touches borrowed memory any more.
    fn end(&self) {
        self.lost.store(true, Ordering::SeqCst);
        while self.copying.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
    }
}

/// A retained primary context, with what the openings of a device share.
#[derive(Debug)]
pub(crate) struct Primary {
    pub(crate) driver: &'static Driver,
    pub(crate) ordinal: Ordinal,
    pub(crate) context: Context,
    pub(crate) pool: Option<Pool>,
    /// In its order memory is allocated and freed that no queue asked for.
    pub(crate) service: Stream,
    pub(crate) names: Names,
    pub(crate) clock: DeviceClock,
    pub(crate) bounces: Bounces,
    pub(crate) lending: Arc<Lending>,
    builtins: Mutex<Option<Arc<Builtins>>>,
    staging: OnceLock<Staging>,
    queues: Mutex<Vec<Weak<Shared>>>,
    friends: Mutex<Vec<Ordinal>>,
    lost: OnceLock<Error>,
}

/// Memory that is allocated and freed in the order of streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    pub(crate) calls: Pools,
    pub(crate) handle: abi::Pool,
}

impl Pool {
    /// Frees a block in the order of a stream.
    pub(crate) fn free(self, block: Block, stream: Stream) {
        // SAFETY: allocated from the pool, freed once, and not used after what is on the stream.
        let _ = unsafe { (self.calls.cuMemFreeAsync)(block.base, stream) };
    }
}

/// The context is current on this thread until this is dropped; what was current before is so again then.
#[derive(Debug)]
pub(crate) struct Current<'a>(&'a Driver);

impl<'a> Current<'a> {
    /// Makes a retained context current.
    ///
    /// # Errors
    /// The driver's code.
    #[inline]
    pub(crate) fn push(driver: &'a Driver, context: Context) -> std::result::Result<Self, Code> {
        // SAFETY: the context is retained.
        let code = unsafe { (driver.cuCtxPushCurrent_v2)(context) };
        if code.is_success() { Ok(Self(driver)) } else { Err(code) }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = Context::NULL;
        // SAFETY: pops what was pushed on this thread.
        let _ = unsafe { (self.0.cuCtxPopCurrent_v2)(&raw mut popped) };
    }
}

impl Primary {
    /// Retains the primary context of a device.
    ///
    /// # Errors
    /// Whatever the driver says; `DeviceLost` if an earlier failure has left the context unusable.
    pub(crate) fn open(driver: &'static Driver, ordinal: Ordinal) -> Result<Self> {
        let mut context = Context::NULL;
        // SAFETY: the out-parameter is writable, and the device exists.
        let code = unsafe { (driver.cuDevicePrimaryCtxRetain)(&raw mut context, ordinal) };
        driver.check("cuDevicePrimaryCtxRetain", code)?;
        let mut primary = Self {
            driver,
            ordinal,
            context,
            pool: None,
            service: Stream::NULL,
            names: Names::default(),
            clock: DeviceClock::default(),
            bounces: Bounces::default(),
            lending: Arc::default(),
            builtins: Mutex::default(),
            staging: OnceLock::new(),
            queues: Mutex::default(),
            friends: Mutex::default(),
            lost: OnceLock::new(),
        };
        // On an error the drop releases what was made so far.
        primary.memory_info()?;
        primary.service = primary.open_stream(0)?;
        primary.pool = primary.open_pool()?;
        Ok(primary)
    }

    /// Makes the context current on this thread, for the calls that ask for that.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Current<'_>> {
        Current::push(self.driver, self.context).map_err(|code| self.fail("cuCtxPushCurrent", code))
    }

    /// Turns a code into a result; a sticky one loses the device.
    #[inline]
    pub(crate) fn check(&self, function: &str, code: Code) -> Result<()> {
        if code.is_success() { Ok(()) } else { Err(self.fail(function, code)) }
    }

    /// The error behind a code. After a sticky one every error is the first one, and nobody's memory is touched.
    #[cold]
    pub(crate) fn fail(&self, function: &str, code: Code) -> Error {
        if let Some(lost) = self.lost.get() {
            self.lending.end();
            return lost.clone();
        }
        let error = self.driver.error(function, code);
        if !is_sticky(code) {
            return error;
        }
        self.lending.end();
        let error = match self.suspects().as_slice() {
            [] => error,
            suspects => error.with_note(format_args!("most likely running: {}", suspects.join(", "))),
        };
        self.lost.get_or_init(|| error).clone()
    }

    /// Says at once that the device is lost, if it is.
    pub(crate) fn check_alive(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The first kernel of each queue that is not known to have ended.
    fn suspects(&self) -> Vec<String> {
        let queues = self.queues();
        let found = queues.iter().filter_map(|queue| {
            let (ticket, name) = queue.oldest_launch()?;
            Some(format!("kernel `{}` (ticket {ticket})", self.names.text(name)))
        });
        found.take(NAMED_QUEUES).collect()
    }

    /// Remembers a queue, for [`Primary::suspects`].
    pub(crate) fn add_queue(&self, queue: &Arc<Shared>) {
        let mut queues = self.queues.lock();
        queues.retain(|known| known.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// Free and total bytes of the device's memory.
    pub(crate) fn memory_info(&self) -> Result<(usize, usize)> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the out-parameters are writable, and the context is current.
        let code = unsafe { (self.driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", code)?;
        Ok((free, total))
    }

    /// Makes a stream; a higher priority runs first, and 0 is normal.
    pub(crate) fn open_stream(&self, priority: i32) -> Result<Stream> {
        let _current = self.enter()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the out-parameters are writable, and the context is current.
        let code = unsafe { (self.driver.cuCtxGetStreamPriorityRange)(&raw mut least, &raw mut greatest) };
        self.check("cuCtxGetStreamPriorityRange", code)?;
        let priority = priority.saturating_neg().max(greatest).min(least);
        let mut stream = Stream::NULL;
        // SAFETY: the out-parameter is writable, and the context is current.
        let code =
            unsafe { (self.driver.cuStreamCreateWithPriority)(&raw mut stream, NON_BLOCKING, priority) };
        self.check("cuStreamCreate", code)?;
        Ok(stream)
    }

    /// Makes an event, with a time or without.
    pub(crate) fn open_event(&self, timing: bool) -> Result<abi::Event> {
        let _current = self.enter()?;
        let mut event = abi::Event::NULL;
        let flags = if timing { 0 } else { NO_TIMING };
        // SAFETY: the out-parameter is writable, and the context is current.
        let code = unsafe { (self.driver.cuEventCreate)(&raw mut event, flags) };
        self.check("cuEventCreate", code)?;
        Ok(event)
    }

    /// Whether everything before an event has ended.
    #[inline]
    pub(crate) fn has_passed(&self, event: abi::Event) -> Result<bool> {
        // SAFETY: the event is alive.
        match unsafe { (self.driver.cuEventQuery)(event) } {
            Code::SUCCESS => Ok(true),
            Code::NOT_READY => Ok(false),
            code => Err(self.fail("cuEventQuery", code)),
        }
    }

    /// Whether everything on a stream has ended.
    pub(crate) fn is_idle(&self, stream: Stream) -> Result<bool> {
        // SAFETY: the stream is alive.
        match unsafe { (self.driver.cuStreamQuery)(stream) } {
            Code::SUCCESS => Ok(true),
            Code::NOT_READY => Ok(false),
            code => Err(self.fail("cuStreamQuery", code)),
        }
    }

    /// A pool of our own, so that no setting of ours touches what other libraries allocate; `None` where there are none.
    fn open_pool(&self) -> Result<Option<Pool>> {
        let supported = self.driver.attribute(self.ordinal, device_attribute::MEMORY_POOLS) != 0;
        let Some(calls) = self.driver.pools.filter(|_| supported) else { return Ok(None) };
        let properties = PoolProperties::of(self.ordinal);
        let mut handle = abi::Pool::NULL;
        // SAFETY: the properties are complete, and the out-parameter is writable.
        let code = unsafe { (calls.cuMemPoolCreate)(&raw mut handle, &raw const properties) };
        if code == Code(801) {
            return Ok(None);
        }
        self.check("cuMemPoolCreate", code)?;
        let pool = Pool { calls, handle };
        // Keeps freed memory: to give it back to the system and take it again costs 40 times an allocation.
        let mut threshold = u64::MAX;
        // An allocation without a queue may be used everywhere at once, so it must not wait for somebody's free.
        let mut dependencies: c_int = 0;
        let attributes = [
            (pool_attribute::RELEASE_THRESHOLD, (&raw mut threshold).cast::<c_void>()),
            (pool_attribute::REUSE_ALLOW_INTERNAL_DEPENDENCIES, (&raw mut dependencies).cast()),
        ];
        for (attribute, value) in attributes {
            // SAFETY: the pool is alive, and the value has the attribute's type.
            let code = unsafe { (calls.cuMemPoolSetAttribute)(handle, attribute, value) };
            self.check("cuMemPoolSetAttribute", code)?;
        }
        Ok(Some(pool))
    }

    /// Bytes of the pool that are reserved and in use.
    pub(crate) fn pool_bytes(&self, pool: Pool) -> Result<(u64, u64)> {
        let figure = |attribute| {
            let mut bytes = 0_u64;
            // SAFETY: the pool is alive, and both figures are 64 bits.
            let code = unsafe {
                (pool.calls.cuMemPoolGetAttribute)(pool.handle, attribute, (&raw mut bytes).cast())
            };
            self.check("cuMemPoolGetAttribute", code).map(|()| bytes)
        };
        Ok((figure(pool_attribute::RESERVED_CURRENT)?, figure(pool_attribute::USED_CURRENT)?))
    }

    fn queues(&self) -> Vec<Arc<Shared>> {
        self.queues.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Gives the pool back what the queues keep for themselves.
    pub(crate) fn free_spares(&self) {
        self.queues().iter().for_each(|queue| queue.free_spares());
    }

    /// Bytes that the queues keep for themselves.
    pub(crate) fn spare_bytes(&self) -> usize {
        self.queues().iter().map(|queue| queue.spares.bytes()).sum()
    }

    /// Whether every queue has run out of work.
    pub(crate) fn is_all_idle(&self) -> Result<bool> {
        for queue in self.queues() {
            if !self.is_idle(queue.stream)? {
                return Ok(false);
            }
        }
        self.is_idle(self.service)
    }

    /// Lets kernels and copies of `other` reach the memory of this device, where the machine can; says whether it can.
    pub(crate) fn let_in(&self, other: &Self) -> Result<bool> {
        if other.ordinal == self.ordinal {
            return Ok(true);
        }
        let mut reachable = 0;
        // SAFETY: the out-parameter is writable, and both devices exist.
        let code =
            unsafe { (self.driver.cuDeviceCanAccessPeer)(&raw mut reachable, other.ordinal, self.ordinal) };
        self.check("cuDeviceCanAccessPeer", code)?;
        let (Some(pool), true) = (self.pool, reachable == 1) else { return Ok(false) };
        let mut friends = self.friends.lock();
        if friends.contains(&other.ordinal) {
            return Ok(true);
        }
        let access = PoolAccess { location: abi::Location::device(other.ordinal), flags: abi::READ_WRITE };
        // SAFETY: the pool is alive, and one description is passed.
        let code = unsafe { (pool.calls.cuMemPoolSetAccess)(pool.handle, &raw const access, 1) };
        self.check("cuMemPoolSetAccess", code)?;
        friends.push(other.ordinal);
        Ok(true)
    }

    /// The kernels of our own, loaded when they are first needed.
    pub(crate) fn builtins(&self) -> Result<Arc<Builtins>> {
        let mut builtins = self.builtins.lock();
        if let Some(builtins) = &*builtins {
            return Ok(Arc::clone(builtins));
        }
        Ok(Arc::clone(builtins.insert(Arc::new(Builtins::load(self)?))))
    }

    /// The threads that stage transfers of pageable memory, started when they are first needed.
    pub(crate) fn staging(&self, tuning: Tuning) -> &Staging {
        self.staging
            .get_or_init(|| Staging::new(self.driver, self.context, Arc::clone(&self.lending), tuning))
    }

    /// Whether the driver answers for a device at all.
    pub(crate) fn is_gone(error: &Error) -> bool {
        error.kind() == ErrorKind::DeviceLost
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        drop(self.staging.take());
        let builtins = self.builtins.get_mut().take();
        if let Ok(_current) = self.enter() {
            if let Some(builtins) = builtins {
                builtins.unload(self.driver);
            }
            self.bounces.free(self.driver);
            self.clock.close(self.driver);
            if self.service != Stream::NULL {
                // SAFETY: ours, and used by nobody any more.
                let _ = unsafe { (self.driver.cuStreamDestroy_v2)(self.service) };
            }
            if let Some(pool) = self.pool {
                // SAFETY: every allocation of the pool was freed before.
                let _ = unsafe { (pool.calls.cuMemPoolDestroy)(pool.handle) };
            }
        }
        // SAFETY: retained once, released once.
        let _ = unsafe { (self.driver.cuDevicePrimaryCtxRelease_v2)(self.ordinal) };
    }
}
