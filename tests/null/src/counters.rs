//! Simulated counters: their values follow from the number of launches, so that tests know them.

use std::sync::Arc;

use runtime_core::backend::{CounterSet, did_you_mean};
use runtime_core::device::{CounterInfo, CounterReading};
use runtime_core::{Error, ErrorKind, Result};

use crate::fault::{Faults, OnDrop};

/// A simulated counter.
#[derive(Debug)]
struct Simulated {
    name: &'static str,
    description: &'static str,
    unit: &'static str,
    per_launch: u64,
    /// Counters of one pass; those of another one need a pass of their own.
    pass: u32,
    /// Share of the time during which it counts.
    counted: f64,
    /// Whether the value does not grow with the launches.
    is_ratio: bool,
    unavailable: &'static str,
}

const LAUNCHES: Simulated = Simulated {
    name: "launches",
    description: "Kernels and no-ops that were submitted",
    unit: "",
    per_launch: 1,
    pass: 0,
    counted: 1.0,
    is_ratio: false,
    unavailable: "",
};
const SIMULATED: [Simulated; 6] = [
    LAUNCHES,
    Simulated {
        name: "ticks",
        description: "Simulated clock ticks",
        unit: "cycles",
        per_launch: 1000,
        ..LAUNCHES
    },
    Simulated {
        name: "bytes",
        description: "Simulated traffic; needs a pass of its own",
        unit: "bytes",
        per_launch: 64,
        pass: 1,
        ..LAUNCHES
    },
    Simulated {
        name: "stalls",
        description: "Simulated stalls; counted half of the time",
        unit: "",
        per_launch: 10,
        counted: 0.5,
        ..LAUNCHES
    },
    Simulated {
        name: "utilisation",
        description: "Simulated utilisation; always the same",
        unit: "%",
        per_launch: 40,
        is_ratio: true,
        ..LAUNCHES
    },
    Simulated {
        name: "misses",
        description: "An example of a counter that cannot be read",
        unavailable: "the simulated processor has no cache; use \"launches\"",
        ..LAUNCHES
    },
];

impl Simulated {
    fn reason(&self) -> Option<String> {
        (!self.unavailable.is_empty()).then(|| self.unavailable.to_owned())
    }
}

/// All counters.
pub(crate) fn list() -> Vec<CounterInfo> {
    let info = |counter: &Simulated| CounterInfo {
        name: counter.name.to_owned(),
        description: counter.description.to_owned(),
        unit: (!counter.unit.is_empty()).then(|| counter.unit.to_owned()),
        unavailable_reason: counter.reason(),
    };
    SIMULATED.iter().map(info).collect()
}

/// An open set.
#[derive(Debug)]
pub(crate) struct NullCounters {
    faults: Arc<Faults>,
    /// Each counter, and the number of launches in its pass.
    counters: Vec<(&'static Simulated, u64)>,
    /// The present pass, and the number of launches before it.
    begun: (u32, u64),
    _close: OnDrop,
}

impl NullCounters {
    /// Opens the counters of these names.
    pub(crate) fn open(faults: &Arc<Faults>, names: &[&str]) -> Result<Self> {
        let find = |name: &&str| {
            SIMULATED.iter().find(|counter| counter.name == *name).map(|counter| (counter, 0)).ok_or_else(
                || {
                    let known = SIMULATED.each_ref().map(|counter| counter.name);
                    let hint = did_you_mean(name, &known);
                    Error::new(ErrorKind::NotFound, format!("no counter \"{name}\"; {hint}"))
                },
            )
        };
        let counters = names.iter().map(find).collect::<Result<_>>()?;
        let close = OnDrop::new(faults, "close_counters");
        Ok(Self { faults: Arc::clone(faults), counters, begun: (0, 0), _close: close })
    }
}

impl CounterSet for NullCounters {
    fn passes(&self) -> u32 {
        let has = |pass| self.counters.iter().any(|(counter, _)| counter.pass == pass);
        if has(0) && has(1) { 2 } else { 1 }
    }

    fn unavailable_reasons(&self) -> Vec<Option<String>> {
        self.counters.iter().map(|(counter, _)| counter.reason()).collect()
    }

    fn begin(&mut self, pass: u32) -> Result<()> {
        self.faults.call("begin_counters")?;
        self.begun = (pass, self.faults.launches());
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.faults.call("end_counters")?;
        let (pass, before) = self.begun;
        let (launches, passes) = (self.faults.launches() - before, self.passes());
        for (counter, counted) in &mut self.counters {
            if passes == 1 || counter.pass == pass {
                *counted = launches;
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<Option<CounterReading>>> {
        self.faults.call("read_counters")?;
        #[expect(clippy::cast_precision_loss, reason = "few launches are simulated")]
        let reading = |(counter, launches): &(&Simulated, u64)| {
            counter.reason().is_none().then(|| CounterReading {
                value: (if counter.is_ratio { 1 } else { *launches } * counter.per_launch) as f64,
                counted: counter.counted,
                is_ratio: counter.is_ratio,
            })
        };
        Ok(self.counters.iter().map(reading).collect())
    }
}
