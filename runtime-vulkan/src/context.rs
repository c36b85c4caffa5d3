//! What all openings of a device share.

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::Result;

use crate::builtin::Builtins;
use crate::driver::Logical;
use crate::timer::Clock;

/// A device that is open.
#[derive(Debug)]
pub(crate) struct Context {
    // Before `logical`, which it was made of.
    builtins: Mutex<Option<Arc<Builtins>>>,
    pub(crate) clock: Clock,
    pub(crate) logical: Arc<Logical>,
}

impl Context {
    pub(crate) fn new(logical: Arc<Logical>) -> Self {
        let bits = logical.facts.compute_family().map_or(0, |family| family.stamp_bits);
        let clock = Clock::new(bits, logical.facts.tick_ns);
        Self { builtins: Mutex::default(), clock, logical }
    }

    /// The kernels of our own, compiled when they are first needed.
    pub(crate) fn builtins(&self) -> Result<Arc<Builtins>> {
        let mut builtins = self.builtins.lock();
        if let Some(builtins) = &*builtins {
            return Ok(Arc::clone(builtins));
        }
        Ok(Arc::clone(builtins.insert(Arc::new(Builtins::load(&self.logical)?))))
    }
}
