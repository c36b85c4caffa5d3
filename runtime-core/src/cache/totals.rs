//! What loads have cost: summed up in this process, and added to a file in the folder when the cache is closed.

use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::layers::Layers;
use super::numbers_file;
use crate::model::code_load::{CodeLoad, CodeOrigin};

const NAME: &str = "totals";
/// How long closing the cache waits for a process that writes.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);

/// What the loads of a code cache have cost, in all processes.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTotals {
    /// Loads of code that the cache had.
    pub hits: StageTotals,
    /// Loads of code that was compiled.
    pub misses: StageTotals,
}

/// Loads, and the time that each stage took in all of them.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTotals {
    /// Number of loads.
    pub loads: u64,
    /// To look up, read and check entries.
    pub read: Duration,
    /// To lower portable code.
    pub lower: Duration,
    /// To compile.
    pub compile: Duration,
    /// To load native code.
    pub load: Duration,
}

impl StageTotals {
    fn add(&mut self, other: &Self) {
        self.loads = self.loads.saturating_add(other.loads);
        for (sum, more) in [
            (&mut self.read, other.read),
            (&mut self.lower, other.lower),
            (&mut self.compile, other.compile),
            (&mut self.load, other.load),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    fn numbers(&self) -> [u64; 5] {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        [self.loads, ns(self.read), ns(self.lower), ns(self.compile), ns(self.load)]
    }

    const fn from_numbers([loads, read, lower, compile, load]: [u64; 5]) -> Self {
        let time = Duration::from_nanos;
        Self { loads, read: time(read), lower: time(lower), compile: time(compile), load: time(load) }
    }
}

impl LoadTotals {
    /// The totals of a folder; zero if there are none.
    pub(super) fn read(folder: &Path) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = numbers_file::read(&folder.join(NAME)).unwrap_or_default();
        Self {
            hits: StageTotals::from_numbers([a, b, c, d, e]),
            misses: StageTotals::from_numbers([f, g, h, i, j]),
        }
    }

    fn write(&self, folder: &Path) -> std::io::Result<()> {
        let mut numbers = [0; 10];
        numbers[..5].copy_from_slice(&self.hits.numbers());
        numbers[5..].copy_from_slice(&self.misses.numbers());
        numbers_file::write(&folder.join(NAME), numbers)
    }
}

/// The loads of this process.
#[derive(Debug, Default)]
pub(super) struct ProcessTotals(Mutex<LoadTotals>);

impl ProcessTotals {
    pub(super) fn add(&self, load: &CodeLoad) {
        let CodeLoad { read, lower, compile, load: loading, .. } = *load;
        let one = StageTotals { loads: 1, read, lower, compile, load: loading };
        let mut totals = self.0.lock();
        match load.origin {
            CodeOrigin::Cache | CodeOrigin::SharedCache => totals.hits.add(&one),
            CodeOrigin::Compiled => totals.misses.add(&one),
            _ => {}
        }
    }

    /// Adds the loads of this process to the file.
    pub(super) fn flush(&self, layers: &Layers) {
        let totals = std::mem::take(&mut *self.0.lock());
        let store = layers.store.as_ref().ok().filter(|store| store.is_writable());
        let Some(store) = store.filter(|_| totals != LoadTotals::default()) else { return };
        if let Some(_lock) = store.locks().lock_usage(Instant::now() + LOCK_TIMEOUT) {
            let mut all = LoadTotals::read(store.folder());
            all.hits.add(&totals.hits);
            all.misses.add(&totals.misses);
            // They are for information only.
            let _ = all.write(store.folder());
        }
    }
}
