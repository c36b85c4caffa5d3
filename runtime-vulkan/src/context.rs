//! What all openings of a device share.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use runtime_core::Result;

use crate::builtin::Builtins;
use crate::driver::Logical;
use crate::staging::{Staging, Tuning};
use crate::timer::Clock;

/// A device that is open.
#[derive(Debug)]
pub(crate) struct Context {
    // Before `logical`, which it was made of.
    builtins: Mutex<Option<Arc<Builtins>>>,
    staging: OnceLock<Staging>,
    tuning: Tuning,
    pub(crate) clock: Clock,
    pub(crate) logical: Arc<Logical>,
}

impl Context {
    pub(crate) fn new(logical: Arc<Logical>, tuning: Tuning) -> Self {
        let bits = logical.facts.compute_family().map_or(0, |family| family.stamp_bits);
        let clock = Clock::new(bits, logical.facts.tick_ns, logical.calibrate().unwrap_or((0, 0)));
        Self { builtins: Mutex::default(), staging: OnceLock::new(), tuning, clock, logical }
    }

    /// The kernels of our own, compiled when they are first needed.
    pub(crate) fn builtins(&self) -> Result<Arc<Builtins>> {
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
