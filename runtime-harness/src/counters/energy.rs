//! Energy per call, from the energy counter of the device's telemetry.
//!
//! Such counters advance in steps: NVML's every few tens of milliseconds, RAPL's every millisecond. Calls are counted
//! from one step to a later one, at least [`MIN_STEPS`] apart, so that the error is at most one step in as many.

use std::time::Instant;

use runtime_core::{Error, Result};

use super::Calls;
use crate::row::Energy;
use crate::settings::ENERGY_LIMIT;

/// Steps of the counter below which no energy is claimed.
const MIN_STEPS: u64 = 20;
/// Aimed duration of the calls between two readings, in nanoseconds.
const BATCH_NS: f64 = 1e6;
const MAX_BATCH: f64 = 1000.0;

/// Measures the energy of a call that takes about `call_ns`.
pub(super) fn measure(calls: &Calls<'_>, call_ns: f64) -> Energy {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 1000")]
    let batch = (BATCH_NS / call_ns.max(1.0)).clamp(1.0, MAX_BATCH) as u64;
    let queue = match calls.open_queue() {
        Ok(queue) => queue,
        Err(error) => return unavailable(&error),
    };
    let end = Instant::now() + ENERGY_LIMIT;
    let meter = Meter {
        read: &mut || energy_counter(calls),
        run: &mut || calls.run(&queue, batch).map(|()| batch),
        is_over: &mut || Instant::now() >= end,
    };
    meter.measure().unwrap_or_else(|error| unavailable(&error))
}

fn energy_counter(calls: &Calls<'_>) -> Result<u64> {
    calls.device.telemetry()?.energy_microjoules.ok_or_else(|| {
        Error::unsupported(
            "the device reports no energy: RAPL can be read by root only, and NVML counts it from Volta on",
        )
    })
}

fn unavailable(error: &Error) -> Energy {
    Energy {
        microjoules_per_call: None,
        resolution_microjoules: None,
        total_microjoules: 0,
        calls: 0,
        reason: Some(error.to_string()),
    }
}

/// A counter, work, and a time limit.
struct Meter<'a> {
    /// Reads the counter, in microjoules.
    read: &'a mut dyn FnMut() -> Result<u64>,
    /// Runs some calls and returns how many.
    run: &'a mut dyn FnMut() -> Result<u64>,
    is_over: &'a mut dyn FnMut() -> bool,
}

impl Meter<'_> {
    fn measure(self) -> Result<Energy> {
        let mut seen = (self.read)()?;
        // Where counting begins: the first step that is seen.
        let mut begin = None;
        let (mut calls, mut counted) = (0, 0);
        let mut step = None;
        while !(self.is_over)() {
            calls += (self.run)()?;
            let now = (self.read)()?;
            if now < seen {
                return Err(Error::unsupported(
                    "the energy counter went backwards: it overflowed or was reset",
                ));
            }
            if now == seen {
                continue;
            }
            let advance = now - seen;
            seen = now;
            match begin {
                None => (begin, calls) = (Some(now), 0),
                Some(begin) => {
                    counted = calls;
                    let smallest: u64 = step.map_or(advance, |step: u64| step.min(advance));
                    step = Some(smallest);
                    if now - begin >= MIN_STEPS * smallest {
                        break;
                    }
                }
            }
        }
        Ok(energy(begin.map_or(0, |begin| seen - begin), counted, step))
    }
}

/// The energy per call, if it is at least so many steps.
#[expect(clippy::cast_precision_loss, reason = "energies and calls are far below 2^53")]
fn energy(total_microjoules: u64, calls: u64, step: Option<u64>) -> Energy {
    let limit = ENERGY_LIMIT.as_secs();
    let steps = step.map_or(0, |step| total_microjoules / step);
    let reason = match step {
        None => Some(format!("the energy counter did not advance twice in {limit} s of calls")),
        Some(step) if steps < MIN_STEPS => Some(format!(
            "the energy counter advanced by {steps} steps of {step} µJ in {limit} s; {MIN_STEPS} are needed"
        )),
        Some(_) => None,
    };
    Energy {
        microjoules_per_call: reason.is_none().then(|| total_microjoules as f64 / calls as f64),
        resolution_microjoules: step,
        total_microjoules,
        calls,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Measures calls of `per_call` microjoules with a counter that advances in steps, for at most `batches` batches.
    fn simulate(per_call: u64, step: u64, batch: u64, batches: u64) -> Energy {
        let (used, left) = (Cell::new(7), Cell::new(batches));
        let meter = Meter {
            read: &mut || Ok(used.get() / step * step),
            run: &mut || {
                used.set(used.get() + per_call * batch);
                left.set(left.get() - 1);
                Ok(batch)
            },
            is_over: &mut || left.get() == 0,
        };
        meter.measure().unwrap()
    }

    #[test]
    fn a_fine_counter_gives_the_energy_exactly() {
        let energy = simulate(250, 1, 10, 1000);
        assert_eq!(energy.microjoules_per_call, Some(250.0));
        assert_eq!((energy.resolution_microjoules, energy.reason), (Some(2500), None));
    }

    #[test]
    fn a_coarse_counter_gives_it_within_a_step_in_twenty() {
        for (step, batch) in [(1_000, 1), (3_333, 2), (1_000_000, 7), (100_000, 1)] {
            let energy = simulate(250, step, batch, 1_000_000);
            let per_call = energy.microjoules_per_call.unwrap();
            assert!((per_call / 250.0 - 1.0).abs() <= 0.05 + 1e-9, "{step} {batch}: {energy:?}");
            assert!(energy.total_microjoules >= 20 * energy.resolution_microjoules.unwrap(), "{energy:?}");
        }
    }

    #[test]
    fn too_few_steps_are_no_energy() {
        let energy = simulate(250, 1_000_000, 1, 19 * 4000);
        assert_eq!(energy.microjoules_per_call, None);
        assert_eq!(energy.resolution_microjoules, Some(1_000_000));
        assert!(energy.reason.unwrap().contains("18 steps of 1000000 µJ"));
        let energy = simulate(250, 1_000_000_000, 1, 100);
        assert!(energy.reason.unwrap().contains("did not advance"));
    }

    #[test]
    fn a_counter_that_goes_backwards_is_not_used() {
        let readings = Cell::new(100);
        let meter = Meter {
            read: &mut || {
                readings.set(readings.get() - 10);
                Ok(readings.get())
            },
            run: &mut || Ok(1),
            is_over: &mut || false,
        };
        assert!(meter.measure().unwrap_err().message().contains("backwards"));
    }
}
