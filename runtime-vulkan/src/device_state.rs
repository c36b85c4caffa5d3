//! What all openings of a device share, on top of the `VkDevice`.

use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::OnceCell;
use runtime_core::Result;
use runtime_core::backend::StagingOptions;

use crate::builtin::Builtins;
use crate::driver::{CommandPool, LogicalDevice, Semaphore, Submission, wait_at_exit, warm_up_compiler};
use crate::staging::Staging;
use crate::timer::Clock;

/// How long a wait for the warm-up kernel blocks at a time.
const WAIT_SLICE: Duration = Duration::from_millis(100);

/// The state of an open device.
#[derive(Debug)]
pub(crate) struct DeviceState {
    // Declared, and so dropped, before `logical`, which it belongs to.
    builtins: OnceCell<Arc<Builtins>>,
    /// Set once the driver's compiler has run, if it must run before the program's first kernel.
    warmed_up: OnceCell<()>,
    pub(crate) staging: Staging,
    pub(crate) clock: Clock,
    pub(crate) logical: Arc<LogicalDevice>,
}

impl DeviceState {
    pub(crate) fn new(logical: Arc<LogicalDevice>, options: StagingOptions) -> Self {
        wait_at_exit(&logical);
        let bits = logical.caps.compute_family().map_or(0, |family| family.timestamp_bits);
        let clock = Clock::new(bits, logical.caps.timestamp_period_ns, logical.calibrate().unwrap_or((0, 0)));
        let (warmed_up, staging) = (OnceCell::new(), Staging::new(options));
        Self { builtins: OnceCell::new(), warmed_up, staging, clock, logical }
    }

    /// Makes the driver's compiler run once, if process exit depends on that.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn warm_up_compiler(&self) -> Result<()> {
        self.warmed_up.get_or_try_init(|| warm_up_compiler(&self.logical, || self.run_noop())).copied()
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
        let builtins = self.builtins.get_or_try_init(|| Builtins::load(&self.logical).map(Arc::new));
        builtins.map(Arc::clone)
    }
}
