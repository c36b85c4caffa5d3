//! What all openings of a device share.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::Result;

use crate::builtin::Builtins;
use crate::driver::{Batch, Logical, Pool, Semaphore, before_code};
use crate::staging::{Staging, Tuning};
use crate::timer::Clock;

/// How long a wait for the first kernel blocks at a time.
const SLICE: Duration = Duration::from_millis(100);

/// A device that is open.
#[derive(Debug)]
pub(crate) struct Context {
    // Before `logical`, which it was made of.
    builtins: Mutex<Option<Arc<Builtins>>>,
    /// The device has run something, if it has to before the program's code.
    ready: OnceLock<()>,
    staging: OnceLock<Staging>,
    tuning: Tuning,
    pub(crate) clock: Clock,
    pub(crate) logical: Arc<Logical>,
}

impl Context {
    pub(crate) fn new(logical: Arc<Logical>, tuning: Tuning) -> Self {
        let bits = logical.facts.compute_family().map_or(0, |family| family.stamp_bits);
        let clock = Clock::new(bits, logical.facts.tick_ns, logical.calibrate().unwrap_or((0, 0)));
        let (ready, staging) = (OnceLock::new(), OnceLock::new());
        Self { builtins: Mutex::default(), ready, staging, tuning, clock, logical }
    }

    /// Gets ready to run code.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn before_code(&self) -> Result<()> {
        if self.ready.get().is_none() {
            before_code(&self.logical, || self.run_empty())?;
            let _ = self.ready.set(());
        }
        Ok(())
    }

    /// Runs the kernel that does nothing, and waits for its end.
    fn run_empty(&self) -> Result<()> {
        let (logical, builtins) = (&self.logical, self.load_builtins()?);
        let lane = logical.pick_lane();
        let pool = Pool::new(logical, lane.family)?;
        let mut commands = pool.commands(false)?;
        commands.begin()?;
        builtins.record_empty(&mut commands)?;
        commands.end()?;
        let done = Semaphore::new(logical)?;
        lane.submit(logical, &[Batch { waits: &[], commands: Some(&commands), signal: (&done, 1) }])?;
        let ended = loop {
            match done.wait(1, SLICE) {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // The driver lets go of what is dropped here a moment after the semaphore has moved.
        logical.wait_idle();
        ended
    }

    /// The kernels of our own, compiled when they are first needed.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn builtins(&self) -> Result<Arc<Builtins>> {
        self.before_code()?;
        self.load_builtins()
    }

    fn load_builtins(&self) -> Result<Arc<Builtins>> {
        let mut builtins = self.builtins.lock();
        if let Some(builtins) = &*builtins {
            return Ok(Arc::clone(builtins));
        }
        Ok(Arc::clone(builtins.insert(Arc::new(Builtins::load(&self.logical)?))))
    }

    /// The threads for large transfers, started when they are first needed.
    pub(crate) fn staging(&self) -> &Staging {
        self.staging.get_or_init(|| Staging::new(&self.logical, self.tuning))
    }
}
