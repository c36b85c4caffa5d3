//! Counters of the processor and of Linux, for all threads of the process.
//!
//! Every thread gets a counter of its own, because kernels run on threads that already exist; threads and processes that they
//! start are counted with them. Such counters cannot be read as a group (`perf_event_open(2)`, `inherit`), so each is scaled by
//! its own time.

pub(crate) mod event;
mod sys;

use runtime_core::Result;
use runtime_core::backend::CounterSet;
use runtime_core::device::{CounterInfo, CounterReading};

use event::Event;
use sys::ThreadCounter;

/// All named counters, each with the reason if it cannot be opened.
pub(crate) fn list() -> Vec<CounterInfo> {
    let info = |(event, description): (Event, String)| CounterInfo {
        unavailable_reason: sys::check(&event).err(),
        unit: event.unit().map(str::to_owned),
        name: event.name,
        description,
    };
    event::all().into_iter().map(info).collect()
}

/// An open set.
#[derive(Debug)]
pub(crate) struct HostCounters {
    counters: Vec<Counter>,
}

#[derive(Debug)]
struct Counter {
    event: Event,
    unavailable: Option<String>,
    /// One per thread, while a pass is counted.
    threads: Vec<ThreadCounter>,
    total: Total,
}

/// Sums over the threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Total {
    value: f64,
    enabled_ns: f64,
    running_ns: f64,
}

impl Total {
    /// Adds a thread's count, extrapolated if it shared the hardware.
    #[expect(clippy::cast_precision_loss, reason = "counts above 2^53 may be rounded")]
    pub(crate) fn add(&mut self, count: u64, enabled_ns: u64, running_ns: u64) {
        let share = if running_ns == 0 { 1.0 } else { enabled_ns as f64 / running_ns as f64 };
        self.value += count as f64 * share.max(1.0);
        self.enabled_ns += enabled_ns as f64;
        self.running_ns += running_ns as f64;
    }

    /// The reading; `None` if there was time to count, but no hardware.
    fn reading(&self) -> Option<CounterReading> {
        let counted = if self.enabled_ns == 0.0 { 1.0 } else { (self.running_ns / self.enabled_ns).min(1.0) };
        (counted > 0.0).then_some(CounterReading { value: self.value, counted, is_ratio: false })
    }
}

impl HostCounters {
    /// Opens the counters of these names.
    pub(crate) fn open(names: &[&str]) -> Result<Self> {
        let open = |name: &&str| {
            let event = Event::parse(name)?;
            let unavailable = sys::check(&event).err();
            Ok(Counter { event, unavailable, threads: Vec::new(), total: Total::default() })
        };
        Ok(Self { counters: names.iter().map(open).collect::<Result<_>>()? })
    }

    fn open_threads(&mut self) -> Result<()> {
        let threads = sys::threads()?;
        for counter in self.available() {
            counter.total = Total::default();
            counter.threads.clear();
            for &thread in &threads {
                // A thread that has ended in the meantime has nothing to count.
                counter.threads.extend(ThreadCounter::open(&counter.event, thread)?);
            }
        }
        Ok(())
    }

    fn available(&mut self) -> impl Iterator<Item = &mut Counter> {
        self.counters.iter_mut().filter(|counter| counter.unavailable.is_none())
    }
}

impl CounterSet for HostCounters {
    fn unavailable_reasons(&self) -> Vec<Option<String>> {
        self.counters.iter().map(|counter| counter.unavailable.clone()).collect()
    }

    fn begin(&mut self, _pass: u32) -> Result<()> {
        if let Err(error) = self.open_threads() {
            // Without descriptors, nothing else of the process works.
            self.available().for_each(|counter| counter.threads.clear());
            return Err(error);
        }
        self.available().flat_map(|counter| &counter.threads).for_each(ThreadCounter::enable);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.available().flat_map(|counter| &counter.threads).for_each(ThreadCounter::disable);
        let mut result = Ok(());
        for counter in self.available() {
            for thread in std::mem::take(&mut counter.threads) {
                match thread.read() {
                    Ok((count, enabled_ns, running_ns)) => counter.total.add(count, enabled_ns, running_ns),
                    Err(error) => result = Err(error),
                }
            }
        }
        result
    }

    fn read(&mut self) -> Result<Vec<Option<CounterReading>>> {
        let reading =
            |counter: &Counter| counter.unavailable.is_none().then(|| counter.total.reading()).flatten();
        Ok(self.counters.iter().map(reading).collect())
    }
}

#[cfg(test)]
mod tests;
