//! The state that all openings of a device share.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::Result;

use crate::builtin::Builtins;
use crate::driver::{CommandPool, LogicalDevice, Semaphore, Submission, warm_up_compiler};
use crate::staging::{Staging, StagingConfig};
use crate::timer::Clock;

/// How long a wait for the warm-up kernel blocks at a time.
const WAIT_SLICE: Duration = Duration::from_millis(100);

/// An open device.
#[derive(Debug)]
pub(crate) struct Context {
    // Declared, and so dropped, before `logical`, which it belongs to.
    builtins: Mutex<Option<Arc<Builtins>>>,
    /// Set once the driver's compiler has run, if it must run before the program's first kernel.
    warmed_up: OnceLock<()>,
    pub(crate) staging: Staging,
    pub(crate) clock: Clock,
    pub(crate) logical: Arc<LogicalDevice>,
}

impl Context {
    pub(crate) fn new(logical: Arc<LogicalDevice>, config: StagingConfig) -> Self {
        let bits = logical.caps.compute_family().map_or(0, |family| family.timestamp_bits);
        let clock = Clock::new(bits, logical.caps.timestamp_period_ns, logical.calibrate().unwrap_or((0, 0)));
        let (warmed_up, staging) = (OnceLock::new(), Staging::new(config));
        Self { builtins: Mutex::default(), warmed_up, staging, clock, logical }
    }

    /// Makes the driver's compiler run once, if process exit depends on that.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn warm_up_compiler(&self) -> Result<()> {
        if self.warmed_up.get().is_none() {
            warm_up_compiler(&self.logical, || self.run_noop())?;
            let _ = self.warmed_up.set(());
        }
        Ok(())
    }

    /// Runs the empty kernel and waits for it.
    fn run_noop(&self) -> Result<()> {
        let (logical, builtins) = (&self.logical, self.load_builtins()?);
        let shared_queue = logical.least_used_compute_queue();
        let pool = CommandPool::new(logical, shared_queue.family)?;
        let mut commands = pool.allocate()?;
        commands.begin()?;
        builtins.record_noop(&mut commands)?;
        commands.end()?;
        let done = Semaphore::new(logical)?;
        shared_queue
            .submit(logical, &[Submission { waits: &[], commands: Some(&commands), signal: (&done, 1) }])?;
        let result = loop {
            match done.wait(1, WAIT_SLICE) {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // The driver releases the objects dropped here only a moment after the semaphore is signaled.
        logical.wait_idle();
        result
    }

    /// The built-in kernels, compiled on first use.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn builtins(&self) -> Result<Arc<Builtins>> {
        self.warm_up_compiler()?;
        self.load_builtins()
    }

    fn load_builtins(&self) -> Result<Arc<Builtins>> {
        let mut builtins = self.builtins.lock();
        if let Some(builtins) = &*builtins {
            return Ok(Arc::clone(builtins));
        }
        Ok(Arc::clone(builtins.insert(Arc::new(Builtins::load(&self.logical)?))))
    }
}
